# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# dfa-run's float64 reference against torch's optimizers in float64, and the
# compiled step against both where `cpu` is among the targets.
"""dfa-run: every rule against torch in float64."""

import numpy as np
import pytest
import torch
from run_step import ADAM, Step, keyed, run, sample

TARGETS = ["reference", "cpu"]


@pytest.fixture(params=TARGETS)
def target(request):
    """Who runs the step; a compiled target is verified by dfa-run too."""
    return request.param


def betas(hyper):
    """Torch's spelling of a group."""
    rest = {k: v for k, v in hyper.items() if k not in ("beta1", "beta2")}
    return {**rest, "betas": (hyper["beta1"], hyper["beta2"])}


def lion(params, hyper, maximize=False):
    """Chen et al., algorithm 2; torch has no Lion."""
    moments = [torch.zeros_like(p) for p in params]

    def step():
        with torch.no_grad():
            for p, m in zip(params, moments, strict=True):
                g = -p.grad if maximize else p.grad
                update = torch.sign(
                    hyper["beta1"] * m + (1 - hyper["beta1"]) * g
                )
                p.sub_(hyper["lr"] * (update + hyper["weight_decay"] * p))
                m.mul_(hyper["beta2"]).add_((1 - hyper["beta2"]) * g)

    return step, [{"exp_avg": m} for m in moments]


def lamb(params, hyper):
    """You et al., algorithm 2, with bias correction and phi(x) = x."""
    states = [
        {"exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
        for p in params
    ]
    count = [0]

    def step():
        count[0] += 1
        b1, b2 = hyper["beta1"], hyper["beta2"]
        with torch.no_grad():
            for p, state in zip(params, states, strict=True):
                m, v = state["exp_avg"], state["exp_avg_sq"]
                m.mul_(b1).add_((1 - b1) * p.grad)
                v.mul_(b2).add_((1 - b2) * p.grad**2)
                first = m / (1 - b1 ** count[0])
                second = v / (1 - b2 ** count[0])
                u = first / (second.sqrt() + hyper["eps"])
                u = u + hyper["weight_decay"] * p
                ratio = 1.0
                if p.norm() > 0 and u.norm() > 0:
                    ratio = p.norm() / u.norm()
                p.sub_(hyper["lr"] * ratio * u)

    return step, states


SGD = {"lr": 0.05, "weight_decay": 0.02, "momentum": 0.9, "dampening": 0.25}
RMSPROP = {
    "lr": 1e-2,
    "alpha": 0.95,
    "eps": 1e-8,
    "weight_decay": 0.03,
    "momentum": 0.8,
}
LION = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1}
ADAGRAD = {"lr": 0.1, "lr_decay": 0.3, "eps": 1e-10, "weight_decay": 0.02}

# rule, hyper-parameters, flags of the op, states, torch's constructor.
CASES = {
    "adamw": ("adamw", ADAM, (), None, torch.optim.AdamW, {}),
    "adam": ("adam", ADAM, (), None, torch.optim.Adam, {}),
    "adamw-amsgrad": (
        "adamw",
        ADAM,
        ("amsgrad",),
        ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"],
        torch.optim.AdamW,
        {"amsgrad": True},
    ),
    "adam-maximize": (
        "adam",
        ADAM,
        ("maximize",),
        None,
        torch.optim.Adam,
        {"maximize": True},
    ),
    "sgd": ("sgd", SGD, (), None, torch.optim.SGD, {}),
    "sgd-plain": (
        "sgd",
        {"lr": 0.05, "weight_decay": 0.02},
        (),
        [],
        torch.optim.SGD,
        {},
    ),
    "sgd-nesterov": (
        "sgd",
        {**SGD, "dampening": 0.0},
        ("nesterov", "maximize"),
        None,
        torch.optim.SGD,
        {"nesterov": True, "maximize": True},
    ),
    "adagrad": ("adagrad", ADAGRAD, (), None, torch.optim.Adagrad, {}),
    "rmsprop": (
        "rmsprop",
        {k: v for k, v in RMSPROP.items() if k != "momentum"},
        (),
        None,
        torch.optim.RMSprop,
        {},
    ),
    "rmsprop-all": (
        "rmsprop",
        RMSPROP,
        ("centered", "with_momentum"),
        ["square_avg", "grad_avg", "momentum_buffer"],
        torch.optim.RMSprop,
        {"centered": True},
    ),
    "lion": ("lion", LION, (), None, None, {}),
    "lion-maximize": (
        "lion",
        LION,
        ("maximize",),
        None,
        None,
        {"maximize": True},
    ),
    "lamb": ("lamb", ADAM, (), None, None, {}),
}
SHAPES = {"conv": (4, 3, 2, 2), "bias": (5,), "scalar": (), "empty": (0, 3)}


@pytest.mark.parametrize("case", CASES)
def test_rules_against_torch(tmp_path, case, target):
    rule, hyper, flags, states, optimizer, options = CASES[case]
    steps = 4
    values = sample(SHAPES, 1)
    gradients = [sample(SHAPES, 10 + k, 0.1) for k in range(steps)]
    inputs = keyed("param", values)
    for k, gradient in enumerate(gradients):
        inputs |= keyed(f"grad.{k + 1}", gradient)
    found = run(
        tmp_path,
        Step(SHAPES, hyper, rule, flags=flags, states=states),
        inputs,
        f"--steps={steps}",
        target=target,
    )

    params = {
        n: torch.tensor(a, dtype=torch.float64) for n, a in values.items()
    }
    tensors = list(params.values())
    if optimizer is None:
        make = lion if rule == "lion" else lamb
        step, expected = make(tensors, hyper, **options)
    else:
        words = betas(hyper) if "beta1" in hyper else hyper
        made = optimizer(tensors, **words, **options)
        step = made.step
        expected = None
    for gradient in gradients:
        for name, tensor in params.items():
            tensor.grad = torch.tensor(gradient[name], dtype=torch.float64)
        step()
    if expected is None:
        expected = [made.state[tensor] for tensor in tensors]
    for (name, tensor), state in zip(params.items(), expected, strict=True):
        # Outputs are rounded to f32 once; the reference itself is float64.
        near = {"rtol": 1e-7, "atol": 1e-12}
        if target != "reference":
            near = {"rtol": 2e-5, "atol": 2e-7}
        np.testing.assert_allclose(
            found[f"param/{name}"], tensor.numpy(), **near
        )
        for key in Step(SHAPES, hyper, rule, states=states).states:
            want = state.get(key)
            if want is None:  # torch keeps none for this form
                continue
            np.testing.assert_allclose(
                found[f"{key}/{name}"], want.numpy(), **near
            )
        assert found[f"step/{name}"] == steps
    norm = np.sqrt(
        sum((g.astype(np.float64) ** 2).sum() for g in gradients[-1].values())
    )
    assert found["control/norm"] == pytest.approx(norm, rel=1e-12)
    assert found["control/step"] == steps


def test_lamb_with_many_parameters(tmp_path):
    """Statistics of thousands of parameters stay in their table."""
    shapes = {f"p{i}": (1 + i % 5,) for i in range(3000)}
    hyper = {"lr": 1e-2, "beta1": 0.9, "beta2": 0.99, "eps": 1e-6}
    step = Step(shapes, hyper | {"weight_decay": 0.1}, "lamb")
    run(tmp_path, step, None, "--steps=2", target="cpu")
