# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small channels_last UNet learns to remove noise, on two ranks.

    python examples/training/unet_denoiser.py
    torchrun --nproc-per-node=2 examples/training/unet_denoiser.py

Mixed precision with a loss scaler and clipping, sharded AdamW by
dfa.DistributedFusedAdam; on GPUs the whole iteration is one CUDA graph. The
same training with DDP and torch.optim.AdamW runs beside it and is compared:
loss by loss and parameter by parameter. Images are made here: bright discs on
a slanted background.
"""

import argparse
import sys

import dfa
import torch
import torch.distributed as dist
from common import default_device, draw_curves, run_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LR = 2e-3
MAX_NORM = 1.0
BATCH = 16  # images a rank and step
SIZE = 16  # pixels a side
WARM_UP = 3  # eager steps before a graph is captured
LOSS_TOLERANCE = 0.02  # relative, each step
PARAM_TOLERANCE = 0.03  # of the way that parameters went, in norm


class Block(nn.Module):
    """Two convolutions with a shortcut."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.GroupNorm(4, outputs),
            nn.SiLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1),
        )
        self.shortcut = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


class UNet(nn.Module):
    """Two levels; predicts the noise in images [N, 3, SIZE, SIZE]."""

    def __init__(self, width=24):
        super().__init__()
        self.enter = Block(3, width)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = Block(2 * width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.leave = Block(2 * width, width)
        self.out = nn.Conv2d(width, 3, 1)

    def forward(self, x):
        skip = self.enter(x)
        x = self.up(self.middle(self.down(skip)))
        return self.out(self.leave(torch.cat([x, skip], dim=1)))


def make_batch(step, rank, device):
    """Noisy images and their noise, of this step and rank."""
    make = torch.Generator().manual_seed(1000 * step + rank)
    at = torch.rand(BATCH, 2, 1, 1, generator=make) * SIZE
    radius = 2 + 3 * torch.rand(BATCH, 1, 1, generator=make)
    tint = torch.rand(BATCH, 3, 1, 1, generator=make)
    y, x = torch.meshgrid(*[torch.arange(SIZE)] * 2, indexing="ij")
    disc = (y - at[:, 0]) ** 2 + (x - at[:, 1]) ** 2 < radius**2
    images = 0.3 * (x + y) / SIZE + disc[:, None] * tint
    noise = torch.randn(images.shape, generator=make)
    batch = (images + 0.5 * noise, noise)
    return [
        t.to(device, memory_format=torch.channels_last, non_blocking=True)
        for t in batch
    ]


class Training:
    """A model, its optimizer and its scaler; `step` is one iteration."""

    def __init__(self, device):
        torch.manual_seed(0)
        self.device = device
        self.model = UNet().to(device, memory_format=torch.channels_last)
        self.start = [p.detach().clone() for p in self.model.parameters()]
        self.scaler = torch.amp.GradScaler(device, init_scale=2.0**12)
        self.half = torch.float16 if device == "cuda" else torch.bfloat16

    def loss(self, noisy, noise):
        with torch.autocast(self.device, dtype=self.half):
            return nn.functional.mse_loss(self.model(noisy).float(), noise)

    def moved(self):
        """How far each parameter has gone, flat."""
        pairs = zip(self.model.parameters(), self.start, strict=True)
        return torch.cat([(p.detach() - s).flatten() for p, s in pairs])


class WithDfa(Training):
    """One optimizer on all ranks: it averages gradients itself."""

    def __init__(self, device):
        super().__init__(device)
        self.optimizer = dfa.DistributedFusedAdam(
            self.model.parameters(),
            lr=LR,
            weight_decay=0.01,
            bucket_cap_mb=0.1,
            capturable=device == "cuda",
        )
        self.graph = None
        self.steps = 0

    def iterate(self, noisy, noise):
        self.optimizer.zero_grad()
        loss = self.loss(noisy, noise)
        self.scaler.scale(loss).backward()
        self.optimizer.unscale_grads(grad_scaler=self.scaler)
        self.optimizer.clip_grad_norm(MAX_NORM)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def step(self, noisy, noise):
        self.steps += 1
        if self.device != "cuda":
            return self.iterate(noisy, noise)
        if self.steps == 1:
            self.inputs = [torch.empty_like(t) for t in (noisy, noise)]
            self.side = torch.cuda.Stream()
        for mine, given in zip(self.inputs, (noisy, noise), strict=True):
            mine.copy_(given)
        if self.steps <= WARM_UP:
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                loss = self.iterate(*self.inputs)
            torch.cuda.current_stream().wait_stream(self.side)
            return loss
        if not self.graph:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.result = self.iterate(*self.inputs)
        self.graph.replay()
        return self.result.clone()

    def close(self):
        self.graph = None
        self.optimizer.close()


class WithTorch(Training):
    """DDP and torch.optim.AdamW, nothing of dfa."""

    def __init__(self, device):
        super().__init__(device)
        self.parallel = DistributedDataParallel(self.model)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=LR, weight_decay=0.01
        )

    def step(self, noisy, noise):
        self.optimizer.zero_grad()
        with torch.autocast(self.device, dtype=self.half):
            made = self.parallel(noisy)
        loss = nn.functional.mse_loss(made.float(), noise)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), MAX_NORM)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def close(self):
        pass


def train(rank, kind, steps, device):
    """The mean loss over ranks of each step, and where parameters went."""
    training = kind(device)
    losses = []
    for step in range(steps):
        loss = training.step(*make_batch(step, rank, device))
        dist.all_reduce(loss)
        losses.append(loss / dist.get_world_size())
    result = torch.stack(losses).tolist(), training.moved().cpu()
    training.close()
    return result


def compare(rank, steps, device):
    """Both trainings, one after the other."""
    return {
        "dfa.DistributedFusedAdam": train(rank, WithDfa, steps, device),
        "DDP + torch.optim.AdamW": train(rank, WithTorch, steps, device),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--device", choices=["cpu", "cuda"])
    parser.add_argument("--picture", default="unet_denoiser.svg")
    options = parser.parse_args()
    device = options.device or default_device(options.ranks)
    results = run_ranks(compare, options.ranks, options.steps, device)[0]
    (ours, moved), (theirs, wanted) = results.values()

    print(f"device {device}, ranks {options.ranks}, steps {options.steps}")
    print("step   dfa      DDP + torch")
    for step in range(0, options.steps, max(1, options.steps // 8)):
        print(f"{step + 1:4}   {ours[step]:.5f}  {theirs[step]:.5f}")
    print(f"{options.steps:4}   {ours[-1]:.5f}  {theirs[-1]:.5f}")
    draw_curves(
        options.picture,
        f"UNet denoiser, {options.ranks} ranks, {device}",
        {name: losses for name, (losses, _) in results.items()},
    )
    print(f"loss curves: {options.picture}")

    worst = max(abs(a - b) / b for a, b in zip(ours, theirs, strict=True))
    apart = ((moved - wanted).norm() / wanted.norm()).item()
    print(f"largest relative difference of a loss {worst:.2e}")
    print(f"distance of parameters, of the way they went {apart:.2e}")
    if worst > LOSS_TOLERANCE or apart > PARAM_TOLERANCE:
        sys.exit(
            f"expects at most {LOSS_TOLERANCE} and {PARAM_TOLERANCE}: "
            "the two trainings differ"
        )


if __name__ == "__main__":
    main()
