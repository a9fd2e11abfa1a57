# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Parameters whose gradient exists on some ranks only: with `dfa.presence` the
# ranks agree on the device.
"""Ranks that saw different gradients, against NumPy and the reference."""

import numpy as np
import pytest
from run_step import ADAM, Step, keyed, run, sample

MESHES = [{"shard": 2}, {"replicate": 2}, {"replicate": 2, "shard": 2}]
SHAPES = {"a": (300,), "b": (7,), "c": (70,)}


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("mesh", MESHES)
def test_what_one_rank_saw_counts_for_all(tmp_path, target, mesh):
    """The others contribute zeros; nobody's parameter is not touched."""
    ranks = int(np.prod(list(mesh.values())))
    step = Step(SHAPES, ADAM, mesh=mesh, presence=True, clip=1e9)
    inputs = keyed("param", sample(SHAPES, 1))
    last = ranks - 1
    inputs[f"grad@{last}/a"] = sample(SHAPES, 2)["a"]
    inputs["grad@0/c"] = sample(SHAPES, 3)["c"]
    found = run(tmp_path, step, inputs, "--steps=2", target=target)
    mean = {
        "a": inputs[f"grad@{last}/a"].astype("f8") / ranks,
        "c": inputs["grad@0/c"].astype("f8") / ranks,
    }
    for name, grad in mean.items():
        # 0.9 * 0.1 + 0.1 of the same gradient twice
        np.testing.assert_allclose(
            found[f"exp_avg/{name}"], 0.19 * grad, rtol=1e-5, atol=1e-9
        )
        assert found[f"step/{name}"] == 2
    assert np.array_equal(found["param/b"], inputs["param/b"])
    assert found["step/b"] == 0
    norm = np.sqrt(sum(np.sum(grad**2) for grad in mean.values()))
    np.testing.assert_allclose(found["control/norm"], norm, rtol=1e-6)


def test_with_accumulated_gradients(tmp_path):
    step = Step(
        SHAPES, ADAM, mesh={"shard": 2}, presence=True, accumulate="f32"
    )
    inputs = keyed("param", sample(SHAPES, 4))
    inputs["grad.1@1/a"] = sample(SHAPES, 5)["a"]
    inputs["grad.2@0/a"] = sample(SHAPES, 6)["a"]
    found = run(
        tmp_path, step, inputs, "--steps=1", "--micro-batches=2", target="cpu"
    )
    total = inputs["grad.1@1/a"] + inputs["grad.2@0/a"]
    np.testing.assert_allclose(
        found["exp_avg/a"], 0.1 * 0.5 * total, rtol=1e-5, atol=1e-9
    )
