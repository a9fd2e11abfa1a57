# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Process groups of torch as a mesh of ranks, and groups within nodes."""

from __future__ import annotations

import os
import socket
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from dfa import _core
from dfa.optim.program import device_of

#: How many optimizers each set of ranks has had: names keys in the store.
_instances: Counter[tuple[int, ...]] = Counter()


@dataclass(frozen=True)
class Mesh:
    """Ranks in rows of ``shard``, which are replicas of each other."""

    ranks: tuple[int, ...]  # world ranks, replicas slowest
    replicate: int
    shard: int
    rank: int  # this one's place in ``ranks``
    process_group: Any = None
    distributed_group: Any = None
    redundant_group: Any = None

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.replicate * self.shard

    @property
    def shard_rank(self) -> int:
        """Which shard this rank owns."""
        return self.rank % self.shard

    @property
    def axes(self) -> tuple[str, ...]:
        """Axes whose collectives the programs need."""
        if self.size == 1:
            return ()
        return ("replicate", "shard") if self.replicate > 1 else ("shard",)


def _global_ranks(group: Any) -> list[int]:
    return dist.get_process_group_ranks(group)


def make_mesh(
    process_group: Any = None,
    distributed_group: Any = None,
    redundant_group: Any = None,
) -> Mesh:
    """The mesh that the groups of apex's constructor describe.

    Without ``torch.distributed`` it has one rank. Collective over
    ``process_group`` if a redundant group is given.

    Raises:
        RuntimeError: the groups do not make a rectangle of ranks.
    """
    if not dist.is_available() or not dist.is_initialized():
        if distributed_group is not None or redundant_group is not None:
            raise RuntimeError("groups expect torch.distributed to be set up")
        return Mesh((0,), 1, 1, 0)
    group = process_group if process_group is not None else dist.group.WORLD
    rows = distributed_group if distributed_group is not None else group
    shard = dist.get_world_size(rows)
    replicate = (
        1 if redundant_group is None else dist.get_world_size(redundant_group)
    )
    total = dist.get_world_size(group)
    if shard * replicate != total:
        raise RuntimeError(
            f"expects a process group of {shard} x {replicate} ranks "
            f"(distributed x redundant), but got {total}"
        )
    me = dist.get_rank()
    own_row = _global_ranks(rows)
    if replicate == 1:
        ranks = tuple(own_row)
    else:
        ranks = _gather_rows(group, own_row, _global_ranks(redundant_group))
    return Mesh(
        ranks,
        replicate,
        shard,
        ranks.index(me),
        group,
        rows,
        redundant_group,
    )


def _gather_rows(
    group: Any, row: list[int], column: list[int]
) -> tuple[int, ...]:
    """Puts what each rank knows together, and checks that it agrees."""
    known: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(known, (row, column), group=group)
    by_rank = dict(zip(_global_ranks(group), known, strict=True))
    rows = [by_rank[rank][0] for rank in column]
    for other in by_rank.values():
        mine = [by_rank[rank][0] for rank in other[1]]
        if mine != rows:
            raise RuntimeError(
                "expects redundant groups that cross all distributed groups in "
                f"the same order, but got rows {rows} and {mine}"
            )
    ranks = tuple(rank for line in rows for rank in line)
    if sorted(ranks) != sorted(by_rank):
        raise RuntimeError(
            f"expects groups that cover ranks {sorted(by_rank)}, but got "
            f"{sorted(ranks)}"
        )
    return ranks


def _store(prefix: str) -> Any:
    store = dist.distributed_c10d._get_default_store()
    clone = getattr(store, "clone", None)
    if clone is not None:
        store = clone()  # a connection of its own: waits do not block torch's
    return dist.PrefixStore(prefix, store)


def connect(mesh: Mesh, device: torch.device) -> _core.Group | None:
    """The runtime's communicators for the mesh; None for one rank.

    Every rank of the mesh calls it, in the same order as other constructors
    of the same ranks. Keys are in torch's own store.
    """
    if mesh.size == 1:
        return None
    number = _instances[mesh.ranks]
    _instances[mesh.ranks] += 1
    axes = [("shard", mesh.shard)]
    if mesh.replicate > 1:
        axes.insert(0, ("replicate", mesh.replicate))
    name = "-".join(map(str, mesh.ranks))
    local_rank, local_size = _place_on_host(mesh)
    # The mesh is a world of its own: its ranks need not be all of torch's.
    return _core.Group(
        device_of(device),
        "nccl" if device.type == "cuda" else "gloo",
        axes,
        rank=mesh.rank,
        world_size=mesh.size,
        local_rank=local_rank,
        local_world_size=local_size,
        run_id=f"torch-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}",
        instance=number,
        store=_store(f"dfa/{name}/{number}"),
    )


def _place_on_host(mesh: Mesh) -> tuple[int, int]:
    """The number of a rank among those of its host, and how many they are."""
    hosts: list[Any] = [None] * mesh.size
    dist.all_gather_object(
        hosts, (dist.get_rank(), socket.gethostname()), group=mesh.process_group
    )
    by_rank = dict(hosts)
    here = [r for r in mesh.ranks if by_rank[r] == by_rank[dist.get_rank()]]
    return here.index(dist.get_rank()), len(here)


def node_local_groups(
    process_group: Any = None, local_world_size: int | None = None
) -> tuple[Any, Any]:
    """Groups for "shard within a node, replicate across nodes".

    Every rank of the world calls it.

    Args:
        process_group: the data-parallel ranks; the world by default.
        local_world_size: how many consecutive ranks of that group share a
            node; ``LOCAL_WORLD_SIZE`` by default.

    Returns:
        The groups for ``distributed_process_group`` and
        ``redundant_process_group``.

    Raises:
        ValueError: the group's size is no multiple of ``local_world_size``,
            or the latter is not known.
    """
    group = process_group if process_group is not None else dist.group.WORLD
    if local_world_size is None:
        text = os.environ.get("LOCAL_WORLD_SIZE")
        if text is None:
            raise ValueError(
                "expects local_world_size, as LOCAL_WORLD_SIZE is not set"
            )
        local_world_size = int(text)
    size = dist.get_world_size(group)
    if local_world_size < 1 or size % local_world_size != 0:
        raise ValueError(
            f"expects a group whose {size} ranks are nodes of "
            f"{local_world_size} ranks each, but they do not divide"
        )
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, tuple(_global_ranks(group)))
    distributed = redundant = None
    me = dist.get_rank()
    for ranks in sorted(set(everyone)):
        nodes = [
            ranks[start : start + local_world_size]
            for start in range(0, len(ranks), local_world_size)
        ]
        for node in nodes:
            made = dist.new_group(list(node))
            distributed = made if me in node else distributed
        for column in zip(*nodes, strict=True):
            made = dist.new_group(list(column))
            redundant = made if me in column else redundant
    return distributed, redundant
