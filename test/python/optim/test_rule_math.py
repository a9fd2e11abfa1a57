# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of dfa.rule against NumPy, on elements and on derived scalars."""

from __future__ import annotations

import math

import dfa
import numpy as np
import pytest
import torch
from dfa import rule
from torch.nn import Parameter

FINITE = [-3.5, -1.0, -0.75, -1e-3, 0.0, 2.0**-149, 1e-6, 0.5, 1.0, 2.5, 87.0]
SPECIAL = [math.inf, -math.inf, math.nan]


def sign(x):
    return np.sign(x)


# Name, the function of a rule, NumPy's, inputs, error in units of f32.
ELEMENTS = [
    ("sqrt", rule.sqrt, np.sqrt, "positive", 0),
    ("rsqrt", rule.rsqrt, lambda x: 1 / np.sqrt(x), "positive", 1),
    ("abs", abs, np.abs, "all", 0),
    ("sign", rule.sign, sign, "all", 0),
    ("floor", rule.floor, np.floor, "all", 0),
    ("ceil", rule.ceil, np.ceil, "all", 0),
    ("round", rule.round, np.rint, "all", 0),
    ("exp", rule.exp, np.exp, "all", 4),
    ("log", rule.log, np.log, "positive", 4),
    ("tanh", rule.tanh, np.tanh, "all", 8),
    (
        "min",
        lambda x: rule.minimum(x, 0.5),
        lambda x: np.minimum(x, 0.5),
        "all",
        0,
    ),
    (
        "max",
        lambda x: rule.maximum(0.5, x),
        lambda x: np.maximum(x, 0.5),
        "all",
        0,
    ),
    (
        "clip",
        lambda x: rule.clip(x, -1.0, 1),
        lambda x: np.clip(x, -1, 1),
        "all",
        0,
    ),
    (
        "copysign",
        lambda x: rule.copysign(2.0, x),
        lambda x: np.copysign(2.0, x),
        "finite",
        0,
    ),
    ("fma", lambda x: rule.fma(x, x, -1.0), lambda x: x * x - 1.0, "finite", 1),
    ("cube", lambda x: x**3, lambda x: x**3, "all", 2),
    ("root", lambda x: x**0.25, lambda x: x**0.25, "positive", 2),
    ("inverse", lambda x: x**-1.5, lambda x: x**-1.5, "positive", 3),
    ("power", lambda x: x**0.3, lambda x: x**0.3, "positive", 40),
    (
        "where",
        lambda x: rule.where((x > -1) & ~(x >= 1), x, 7),
        lambda x: np.where((x > -1) & ~(x >= 1), x, 7),
        "all",
        0,
    ),
    (
        "nan",
        lambda x: rule.where(x != x, 1.0, 0.0),
        lambda x: np.where(x != x, 1.0, 0.0),
        "all",
        0,
    ),
]


def inputs(which):
    values = FINITE if which == "finite" else FINITE + SPECIAL
    array = np.array(values, dtype=np.float32)
    return array[(array > 0)] if which == "positive" else array


@pytest.mark.parametrize(
    ("function", "numpy", "which", "units"),
    [row[1:] for row in ELEMENTS],
    ids=[row[0] for row in ELEMENTS],
)
def test_functions_of_elements(function, numpy, which, units) -> None:
    @dfa.rule
    def apply(grad, param, *, lr=1.0):
        return function(grad)

    x = inputs(which)
    p = Parameter(torch.zeros(len(x)))
    p.grad = torch.from_numpy(x.copy())
    apply([p], on_nonfinite="propagate").step()
    with np.errstate(all="ignore"):
        wanted = numpy(x.astype(np.float64)).astype(np.float32)
    got = p.detach().numpy()
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    clear = ~np.isnan(wanted)
    got, wanted = got[clear], wanted[clear]
    infinite = np.isinf(wanted)
    assert np.array_equal(got[infinite], wanted[infinite])
    got, wanted = got[~infinite], wanted[~infinite]
    bound = units * np.spacing(np.maximum(np.abs(wanted), 2.0**-126))
    assert np.all(np.abs(got.astype(np.float64) - wanted) <= bound), got


def derived(function, x, y=1.0):
    """What a rule makes of two hyper-parameters and the step."""

    @dfa.rule
    def apply(grad, param, *, lr=1.0, x=1.0, y=1.0, step):
        return function(x, y, step)

    p = Parameter(torch.zeros(1))
    p.grad = torch.zeros(1)
    apply([p], x=x, y=y).step()
    return p.item()


@pytest.mark.parametrize("x", [1e-300, 1e-3, 0.5, 0.9999, 1.0, 1.5, 40.0, 1e30])
def test_derived_logarithms_are_those_of_f64(x) -> None:
    # The difference to a nearby constant shows more digits than f32 has.
    near = math.log(x) * (1.0 + 2.0**-20)
    got = derived(lambda x, y, _: (rule.log(x) - y) * 2.0**20, x=x, y=near)
    wanted = (math.log(x) - near) * 2.0**20
    assert got == pytest.approx(wanted, rel=2e-7, abs=1e-9)


@pytest.mark.parametrize("x", [-700.0, -20.5, -1.0, -1e-9, 0.0, 0.3, 1.0, 80.0])
def test_derived_exponentials_are_those_of_f64(x) -> None:
    near = math.exp(x) * (1.0 + 2.0**-20)
    got = derived(
        lambda x, y, _: (rule.exp(x) / y - 1.0) * 2.0**20, x=x, y=near
    )
    assert got == pytest.approx((math.exp(x) / near - 1.0) * 2.0**20, rel=3e-6)


def test_derived_edges() -> None:
    assert derived(lambda x, *_: rule.exp(x), x=-1000.0) == 0.0
    assert derived(lambda x, *_: rule.exp(x), x=1000.0) == math.inf
    assert derived(lambda x, *_: rule.log(x), x=0.0) == -math.inf
    assert math.isnan(derived(lambda x, *_: rule.log(x), x=-1.0))
    assert derived(lambda x, *_: rule.tanh(x), x=0.5) == pytest.approx(
        math.tanh(0.5), rel=1e-7
    )
    power = derived(lambda x, y, _: x**y, x=0.9, y=12.3)
    assert power == pytest.approx(0.9**12.3, rel=1e-7)
    tiny = derived(lambda x, y, step: 1.0 - x**step, x=1.0 - 2.0**-40)
    assert tiny == 2.0**-40  # of the f64 base, not of its f32 rounding
    assert derived(lambda x, y, step: x ** (step + 2), x=3.0) == 27.0
    chosen = derived(lambda x, y, step: rule.where(step == 1, x, y), x=2.0)
    assert chosen == 2.0


def test_all_functions_compile_for_gpus() -> None:
    """No GPU is needed to see that no mathematics library is called."""
    from dfa import _core
    from dfa.cache import compile_step
    from dfa.optim.steptext import ClassSpec, update_step

    @dfa.rule
    def everything(grad, param, *, lr=0.1, beta=0.9, step):
        total = param
        for _, function, _, _, _ in ELEMENTS:
            total = total + lr * function(grad)
        derived = rule.exp(beta) + rule.log(beta) + rule.tanh(beta)
        return total + derived * beta**step * beta**0.3

    made = everything.rule
    spec = ClassSpec(made, "f32", "f32", "none", (), made.modes_of({}))
    step = _core.Step(update_step([spec]), "<rule>")
    options = {"chip": "sm_90", "format": "ptx"}
    artifact, _ = compile_step(step, "cuda", options)
    text = bytes(artifact.code).decode(errors="replace")
    assert "fma.rn.f32" in text
    assert "__nv_" not in text
    assert ".approx" not in text
