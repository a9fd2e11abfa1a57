# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Storage in f16: parameters, gradients and states beside an f32 master.
"""dfa-run with f16 arrays, against the float64 reference."""

import numpy as np
import pytest
from run_step import ADAM, Step, run

pytestmark = pytest.mark.parametrize("target", ["reference", "cpu"])


@pytest.mark.parametrize("state", ["f32", "f16"])
def test_f16_storage(tmp_path, target, state):
    """Parameters, gradients and states in f16 beside an f32 master."""
    shapes = {"a": (17, 3), "b": (1,), "c": (4100,)}
    step = Step(
        shapes,
        ADAM,
        storage="half",
        grad="f16",
        state_format=state,
        scaler=True,
        clip=0.5,
        control={"scale": 1024.0},
    )
    found = run(tmp_path, step, None, "--steps=5", "--seed=3", target=target)
    assert found["control/step"] == 5
    for name in shapes:
        master, param = found[f"master/{name}"], found[f"param/{name}"]
        assert param.dtype == np.float16
        assert np.array_equal(param, master.astype(np.float16))
        assert found[f"exp_avg/{name}"].dtype == np.dtype(
            "f2" if state == "f16" else "f4"
        )
        assert np.any(found[f"exp_avg/{name}"] != 0)


def test_f16_gradients_overflow_and_recover(tmp_path, target):
    """65504 is the largest: a scaled gradient above it is an overflow."""
    step = Step(
        {"p": (3,)},
        ADAM,
        storage="half",
        grad="f16",
        scaler=True,
        control={"scale": 65536.0},
    )
    inputs = {
        "param/p": np.float32([1, 2, 3]),
        "grad.1/p": np.float16([1.0, np.inf, 0.5]),
        "grad.2/p": np.float16([60000.0, -65504.0, 6e-8]),
    }
    found = run(tmp_path, step, inputs, "--steps=2", target=target)
    assert found["control/skipped"] == 1
    assert found["control/step"] == 1
    assert found["control/scale"] == 32768
