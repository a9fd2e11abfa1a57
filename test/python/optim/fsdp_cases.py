# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every rank of the tests of FSDP2 runs: parameters are DTensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from dfa import FusedAdamW
from rule_cases import OPTIONS, Adamw
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def _net() -> torch.nn.Module:
    torch.manual_seed(3)
    # One row: only the first rank has a part of it.
    return torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.Linear(5, 1, bias=False)
    )


def trained(kind: str, replicate: int) -> None:
    """Against torch on one copy of the model with the whole batch.

    The norm must count every element once: replicas of a shard are one.
    """
    world, rank = dist.get_world_size(), dist.get_rank()
    if replicate == 1:
        mesh = init_device_mesh("cpu", (world,))
    else:
        mesh = init_device_mesh(
            "cpu",
            (replicate, world // replicate),
            mesh_dim_names=("replicate", "shard"),
        )
    ours, theirs = _net(), _net()
    fully_shard(ours, mesh=mesh)
    make: Any = Adamw if kind == "rule" else FusedAdamW
    a = make(ours.parameters(), **OPTIONS)
    b = torch.optim.AdamW(theirs.parameters(), **OPTIONS)
    for step in range(4):
        a.zero_grad()
        b.zero_grad()
        for other in range(world):
            torch.manual_seed(10 * step + other)
            x = torch.randn(3, 4)
            (theirs(x).square().sum() / world).backward()
            mine = x if other == rank else None
            if mine is not None:
                ours(mine).square().sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(ours.parameters(), 0.5)
        wanted = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        assert norm.full_tensor().item() == pytest.approx(
            wanted.item(), rel=1e-5
        )
        a.step()
        b.step()
    empty = 0
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(
            p.full_tensor(), q.detach(), rtol=1e-4, atol=1e-5
        )
        empty += p.to_local().numel() == 0
        for name in ("exp_avg", "exp_avg_sq"):
            state = a.state[p][name]
            assert state.device_mesh is p.device_mesh
            assert state.placements == p.placements
            torch.testing.assert_close(
                state.full_tensor(), b.state[q][name], rtol=1e-4, atol=1e-6
            )
    assert empty == (rank % (world // replicate) != 0)
    # A dict of DTensors loads in place.
    saved = a.state_dict()
    again = make(ours.parameters(), **OPTIONS)
    again.load_state_dict(saved)
    for p in ours.parameters():
        left, right = a.state[p]["exp_avg"], again.state[p]["exp_avg"]
        assert torch.equal(left.to_local(), right.to_local())
        assert int(again.state[p]["step"]) == 4
