# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dfa.lightning with the real Trainer, on the CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "lightning", reason="NOT RUN: needs 'pip install lightning'"
)

import lightning_cases as cases
import torch
from dfa import lightning as plugins
from lightning_cases import Model, fit, same

EXAMPLE = Path(__file__).parents[3] / "examples" / "lightning_example.py"


@pytest.mark.parametrize("make", [cases.sharded, cases.fused])
@pytest.mark.parametrize("algorithm", ["norm", "value"])
@pytest.mark.parametrize("clip", [0.0, 0.3])
def test_float32(make, algorithm, clip) -> None:
    options = {
        "gradient_clip_val": clip,
        "gradient_clip_algorithm": algorithm,
    }
    ours = fit(Model(make), plugins.precision_plugin("32-true"), **options)
    theirs = fit(Model(cases.torchs), **options)
    assert ours.forwards == cases.STEPS  # closures run once a step
    same(ours, theirs)
    unclipped = fit(Model(cases.torchs))
    moved = ours.net[2].bias - unclipped.net[2].bias
    assert (moved.abs().max() > 1e-3) == (clip > 0.0)


@pytest.mark.parametrize("make", [cases.sharded, cases.fused])
def test_float16_unscales_before_it_clips(make) -> None:
    """Float16 with a scaler trains as float32 does (b10)."""

    def scaler():
        return torch.amp.GradScaler("cpu", init_scale=2.0**12)

    plugin = plugins.precision_plugin("16-mixed", "cpu", scaler())
    ours = fit(Model(make), plugin, gradient_clip_val=0.3)
    theirs = fit(Model(cases.torchs), gradient_clip_val=0.3)
    for p, q in zip(
        ours.net.parameters(), theirs.net.parameters(), strict=True
    ):
        torch.testing.assert_close(p, q, rtol=0.02, atol=5e-3)
    assert ours.forwards == cases.STEPS
    assert plugin.scaler.get_scale() == 2.0**12


@pytest.mark.parametrize("make", [cases.sharded, cases.fused])
def test_an_overflow_is_skipped(make) -> None:
    plugin = plugins.MixedPrecision(
        "16-mixed", "cpu", torch.amp.GradScaler("cpu", init_scale=256.0)
    )
    model = fit(Model(make, overflow_at=2), plugin, gradient_clip_val=0.3)
    assert plugin.scaler.get_scale() == 128.0
    step = next(iter(model.opt.state.values()))["step"]
    assert int(step) == cases.STEPS - 1
    assert all(p.isfinite().all() for p in model.parameters())


def test_lightnings_own_plugin_is_refused_or_wrong() -> None:
    """Why the plugin is there."""
    from lightning.pytorch.plugins.precision import MixedPrecision

    plugin = MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu"))
    with pytest.raises(RuntimeError, match="does not allow"):
        fit(Model(cases.sharded), plugin, gradient_clip_val=0.3)


def test_bfloat16_and_accumulation() -> None:
    plugin = plugins.precision_plugin("bf16-mixed", "cpu")
    ours = fit(
        Model(cases.sharded),
        plugin,
        gradient_clip_val=0.3,
        accumulate_grad_batches=2,
    )
    theirs = fit(
        Model(cases.torchs), gradient_clip_val=0.3, accumulate_grad_batches=2
    )
    step = next(iter(ours.opt.state.values()))["step"]
    assert int(step) == cases.STEPS // 2
    for p, q in zip(
        ours.net.parameters(), theirs.net.parameters(), strict=True
    ):
        torch.testing.assert_close(p, q, rtol=0.05, atol=2e-2)


def test_other_optimizers_and_words() -> None:
    for plugin in (plugins.Precision(), None):
        model = fit(Model(cases.torchs), plugin, gradient_clip_val=0.3)
        other = fit(Model(cases.torchs), gradient_clip_val=0.3)
        same(model, other)
    with pytest.raises(ValueError, match="fp8"):
        plugins.precision_plugin("fp8")
    assert isinstance(
        plugins.precision_plugin("bf16-true"), plugins.HalfPrecision
    )


def test_two_ranks(ranks) -> None:
    ranks(2, cases.ranks_agree_with_one, 0.3)


def test_manual_optimization(ranks) -> None:
    cases.manual()
    ranks(2, cases.manual)


def test_example_runs_and_learns() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE],
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    losses = [
        float(line.split()[-1])
        for line in done.stdout.splitlines()
        if line.startswith("epoch")
    ]
    assert len(losses) >= 3
    assert losses[-1] < 0.5 * losses[0]
