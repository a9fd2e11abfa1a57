# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiled programs of a sharded optimizer, over its buckets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from dfa import _core
from dfa.optim.distributed.buckets import Buckets, Member
from dfa.optim.program import Instance, current_stream
from dfa.optim.steptext import norm_step, update_step
from dfa.optim.tensors import at_address

# A row of the runtime's segment states is 16 bytes: the step count (int64),
# the word that says whether there is a gradient, the generation (abi.h).
_STATE_WORDS = 4
_ACTIVE_OFFSET = 8


class ShardedEngine:
    """Reduce, norm and update of all buckets on this rank."""

    def __init__(
        self,
        buckets: Buckets,
        group: _core.Group | None,
        *,
        gathers: bool = True,
    ) -> None:
        """Nothing is compiled before it is used.

        Without ``gathers`` the update leaves parameters as they are on other
        ranks.
        """
        self.buckets = buckets
        self._gathers = gathers
        self.group = group
        self.axes = buckets.mesh.axes
        self._reducer: Instance | None = None
        self._updater: Instance | None = None
        self._norms: dict[str, Instance] = {}
        self._active: list[Tensor] = []
        self._all_active = True  # as the runtime starts
        self._seen: Tensor | None = None  # presence of all, on the device
        if group is not None:
            group.agree(buckets.layout.text)

    def _make(self, text: str) -> Instance:
        buckets = self.buckets
        return Instance(
            text,
            buckets.device,
            buckets.layout,
            rank=buckets.mesh.rank,
            group=self.group,
        )

    def _bind(self, instance: Instance, role: str, own: bool) -> None:
        """Binds one array of all classes, bucket by bucket."""
        for bucket in self.buckets.buckets:
            array = instance.array(bucket.class_index, role)
            if array < 0:
                continue
            if role == "grad":
                tensor = bucket.own_grad if own else bucket.grad
            elif role == "param":
                tensor = bucket.own_param if own else bucket.param
            else:
                tensor = self.buckets.shard(bucket, role)
            if tensor.numel():
                instance.optimizer.bind_bucket(
                    instance.index(bucket.class_index),
                    array,
                    bucket.number,
                    tensor.data_ptr(),
                )

    @property
    def reducer(self) -> Instance:
        """Reduces buckets, and takes norm and flag of what they hold."""
        if self._reducer is None:
            made = self._make(
                norm_step(
                    self.buckets.classes, self.axes, reduce=bool(self.axes)
                )
            )
            self._bind(made, "grad", own=not self.axes)
            made.prepare()
            self._reducer = made
        return self._reducer

    @property
    def updater(self) -> Instance:
        """Updates and gathers."""
        if self._updater is None:
            made = self._make(
                update_step(
                    self.buckets.classes, self.axes, gather=self._gathers
                )
            )
            self._bind(made, "grad", own=True)
            roles = {
                role
                for spec in self.buckets.classes
                for role, _ in spec.arrays
                if role != "grad"
            }
            for role in sorted(roles):
                self._bind(made, role, own=not self._gathers)
            made.prepare()
            self._updater = made
            self._active = [
                self._active_words(index)
                for index in range(len(self.buckets.classes))
            ]
        return self._updater

    @property
    def has_updater(self) -> bool:
        """Whether step counts are on the device already."""
        return self._updater is not None

    def norm(
        self,
        members: Sequence[Member] | None,
        kind: str = "l2",
        order: float | None = None,
    ) -> Instance:
        """Takes the norm of reduced gradients, of some parameters or all."""
        key = kind if order is None else f"{kind} {order}"
        instance = self._norms.get(key)
        if instance is None:
            instance = self._make(
                norm_step(
                    self.buckets.classes, self.axes, kind=kind, order=order
                )
            )
            self._bind(instance, "grad", own=True)
            instance.prepare()
            self._norms[key] = instance
        for index, words in enumerate(self._presence(members)):
            instance.optimizer.set_presents(instance.index(index), words)
        instance.finish()
        return instance

    def _presence(self, members: Sequence[Member] | None) -> list[bytes]:
        counts = self._counts()
        if members is None:
            return [b"\x01" * count for count in counts]
        words = [bytearray(count) for count in counts]
        for member in members:
            words[member.class_index][member.segment] = 1
        return [bytes(row) for row in words]

    def _counts(self) -> list[int]:
        counts = [0] * len(self.buckets.classes)
        for member in self.buckets.members:
            counts[member.class_index] += 1
        return counts

    # === Presence, hyper-parameters, step counts =============================

    def _active_words(self, index: int) -> Tensor:
        """The words that say which parameters have a gradient."""
        count = self._counts()[index]
        device = self.buckets.device
        if count == 0:
            return torch.empty(0, dtype=torch.int32, device=device)
        updater = self._updater
        address = updater.optimizer.step_address(updater.index(index), 0)
        return at_address(
            address + _ACTIVE_OFFSET,
            torch.int32,
            device,
            updater.optimizer,
            (count,),
            (_STATE_WORDS,),
        )

    def set_present(self, members: set[Member], *, everyone: bool) -> None:
        """Says which parameters the update touches, the same on all ranks.

        What any rank saw counts; with ``everyone`` all parameters do.
        """
        self.updater  # noqa: B018 - its words must exist
        mesh = self.buckets.mesh
        full = everyone or len(members) == len(self.buckets.members)
        if full and (everyone or mesh.size == 1):
            if not self._all_active:
                for words in self._active:
                    words.fill_(1)
            self._all_active = True
            return
        self._all_active = False
        local = self._seen if full else None
        if local is None:
            rows = self._presence(None if full else list(members))
            local = torch.tensor(list(b"".join(rows)), dtype=torch.int32)
            local = local.to(self.buckets.device)
            self._seen = local if full else self._seen
        if mesh.size > 1:
            local = local.clone()
            dist.all_reduce(
                local, op=dist.ReduceOp.MAX, group=mesh.process_group
            )
        at = 0
        for words in self._active:
            words.copy_(local[at : at + words.numel()])
            at += words.numel()

    def set_hyper(self, group: int, values: tuple[Any, ...]) -> None:
        """A row of the group table; uploaded with the next step."""
        # The runtime's table ends with the last group that has parameters.
        if group <= self.buckets.last_group:
            # One rule, or its kin: they have the same columns.
            names = self.buckets.classes[0].rule.hyper
            self.updater.set_hyper(group, names, values)

    def push(self) -> None:
        """Uploads rows that changed, for the replay of a user's capture."""
        self.updater.optimizer.push(current_stream(self.buckets.device))

    def steps(self, member: Member) -> Tensor:
        """A parameter's step count (int64), sharing the device's memory."""
        return self.updater.steps(member.class_index, member.segment)

    def close(self) -> None:
        """Waits for the work and releases the programs."""
        made = [self._reducer, self._updater, *self._norms.values()]
        for instance in made:
            if instance is not None:
                instance.close()
        self._reducer = self._updater = None
        self._norms.clear()
        self._active = []
