# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers on each kind of device, against torch in float64."""

from __future__ import annotations

import pytest
import torch
from cuda_cases import (
    TOLERANCE,
    batch,
    compare,
    follow,
    loss_of,
    masters,
    net,
    train_beside_ddp,
)
from dfa.optim import FusedAdamW, FusedLAMB, FusedLion, FusedSGD
from gpus import need_gpus
from torch import nn

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.fixture(params=DEVICES)
def device(request) -> str:
    if request.param == "cuda":
        need_gpus(1)
    return request.param


# dtype, storage, dtype of states, channels_last
FORMATS = [
    (torch.float32, "param", torch.float32, False),
    (torch.float32, "param", torch.float32, True),
    (torch.float32, "param", torch.bfloat16, True),
    (torch.bfloat16, "param", torch.float32, False),
    (torch.bfloat16, "master", torch.float32, True),
    (torch.bfloat16, "remainder", torch.float32, True),
    (torch.bfloat16, "remainder", torch.bfloat16, False),
    (torch.float16, "master", torch.float32, True),
    (torch.float16, "master", torch.float16, False),
]


@pytest.mark.parametrize("row", FORMATS, ids=str)
def test_adamw_formats(device: str, row) -> None:
    dtype, storage, states, channels_last = row
    model = net(device, dtype, channels_last)
    exact = masters(model, torch.float64)
    opt = FusedAdamW(
        model.parameters(),
        lr=1e-2,
        weight_decay=0.1,
        storage=storage,
        state_dtype=states,
    )
    reference = torch.optim.AdamW(exact, lr=1e-2, weight_decay=0.1)
    strides = [p.stride() for p in model.parameters()]
    for step in range(4):
        opt.zero_grad()
        loss_of(model, batch(device, dtype, step)).backward()
        follow(model, exact, reference)
        opt.step()
    narrow = dtype != torch.float32
    rounding = TOLERANCE[dtype] if narrow else 2e-5
    if states != torch.float32:
        rounding = max(rounding, 0.1)  # of moments, in units of lr / 1e-2
    if narrow and storage == "param":
        rounding *= 4
    compare(model.parameters(), exact, rounding)
    assert [p.stride() for p in model.parameters()] == strides
    assert all(int(s["step"]) == 4 for s in opt.state.values())


def test_sgd_and_lion(device: str) -> None:
    torch.manual_seed(0)
    start = torch.randn(1001, dtype=torch.float64)
    grads = [torch.randn(1001, dtype=torch.float64) for _ in range(4)]
    p = nn.Parameter(start.float().to(device))
    q = nn.Parameter(start.clone())
    ours = FusedSGD([p], lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)
    theirs = torch.optim.SGD(
        [q], lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1
    )
    lion = nn.Parameter(start.float().to(device))
    other = FusedLion([lion], lr=1e-2, betas=(0.9, 0.99), weight_decay=0.1)
    value, average = start.clone(), torch.zeros_like(start)
    for grad in grads:
        p.grad, q.grad = grad.float().to(device), grad.clone()
        ours.step()
        theirs.step()
        lion.grad = grad.float().to(device)
        other.step()
        sign = (0.9 * average + 0.1 * grad).sign()
        value = value * (1 - 1e-2 * 0.1) - 1e-2 * sign
        average = 0.99 * average + 0.01 * grad
    compare([p], [q], 1e-5)
    error = (lion.detach().cpu().double() - value).abs()
    # A sign may turn where its argument is rounded to the other side of 0.
    assert (error > 1e-5).sum() <= 1


def test_lamb(device: str) -> None:
    torch.manual_seed(0)
    start = [torch.randn(33, 7).double(), torch.randn(65).double()]
    params = [nn.Parameter(s.float().to(device)) for s in start]
    grads = [torch.randn_like(s) for s in start]
    opt = FusedLAMB(params, lr=1e-2, weight_decay=0.1, max_grad_norm=0.0)
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad.float().to(device)
    opt.step()
    for param, grad, value in zip(params, grads, start, strict=True):
        group = opt.param_groups[0]
        update = grad / (grad.abs() + group["eps"]) + 0.1 * value
        trust = value.norm() / update.norm()
        wanted = value - 1e-2 * trust * update
        error = (param.detach().cpu().double() - wanted).abs().max()
        assert error <= 2e-6, error


@pytest.mark.parametrize("ways", ["step", "unscale_"])
def test_torch_scaler(device: str, ways: str) -> None:
    model = net(device, torch.float32, True)
    exact = masters(model, torch.float64)
    opt = FusedAdamW(model.parameters(), lr=1e-2)
    reference = torch.optim.AdamW(exact, lr=1e-2)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=99)
    for step in range(4):
        opt.zero_grad()
        scaler.scale(
            loss_of(model, batch(device, torch.float32, step))
        ).backward()
        bad = step == 2
        if bad:
            next(model.parameters()).grad[0, 0, 0, 0] = float("inf")
        before = [p.detach().clone() for p in model.parameters()]
        if ways == "unscale_":
            scaler.unscale_(opt)
        if not bad:
            factor = 1.0 if ways == "unscale_" else 1.0 / scaler.get_scale()
            for p, e in zip(model.parameters(), exact, strict=True):
                e.grad = p.grad.detach().double() * factor
            reference.step()
        scaler.step(opt)
        scaler.update()
        if bad:
            after = list(model.parameters())
            assert all(map(torch.equal, before, after))
    assert scaler.get_scale() == 512.0
    compare(model.parameters(), exact, 2e-5)
    assert opt.skipped_steps == 1


def test_nonfinite_gradients_are_skipped_without_a_scaler(device: str) -> None:
    p = nn.Parameter(torch.ones(5, device=device))
    q = nn.Parameter(torch.ones(3, device=device))
    opt = FusedAdamW([p, q], lr=0.1)
    p.grad = torch.tensor([1.0, float("nan"), 1, 1, 1], device=device)
    q.grad = torch.ones(3, device=device)
    opt.step()
    assert torch.equal(p.detach().cpu(), torch.ones(5))
    assert torch.equal(q.detach().cpu(), torch.ones(3))
    assert opt.step_was_skipped
    p.grad = torch.ones(5, device=device)
    opt.step()
    assert (p.detach() < 1).all()
    assert int(opt.state[p]["step"]) == 1
    assert not opt.step_was_skipped


def test_versions_are_counted(device: str) -> None:
    p = nn.Parameter(torch.ones(5, device=device))
    idle = nn.Parameter(torch.ones(5, device=device))
    opt = FusedAdamW([p, idle])
    for _ in range(4):
        before = p._version, idle._version
        p.grad = torch.ones(5, device=device)
        opt.step()
        assert p._version > before[0]
        assert idle._version == before[1]


def test_gradients_come_go_and_move(device: str) -> None:
    params = [nn.Parameter(torch.ones(7, device=device)) for _ in range(3)]
    exact = [nn.Parameter(torch.ones(7).double()) for _ in range(3)]
    opt = FusedAdamW(params, lr=0.1)
    reference = torch.optim.AdamW(exact, lr=0.1)
    kept = torch.full((7,), 0.5, device=device)
    for step in range(12):
        for index, (p, e) in enumerate(zip(params, exact, strict=True)):
            absent = step in (3, 8) and index == 1
            if absent:
                p.grad = e.grad = None
                continue
            if index == 0:
                p.grad = kept.fill_(0.1 * (step + 1))
            elif step < 6:
                p.grad = torch.full((7,), 0.2 * (step + 1), device=device)
            else:
                p.grad = torch.full((14,), -0.3, device=device)[::2]
            e.grad = p.grad.detach().cpu().double()
        opt.step()
        reference.step()
        if step == 4:
            params[2].data = params[2].detach().clone()
    compare([p.cpu() for p in params], exact, 1e-5)


def test_persistent_gradients_replaced_in_place(device: str) -> None:
    """Gradients that stay are kept; another one must be seen at once."""
    params = [nn.Parameter(torch.zeros(4, device=device)) for _ in range(2)]
    opt = FusedSGD(params, lr=1.0)
    for p in params:
        p.grad = torch.ones(4, device=device)
    for _ in range(5):
        opt.step()
    params[1].grad = torch.full((4,), 10.0, device=device)
    opt.step()
    params[0].grad.data = torch.full((4,), 100.0, device=device)
    opt.step()
    params[0].grad = None
    opt.step()
    assert params[0].tolist() == [-106.0] * 4
    assert params[1].tolist() == [-35.0] * 4


def test_hyper_parameters_are_live(device: str) -> None:
    p = nn.Parameter(torch.zeros(2, device=device))
    opt = FusedSGD([p], lr=1.0)
    p.grad = torch.ones(2, device=device)
    total = 0.0
    for lr in (1.0, 0.5, 0.25, 0.25, 4.0):
        opt.param_groups[0]["lr"] = lr
        opt.step()
        total -= lr
        assert p.tolist() == [total, total]
    opt.param_groups[0]["lr"] = torch.tensor(2.0, device=device)
    opt.step()
    opt.param_groups[0]["lr"].fill_(3.0)
    opt.step()
    assert p.tolist() == [total - 5.0] * 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dtype": torch.bfloat16},
        {"contiguous_grad_buffer": True},
        {"capturable": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("scaler", ["", "step", "explicit"])
def test_distributed_on_one_rank(device: str, scaler: str, options) -> None:
    case = {
        "device": device,
        "dtype": torch.float32,
        "channels_last": True,
        "options": options,
        "scaler": scaler,
        # Clipping goes after unscaling, so not with the implicit spelling.
        "clip": None if scaler == "step" else 1.0,
    }
    assert train_beside_ddp(case) < (3e-2 if options.get("dtype") else 1e-4)


def test_distributed_remainders(device: str) -> None:
    case = {
        "device": device,
        "dtype": torch.bfloat16,
        "channels_last": True,
        "options": {
            "store_params": False,
            "store_param_remainders": True,
            "param_sync_dtype": torch.bfloat16,
            "grad_sync_dtype": torch.bfloat16,
        },
    }
    assert train_beside_ddp(case) < 3e-2
