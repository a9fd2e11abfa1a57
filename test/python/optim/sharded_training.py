# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training on ranks beside torch, for test_distributed.py."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from sharded_cases import groups, make, same_everywhere
from torch.nn import Parameter


def _net(dtype: torch.dtype, channels_last: bool) -> torch.nn.Module:
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.Tanh(),
        torch.nn.Conv2d(8, 4, 3, bias=False),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 16, 5),
    )
    net = net.to(dtype)
    if channels_last:
        net = net.to(memory_format=torch.channels_last)
    return net


def compare(actual: torch.Tensor, wanted: torch.Tensor, rtol: float) -> None:
    """Close everywhere; rounded gradients may turn where they are near 0."""
    error = (actual - wanted).detach().abs()
    assert error.mean() <= rtol * wanted.abs().mean() + 1e-6, error.mean()
    assert error.max() <= (0.04 if rtol > 1e-3 else 1e-4), error.max()


def training(case: dict[str, Any]) -> None:
    """A few iterations beside torch's AdamW on averaged gradients."""
    world, rank = dist.get_world_size(), dist.get_rank()
    dtype = getattr(torch, case["dtype"])
    net = _net(dtype, case["channels_last"])
    model = _net(dtype, case["channels_last"])
    exact = [Parameter(p.detach().float().clone()) for p in model.parameters()]
    options: dict[str, Any] = dict(case["options"])
    options.update(groups(case["groups"]))
    opt = make(
        net.parameters(),
        lr=1e-2,
        weight_decay=0.1,
        bucket_cap_mb=1e-3,
        **options,
    )
    ref = torch.optim.AdamW(
        exact, lr=1e-2, weight_decay=0.1, amsgrad=options.get("amsgrad", False)
    )
    amp = None
    if case["scaler"]:
        amp = torch.amp.GradScaler("cpu", init_scale=64.0)
    parts = case["accumulate"]
    for iteration in range(3):
        opt.zero_grad()
        sums = [torch.zeros_like(p) for p in exact]
        for part in range(parts):
            for other in range(world):
                torch.manual_seed(1000 * iteration + 10 * other + part)
                x = torch.randn(2, 3, 8, 8).to(dtype)
                # Both models have the same parameters, so ours gives the
                # reference its gradients: rounding of the forward is shared.
                model.load_state_dict(net.state_dict())
                model.zero_grad()
                loss = model(x).float().square().mean() / parts
                loss.backward()
                for total, p in zip(sums, model.parameters(), strict=True):
                    total += p.grad.float() / world
                if other != rank:
                    continue
                loss = net(x).float().square().mean() / parts
                loss = amp.scale(loss) if amp else loss
                if part < parts - 1:
                    with opt.no_sync():
                        loss.backward()
                else:
                    loss.backward()
        for p, total in zip(exact, sums, strict=True):
            p.grad = total
        if case["clip"]:
            if amp:
                opt.unscale_grads(grad_scaler=amp)
            got = opt.clip_grad_norm(0.2)
            want = torch.nn.utils.clip_grad_norm_(exact, 0.2)
            same_everywhere(got.item())
            torch.testing.assert_close(
                got.float(), want, rtol=case["rtol"], atol=0.0
            )
        if amp:
            amp.step(opt)
            amp.update()
        else:
            opt.step()
        ref.step()
        for p, q in zip(net.parameters(), exact, strict=True):
            compare(p.float(), q, case["rtol"])
    saved = opt.state_dict()
    assert saved["state"]["step"] == 3
    for index, q in enumerate(exact):
        row = saved["state"][index]
        for name in ("exp_avg", "exp_avg_sq"):
            want = ref.state[q][name]
            scale = want.abs().max()
            compare(row[name].float() / scale, want / scale, case["rtol"])
    opt.close()
