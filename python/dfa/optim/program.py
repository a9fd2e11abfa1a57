# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled steps on torch's devices: compilation, streams, control fields."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from dfa import _core
from dfa.cache import compile_step
from dfa.optim.steptext import class_name
from dfa.optim.tensors import at_address

#: Control fields and the dtypes that views of them have.
_FIELDS = {
    "norm": torch.float64,
    "factor": torch.float32,
    "found_inf": torch.int32,
    "step": torch.int64,
    "skipped": torch.int64,
}


@functools.cache
def runtime_device(kind: str, ordinal: int) -> _core.Device:
    """The runtime's handle of a device; one a process and device.

    On CUDA its memory comes from torch's caching allocator.
    """
    if kind == "cpu":
        return _core.Device.cpu()
    if kind != "cuda":
        raise ValueError(f"expects tensors on cpu or cuda, but got '{kind}'")
    device = _core.Device.cuda(ordinal)

    def allocate(size: int, stream: int) -> int:
        return torch.cuda.caching_allocator_alloc(size, ordinal, stream)

    def free(address: int, _size: int) -> None:
        torch.cuda.caching_allocator_delete(address)

    device.set_allocator(allocate, free)
    return device


def device_of(device: torch.device) -> _core.Device:
    """``runtime_device`` of a torch device."""
    ordinal = device.index
    if ordinal is None:
        ordinal = torch.cuda.current_device() if device.type == "cuda" else 0
    return runtime_device(device.type, ordinal)


def current_stream(device: torch.device) -> int:
    """The stream torch issues work to; 0 on the CPU."""
    if device.type != "cuda":
        return 0
    # torch.cuda.current_stream makes an object each time.
    return torch._C._cuda_getCurrentRawStream(device.index)


@functools.cache
def compiled(text: str, target: str, chip: str) -> _core.Artifact:
    """The machine code of a step; from the cache on disk if it is there."""
    step = _core.Step(text, "<optimizer step>")
    options: dict[str, object] = {"chip": chip} if chip else {}
    artifact, _ = compile_step(step, target, options)
    return artifact


class Instance:
    """One program on one layout, with its own tables and control block."""

    def __init__(
        self,
        text: str,
        device: torch.device,
        layout: _core.Layout,
        *,
        rank: int = 0,
        group: _core.Group | None = None,
    ) -> None:
        """Compiles ``text`` if needed. Bind arrays, then call ``prepare``."""
        self.device = device
        handle = device_of(device)
        target = "cuda" if device.type == "cuda" else "cpu"
        artifact = compiled(text, target, handle.chip)
        self.program = _core.Program(artifact.program_text)
        extra: dict[str, Any] = {} if group is None else {"group": group}
        self.optimizer = _core.Optimizer(
            handle,
            self.program,
            layout,
            artifact,
            rank=rank,
            replay=device.type == "cuda",
            **extra,
        )
        self.entry_finish = self.program.entry("finish")
        self._reduce = self.program.entry("reduce")
        self._fields: dict[str, Tensor] = {}
        self._hyper: dict[tuple[int, int], float] = {}

    def index(self, class_index: int) -> int:
        """The program's index of the class that the text calls so."""
        return self.program.class_index(class_name(class_index))

    def array(self, class_index: int, role: str) -> int:
        """The index of an array, -1 if the program has none of the role."""
        return self.program.array(self.index(class_index), role)

    def set_hyper(
        self, group: int, names: tuple[str, ...], values: tuple[Any, ...]
    ) -> None:
        """A row of the group table, by name; uploaded with the next run.

        The program decides which columns there are, and their order. A tensor
        is copied on the device, in stream order, so its value is never read
        here, and a captured step reads it anew in each replay.
        """
        live = []
        changed = False
        for name, value in zip(names, values, strict=True):
            column = self.program.hyper(name)
            if column < 0:
                continue
            if isinstance(value, Tensor):
                live.append((column, value))
            elif self._hyper.get((group, column)) != value:
                self._hyper[group, column] = value
                self.optimizer.set_hyper(group, column, value)
                changed = True
        if live and changed:
            # A later upload of the table would overwrite what is copied.
            self.optimizer.push(current_stream(self.device))
        for column, value in live:
            address = self.optimizer.hyper_address(group, column)
            cell = at_address(
                address, torch.float64, self.device, self.optimizer
            )
            cell.copy_(value.detach().reshape(()))

    def is_pending(
        self, group: int, names: tuple[str, ...], values: tuple[Any, ...]
    ) -> bool:
        """Whether ``set_hyper`` would change a value that it was given."""
        return any(
            not isinstance(value, Tensor)
            and self._hyper.get((group, self.program.hyper(name)), value)
            != value
            for name, value in zip(names, values, strict=True)
        )

    def prepare(self) -> None:
        """Allocates tables, loads code; waits until the device is ready."""
        self.optimizer.prepare(current_stream(self.device))

    def finish(self) -> None:
        """Runs the step on torch's current stream, without waiting."""
        self.optimizer.run(self.entry_finish, current_stream(self.device))

    def reduce(self) -> None:
        """Reduces all buckets (programs with collectives on gradients)."""
        if self._reduce >= 0:
            self.optimizer.run(self._reduce, current_stream(self.device))

    def reduce_bucket(self, class_index: int, bucket: int) -> None:
        """Starts the reduction of one bucket (counted within its class)."""
        if self._reduce >= 0:
            self.optimizer.run_bucket(
                self._reduce,
                self.index(class_index),
                bucket,
                current_stream(self.device),
            )

    def join(self) -> None:
        """Orders the current stream behind buckets that have started."""
        self.optimizer.join(current_stream(self.device))

    def field(self, name: str) -> Tensor:
        """A control field as a 0-dim tensor that shares its memory."""
        found = self._fields.get(name)
        if found is None:
            address = self.optimizer.control_address(name)
            found = at_address(
                address, _FIELDS[name], self.device, self.optimizer
            )
            self._fields[name] = found
        return found

    def steps(self, class_index: int, segment: int) -> Tensor:
        """A parameter's step count (int64, 0-dim), sharing its memory."""
        address = self.optimizer.step_address(self.index(class_index), segment)
        return at_address(address, torch.int64, self.device, self.optimizer)

    def mirror(self, name: str) -> float:
        """A control field as the last finished step left it; never waits."""
        return self.optimizer.mirror_control(name)

    def close(self) -> None:
        """Waits for the work, and releases what the program holds."""
        self._fields.clear()
        self.optimizer.close()
