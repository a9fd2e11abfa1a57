# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's clipping functions for parameters that dfa manages."""

from __future__ import annotations

import math

import clip_cases as cases
import dfa
import pytest
import torch
from torch.nn import Parameter

NAMES = ("clip_grad_norm_", "clip_grad_value_")


def functions():
    modules = (torch.nn.utils, torch.nn.utils.clip_grad)
    return [getattr(m, name) for m in modules for name in NAMES]


@pytest.fixture(autouse=True)
def _torchs_functions_stay():
    before = functions()
    yield
    assert functions() == before


def managed(size: int = 4, value: float = 3.0):
    p = Parameter(torch.ones(size))
    opt = dfa.DistributedFusedAdam([p], lr=0.1, eps=1.0, bucket_cap_mb=1e-3)
    (p * value).sum().backward()
    assert p.grad is None
    return p, opt


@pytest.mark.parametrize("named", [True, False])
def test_norm_reaches_the_optimizer(named: bool) -> None:
    p, opt = managed()
    with dfa.patch_clip_grad(*([opt] if named else [])):
        norm = torch.nn.utils.clip_grad_norm_([p], 0.6)
        assert norm.item() == pytest.approx(6.0)
        again = torch.nn.utils.clip_grad_norm_(p, 0.6)
        assert again.item() == pytest.approx(0.6, rel=1e-5)
        opt.step()
        assert p[0].item() == pytest.approx(1 - 0.1 * 0.3 / 1.3, rel=1e-5)


def test_without_the_patch_torch_does_nothing() -> None:
    p, opt = managed()
    assert torch.nn.utils.clip_grad_norm_([p], 0.6).item() == 0.0
    opt.step()
    assert p[0].item() == pytest.approx(1 - 0.1 * 3.0 / 4.0, rel=1e-5)


def test_other_parameters_reach_torch() -> None:
    p, opt = managed()
    other = Parameter(torch.ones(1))
    other.grad = torch.tensor([5.0])
    frozen = Parameter(torch.ones(1), requires_grad=False)
    with dfa.patch_clip_grad(opt):
        assert torch.nn.utils.clip_grad_norm_(other, 1.0).item() == 5.0
        assert other.grad.item() == pytest.approx(1.0)
        other.grad = torch.tensor([5.0])
        torch.nn.utils.clip_grad_value_([other], 2.0)
        assert other.grad.item() == 2.0
        for name in NAMES:
            with pytest.raises(RuntimeError, match="apart"):
                getattr(torch.nn.utils, name)([p, other], 1.0)
        norm = torch.nn.utils.clip_grad_norm_((q for q in (frozen, p)), 1.0)
        assert norm.item() == pytest.approx(6.0)


def test_patching_is_idempotent_and_undone() -> None:
    torchs = functions()
    p, opt = managed()
    first = dfa.patch_clip_grad(opt)
    patched = functions()
    assert all(a is not b for a, b in zip(torchs, patched, strict=True))
    second = dfa.patch_clip_grad(opt)
    assert functions() == patched
    assert torch.nn.utils.clip_grad_norm_([p], 9.0).item() == pytest.approx(6.0)
    first.undo()
    first.undo()
    assert functions() == patched  # the second is in force
    assert torch.nn.utils.clip_grad_norm_([p], 9.0).item() == pytest.approx(6.0)
    second.undo()
    assert functions() == torchs
    assert torch.nn.utils.clip_grad_norm_([p], 9.0).item() == 0.0


def test_subsets_and_closed_optimizers() -> None:
    params = [Parameter(torch.ones(1)) for _ in range(2)]
    opt = dfa.DistributedFusedAdam(params, lr=0.1, eps=1.0, bucket_cap_mb=1.0)
    (3.0 * params[0] + 4.0 * params[1]).sum().backward()
    with dfa.patch_clip_grad():
        norm = torch.nn.utils.clip_grad_norm_(params[1:], 1.0)
        assert norm.item() == pytest.approx(4.0)
        whole = torch.nn.utils.clip_grad_norm_(params, 99.0)
        assert whole.item() == pytest.approx(math.sqrt(10.0), rel=1e-5)
        opt.close()
        assert torch.nn.utils.clip_grad_norm_(params, 1.0).item() == 0.0


def test_errors_are_torchs() -> None:
    p, opt = managed(value=math.inf)
    with dfa.patch_clip_grad(opt):
        with pytest.raises(RuntimeError, match="non-finite"):
            torch.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
        with pytest.raises(ValueError, match="positive clip_value"):
            torch.nn.utils.clip_grad_value_([p], 0.0)
        # An inf is not clipped away: the step is skipped.
        torch.nn.utils.clip_grad_value_([p], 1.0)
        opt.step()
        assert (p == 1.0).all()


def test_values_after_unscaling() -> None:
    p = Parameter(torch.zeros(3))
    opt = dfa.DistributedFusedAdam([p], lr=0.1, eps=1.0, bucket_cap_mb=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    grads = torch.tensor([0.25, -3.0, 1.5])
    scaler.scale((p * grads).sum()).backward()
    opt.unscale_grads(grad_scaler=scaler)
    with dfa.patch_clip_grad(opt):
        torch.nn.utils.clip_grad_value_([p], 1.0)
    scaler.step(opt)
    want = [-0.1 * g / (abs(g) + 1.0) for g in (0.25, -1.0, 1.0)]
    assert p.tolist() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("world", [1, 2])
def test_ranks(ranks, world) -> None:
    ranks(world, cases.clipped)
