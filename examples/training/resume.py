# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training goes on with another number of ranks.

    python examples/training/resume.py

Two ranks train, save, and train on; then one rank and four ranks load what the
two saved and must arrive at the same parameters. The global batch is the same
for any number of ranks, so only the order of sums differs.
"""

import argparse
import pathlib
import sys
import tempfile

import dfa
import torch
import torch.distributed as dist
from common import run_ranks
from torch import nn

BATCH = 16  # of all ranks together
TOLERANCE = 1e-5  # of the largest parameter


def make_training():
    """A model and its optimizer, not trained yet."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 8 * 8, 10),
    ).to(memory_format=torch.channels_last)
    optimizer = dfa.DistributedFusedAdam(
        model.parameters(), lr=1e-2, weight_decay=0.01, bucket_cap_mb=0.01
    )
    return model, optimizer


def train(model, optimizer, steps):
    """Steps on this rank's part of batches of BATCH images [3, 8, 8]."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step in steps:
        make = torch.Generator().manual_seed(step)
        images = torch.randn(BATCH, 3, 8, 8, generator=make)
        labels = torch.randint(10, (BATCH,), generator=make)
        mine = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
        images = images[mine].contiguous(memory_format=torch.channels_last)
        loss = nn.functional.cross_entropy(model(images), labels[mine])
        loss.backward()
        optimizer.clip_grad_norm(1.0)
        optimizer.step()
        optimizer.zero_grad()


def parameters(model):
    return [p.detach().clone().contiguous() for p in model.parameters()]


def save(rank, path, before, after):
    """Trains, saves after `before` steps, and goes on."""
    model, optimizer = make_training()
    train(model, optimizer, range(before))
    states = optimizer.state_dict()  # all ranks take part
    if rank == 0:
        torch.save({"model": model.state_dict(), "optimizer": states}, path)
    train(model, optimizer, range(before, before + after))
    return parameters(model)


def resume(rank, path, before, after):
    """Loads what `save` wrote and trains on."""
    del rank
    model, optimizer = make_training()
    saved = torch.load(path, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    train(model, optimizer, range(before, before + after))
    return parameters(model)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=int, default=5)
    parser.add_argument("--after", type=int, default=5)
    options = parser.parse_args()
    steps = options.before, options.after
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "checkpoint.pt"
        wanted = run_ranks(save, 2, path, *steps)[0]
        print(f"2 ranks: {sum(steps)} steps, saved after {options.before}")
        largest = max(p.abs().max().item() for p in wanted)
        for ranks in (1, 4):
            for found in run_ranks(resume, ranks, path, *steps):
                apart = max(
                    (a - b).abs().max().item()
                    for a, b in zip(found, wanted, strict=True)
                )
                worst = max(worst, apart / largest)
            print(f"{ranks} ranks: resumed, largest difference {worst:.1e}")
    if worst > TOLERANCE:
        sys.exit(f"expects at most {TOLERANCE} of the largest parameter")


if __name__ == "__main__":
    main()
