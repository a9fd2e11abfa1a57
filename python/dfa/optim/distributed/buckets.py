# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where parameters lie in buckets, and the memory of the buckets.

The plan is the runtime's; here are torch's tensors over it. Nothing is
communicated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dfa import _core
from dfa.optim.distributed.mesh import Mesh
from dfa.optim.steptext import ClassSpec, class_name
from dfa.optim.tensors import (
    dtype_of,
    flat,
    join_remainder,
    split_remainder,
)


@dataclass(eq=False)
class Member:
    """One parameter under management."""

    param: Tensor
    group: int
    name: str
    spec: ClassSpec
    unit: int = -1
    epoch: int = 0
    # From the plan.
    class_index: int = -1
    segment: int = -1
    start: int = 0
    bucket: Bucket | None = None
    #: Whether the parameter is a view of its bucket.
    bound: bool = False
    #: Version counter and address when the exact copy was last in step.
    version: int = -1
    address: int = 0
    #: Its number among the members.
    position: int = -1
    _grad_view: Tensor | None = None

    @property
    def numel(self) -> int:
        """Number of elements."""
        return self.param.numel()

    def view(self, buffer: Tensor) -> Tensor:
        """The parameter's part of a full bucket, in its shape."""
        param = self.param
        return torch.as_strided(
            buffer,
            param.shape,
            param.stride(),
            buffer.storage_offset() + self.start,
        )

    @property
    def grad_view(self) -> Tensor:
        """Its part of the bucket's gradients; one tensor for each plan."""
        if self._grad_view is None:
            self._grad_view = self.view(self.bucket.grad)
        return self._grad_view

    def own_range(self) -> tuple[int, int]:
        """Elements that this rank owns, counted from the parameter's first."""
        bucket = self.bucket
        low = bucket.shard_begin - self.start
        high = low + bucket.shard_elements
        return max(0, min(low, self.numel)), max(0, min(high, self.numel))


@dataclass(eq=False)
class Bucket:
    """One unit of communication."""

    class_index: int
    number: int  # within the class
    shard_elements: int
    shard_base: int
    shard_begin: int  # of this rank, within the bucket
    grad: Tensor  # full
    param: Tensor  # full
    members: list[Member] = field(default_factory=list)
    # What gradients are in it, see sync.py.
    filled: set[Member] = field(default_factory=set)
    arrived: set[Member] = field(default_factory=set)  # in this pass
    started: bool = False
    reduced: bool = False
    carry: Tensor | None = None

    @property
    def own_grad(self) -> Tensor:
        """The part of the gradients that this rank owns."""
        return self.grad.narrow(0, self.shard_begin, self.shard_elements)

    @property
    def own_param(self) -> Tensor:
        """The part of the parameters that this rank owns."""
        return self.param.narrow(0, self.shard_begin, self.shard_elements)


class Buckets:
    """The plan for all members, and its buffers on one device."""

    def __init__(
        self,
        members: Sequence[Member],
        order: Sequence[int],
        mesh: Mesh,
        device: torch.device,
        bucket_bytes: int,
    ) -> None:
        """Plans and allocates.

        Args:
            members: all parameters; ``order`` lists them in the order in
                which buckets are filled.
            order: see ``members``.
            mesh: the ranks.
            device: where buffers are.
            bucket_bytes: bound of a bucket, in bytes of its gradients.
        """
        self.members = list(members)
        #: Answers for all members at once, where torch can be read so.
        self.watch: _core.TensorWatch | None = None
        self._loose: list[Member] | None = None
        self.last_group = max((m.group for m in self.members), default=-1)
        self.mesh = mesh
        self.device = device
        self.classes = list(dict.fromkeys(m.spec for m in self.members))
        self.layout = self._plan(order, bucket_bytes)
        self._allocate()

    def _plan(self, order: Sequence[int], bucket_bytes: int) -> _core.Layout:
        layout = _core.Layout(
            replicate=self.mesh.replicate,
            shard=self.mesh.shard,
            bucket_bytes=bucket_bytes,
            fill_order=list(order),
        )
        for index, spec in enumerate(self.classes):
            layout.add_class(class_name(index), spec.grad)
            for role, fmt in spec.arrays:
                layout.add_array(role, fmt)
        for number, member in enumerate(self.members):
            member.class_index = self.classes.index(member.spec)
            param = member.param
            layout.add_param(
                f"{number}:{member.name}",
                tuple(param.shape),
                strides=tuple(param.stride()) if param.numel() else None,
                class_index=member.class_index,
                group=member.group,
                unit=member.unit,
                epoch=member.epoch,
            )
        layout.plan()
        return layout

    def _allocate(self) -> None:
        infos = self.layout.buckets()
        totals = [[0, 0] for _ in self.classes]
        for info in infos:
            totals[info.class_index][0] += info.full_elements
            totals[info.class_index][1] += info.shard_elements
        self.grads: list[Tensor] = []
        self.params: list[Tensor] = []
        #: Per class, by role: this rank's part of all buckets.
        self.shards: list[dict[str, Tensor]] = []
        for spec, (full, shard) in zip(self.classes, totals, strict=True):
            self.grads.append(self._zeros(full, spec.grad))
            self.params.append(self._zeros(full, spec.param))
            self.shards.append(
                {
                    role: self._zeros(shard, fmt)
                    for role, fmt in spec.arrays
                    if role not in ("grad", "param")
                }
            )
        self.buckets: list[Bucket] = []
        counts = [0] * len(self.classes)
        for info in infos:
            index, base = info.class_index, info.full_base
            size = info.full_elements
            self.buckets.append(
                Bucket(
                    index,
                    counts[index],
                    info.shard_elements,
                    info.shard_base,
                    self.mesh.shard_rank * info.shard_elements,
                    self.grads[index].narrow(0, base, size),
                    self.params[index].narrow(0, base, size),
                )
            )
            counts[index] += 1
        placed = zip(self.members, self.layout.placements(), strict=True)
        for member, place in placed:
            member.start, member.segment = place.start, place.segment
            member.bucket = self.buckets[place.bucket]
            member._grad_view = None
            member.bucket.members.append(member)
        self.order = [
            self.buckets[self.layout.bucket_at(position)]
            for position in range(len(self.buckets))
        ]

    def _zeros(self, count: int, fmt: str) -> Tensor:
        return torch.zeros(count, dtype=dtype_of(fmt), device=self.device)

    def shard(self, bucket: Bucket, role: str) -> Tensor:
        """The part of a bucket's state, or master, that this rank owns."""
        whole = self.shards[bucket.class_index][role]
        return whole.narrow(0, bucket.shard_base, bucket.shard_elements)

    def own(self, member: Member, role: str) -> Tensor:
        """What this rank owns of one parameter's state, in memory order."""
        low, high = member.own_range()
        bucket = member.bucket
        at = member.start + low - bucket.shard_begin
        if high <= low:
            at = 0
        return self.shard(bucket, role).narrow(0, at, high - low)

    # === Parameters ==========================================================

    def bind_param(self, member: Member) -> None:
        """Puts a parameter into its bucket, as a view if dtypes agree."""
        view = member.view(member.bucket.param)
        view.copy_(member.param.detach())
        member.bound = view.dtype == member.param.dtype
        self._loose = None
        if member.bound:
            member.param.data = view

    def fetch_params(self, members: Sequence[Member]) -> None:
        """Copies gathered buckets to the parameters that are no views."""
        for member in members:
            if member.bound or not member.numel:
                continue
            member.param.copy_(member.view(member.bucket.param))
            self.mark(member)

    def take_master(self, member: Member) -> None:
        """Makes the exact copy, and the bucket, agree with the parameter."""
        if not member.bound:
            member.view(member.bucket.param).copy_(member.param.detach())
        roles = self.shards[member.class_index]
        low, high = member.own_range()
        if "master" in roles:
            source = flat(member.param.detach())[low:high]
            self.own(member, "master").copy_(source)
        if "remainder" in roles:
            self.own(member, "remainder").zero_()
        self.mark(member)

    def set_exact(self, member: Member, exact: Tensor) -> None:
        """Sets parameter and exact copy from float32 values in memory order."""
        roles = self.shards[member.class_index]
        low, high = member.own_range()
        exact = exact.to(self.device)
        whole = member.view(member.bucket.param)
        if "remainder" in roles:
            top, rest = split_remainder(exact)
            flat(whole).copy_(top)
            self.own(member, "remainder").copy_(rest[low:high])
        else:
            flat(whole).copy_(exact)
        if "master" in roles:
            self.own(member, "master").copy_(exact[low:high])
        if not member.bound:
            member.param.copy_(whole)
        self.mark(member)

    def exact_shard(self, bucket: Bucket) -> Tensor:
        """The exact parameters of a bucket's own part, as float32."""
        roles = self.shards[bucket.class_index]
        if "master" in roles:
            return self.shard(bucket, "master")
        if "remainder" in roles:
            return join_remainder(
                bucket.own_param, self.shard(bucket, "remainder")
            )
        return bucket.own_param.float()

    def loose(self) -> list[Member]:
        """Members whose parameters are no views of their buckets."""
        if self._loose is None:
            self._loose = [m for m in self.members if not m.bound and m.numel]
        return self._loose

    def unbind(self, member: Member) -> None:
        """A parameter is no view of its bucket any more."""
        member.bound = False
        self._loose = None

    def start_watch(self) -> None:
        """Takes all parameters as they are now for known."""
        params = [member.param for member in self.members]
        for position, member in enumerate(self.members):
            member.position = position
        if _core.can_read_fast() and not any(p.is_inference() for p in params):
            self.watch = _core.TensorWatch(params)

    def mark(self, member: Member) -> None:
        """Remembers that exact copy and parameter agree as they are now."""
        member.version = member.param._version
        member.address = member.param.data_ptr()
        if self.watch is not None:
            self.watch.mark(member.position)

    def mark_written(self) -> None:
        """Counts a write to every parameter for autograd, and marks it."""
        if self.watch is not None:
            self.watch.written()
            return
        torch.autograd.graph.increment_version([m.param for m in self.members])
        for member in self.members:
            self.mark(member)

    def changed(self) -> list[Member]:
        """Members whose parameters were written to, or moved, since."""
        if self.watch is not None:
            return [self.members[i] for i in self.watch.changed()]
        return [
            member
            for member in self.members
            if member.param.data_ptr() != member.address
            or member.param._version != member.version
        ]

    def with_gradient(self) -> list[Member]:
        """Members whose parameters have a ``.grad``."""
        if self.watch is not None:
            return [self.members[i] for i in self.watch.with_gradient()]
        return [m for m in self.members if m.param.grad is not None]

    def fill_ratio(self) -> float:
        """Used elements over allocated ones; 1 if there are none."""
        total = sum(b.grad.numel() for b in self.buckets)
        used = sum(m.numel for m in self.members)
        return used / total if total else 1.0
