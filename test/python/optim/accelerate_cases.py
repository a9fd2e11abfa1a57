# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of accelerate run, on one rank and on several."""

from __future__ import annotations

import math
import warnings
from typing import Any

import dfa
import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from torch.nn import Parameter


def net() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Linear(4, 2)


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(10 * step + rank)
    x = torch.randn(8, 4)
    return x, x.sum(dim=1, keepdim=True).expand(8, 2)


def loss_of(model: Any, step: int, rank: int) -> torch.Tensor:
    x, y = batch(step, rank)
    return (model(x) - y).square().mean()


def place() -> tuple[int, int]:
    if dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def training(clip: float, accumulate: int) -> None:
    """Without DDP: the optimizer reduces, the model is not prepared."""
    rank, world = place()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
    ours, theirs = net(), net()
    a: Any = dfa.DistributedFusedAdam(
        ours.parameters(), lr=0.1, eps=1e-3, bucket_cap_mb=1e-3
    )
    prepared = accelerator.prepare_optimizer(a)
    b = torch.optim.AdamW(
        theirs.parameters(), lr=0.1, eps=1e-3, weight_decay=0.0
    )
    with dfa.patch_clip_grad(a):
        for step in range(4):
            last = (step + 1) % accumulate == 0
            with accelerator.accumulate(ours):
                accelerator.backward(loss_of(ours, step, rank))
                if accelerator.sync_gradients:
                    assert last
                    norm = accelerator.clip_grad_norm_(ours.parameters(), clip)
                prepared.step()
                prepared.zero_grad()
            for other in range(world):
                loss = loss_of(theirs, step, other) / world / accumulate
                loss.backward()
            if last:
                wanted = torch.nn.utils.clip_grad_norm_(
                    theirs.parameters(), clip
                )
                assert math.isclose(norm.item(), wanted.item(), rel_tol=1e-4)
                b.step()
                b.zero_grad()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)
    a.close()


def scaled() -> None:
    """Its wrapper and its way to call the scaler, with torch's scaler.

    The wrapper replaces ``step`` by a function that hides its arguments.
    """
    rank, world = place()
    Accelerator(cpu=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    p = Parameter(torch.zeros(3))
    opt = dfa.DistributedFusedAdam([p], lr=0.1, eps=1.0, bucket_cap_mb=1e-3)
    wrapped = AcceleratedOptimizer(opt, scaler=scaler)
    for step in range(3):
        bad = step == 1 and rank == world - 1
        wrapped.zero_grad()
        value = math.inf if bad else 3.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scaler.scale((p * value).sum()).backward()
            wrapped.step()
        assert opt.step_was_skipped == (step == 1)
        if step == 0:  # unscaled once
            want = -0.1 * 3.0 / 4.0
            assert math.isclose(p[0].item(), want, rel_tol=1e-5)
    assert scaler.get_scale() == 32.0
    assert int(opt.state[p]["step"]) == 2
    opt.close()
