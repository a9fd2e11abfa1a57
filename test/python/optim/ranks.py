# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that are ranks of a Gloo group, kept for many tests.

Starting a process with torch takes seconds, so each number of ranks is started
once. A rank that fails or hangs ends its pool; the next test starts another.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

LIMIT_S = 120.0


def _serve(rank: int, world: int, path: str, folder: str, pipe: Any) -> None:
    sys.path.insert(0, folder)
    os.environ["LOCAL_RANK"] = str(rank)
    warnings.simplefilter("ignore")
    # With a GPU for each rank, tensors there go over NCCL.
    backend = "gloo"
    if torch.cuda.is_available() and torch.cuda.device_count() >= world:
        torch.cuda.set_device(rank)
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(
        backend, init_method=f"file://{path}", rank=rank, world_size=world
    )
    while True:
        job = pipe.recv()
        if job is None:
            break
        function, arguments = job
        try:
            pipe.send((True, function(*arguments)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
    dist.destroy_process_group()


class _Pool:
    def __init__(self, world: int) -> None:
        context = mp.get_context("spawn")
        self.folder = tempfile.TemporaryDirectory()
        store = os.path.join(self.folder.name, "store")
        here = os.path.dirname(__file__)
        self.pipes, self.processes = [], []
        for rank in range(world):
            near, far = context.Pipe()
            process = context.Process(
                target=_serve, args=(rank, world, store, here, far)
            )
            process.start()
            far.close()
            self.pipes.append(near)
            self.processes.append(process)

    def run(self, function: Callable[..., Any], arguments: Any) -> list[Any]:
        for pipe in self.pipes:
            pipe.send((function, arguments))
        end = time.monotonic() + LIMIT_S
        results: list[Any] = []
        for rank, pipe in enumerate(self.pipes):
            if not pipe.poll(max(0.0, end - time.monotonic())):
                raise AssertionError(f"rank {rank} gave no answer: {results}")
            results.append(pipe.recv())
        return results

    def close(self, *, kill: bool) -> None:
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            if kill:
                process.kill()
            elif process.is_alive():
                pipe.send(None)
        for process in self.processes:
            process.join(20)
            if process.is_alive():
                process.kill()
        self.folder.cleanup()


class Pools:
    """Ranks by their number."""

    def __init__(self) -> None:
        self._pools: dict[int, _Pool] = {}

    def __call__(
        self, world: int, function: Callable[..., Any], *arguments: Any
    ) -> list[Any]:
        """What the function returned on each rank.

        A failure on any rank is an AssertionError with all tracebacks.
        """
        pool = self._pools.get(world)
        if pool is None:
            pool = self._pools[world] = _Pool(world)
        try:
            results = pool.run(function, arguments)
        except BaseException:
            self._drop(world)
            raise
        failures = [
            f"rank {rank}:\n{value}"
            for rank, (good, value) in enumerate(results)
            if not good
        ]
        if failures:
            self._drop(world)
            raise AssertionError("\n".join(failures))
        return [value for _, value in results]

    def _drop(self, world: int) -> None:
        self._pools.pop(world).close(kill=True)

    def close(self) -> None:
        """Ends all ranks."""
        for pool in self._pools.values():
            pool.close(kill=False)
        self._pools.clear()
