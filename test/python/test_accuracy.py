# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The promise of docs/rationale.md on numbers: f32 AdamW is as near to float64
# as torch's own implementations.
"""AdamW over 100 steps against float64, beside torch's fused and foreach."""

import numpy as np
import pytest
from gpus import need_gpus
from run_step import Step, keyed, run

torch = pytest.importorskip("torch")

STEPS = 100
SHAPES = {"w": (64, 129), "b": (257,)}
HYPER = {
    "lr": 1e-3,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 1e-2,
}


def make_inputs():
    """Parameters, and a gradient for each step, f32."""
    rng = np.random.default_rng(11)

    def draw(shape, scale):
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    params = {name: draw(shape, 0.1) for name, shape in SHAPES.items()}
    grads = [
        {name: draw(shape, 0.01) for name, shape in SHAPES.items()}
        for _ in range(STEPS)
    ]
    return params, grads


def run_torch(params, grads, dtype, device="cpu", **kind):
    tensors = {
        name: torch.tensor(value, dtype=dtype, device=device)
        for name, value in params.items()
    }
    optimizer = torch.optim.AdamW(
        tensors.values(),
        lr=HYPER["lr"],
        betas=(HYPER["beta1"], HYPER["beta2"]),
        eps=HYPER["eps"],
        weight_decay=HYPER["weight_decay"],
        **kind,
    )
    for step in grads:
        for name, tensor in tensors.items():
            tensor.grad = torch.tensor(step[name], dtype=dtype, device=device)
        optimizer.step()
    return {name: t.detach().cpu().double() for name, t in tensors.items()}


def run_dfa(directory, params, grads, target):
    inputs = keyed("param", params)
    for number, step in enumerate(grads, start=1):
        for name, value in step.items():
            inputs[f"grad.{number}/{name}"] = value
    outcome = run(
        directory,
        Step(SHAPES, HYPER),
        inputs,
        f"--steps={STEPS}",
        target=target,
    )
    return {
        name: torch.tensor(outcome[f"param/{name}"]).double() for name in SHAPES
    }


def errors(result, exact):
    """Largest and root mean square error over all elements."""
    distance = torch.cat(
        [(result[name] - exact[name]).flatten() for name in SHAPES]
    )
    return distance.abs().max().item(), distance.square().mean().sqrt().item()


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_adamw_is_as_accurate_as_torch(tmp_path, target):
    if target == "cuda":
        need_gpus(1)
    device = "cuda" if target == "cuda" else "cpu"
    params, grads = make_inputs()
    exact = run_torch(params, grads, torch.float64)
    fused = run_torch(params, grads, torch.float32, device, fused=True)
    foreach = run_torch(params, grads, torch.float32, device, foreach=True)
    worst, rms = errors(run_dfa(tmp_path, params, grads, target), exact)
    fused_worst, _ = errors(fused, exact)
    _, foreach_rms = errors(foreach, exact)
    print(
        f"{target}: largest {worst:.3e} (torch fused {fused_worst:.3e}), "
        f"RMS {rms:.3e} (torch foreach {foreach_rms:.3e})"
    )
    assert worst <= 1.1 * fused_worst
    assert rms <= foreach_rms


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_one_step_is_within_two_ulp(tmp_path, target):
    """Of max(|p|, lr), as one step changes a parameter by lr at most."""
    if target == "cuda":
        need_gpus(1)
    params, grads = make_inputs()
    exact = run_torch(params, grads[:1], torch.float64)
    inputs = keyed("param", params) | keyed("grad", grads[0])
    step = Step(SHAPES, HYPER)
    outcome = run(tmp_path, step, inputs, "--steps=1", target=target)
    for name in SHAPES:
        truth = exact[name].numpy()
        scale = np.maximum(np.abs(params[name]), np.float32(HYPER["lr"]))
        distance = np.abs(outcome[f"param/{name}"] - truth)
        assert np.all(distance <= 2 * np.spacing(scale.astype(np.float32)))
