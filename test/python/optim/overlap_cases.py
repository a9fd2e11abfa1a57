# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each rank does in test_overlap.py; failures are exceptions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import torch
import torch.distributed as dist
from sharded_cases import make
from torch import nn


def starts_in_backward() -> None:
    """Buckets whose gradients are complete are reduced before the end."""
    rank = dist.get_rank()
    layers = nn.Sequential(*(nn.Linear(16, 16, bias=False) for _ in range(3)))
    opt = make(layers.parameters(), lr=0.1)
    started = []

    def look(_grad: torch.Tensor) -> None:
        started.append([b.started for b in opt._buckets.order])

    x = torch.full((2, 16), 1.0 + rank, requires_grad=True)
    x.register_hook(look)  # the last gradient of the backward pass
    layers(x).sum().backward()
    # The gradient of the first layer's weight may come after x's.
    assert started[0][:2] == [True, True], started
    assert opt._sync.passes == 1  # and all of them are by now
    opt.step()
    opt.zero_grad()
    started.clear()
    with opt.no_sync():
        layers(x).sum().backward()
    assert started == [[False] * 3]
    assert all(p.grad is not None for p in layers.parameters())
    with opt.no_sync(greedy_grad_copy=True):
        layers(x).sum().backward()
    assert all(p.grad is None for p in layers.parameters())
    assert opt._sync.passes == 0
    opt.close()


def order_of_arrival() -> None:
    """Ranks whose gradients arrive in other orders, or not at all."""
    rank = dist.get_rank()
    a, b, c = (nn.Parameter(torch.ones(40)) for _ in range(3))
    opt = make([a, b, c], lr=0.1, eps=1.0)
    x = (a * 2.0 if rank else b * 2.0).sum()
    y = (b * 2.0 if rank else a * 2.0).sum()
    (x + y).backward()
    opt.step()
    assert torch.allclose(a, torch.tensor(1 - 0.1 * 2 / 3))
    assert torch.allclose(b, torch.tensor(1 - 0.1 * 2 / 3))
    assert (c == 1).all()
    opt.close()


def left_by_no_sync() -> None:
    """A gradient of a held pass only, on one rank only, joins the next pass."""
    rank = dist.get_rank()
    a, b = (nn.Parameter(torch.ones(8)) for _ in range(2))
    opt = make([a, b], lr=0.1, eps=1.0)
    with opt.no_sync():
        loss = a.sum() + (4.0 * b.sum() if rank == 0 else 0.0)
        loss.backward()
    a.sum().backward()
    assert opt._sync.passes == 1
    opt.step()
    assert opt._sync.passes == 1
    world = dist.get_world_size()
    assert torch.allclose(a, torch.tensor(1 - 0.1 * 2 / 3))
    g = 4.0 / world
    assert torch.allclose(b, torch.tensor(1 - 0.1 * g / (g + 1)))
    opt.close()


# === Lazy gather =============================================================


class Attention(nn.Module):
    """Reads a child's weight without calling it, and ties two weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(3)
        )
        self.head = nn.Linear(16, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def _model(dtype: torch.dtype) -> Attention:
    torch.manual_seed(4)
    return Attention().to(dtype)


def _tokens(step: int, rank: int) -> torch.Tensor:
    torch.manual_seed(100 * step + rank)
    return torch.randint(0, 11, (2, 5))


def lazy(options: dict[str, Any]) -> None:
    """The bits of an eager gather, in training, evaluation and saving."""
    rank = dist.get_rank()
    options = dict(options)
    dtype = options.pop("model", torch.float32)
    models = [_model(dtype), _model(dtype)]
    opts = [
        make(
            model.parameters(),
            lr=1e-2,
            bucket_cap_mb=1e-3,
            overlap_param_sync=flag,
            **options,
        )
        for model, flag in zip(models, (True, False), strict=True)
    ]
    opts[0].attach(models[0])
    for step in range(4):
        for model, opt in zip(models, opts, strict=True):
            opt.zero_grad()
            out = model(_tokens(step, rank))
            out.float().square().mean().backward()
            opt.clip_grad_norm(0.5)
            opt.step()
        pending = opts[0]._gathers.pending
        assert len(pending) == len(opts[0]._buckets.buckets) > 2
        if step == 1:
            for model in models:
                model.eval()
            with torch.no_grad():
                x, y = (model(_tokens(9, rank)) for model in models)
            assert torch.equal(x, y)
            assert not pending
            for model in models:
                model.train()
        if step == 2:
            saved = models[0].state_dict()
            assert not pending
            for key, value in models[1].state_dict().items():
                assert torch.equal(saved[key], value), key
            for model in models:  # exact copies are taken anew from both
                model.load_state_dict(saved)
    opts[0].param_sync()
    for p, q in zip(
        models[0].parameters(), models[1].parameters(), strict=True
    ):
        assert torch.equal(p, q)
    for model, opt in zip(models, opts, strict=True):
        model.zero_grad()
        opt.close()
    assert not any(m._forward_pre_hooks for m in models[0].modules())


def lazy_waits_for_what_is_read() -> None:
    """Only the buckets of what a module reads are waited for."""
    model = _model(torch.float32)
    opt = make(model.parameters(), overlap_param_sync=True)
    opt.attach(model)
    model(_tokens(0, 0)).sum().backward()
    opt.step()
    pending = opt._gathers.pending

    def waits(*params: torch.Tensor) -> bool:
        return any(opt._member_of[p].bucket in pending for p in params)

    x = torch.zeros(1, 2, 16)
    blocks = model.blocks
    assert waits(blocks[1][0].weight)
    blocks[1](x)
    assert not waits(*blocks[1].parameters())
    assert waits(*blocks[2].parameters())
    attention = model.attention
    assert waits(attention.out_proj.weight)
    attention(x, x, x)
    assert not waits(*attention.parameters())
    assert waits(model.embed.weight)
    model.head(x)
    assert not waits(model.embed.weight)  # tied
    twin = copy.deepcopy(model)
    twin(_tokens(0, 0))
    assert waits(*blocks[2].parameters())  # a copy has parameters of its own
    pickle.loads(pickle.dumps(model))(_tokens(0, 0))
    opt.close()
    assert not pending


def lazy_unattached() -> None:
    """What no module waits for is there when step returns."""
    rank = dist.get_rank()
    a, b = nn.Linear(8, 8), nn.Linear(8, 8)
    opt = make(
        [*a.parameters(), *b.parameters()], lr=0.1, overlap_param_sync=True
    )
    x = torch.full((1, 8), 1.0 + rank)
    for attached in (False, True):
        if attached:
            opt.attach(a)
        opt.zero_grad()
        (a(x) + b(x)).sum().backward()
        opt.step()
        lazy = {m for b in opt._gathers.pending for m in b.members}
        assert lazy == (set(opt._attached) if attached else set())
    opt.step()  # without a forward between: ends what is pending
    opt.load_state_dict(opt.state_dict())
    opt.close()
