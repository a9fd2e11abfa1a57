# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models, references and training loops for the tests on devices."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from dfa.optim import DistributedFusedAdam
from torch import Tensor, nn

TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def net(
    device: str, dtype: torch.dtype, channels_last: bool, seed: int = 1
) -> nn.Module:
    """A few layers of several shapes, the same values on any device."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.Tanh(),
        nn.Conv2d(8, 4, 3, bias=False),
        nn.Flatten(),
        nn.Linear(64, 5),
    ).to(dtype)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    return model.to(device)


def batch(device: str, dtype: torch.dtype, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(6, 3, 8, 8, generator=generator).to(device, dtype)


def loss_of(model: nn.Module, data: Tensor) -> Tensor:
    return model(data).float().square().sum()


def masters(model: nn.Module, dtype: torch.dtype) -> list[nn.Parameter]:
    """Copies of the parameters, for a reference to update."""
    return [
        nn.Parameter(p.detach().to(dtype).clone()) for p in model.parameters()
    ]


def follow(model: nn.Module, exact: list[nn.Parameter], reference: Any) -> None:
    """One step of the reference on the model's own gradients."""
    for param, copy in zip(model.parameters(), exact, strict=True):
        copy.grad = param.grad.detach().to(copy.dtype)
    reference.step()


def compare(params: Any, exact: list[nn.Parameter], rtol: float) -> None:
    for param, copy in zip(params, exact, strict=True):
        error = param.detach().double().cpu()
        error = (error - copy.detach().double().cpu()).abs()
        scale = copy.detach().double().cpu().abs().clamp(min=1e-2)
        assert (error / scale).max() <= rtol, (error / scale).max()


def clip(exact: list[nn.Parameter], bound: float) -> Tensor:
    return nn.utils.clip_grad_norm_(exact, bound)


def train_beside_ddp(case: dict[str, Any]) -> float:
    """Iterations beside DDP and torch's AdamW; returns the largest error."""
    device = case["device"]
    world = dist.get_world_size() if dist.is_initialized() else 1
    rank = dist.get_rank() if world > 1 else 0
    if device == "cuda":
        torch.cuda.set_device(rank)
        device = f"cuda:{rank}"
    dtype = case["dtype"]
    model = net(device, dtype, case["channels_last"])
    twin = net(device, torch.float32, case["channels_last"])
    with torch.no_grad():
        for ours, theirs in zip(
            model.parameters(), twin.parameters(), strict=True
        ):
            theirs.copy_(ours)
    wrapped: nn.Module = twin
    if world > 1:
        ids = [rank] if device.startswith("cuda") else None
        wrapped = nn.parallel.DistributedDataParallel(twin, device_ids=ids)
    reference = torch.optim.AdamW(twin.parameters(), lr=1e-2, weight_decay=0.1)
    opt = DistributedFusedAdam(
        model.parameters(),
        lr=1e-2,
        weight_decay=0.1,
        bucket_cap_mb=1e-3,
        **case.get("options", {}),
    )
    kind = device.split(":")[0]
    enabled = case.get("scaler", "") != ""
    ours = torch.amp.GradScaler(kind, init_scale=64.0, enabled=enabled)
    for step in range(case.get("steps", 3)):
        data = batch(device, torch.float32, 10 * step + rank)
        opt.zero_grad()
        ours.scale(loss_of(model, data.to(dtype))).backward()
        reference.zero_grad()
        loss_of(wrapped, data).backward()
        if case.get("clip"):
            clip(list(twin.parameters()), case["clip"])
        if case.get("scaler") == "explicit":
            opt.unscale_grads(grad_scaler=ours)
        elif case.get("scaler") == "unscale_":
            ours.unscale_(opt)
        if case.get("clip"):
            opt.clip_grad_norm(case["clip"])
        ours.step(opt)
        ours.update()
        reference.step()
    largest = 0.0
    for mine, other in zip(model.parameters(), twin.parameters(), strict=True):
        error = (mine.detach().float() - other.detach()).abs()
        largest = max(largest, float(error.mean() / other.abs().mean()))
    opt.close()
    return largest
