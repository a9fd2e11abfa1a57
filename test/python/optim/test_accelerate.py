# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dfa's optimizers with the real accelerate, on the CPU."""

from __future__ import annotations

import pytest

pytest.importorskip("accelerate", reason="NOT RUN: pip install accelerate")

import accelerate_cases as cases
import dfa
import torch
from accelerate import Accelerator


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("clip", [0.5, 100.0])
def test_training(clip, accumulate) -> None:
    cases.training(clip, accumulate)


def test_scaler_through_the_wrapper() -> None:
    cases.scaled()


def test_ranks(ranks) -> None:
    ranks(2, cases.training, 0.5, 1)
    ranks(2, cases.scaled)


def test_wrapping_is_cheap_when_untouched() -> None:
    net = cases.net()
    opt = dfa.DistributedFusedAdam(net.parameters(), bucket_cap_mb=1e-3)
    wrapped = Accelerator(cpu=True).prepare_optimizer(opt)
    assert wrapped.optimizer is opt
    assert not opt._engine.has_updater  # nothing was compiled or copied


def test_one_device_optimizers_and_schedulers() -> None:
    accelerator = Accelerator(cpu=True)
    ours, theirs = cases.net(), cases.net()
    opt = dfa.FusedAdamW(ours.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.5)
    prepared = accelerator.prepare(ours, opt, schedule)
    model, wrapped, scheduler = prepared
    other = torch.optim.AdamW(theirs.parameters(), lr=0.1)
    decay = torch.optim.lr_scheduler.StepLR(other, 1, gamma=0.5)
    for step in range(3):
        accelerator.backward(cases.loss_of(model, step, 0))
        accelerator.clip_grad_norm_(model.parameters(), 0.5)
        wrapped.step()
        scheduler.step()
        wrapped.zero_grad()
        cases.loss_of(theirs, step, 0).backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        other.step()
        decay.step()
        other.zero_grad()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-6)
    assert opt.param_groups[0]["lr"] == other.param_groups[0]["lr"]
