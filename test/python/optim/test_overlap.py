# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions during the backward pass, gathers during the forward pass."""

from __future__ import annotations

import overlap_cases as cases
import pytest
import torch
from dfa.optim.distributed.gather import reads
from torch import nn

REMAINDERS = {"store_params": False, "store_param_remainders": True}


def test_reductions_start_in_the_backward_pass(ranks) -> None:
    ranks(2, cases.starts_in_backward)


def test_gradients_arrive_in_any_order(ranks) -> None:
    ranks(2, cases.order_of_arrival)


def test_gradients_left_by_no_sync(ranks) -> None:
    ranks(2, cases.left_by_no_sync)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"capturable": True, "contiguous_grad_buffer": True},
        {"model": torch.bfloat16, **REMAINDERS},
        {"model": torch.bfloat16, "param_sync_dtype": torch.float32},
    ],
    ids=["f32", "contiguous", "remainder", "bf16-master"],
)
@pytest.mark.parametrize("world", [2, 4])
def test_lazy_gather(ranks, world, options) -> None:
    ranks(world, cases.lazy, options)


def test_lazy_gather_waits_for_what_is_read(ranks) -> None:
    ranks(2, cases.lazy_waits_for_what_is_read)


def test_lazy_gather_of_unattached_parameters(ranks) -> None:
    ranks(2, cases.lazy_unattached)


def test_what_a_forward_may_read() -> None:
    net = nn.Module()
    net.inner = nn.MultiheadAttention(8, 2)
    net.weights = nn.ParameterList([nn.Parameter(torch.ones(1))])
    net.blocks = nn.ModuleList([nn.Linear(8, 8)])
    found = set(reads(net))
    assert net.inner.out_proj.weight in found
    assert net.weights[0] in found
    assert net.blocks[0].weight not in found
    assert not list(reads(nn.Sequential(nn.Linear(2, 2))))
