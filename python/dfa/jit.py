# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled steps as callables on tensors of any framework.

The tensors are looked at, never copied: torch, NumPy, CuPy and whatever else
speaks DLPack or the buffer protocol. Optimizers for torch are elsewhere in the
package; this is the bare step.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from dfa import _core
from dfa._binding import ClassFacts, ParamFacts, StepFacts, TensorLook
from dfa._live import Control, Group
from dfa.cache import compile_step
from dfa.passes import read_text

__all__ = ["Control", "Group", "Jitted", "jit"]

_OPTIONS = frozenset(
    {
        "chip",
        "format",
        "ptxas",
        "vector_width",
        "block",
        "unroll",
        "max_registers",
    }
)


class Jitted:
    """A compiled step. Made by :func:`jit`.

    Calling it binds what is given and runs one step::

        step = dfa.jit("step.mlir")
        step(grad={"w": g}, param={"w": p})   # binds, and runs
        step()                                # runs on the same memory
        step(grad={"w": other})               # another gradient from now on

    A keyword is a role of the step function ("grad", "param", "master",
    "remainder", or the name of a state such as "exp_avg"), its value a mapping
    from parameter names to tensors. A step of one parameter also takes the
    tensor itself. ``None`` for a gradient says that the parameter has none in
    this step and from now on: it is left as it is, and its step count too.

    A tensor must have the parameter's shape, the role's element type (a
    remainder: 16-bit integers) and, dims of size 1 apart, the strides that the
    layout's ``order`` gives: dense and row-major without one. It must lie on
    the step's device, and is written in place.

    Before the first run every "param" and every "grad" must be bound. What is
    not bound is the step's own: states start as zeros, a master as the
    parameter's value at the first run, and :meth:`array` shows them.

    Work is queued on ``stream`` (a handle as int, or an object with
    ``cuda_stream``); by default torch's current stream if torch is loaded, else
    the device's default stream. On the CPU a call returns when it is done.

    Errors: TypeError for what is no tensor or has another element type;
    ValueError for unknown names, wrong shapes, strides or devices; RuntimeError
    for a step that misses an array; :class:`dfa.DeviceError`.
    """

    def __init__(
        self,
        step: _core.Step,
        artifact: _core.Artifact,
        origin: str,
        device: _core.Device,
        replay: bool,
    ) -> None:
        self._step = step
        self._artifact = artifact
        self._device = device
        self._facts = StepFacts(json.loads(step.facts))
        if self._facts.ranks != 1:
            raise ValueError(
                "expects a step for one rank, but its mesh has "
                f"{self._facts.ranks}; steps of several ranks run in "
                "dfa.DistributedFusedAdam and dfa-run"
            )
        self.origin = origin
        self._program = _core.Program(artifact.program_text)
        self._layout = self._facts.plan()
        self._optimizer = _core.Optimizer(
            device, self._program, self._layout, artifact, replay=replay
        )
        self._entries = [
            entry
            for name in ("reduce", "finish")
            if (entry := self._program.entry(name)) >= 0
        ]
        self._places = self._layout.placements()
        self._classes = [
            self._program.class_index(cls.name) for cls in self._facts.classes
        ]
        # What was bound, so that it lives; and where it lies.
        self._tensors: dict[tuple[str, str], Any] = {}
        self._absent: set[str] = set()
        self._is_prepared = False
        self._given_stream: Any = None
        self.groups = self._make_groups()
        self.control = Control(self)
        for field, value in self._facts.control.items():
            self._optimizer.set_control(field, value)

    def _make_groups(self) -> list[Group]:
        columns = {
            name: column
            for name in self._facts.hyper_names(self._artifact.program_text)
            if (column := self._program.hyper(name)) >= 0
        }
        groups = []
        for index, values in enumerate(self._facts.hypers(columns)):
            group = Group(self._optimizer, index, columns)
            group.update(values)
            groups.append(group)
        return groups

    # Public.

    def __call__(self, *, stream: Any = None, **roles: Any) -> None:
        """Binds ``roles``, if there are any, and runs one step."""
        if stream is not None:
            self._given_stream = stream
        if roles:
            self.bind(**roles)
        optimizer = self._optimizer if self._is_prepared else self._prepare()
        handle = self._stream()
        for entry in self._entries:
            optimizer.run(entry, handle)

    def bind(self, **roles: Any) -> None:
        """Binds tensors without running; the class says how.

        Nothing is bound if any of them is wrong.
        """
        checked = []
        for role, tensors in roles.items():
            for param, tensor in self._items(role, tensors):
                checked.append(self._check(role, param, tensor))
        for role, param, tensor, look in checked:
            self._bind(role, param, tensor, look)

    def array(self, role: str, name: str | None = None) -> Any:
        """An array of a parameter, as an object with ``__dlpack__``.

        It is what was bound, or the step's own memory (after the first run);
        the latter stays as long as the returned object. Wait for the device
        before you read it elsewhere: :meth:`synchronize`.

        Args:
            role: as in a call.
            name: the parameter; a step of one parameter needs none.
        """
        param = self._facts.find_param(name)
        cls, array = self._find_array(role, param)
        bound = self._tensors.get((role, param.name))
        if bound is not None:
            return bound
        address = self._prepared().segment_address(
            self._classes[param.cls], array, self._places[param.index].segment
        )
        element = cls.format_of(role)
        return _core.view(
            address,
            param.shape,
            param.strides,
            "i16" if element == "remainder" else element,
            self._device.kind,
            self._device.ordinal,
            self,
        )

    def steps(self, name: str | None = None) -> int:
        """How many updates a parameter has had; waits."""
        param = self._facts.find_param(name)
        return self._prepared().fetch_step(
            self._classes[param.cls],
            self._places[param.index].segment,
            self._stream(),
        )

    def synchronize(self) -> None:
        """Waits for everything that was queued on the stream."""
        self._device.synchronize(self._stream())

    def report(self, **options: float) -> dict[str, Any]:
        """What the step costs: launches, bytes an element, floor in ms.

        Args:
            **options: ``bandwidth`` and ``link`` in GB/s, ``replicate`` and
                ``shard`` for the mesh to assume.

        Returns:
            The report of ``dfa-opt --dfa-report=format=json``.
        """
        return json.loads(self._step.report(**options))

    @property
    def program(self) -> str:
        """The program that the runtime executes, as text."""
        return self._artifact.program_text

    @property
    def code(self) -> bytes:
        """The CUDA image, or the host's object file."""
        return self._artifact.code

    @property
    def target(self) -> str:
        """What it was compiled for: "cpu" or "cuda"."""
        return self._artifact.target

    @property
    def device(self) -> str:
        """What a person calls the device."""
        return self._device.name

    @property
    def roles(self) -> dict[str, list[str]]:
        """Roles that can be bound, and the parameters that have them."""
        roles: dict[str, list[str]] = {}
        for param in self._facts.params:
            cls = self._facts.classes[param.cls]
            for role in cls.formats:
                if self._program.array(self._classes[param.cls], role) >= 0:
                    roles.setdefault(role, []).append(param.name)
        return roles

    # Binding.

    def _items(self, role: str, tensors: Any) -> list[tuple[ParamFacts, Any]]:
        if role not in self.roles:
            known = ", ".join(self.roles)
            raise ValueError(
                f"expects roles of the step ({known}), but got '{role}'"
            )
        if not isinstance(tensors, Mapping):
            return [(self._facts.find_param(None), tensors)]
        return [
            (self._facts.find_param(name), tensor)
            for name, tensor in tensors.items()
        ]

    def _find_array(
        self, role: str, param: ParamFacts
    ) -> tuple[ClassFacts, int]:
        cls = self._facts.classes[param.cls]
        array = self._program.array(self._classes[param.cls], role)
        if array < 0 or role not in cls.formats:
            raise ValueError(
                f"expects a role of class @{cls.name} for parameter "
                f"'{param.name}', but got '{role}'"
            )
        return cls, array

    def _check(
        self, role: str, param: ParamFacts, tensor: Any
    ) -> tuple[str, ParamFacts, Any, TensorLook | None]:
        cls, _ = self._find_array(role, param)
        if tensor is None:
            if role != "grad":
                raise TypeError(
                    f"expects a tensor as {role} of '{param.name}', but got "
                    "None"
                )
            return role, param, None, None
        look = TensorLook(tensor)
        look.check(
            f"{role} of '{param.name}'",
            param,
            cls.format_of(role),
            self._device.kind,
            self._device.ordinal,
        )
        return role, param, tensor, look

    def _bind(
        self,
        role: str,
        param: ParamFacts,
        tensor: Any,
        look: TensorLook | None,
    ) -> None:
        _, array = self._find_array(role, param)
        index = self._classes[param.cls]
        segment = self._places[param.index].segment
        if role == "grad":
            self._optimizer.set_present(index, segment, tensor is not None)
        if look is None:
            self._absent.add(param.name)
            return
        if role == "grad":
            self._absent.discard(param.name)
        self._tensors[role, param.name] = look.tensor
        if param.elements:
            self._optimizer.bind_segment(index, array, segment, look.address)

    # Running.

    def _prepared(self) -> _core.Optimizer:
        return self._optimizer if self._is_prepared else self._prepare()

    def _prepare(self) -> _core.Optimizer:
        roles = self.roles
        for role in ("param", "grad"):
            missing = [
                name
                for name in roles.get(role, [])
                if (role, name) not in self._tensors
                and not (role == "grad" and name in self._absent)
            ]
            if missing:
                raise RuntimeError(
                    f"expects a tensor as {role} of every parameter before "
                    f"the first step, but misses '{missing[0]}'"
                    + (f" and {len(missing) - 1} more" if missing[1:] else "")
                )
        stream = self._stream()
        self._optimizer.prepare(stream)
        self._is_prepared = True
        for name in roles.get("master", []):
            if ("master", name) not in self._tensors:
                self._start_master(self._facts.find_param(name), stream)
        return self._optimizer

    def _start_master(self, param: ParamFacts, stream: int) -> None:
        """Gives a master of the step's own the parameter's value."""
        tensor = self._tensors.get(("param", param.name))
        if tensor is None or not param.elements:
            return
        cls, array = self._find_array("master", param)
        target = self._optimizer.segment_address(
            self._classes[param.cls], array, self._places[param.index].segment
        )
        narrow, wide = cls.format_of("param"), cls.format_of("master")
        count = param.elements
        source = bytearray(count * (int(narrow.lstrip("bf")) // 8))
        values = bytearray(count * (int(wide.lstrip("bf")) // 8))
        source_at = _core.describe(source).address
        values_at = _core.describe(values).address
        device = self._device
        device.copy(source_at, TensorLook(tensor).address, len(source), stream)
        device.synchronize(stream)
        _core.widen(source_at, narrow, values_at, wide, count)
        device.copy(target, values_at, len(values), stream)
        device.synchronize(stream)

    def _stream(self) -> int:
        if self._device.kind == "cpu":
            return 0
        given = self._given_stream
        if given is None:
            torch = sys.modules.get("torch")
            if torch is None:
                return 0
            given = torch.cuda.current_stream(self._device.ordinal)
        return int(getattr(given, "cuda_stream", given))


def jit(
    text_or_path: str | os.PathLike[str],
    target: str = "cpu",
    *,
    threads: int = 0,
    ordinal: int = 0,
    replay: bool = False,
    cache: bool = True,
    **options: Any,
) -> Jitted:
    """Compiles a step and makes it callable on tensors.

    Args:
        text_or_path: a module with a layout and a function ``@step``: the
            text, or a path (an ``os.PathLike``, or a string ending in
            ``.mlir``).
        target: "cpu", or "cuda" for the GPU ``ordinal``.
        threads: of the CPU; 0: DFA_NUM_THREADS, or all cores.
        ordinal: which GPU.
        replay: record the step once and replay it (CUDA graph).
        cache: use the compile cache (see :mod:`dfa.cache`).
        **options: of code generation. ``vector_width`` for both targets;
            for CUDA ``chip`` (default: the device's), ``format`` ("cubin",
            "fatbin" or "ptx"), ``ptxas``, ``block``, ``unroll``,
            ``max_registers``.

    Returns:
        The step; :class:`Jitted` says how to call it.

    Raises:
        dfa.CompileError: the module is wrong; ``.diagnostics`` say where.
        dfa.DeviceError: there is no such device.
        ValueError: wrong target, or a step for more than one rank.
        TypeError: unknown option.
        OSError: the file cannot be read.
    """
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise TypeError(
            f"expects options {', '.join(sorted(_OPTIONS))}, but got "
            f"'{unknown[0]}'"
        )
    if target not in ("cpu", "cuda"):
        raise ValueError(f"expects target 'cpu' or 'cuda', but got '{target}'")
    text, source = read_text(text_or_path)
    step = _core.Step(text, source)
    if target == "cuda":
        device = _core.Device.cuda(ordinal)
        options.setdefault("chip", device.chip)
    else:
        device = _core.Device.cpu(threads)
    artifact, origin = compile_step(step, target, options, cache)
    return Jitted(step, artifact, origin, device, replay)
