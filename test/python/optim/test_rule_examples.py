# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of examples/rules against NumPy in float64."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import Parameter

FOLDER = Path(__file__).parents[3] / "examples" / "rules"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def adopt(p, grads, lr, b1, b2, eps, wd, decoupled):
    """Algorithm 1 of the paper with its clipping, written anew in f64."""
    m = np.zeros_like(p)
    v = None
    for t, g in enumerate(grads):
        if not decoupled:
            g = g + wd * p
        if v is None:
            v = g * g
            continue
        limit = t**0.25
        normed = np.clip(g / np.maximum(np.sqrt(v), eps), -limit, limit)
        m = b1 * m + (1 - b1) * normed
        p = p - lr * m - (lr * wd * p if decoupled else 0.0)
        v = b2 * v + (1 - b2) * g * g
    return p, m, v


def ademamix(p, grads, lr, betas, alpha, warmup, eps, wd):
    """Algorithm 1 of the paper, with its two schedules, in f64."""
    b1, b2, b3 = betas
    fast, slow, v = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        part = min(t / warmup, 1.0)
        top = math.log(b1) * math.log(b3)
        beta = math.exp(top / ((1 - part) * math.log(b3) + part * math.log(b1)))
        beta = min(beta, b3)
        fast = b1 * fast + (1 - b1) * g
        slow = beta * slow + (1 - beta) * g
        v = b2 * v + (1 - b2) * g * g
        mean = fast / (1 - b1**t) + alpha * part * slow
        root = np.sqrt(v / (1 - b2**t)) + eps
        p = p - lr * (mean / root + wd * p)
    return p, fast, slow, v


def gradients(count, size):
    draw = np.random.default_rng(7)
    return [
        (draw.standard_normal(size) * 10.0 ** draw.integers(-3, 2)).astype("f4")
        for _ in range(count)
    ]


def run(cls, start, grads, **options):
    p = Parameter(torch.from_numpy(start.astype(np.float32)))
    opt = cls([p], **options)
    for g in grads:
        p.grad = torch.from_numpy(g)
        opt.step()
    state = opt.state[p]
    assert int(state["step"]) == len(grads)
    return p.detach().numpy(), {
        name: value.numpy() for name, value in state.items() if name != "step"
    }


def near(got, wanted, scale):
    """Within f32 rounding of a few dozen operations on values of a scale."""
    assert np.all(np.abs(got - wanted) <= 2.0**-19 * scale + 1e-12)


@pytest.mark.parametrize("decoupled", [True, False])
@pytest.mark.parametrize("wd", [0.0, 0.1])
def test_adopt(decoupled, wd) -> None:
    cls = load("adopt").Adopt
    start = np.linspace(-2.0, 2.0, 333)
    grads = gradients(20, start.shape)
    options = {
        "lr": 0.03,
        "betas": (0.9, 0.99),
        "eps": 1e-6,
        "weight_decay": wd,
    }
    p, state = run(cls, start, grads, decoupled=decoupled, **options)
    start = start.astype(np.float32).astype(np.float64)
    wide = [g.astype(np.float64) for g in grads]
    wanted = adopt(start, wide, 0.03, 0.9, 0.99, 1e-6, wd, decoupled)
    near(p, wanted[0], 4.0)
    near(state["exp_avg"], wanted[1], 8.0)
    near(state["exp_avg_sq"], wanted[2], np.abs(wanted[2]) * 8 + 1e-6)
    # Not Adam, and not without its clipping.
    assert np.abs(wanted[0] - start).max() > 0.1


def test_adopts_first_step_changes_no_parameter() -> None:
    cls = load("adopt").Adopt
    start = np.ones(5)
    p, state = run(cls, start, gradients(1, 5), weight_decay=0.1)
    assert (p == 1.0).all()
    assert (state["exp_avg"] == 0.0).all()
    assert (state["exp_avg_sq"] == gradients(1, 5)[0] ** 2).all()


@pytest.mark.parametrize("warmup", [4.0, 100.0])
def test_ademamix(warmup) -> None:
    cls = load("ademamix").AdEMAMix
    start = np.linspace(-2.0, 2.0, 333)
    grads = gradients(12, start.shape)
    betas = (0.9, 0.999, 0.9999)
    p, state = run(
        cls, start, grads, lr=0.01, betas=betas, warmup=warmup, weight_decay=0.1
    )
    start = start.astype(np.float32).astype(np.float64)
    wide = [g.astype(np.float64) for g in grads]
    wanted = ademamix(start, wide, 0.01, betas, 5.0, warmup, 1e-8, 0.1)
    near(p, wanted[0], 4.0)
    for name, value in zip(
        ("exp_avg_fast", "exp_avg_slow", "exp_avg_sq"), wanted[1:], strict=True
    ):
        near(state[name], value, np.abs(value) * 4 + 1e-4)


@pytest.mark.parametrize("name", ["adopt", "ademamix"])
def test_examples_run_and_learn(name) -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    losses = [float(line.split()[-1]) for line in done.stdout.splitlines()]
    assert len(losses) == 4
    assert losses[-1] < 0.1 * losses[0]
