# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# dfa.accumulate from end to end: contributions arrive one by one, the first
# copies, the others add, and the device knows which is which.
"""Steps over several micro-batches, against sums made by NumPy."""

import numpy as np
import pytest
from run_step import ADAM, Step, keyed, run, sample

SHAPES = {"a": (5, 7), "b": (1,), "c": (0,), "d": (9001,)}
SGD = {"lr": 0.5, "weight_decay": 0.0}


def batches(count, seed=0, scale=1.0):
    """grad.K/NAME for contributions 1 to `count`."""
    inputs = {}
    for number in range(1, count + 1):
        grads = sample(SHAPES, seed + number, scale)
        inputs.update({f"grad.{number}/{n}": g for n, g in grads.items()})
    return inputs


def plain_sgd(**options):
    """Subtracts half of the gradient, without momentum."""
    return Step(SHAPES, SGD, "sgd", states=[], accumulate="f32", **options)


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("parts", [1, 3])
def test_contributions_add_up(tmp_path, target, parts):
    inputs = keyed("param", sample(SHAPES, 99)) | batches(2 * parts)
    outcome = run(
        tmp_path,
        plain_sgd(),
        inputs,
        "--steps=2",
        f"--micro-batches={parts}",
        target=target,
    )
    for name in SHAPES:
        total = sum(
            inputs[f"grad.{k}/{name}"].astype(np.float64)
            for k in range(1, 2 * parts + 1)
        )
        want = inputs[f"param/{name}"] - 0.5 * total
        np.testing.assert_allclose(
            outcome[f"param/{name}"], want, rtol=0, atol=2e-6
        )


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_without_zero_grad_steps_go_on_adding(tmp_path, target):
    inputs = keyed("param", sample(SHAPES, 98)) | batches(3)
    outcome = run(
        tmp_path, plain_sgd(forget=False), inputs, "--steps=3", target=target
    )
    grads = [inputs[f"grad.{k}/d"].astype(np.float64) for k in (1, 2, 3)]
    total = 3 * grads[0] + 2 * grads[1] + grads[2]
    np.testing.assert_allclose(
        outcome["param/d"], inputs["param/d"] - 0.5 * total, rtol=0, atol=4e-6
    )


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_a_parameter_missing_in_some_micro_batches(tmp_path, target):
    """It is updated with what arrived; without any, it is left alone."""
    inputs = keyed("param", sample(SHAPES, 97)) | batches(4)
    del inputs["grad.1/b"]  # the first contribution is the second batch's
    del inputs["grad.3/a"], inputs["grad.4/a"]  # nothing in step 2
    outcome = run(
        tmp_path,
        plain_sgd(),
        inputs,
        "--steps=2",
        "--micro-batches=2",
        target=target,
    )
    for name, numbers in (("a", (1, 2)), ("b", (2, 3, 4))):
        total = sum(inputs[f"grad.{k}/{name}"] for k in numbers)
        np.testing.assert_allclose(
            outcome[f"param/{name}"],
            inputs[f"param/{name}"] - 0.5 * total,
            rtol=0,
            atol=2e-6,
        )


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("bucket", ["f32", "bf16"])
def test_scaler_norm_and_clip_see_the_sum(tmp_path, bucket, replay):
    """bf16 gradients into a bucket; an overflow in one batch skips the step."""
    step = Step(
        SHAPES,
        ADAM,
        storage="master",
        grad="bf16",
        accumulate=bucket,
        scaler=True,
        clip=1.0,
    )
    inputs = keyed("param", sample(SHAPES, 96)) | batches(9, scale=8.0)
    inputs["grad.5/d"][17] = np.inf
    outcome = run(
        tmp_path,
        step,
        inputs,
        "--steps=3",
        "--micro-batches=3",
        *(["--replay"] if replay else []),
        target="cpu",
    )
    assert outcome["control/step"] == 2
    assert outcome["control/skipped"] == 1


@pytest.mark.parametrize("mesh", [{"shard": 2}, {"replicate": 2}])
def test_over_ranks(tmp_path, mesh):
    """The sum goes over the wire once."""
    step = Step(SHAPES, ADAM, accumulate="f32", mesh=mesh, clip=1.0)
    run(
        tmp_path,
        step,
        None,
        "--steps=3",
        "--micro-batches=2",
        "--distinct-gradients",
        target="cpu",
    )


def test_micro_batches_need_a_step_that_accumulates(tmp_path):
    step = Step(SHAPES, SGD, "sgd", states=[])
    outcome = run(tmp_path, step, None, "--micro-batches=2", code=2)
    assert "expects a step with 'dfa.accumulate'" in outcome.stderr
