# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's GradScaler and clipping, on one rank, with both optimizers."""

from __future__ import annotations

import math

import pytest
import torch
from dfa.optim import DistributedFusedAdam, FusedAdamW
from torch.nn import Parameter

pytestmark = pytest.mark.filterwarnings("ignore")

OPTIMIZERS = {
    "fused": FusedAdamW,
    "distributed": lambda params, **options: DistributedFusedAdam(
        params, bucket_cap_mb=1e-3, **options
    ),
}


def scaler(scale: float) -> torch.amp.GradScaler:
    made = torch.amp.GradScaler("cpu", init_scale=scale)
    made.scale(torch.zeros(()))  # it has no scale before
    return made


def backward(params, grads, scale: float) -> None:
    loss = sum((p * g).sum() for p, g in zip(params, grads, strict=True))
    (loss * scale).backward()


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_b09_overflow_after_explicit_unscale(kind: str, bad: float) -> None:
    params = [Parameter(torch.ones(8)) for _ in range(3)]
    opt = OPTIMIZERS[kind](params, weight_decay=0.0)
    amp = scaler(16384.0)
    grads = [torch.full((8,), 0.1) for _ in params]
    grads[2][5] = bad
    backward(params, grads, 16384.0)
    amp.unscale_(opt)
    amp.step(opt)
    amp.update()
    assert amp.get_scale() == 8192.0
    assert all(torch.equal(p, torch.ones(8)) for p in params)
    assert opt.step_was_skipped
    assert opt.skipped_steps == 1
    opt.zero_grad()
    backward(params, [torch.full((8,), 0.1) for _ in params], 8192.0)
    amp.unscale_(opt)
    amp.step(opt)
    amp.update()
    assert not opt.step_was_skipped
    assert int(opt.state[params[0]]["step"]) == 1
    assert all((p < 1).all() for p in params)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("way", "abc")
def test_b10_unscaled_exactly_once(kind: str, way: str) -> None:
    p = Parameter(torch.ones(1))
    opt = OPTIMIZERS[kind](
        [p], lr=0.01, betas=(0.9, 0.99), eps=1e-3, weight_decay=0.0
    )
    amp = scaler(4096.0)
    backward([p], [torch.tensor([0.02])], 4096.0)
    if way == "b" or (way == "c" and kind == "fused"):
        amp.unscale_(opt)
    if way == "c" and kind == "fused":
        torch.nn.utils.clip_grad_norm_([p], 1e9)
    if way == "c" and kind == "distributed":
        opt.unscale_grads(grad_scaler=amp)
        assert opt.clip_grad_norm(1e9).item() == pytest.approx(0.02)
    amp.step(opt)
    amp.update()
    assert p.item() == pytest.approx(0.9904761905, rel=2e-6)
    saved = opt.state_dict()["state"][0]
    assert saved["exp_avg"].item() == pytest.approx(2.0e-3, rel=2e-5)
    assert saved["exp_avg_sq"].item() == pytest.approx(4.0e-6, rel=2e-5)


def managed(values, **options):
    params = [Parameter(torch.ones(len(value))) for value in values]
    opt = DistributedFusedAdam(params, bucket_cap_mb=1e-3, **options)
    return params, opt


def test_b10_unscaling_twice_raises() -> None:
    params, opt = managed([[1.0]])
    amp = scaler(4096.0)
    backward(params, [torch.ones(1)], 4096.0)
    opt.unscale_grads(grad_scaler=amp)
    with pytest.raises(RuntimeError, match="unscale"):
        opt.unscale_grads(grad_scaler=amp)
    with pytest.raises(RuntimeError, match="unscale"):
        amp.unscale_(opt)
    amp.step(opt)
    with pytest.raises(RuntimeError, match="after step"):
        opt.unscale_grads(grad_scaler=amp)
    with pytest.raises(ValueError, match="either"):
        opt.unscale_grads()
    fresh = torch.amp.GradScaler("cpu")
    opt.zero_grad()
    with pytest.raises(RuntimeError, match="no scale"):
        opt.unscale_grads(grad_scaler=fresh)


def test_clip_before_unscale_is_never_silent() -> None:
    params, opt = managed([[1.0]])
    amp = scaler(4096.0)
    backward(params, [torch.ones(1)], 4096.0)
    amp.unscale_(opt)  # torch found nothing to scale, we cannot know
    opt.clip_grad_norm(1.0)
    with pytest.raises(RuntimeError, match="clipped before"):
        amp.step(opt)


def test_scalers_of_others() -> None:
    params, opt = managed([[1.0]], lr=0.1, eps=0.5, weight_decay=0.0)
    backward(params, [torch.tensor([3.0])], 1024.0)
    found = opt.unscale_grads(torch.tensor(1 / 1024.0), torch.zeros(1), False)
    assert [v.item() for v in found.values()] == [0.0]
    assert opt.grad_norm().item() == pytest.approx(3.0)
    opt.step()
    assert params[0].item() == pytest.approx(1 - 0.1 * 3 / 3.5, rel=2e-6)


def test_b12_a_second_clip_sees_the_clipped_norm() -> None:
    params, opt = managed(
        [[1.0], [1.0]],
        lr=0.1,
        eps=0.5,
        betas=(0.9, 0.99),
        weight_decay=0.0,
    )
    amp = scaler(1024.0)
    backward(params, [torch.tensor([3.0]), torch.tensor([4.0])], 1024.0)
    opt.unscale_grads(grad_scaler=amp)
    assert opt.clip_grad_norm(2.5).item() == pytest.approx(5.0, rel=1e-7)
    assert opt.clip_grad_norm(2.5).item() == pytest.approx(2.4999995, rel=1e-8)
    assert opt.grad_norm().item() == pytest.approx(2.499999, rel=1e-7)
    amp.step(opt)
    assert params[0].item() == pytest.approx(0.9250000037, rel=2e-6)
    assert params[1].item() == pytest.approx(0.9200000032, rel=2e-6)
    opt.zero_grad()
    backward(params, [torch.tensor([3.0]), torch.tensor([4.0])], 1.0)
    assert opt.grad_norm().item() == pytest.approx(5.0)


def test_b13_norms_without_markers() -> None:
    params, opt = managed([[1.0, 1.0], [1.0, 1.0]], weight_decay=0.0)
    cases = [
        ([math.inf, 1.0, 2.0, 3.0], math.inf),
        ([math.nan, 1.0, 2.0, 3.0], math.nan),
        ([0.0, 0.0, 0.0, 0.0], 0.0),
        ([1e20, 1e20, 0.0, 0.0], 1.4142135624e20),
    ]
    done = 0
    for grads, norm in cases:
        opt.zero_grad()
        for p, part in zip(params, (grads[:2], grads[2:]), strict=True):
            p.grad = torch.tensor(part)
        got = opt.clip_grad_norm(1.0).item()
        assert got == pytest.approx(norm, rel=1e-6, nan_ok=True)
        before = [p.detach().clone() for p in params]
        opt.step()
        finite = math.isfinite(norm)
        assert opt.step_was_skipped == (not finite)
        done += finite
        assert int(opt.state[params[0]]["step"]) == done
        if not finite or norm == 0:
            for p, q in zip(params, before, strict=True):
                assert torch.equal(p, q)
    state = opt.state_dict()["state"][0]
    want = 0.1 * 0.7071067812
    assert state["exp_avg"][0].item() == pytest.approx(want, rel=2e-5)


def test_norms_of_subsets_and_other_orders() -> None:
    params, opt = managed([[1.0, 1.0], [1.0], [1.0]], eps=1.0, lr=1.0)
    grads = [torch.tensor([3.0, 4.0]), torch.tensor([12.0]), torch.ones(1)]
    backward(params, grads, 1.0)
    assert opt.grad_norm().item() == pytest.approx(math.sqrt(170.0))
    assert opt.grad_norm(params[:2]).item() == pytest.approx(13.0)
    assert opt.grad_norm(params[:1], norm_type=1).item() == pytest.approx(7.0)
    assert opt.grad_norm(norm_type=math.inf).item() == pytest.approx(12.0)
    assert opt.grad_norm(norm_type=3).item() == pytest.approx(
        (27 + 64 + 1728 + 1) ** (1 / 3)
    )
    with pytest.raises(RuntimeError, match="this optimizer"):
        opt.grad_norm([Parameter(torch.ones(1))])
    with pytest.raises(ValueError, match="max_norm"):
        opt.clip_grad_norm(-1.0)
    # Exactly the subset is scaled.
    assert opt.clip_grad_norm(1.3, params[:2]).item() == pytest.approx(13.0)
    assert opt.grad_norm(params[:2]).item() == pytest.approx(1.3, rel=1e-5)
    assert opt.grad_norm(params[2:]).item() == pytest.approx(1.0)
    # A clip without parameters uses the norm that was asked for last.
    assert opt.clip_grad_norm(0.5).item() == pytest.approx(1.0)
    assert opt.grad_norm(params[2:]).item() == pytest.approx(0.5, rel=1e-5)


def test_gradients_scaled_by_torch_in_place() -> None:
    params, opt = managed([[1.0]], lr=0.1, eps=0.5, weight_decay=0.0)
    amp = scaler(64.0)
    params[0].grad = torch.tensor([192.0])  # by hand: torch sees it
    amp.unscale_(opt)
    amp.step(opt)
    amp.update()
    assert params[0].item() == pytest.approx(1 - 0.1 * 3 / 3.5, rel=2e-6)


def test_a_mixture_raises() -> None:
    params, opt = managed([[1.0], [1.0]])
    amp = scaler(64.0)
    (params[0] * 64.0).sum().backward()
    params[1].grad = torch.tensor([64.0])
    amp.unscale_(opt)
    with pytest.raises(RuntimeError, match="in place"):
        amp.step(opt)
