# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small GPT in bfloat16, whose optimizer keeps 16 bits more of each weight.

    python examples/training/gpt.py

`store_param_remainders` stores the lower half of a float32 master beside the
bfloat16 parameter, which is its upper half: 12 bytes of states and parameter
become 10, and small updates are not lost. The same training with plain
bfloat16 parameters under torch.optim.AdamW shows what they lose otherwise.
The text is arithmetic made here: lines like "17+25=42;".
"""

import argparse
import sys

import dfa
import torch
import torch.distributed as dist
from common import default_device, draw_curves, run_ranks
from torch import nn

SYMBOLS = "0123456789+=;"
CONTEXT = 32
BATCH = 32  # sequences a rank and step
LR = 1e-3
WIDTH = 64


class Layer(nn.Module):
    """Attention and a feed-forward network, normalised before each."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.feed = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH),
        )

    def forward(self, x):
        n, t, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(n, t, 3, 4, WIDTH // 4)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True
        )
        x = x + self.proj(seen.transpose(1, 2).reshape(n, t, WIDTH))
        return x + self.feed(self.norm2(x))


class GPT(nn.Module):
    """Logits [N, T, symbols] of symbols [N, T]; tied embedding."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(SYMBOLS), WIDTH)
        self.place = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.layers = nn.Sequential(Layer(), Layer())
        self.norm = nn.LayerNorm(WIDTH)
        nn.init.normal_(self.embed.weight, std=0.05)

    def forward(self, symbols):
        x = self.embed(symbols) + self.place[: symbols.shape[1]]
        return self.norm(self.layers(x)) @ self.embed.weight.T


def make_text(step, rank, device):
    """Symbols [BATCH, CONTEXT + 1] of sums, of this step and rank."""
    make = torch.Generator().manual_seed(1000 * step + rank)
    rows = []
    for _ in range(BATCH):
        line = ""
        while len(line) <= CONTEXT:
            a, b = torch.randint(100, (2,), generator=make).tolist()
            line += f"{a}+{b}={a + b};"
        rows.append([SYMBOLS.index(c) for c in line[: CONTEXT + 1]])
    return torch.tensor(rows, device=device)


def train(rank, steps, device, remainders):
    """The mean loss over ranks of each step."""
    torch.manual_seed(0)
    model = GPT().to(device, torch.bfloat16)
    if remainders:
        optimizer = dfa.DistributedFusedAdam(
            model.parameters(),
            lr=LR,
            weight_decay=0.01,
            grad_sync_dtype=torch.bfloat16,
            param_sync_dtype=torch.bfloat16,
            store_params=False,
            store_param_remainders=True,
        )
    else:
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=LR, weight_decay=0.01
        )
    losses = []
    for step in range(steps):
        text = make_text(step, rank, device)
        loss = nn.functional.cross_entropy(
            model(text[:, :-1]).float().flatten(0, 1), text[:, 1:].flatten()
        )
        loss.backward()
        if remainders:
            optimizer.clip_grad_norm(1.0)
        else:
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / dist.get_world_size())
    if remainders:
        optimizer.close()
    return losses


def compare(rank, steps, device):
    """Both trainings, one after the other."""
    return {
        "dfa, bfloat16 + remainders": train(rank, steps, device, True),
        "torch.optim.AdamW, bfloat16": train(rank, steps, device, False),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", choices=["cpu", "cuda"])
    parser.add_argument("--picture", default="gpt.svg")
    options = parser.parse_args()
    device = options.device or default_device(options.ranks)
    curves = run_ranks(compare, options.ranks, options.steps, device)[0]
    ours, theirs = curves.values()
    print(f"device {device}, ranks {options.ranks}, steps {options.steps}")
    print("step   remainders  plain bfloat16")
    for step in range(0, options.steps, max(1, options.steps // 8)):
        print(f"{step + 1:4}   {ours[step]:.4f}      {theirs[step]:.4f}")
    print(f"{options.steps:4}   {ours[-1]:.4f}      {theirs[-1]:.4f}")
    draw_curves(options.picture, f"GPT, {options.ranks} ranks", curves)
    print(f"loss curves: {options.picture}")
    last = max(1, options.steps // 10)
    mean, plain = sum(ours[-last:]) / last, sum(theirs[-last:]) / last
    print(f"mean of the last {last} losses: {mean:.4f}, plain {plain:.4f}")
    if not mean < ours[0] or mean > 1.05 * plain:
        sys.exit("expects the loss to fall, and not to lag behind bfloat16")


if __name__ == "__main__":
    main()
