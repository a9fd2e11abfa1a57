# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Known failures of other optimizers on several ranks, as small inputs with
# known results. B16 and B22 are in test_dfa_run.py, B34 in
# test/unit/Runtime/ProducerStreamsTest.cpp.
"""dfa-run over ranks: norms count nothing twice, overflows stop all ranks."""

import re
import time

import numpy as np
import pytest
from run_step import ADAM, Step, run
from worlds import finish, free_port, start


@pytest.mark.parametrize(
    "mesh",
    [
        {"replicate": 2, "shard": 2},
        {"replicate": 4, "shard": 1},
        {"replicate": 1, "shard": 4},
    ],
)
def test_b15_replicas_do_not_count_twice(tmp_path, mesh):
    shapes = {"A": (2,), "B": (1,)}
    inputs = {
        "param/A": np.ones(2, np.float32),
        "param/B": np.ones(1, np.float32),
        "grad/A": np.float32([6, 8]),
        "grad/B": np.float32([2.4]),
    }
    step = Step(shapes, ADAM, mesh=mesh, clip=1.0)
    found = run(tmp_path, step, inputs, "--steps=1", target="cpu")
    # Twice A would be 14.34, twice everything 14.54.
    assert found["control/norm"] == pytest.approx(10.2839681057, rel=1e-7)
    np.testing.assert_allclose(
        found["exp_avg/A"], 0.1 * np.array([6, 8]) / 10.2839681057, rtol=2e-6
    )


@pytest.mark.parametrize("options", [(), ("--replay",)])
def test_b36_an_overflow_that_one_shard_sees_stops_all(tmp_path, options):
    # Buckets of one parameter, cut in two: rank 1 owns the second halves.
    shapes = {"a": (64,), "b": (64,)}
    step = Step(
        shapes,
        ADAM,
        mesh={"shard": 2},
        scaler=True,
        clip=1.0,
        bucket_bytes=256,
    )
    inputs = {"control/scale": np.float64(65536)}
    for name, shape in shapes.items():
        inputs[f"param/{name}"] = np.ones(shape, np.float32)
        for rank in range(2):
            inputs[f"grad@{rank}/{name}"] = np.full(shape, 0.5, np.float32)
    inputs["grad@1/b"][-1] = np.inf
    # --verify compares the parameters of both ranks, bit by bit.
    found = run(tmp_path, step, inputs, "--steps=1", *options, target="cpu")
    assert found["control/found_inf"] == 1
    assert found["control/skipped"] == 1
    assert found["control/scale"] == 32768
    for name in shapes:
        assert (found[f"param/{name}"] == 1).all()
        assert not found[f"exp_avg/{name}"].any()


def test_b36_a_rank_without_any_gradient(tmp_path):
    shapes = {"a": (40,), "b": (3, 5)}
    step = Step(shapes, ADAM, mesh={"shard": 2}, clip=1.0, presence=True)
    inputs = {}
    for name, shape in shapes.items():
        inputs[f"param/{name}"] = np.ones(shape, np.float32)
        inputs[f"grad@0/{name}"] = np.full(shape, 2.0, np.float32)
    found = run(tmp_path, step, inputs, "--steps=2", target="cpu")
    # The average with zeros.
    assert found["control/norm"] == pytest.approx(np.sqrt(55), rel=1e-7)
    assert found["step/a"] == found["step/b"] == 2


def test_b36_a_rank_that_fails_before_the_step(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(Step({"a": (40,)}, ADAM, mesh={"shard": 2}).text)
    port = free_port()
    begin = time.monotonic()
    done = finish(
        [
            start(
                # Rank 1 cannot read its data.
                [path, *([f"--inputs={tmp_path / 'none.npz'}"] * rank)],
                RANK=rank,
                WORLD_SIZE=2,
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
                DFA_TIMEOUT_S=3,
            )
            for rank in range(2)
        ]
    )
    assert time.monotonic() - begin < 10
    assert done[1][0] == 1
    assert done[0][0] == 4
    wanted = r"connect of the control exchange: rank 1 has not entered it"
    assert re.search(wanted, done[0][2]), done[0][2]
