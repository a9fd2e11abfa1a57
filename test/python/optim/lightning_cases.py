# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Lightning module and a Trainer, run by tests on one rank and on several."""

from __future__ import annotations

import logging
import math
import warnings
from typing import Any

import dfa
import torch
import torch.distributed as dist
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import SingleDeviceStrategy
from torch.utils.data import DataLoader, TensorDataset

STEPS = 6
RATE = 0.05


def data() -> TensorDataset:
    torch.manual_seed(2)
    x = torch.randn(8 * STEPS, 4)
    return TensorDataset(x, x @ torch.randn(4, 2) * 3.0)


def net() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2)
    )


class Model(LightningModule):
    """Counts what the Trainer asks for."""

    def __init__(self, make: Any, overflow_at: int = -1) -> None:
        super().__init__()
        self.net, self.make = net(), make
        self.overflow_at = overflow_at
        self.forwards = 0
        self.norms: list[float] = []

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        self.forwards += 1
        x, y = batch
        loss = (self.net(x) - y).square().mean()
        return loss * float("inf") if index == self.overflow_at else loss

    def configure_optimizers(self) -> Any:
        self.opt = self.make(self.net.parameters())
        schedule = torch.optim.lr_scheduler.StepLR(self.opt, 1, gamma=0.9)
        return {
            "optimizer": self.opt,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


def sharded(params: Any) -> Any:
    return dfa.DistributedFusedAdam(
        params, lr=RATE, eps=1e-3, bucket_cap_mb=1e-3
    )


def fused(params: Any) -> Any:
    return dfa.FusedAdamW(params, lr=RATE, eps=1e-3, weight_decay=0.0)


def torchs(params: Any) -> Any:
    return torch.optim.AdamW(params, lr=RATE, eps=1e-3, weight_decay=0.0)


def fit(model: Model, plugin: Any = None, **options: Any) -> Model:
    """Trains on this process's part of the data."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    dataset = data()
    if dist.is_initialized() and model.make is sharded:
        rank, world = dist.get_rank(), dist.get_world_size()
        # The average over ranks is that over the whole batch.
        keep = [i for i in range(len(dataset)) if i % 8 // (8 // world) == rank]
        dataset = torch.utils.data.Subset(dataset, keep)
        size = 8 // world
    else:
        size = 8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = Trainer(
            max_epochs=1,
            strategy=SingleDeviceStrategy("cpu"),
            plugins=[plugin] if plugin is not None else None,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            **options,
        )
        trainer.fit(model, DataLoader(dataset, batch_size=size))
    return model


def same(a: Model, b: Model) -> None:
    for p, q in zip(a.net.parameters(), b.net.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=2e-4, atol=2e-5)


def ranks_agree_with_one(clip: float) -> None:
    """Two ranks, each with half of a batch, train as torch does with all."""
    from dfa.lightning import Precision

    ours = fit(Model(sharded), Precision(), gradient_clip_val=clip)
    theirs = fit(Model(torchs), gradient_clip_val=clip)
    same(ours, theirs)
    ours.opt.close()


class Manual(Model):
    """Manual optimization: methods are called on Lightning's wrapper."""

    automatic_optimization = False

    def training_step(self, batch: Any, index: int) -> None:
        opt = self.optimizers()
        opt.zero_grad()
        self.manual_backward(super().training_step(batch, index))
        if isinstance(self.opt, dfa.DistributedFusedAdam):
            assert opt is not self.opt
            norm = opt.grad_norm()
            assert opt.clip_grad_norm(0.3) == norm
        else:
            norm = torch.nn.utils.clip_grad_norm_(self.parameters(), 0.3)
        self.norms.append(norm.item())
        opt.step()
        self.lr_schedulers().step()


def manual() -> None:
    """The wrapper's methods work on the optimizer's own state."""
    from dfa.lightning import Precision

    ours = fit(Manual(sharded), Precision())
    theirs = fit(Manual(torchs))
    for a, b in zip(ours.norms, theirs.norms, strict=True):
        assert math.isclose(a, b, rel_tol=1e-4)
    same(ours, theirs)
    ours.opt.close()
