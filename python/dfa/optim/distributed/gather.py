# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters that are gathered while the next forward pass begins.

A step starts all gathers, those of the first layers first; hooks of modules
wait for what their forward reads. Nothing here decides what is in a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from dfa.optim.distributed.buckets import Bucket, Buckets, Member

#: Modules that hold others and read none of their parameters.
_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


class Gathers:
    """Gathers of buckets that have started and that nobody waited for yet."""

    def __init__(self, group: Any) -> None:
        """``group`` is of the ranks that share one copy of the states."""
        self.pending: dict[Bucket, Any] = {}
        self._group = group

    def start(self, buckets: Buckets) -> None:
        """Starts the gathers of all buckets; a collective.

        The order is the same on every rank: that of the forward pass, if
        gradients arrive in the order of the plan.
        """
        for bucket in reversed(buckets.order):
            if bucket.param.numel():
                self.pending[bucket] = dist.all_gather_into_tensor(
                    bucket.param.view(torch.uint8),
                    bucket.own_param.view(torch.uint8),
                    group=self._group,
                    async_op=True,
                )
            else:
                self.pending[bucket] = None

    def wait(self, bucket: Bucket, buckets: Buckets) -> None:
        """Waits for one bucket, and copies it where it is no view."""
        if bucket not in self.pending:
            return
        work = self.pending.pop(bucket)
        if work is not None:
            work.wait()
        buckets.fetch_params(bucket.members)

    def wait_all(self, buckets: Buckets) -> None:
        """Waits for everything that has started."""
        for bucket in list(self.pending):
            self.wait(bucket, buckets)


def reads(module: nn.Module) -> Iterator[Tensor]:
    """Parameters that a module's forward may read without calling a child.

    These are its own and those of its descendants up to containers: some
    modules read a child's weight (``nn.MultiheadAttention`` that of
    ``out_proj``), and what is in a container is waited for by its own hooks.
    """
    yield from module.parameters(recurse=False)
    if isinstance(module, _CONTAINERS):
        return
    for child in module.children():
        if not isinstance(child, _CONTAINERS):
            yield from reads(child)


class _Wait:
    """A hook: waits for the buckets of some parameters.

    A copy of the module, or a pickle of it, has a hook that does nothing: its
    parameters are its own.
    """

    def __init__(self, wait: Callable[[list[Member]], None], members: Any):
        self._wait, self._members = wait, members

    def __call__(self, *_: Any) -> None:
        self._wait(self._members)

    def __deepcopy__(self, memo: Any) -> Callable[..., None]:
        return _nothing

    def __reduce__(self) -> Any:
        return _no_hook, ()


def _nothing(*_: Any) -> None:
    """Stands for the hook in copies of a module."""


def _no_hook() -> Callable[..., None]:
    return _nothing


class LazyGather:
    """The part of DistributedFusedAdam that gathers parameters."""

    def _start_gather(self) -> None:
        #: Parameters whose modules wait for them.
        self._attached: set[Member] = set()
        self._gathers = None
        if self.overlap_param_sync and self._mesh.shard > 1:
            self._gathers = Gathers(self._mesh.distributed_group)

    def attach(self, model: nn.Module) -> None:
        """Lets ``step`` return before the model's parameters are gathered.

        With ``overlap_param_sync`` every module of the model waits for what
        it reads, before its forward and before it saves or loads a state
        dict; in training and in evaluation. What else reads parameters (an
        average of weights, a deep copy of the model) calls
        :meth:`param_sync` before. Without ``overlap_param_sync`` nothing
        changes.

        Raises:
            RuntimeError: a trainable parameter of the model is not managed.
        """
        for param in model.parameters():
            if param.requires_grad:
                self._managed(param)
        if self._gathers is None:
            return
        for module in model.modules():
            members = self._members_of(reads(module))
            hook = _Wait(self._wait_for, members)
            self._attached.update(members)
            own = _Wait(
                self._wait_for,
                self._members_of(module.parameters(recurse=False)),
            )
            self._hooks.append(
                module.register_forward_pre_hook(hook, prepend=True)
            )
            self._hooks.append(module.register_state_dict_pre_hook(own))
            self._hooks.append(module.register_load_state_dict_pre_hook(own))

    def _members_of(self, params: Iterator[Tensor]) -> list[Member]:
        found = (self._member_of.get(param) for param in params)
        return [member for member in dict.fromkeys(found) if member is not None]

    @torch.no_grad()
    def _wait_for(self, members: list[Member]) -> None:
        gathers = self._gathers
        if not gathers.pending:
            return
        for member in members:
            gathers.wait(member.bucket, self._buckets)

    def _gather_params(self) -> None:
        """Starts gathers, and waits for those that no module waits for."""
        if self._gathers is None:
            self._buckets.fetch_params(self._buckets.loose())
            return
        self._gathers.start(self._buckets)
        for bucket in self._buckets.order:
            if not self._attached.issuperset(bucket.members):
                self._gathers.wait(bucket, self._buckets)

    @torch.no_grad()
    def param_sync(self) -> None:
        """Ends the gathers of all parameters."""
        if self._gathers is not None:
            self._gathers.wait_all(self._buckets)
