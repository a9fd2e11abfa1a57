# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lightning with dfa.DistributedFusedAdam: float16, scaler and clipping.

    pip install lightning
    python examples/lightning_example.py

It takes a few seconds on a CPU. On several ranks start it with torchrun: each
process trains on its part of the data, and the optimizer averages gradients.
The model is not under DDP, whose reducer would see no gradients.
"""

import os
import warnings

import dfa
import torch
from dfa.lightning import precision_plugin
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.strategies import SingleDeviceStrategy
from torch.utils.data import DataLoader, TensorDataset


class Classifier(LightningModule):
    """Tells which of two rings a point is on."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2)
        )
        self.losses = []

    def training_step(self, batch, index):
        del index
        points, ring = batch
        loss = torch.nn.functional.cross_entropy(self.net(points), ring)
        self.losses.append(loss.detach())
        return loss

    def on_train_epoch_end(self):
        mean = torch.stack(self.losses).mean().item()
        self.losses.clear()
        print(f"epoch {self.current_epoch}  loss {mean:.4f}")

    def configure_optimizers(self):
        return dfa.DistributedFusedAdam(
            self.parameters(), lr=0.02, bucket_cap_mb=0.001
        )


def rings(count, seed):
    """Points on two rings, and which ring each is on."""
    make = torch.Generator().manual_seed(seed)
    angle = torch.rand(count, generator=make) * 2 * torch.pi
    ring = torch.randint(2, (count,), generator=make)
    radius = 1.0 + ring + 0.1 * torch.randn(count, generator=make)
    points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return TensorDataset(points, ring)


def main():
    """Trains for four epochs."""
    warnings.simplefilter("ignore")
    rank = int(os.environ.get("RANK", "0"))
    cuda = torch.cuda.is_available()
    device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if cuda else "cpu"
    if "WORLD_SIZE" in os.environ:
        torch.distributed.init_process_group("nccl" if cuda else "gloo")
    torch.manual_seed(0)
    kind = device.split(":")[0]
    trainer = Trainer(
        max_epochs=4,
        strategy=SingleDeviceStrategy(device),
        # Unscales, then clips, then steps.
        plugins=[
            precision_plugin(
                "16-mixed", kind, torch.amp.GradScaler(kind, init_scale=1024.0)
            )
        ],
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Classifier()
    trainer.fit(model, DataLoader(rings(1024, seed=rank), batch_size=32))
    model.optimizers().optimizer.close()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
