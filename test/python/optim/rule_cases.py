# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of the tests, and what every rank of a sharded test runs."""

from __future__ import annotations

from typing import Any

import dfa
import torch
import torch.distributed as dist
from dfa import rule
from dfa.optim import DistributedFusedAdam, node_local_groups
from torch.nn import Parameter


@dfa.rule
def Adamw(  # noqa: N802
    grad,
    param,
    exp_avg,
    exp_avg_sq,
    *,
    lr=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
    step,
):
    """AdamW with the operations that docs/rules.md gives it."""
    c1, c2 = 1.0 - betas[0], 1.0 - betas[1]
    exp_avg = rule.fma(c1, grad - exp_avg, exp_avg)
    exp_avg_sq = rule.fma(c2, rule.fma(grad, grad, -exp_avg_sq), exp_avg_sq)
    rate = lr / (1.0 - betas[0] ** step)
    root = 1.0 / rule.sqrt(1.0 - betas[1] ** step)
    ratio = exp_avg / rule.fma(rule.sqrt(exp_avg_sq), root, eps)
    change = rule.fma(rate, ratio, (lr * weight_decay) * param)
    return param - change, exp_avg, exp_avg_sq


@dfa.rule
def Momentum(grad, param, average, *, lr=0.1, beta=0.9, nesterov=False):  # noqa: N802
    """Momentum; `nesterov` is known while it is traced."""
    average = beta * average + grad
    if nesterov:
        return param - lr * (grad + beta * average), average
    return param - lr * average, average


OPTIONS = {"lr": 0.05, "betas": (0.9, 0.99), "eps": 1e-6, "weight_decay": 0.1}


def model(dtype: torch.dtype = torch.float32) -> list[Parameter]:
    torch.manual_seed(1)
    made = [torch.randn(40, 3), torch.randn(7), torch.randn(2, 3, 4, 4)]
    made[2] = made[2].contiguous(memory_format=torch.channels_last)
    return [Parameter(p.to(dtype)) for p in made]


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def steps(params: Any, opt: Any, count: int, first: int = 0) -> None:
    for step in range(first, first + count):
        opt.zero_grad()
        torch.manual_seed(100 * step + rank())
        # Made by autograd, so that the hooks and their overlap take part.
        sum(
            (p * torch.randn(p.shape).to(p.dtype)).sum() for p in params
        ).backward()
        opt.clip_grad_norm(2.0)
        opt.step()


def options_of(case: str) -> tuple[torch.dtype, dict[str, Any]]:
    if case == "remainder":
        return torch.bfloat16, {
            "store_params": False,
            "store_param_remainders": True,
            "param_sync_dtype": torch.bfloat16,
        }
    if case == "replicas":
        sharded, copies = node_local_groups(local_world_size=2)
        return torch.float32, {
            "distributed_process_group": sharded,
            "redundant_process_group": copies,
        }
    return torch.float32, {}


def sharded(arguments: dict[str, str]) -> None:
    """The rule's AdamW and the named one have the same bits when sharded."""
    dtype, storage = options_of(arguments.get("case", "plain"))
    ours, theirs = model(dtype), model(dtype)
    common = {"bucket_cap_mb": 1e-3, **OPTIONS, **storage}
    a = Adamw.Sharded(ours, **common)
    b = DistributedFusedAdam(theirs, **common)
    assert isinstance(a, DistributedFusedAdam)
    steps(ours, a, 3)
    steps(theirs, b, 3)
    for p, q in zip(ours, theirs, strict=True):
        assert torch.equal(p, q)
    mine, named = a.state_dict(), b.state_dict()
    assert mine["state"]["step"] == 3
    for index in range(len(ours)):
        for name, value in named["state"][index].items():
            assert torch.equal(mine["state"][index][name], value), name
    a.close()
    b.close()


def save() -> Any:
    params = model()
    opt = Adamw.Sharded(params, bucket_cap_mb=1e-3, **OPTIONS)
    steps(params, opt, 2)
    saved = opt.state_dict()
    opt.close()
    return saved


def load(saved: Any) -> None:
    """What is loaded is what was saved, and training goes on from it."""
    params = model()
    opt = Adamw.Sharded(params, bucket_cap_mb=1.0, lr=1.0)
    opt.load_state_dict(saved)
    assert opt.param_groups[0]["lr"] == OPTIONS["lr"]
    again = opt.state_dict()
    for index in range(len(params)):
        assert torch.equal(params[index], saved["state"][index]["param"])
        for name, value in saved["state"][index].items():
            assert torch.equal(again["state"][index][name], value), name
    before = params[0].detach().clone()
    steps(params, opt, 1, first=2)
    assert not torch.equal(params[0], before)
    opt.close()
