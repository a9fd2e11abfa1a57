# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# dfa-run on small inputs with known results, with the reference and with the
# compiled step, and over ranks. Rules are in test_dfa_run_rules.py.
"""dfa-run: storage formats, skips, missing gradients, buckets, ranks."""

import subprocess

import ml_dtypes
import numpy as np
import pytest
from run_step import ADAM, PROGRAM, Step, keyed, run, sample

TARGETS = ["reference", "cpu"]


@pytest.fixture(params=TARGETS)
def target(request):
    """Who runs the step; a compiled target is verified by dfa-run too."""
    return request.param


def vector(*numbers):
    return np.float32(numbers)


@pytest.mark.parametrize(
    "rule, params, first_m",
    [
        (
            "adamw",
            [
                0.4328369435,
                -1.1716430967,
                1.9104492619,
                -0.7985066543,
                1.5373128110,
                -3.0149251226,
            ],
            0.0271,
        ),
        (
            "adam",
            [
                0.4400442181,
                -1.1900180493,
                1.9400167523,
                -0.8098998781,
                1.5590630269,
                -2.9400185274,
            ],
            0.0595252991,
        ),
    ],
)
def test_b01_decoupled_decay_is_not_l2(tmp_path, target, rule, params, first_m):
    hyper = {
        "lr": 0.02,
        "beta1": 0.9,
        "beta2": 0.99,
        "eps": 1e-8,
        "weight_decay": 0.25,
    }
    found = run(
        tmp_path,
        Step({"p": (6,)}, hyper, rule),
        {
            "param/p": vector(0.5, -1.25, 2.0, -0.75, 1.5, -3.0),
            "grad/p": vector(0.1, -0.2, 0.05, 0.3, -0.4, 0.25),
        },
        "--steps=3",
        target=target,
    )
    np.testing.assert_allclose(found["param/p"], params, rtol=2e-6, atol=2e-7)
    assert found["exp_avg/p"][0] == pytest.approx(first_m, rel=2e-5)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_b09_an_overflow_changes_nothing(tmp_path, target, bad):
    shapes = {f"p{i}": (8,) for i in range(3)}
    step = Step(shapes, ADAM, scaler=True, clip=1.0)
    inputs = keyed("param", sample(shapes, 3)) | {
        "control/scale": np.float64(16384)
    }
    for name in shapes:
        inputs[f"grad/{name}"] = np.full(8, 0.1 * 16384, np.float32)
        inputs[f"grad.2/{name}"] = np.full(8, 0.1 * 8192, np.float32)
    inputs["grad.1/p2"] = inputs["grad/p2"].copy()
    inputs["grad.1/p2"][5] = bad
    first = run(tmp_path, step, inputs, "--steps=1", target=target)
    for name in shapes:
        assert np.array_equal(first[f"param/{name}"], inputs[f"param/{name}"])
        assert not first[f"exp_avg/{name}"].any()
        assert first[f"step/{name}"] == 0
    assert first["control/scale"] == 8192
    assert first["control/found_inf"] == 1
    assert first["control/skipped"] == 1
    second = run(tmp_path, step, inputs, "--steps=2", target=target)
    assert second["control/step"] == 1
    assert second["control/found_inf"] == 0
    assert second["control/norm"] == pytest.approx(0.1 * np.sqrt(24), rel=1e-6)
    assert second["step/p2"] == 1


def test_b09_huge_finite_gradients_are_no_overflow(tmp_path, target):
    step = Step({"p": (8,)}, ADAM, scaler=True, clip=1.0)
    inputs = {
        "param/p": np.ones(8, np.float32),
        "grad/p": np.full(8, 1e20 * 2, np.float32),
        "control/scale": np.float64(2),
    }
    found = run(tmp_path, step, inputs, "--steps=1", target=target)
    assert found["control/found_inf"] == 0
    assert found["control/norm"] == pytest.approx(1e20 * np.sqrt(8), rel=1e-6)
    np.testing.assert_allclose(found["exp_avg/p"], 0.1 / np.sqrt(8), rtol=2e-5)


def test_b13_norms_without_markers(tmp_path, target):
    hyper = {**ADAM, "weight_decay": 0.0}
    step = Step({"a": (2,), "b": (2,)}, hyper, clip=1.0)
    ones = {
        "param/a": np.ones(2, np.float32),
        "param/b": np.ones(2, np.float32),
    }
    bad = ones | {"grad/a": vector(np.inf, 1.0), "grad/b": vector(2.0, 3.0)}
    found = run(tmp_path, step, bad, "--steps=1", target=target)
    assert found["control/norm"] == np.inf
    assert np.array_equal(found["param/a"], ones["param/a"])
    zero = ones | {"grad/a": vector(0, 0), "grad/b": vector(0, 0)}
    found = run(tmp_path, step, zero, "--steps=1", target=target)
    assert found["control/norm"] == 0
    assert found["control/step"] == 1
    assert np.array_equal(found["param/b"], ones["param/b"])
    huge = ones | {"grad/a": vector(1e20, 1e20), "grad/b": vector(0, 0)}
    found = run(tmp_path, step, huge, "--steps=1", target=target)
    assert found["control/norm"] == pytest.approx(1.4142135624e20, rel=1e-7)
    np.testing.assert_allclose(
        found["exp_avg/a"], 0.1 * 0.7071067812, rtol=2e-5
    )


@pytest.mark.parametrize(
    "ranks, shares", [(4, (0.2, 0.4, 0.6, 0.8)), (3, (0.25, 0.5, 0.75))]
)
@pytest.mark.parametrize("bucket", [128, 512, 1 << 20])
def test_b16_buckets_do_not_divide(tmp_path, ranks, shares, bucket):
    shapes = {"a": (7,), "b": (13,), "c": (1,), "d": (129,)}
    hyper = {**ADAM, "beta2": 0.999}
    inputs = keyed(
        "param", {n: np.ones(s, np.float32) for n, s in shapes.items()}
    )
    for rank, share in enumerate(shares):
        for name, shape in shapes.items():
            inputs[f"grad@{rank}/{name}"] = np.full(shape, share, np.float32)
    step = Step(shapes, hyper, mesh={"shard": ranks}, bucket_bytes=bucket)
    found = run(tmp_path, step, inputs, "--steps=1")
    assert found["control/norm"] == pytest.approx(6.1237243570, rel=1e-7)
    for name in shapes:
        np.testing.assert_allclose(
            found[f"param/{name}"], 0.9890000002, rtol=2e-7
        )


@pytest.mark.parametrize(
    "shapes",
    [
        {"p": (3,), "e": (0,)},
        {"e": (0,), "p": (3,)},
        {**{f"e{i}": (0,) for i in range(1000)}, "p": (3,)},
        {"e": (0, 4), "f": (0,)},
    ],
)
def test_b20_empty_parameters(tmp_path, target, shapes):
    hyper = {
        "lr": 0.1,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "weight_decay": 0,
    }
    inputs = {"control/max_norm": np.float64(0)}
    if "p" in shapes:
        inputs |= {"param/p": vector(1, 2, 3), "grad/p": vector(0.1, 0.1, 0.1)}
    for name, shape in shapes.items():
        if name != "p":
            inputs[f"grad/{name}"] = np.zeros(shape, np.float32)
    found = run(
        tmp_path, Step(shapes, hyper), inputs, "--steps=1", target=target
    )
    if "p" not in shapes:
        assert found["control/norm"] == 0
        return
    np.testing.assert_allclose(found["param/p"], [0.9, 1.9, 2.9], rtol=2e-7)
    assert found["control/norm"] == pytest.approx(0.1732050808, rel=1e-7)
    assert found["control/step"] == 1


def test_b22_a_parameter_without_gradient_is_skipped(tmp_path, target):
    one = np.ones(1, np.float32)
    inputs = {
        "param/A": one,
        "param/B": one,
        "grad/A": vector(0.5),
        "grad.1/B": vector(0.5),
        "grad.3/B": vector(0.2),
    }
    step = Step({"A": (1,), "B": (1,)}, ADAM)
    wanted = [0.9890000002, 0.9890000002, 0.9790104852]
    for steps, value in enumerate(wanted, 1):
        found = run(tmp_path, step, inputs, f"--steps={steps}", target=target)
        assert found["param/B"] == pytest.approx(value, rel=2e-7)
    assert found["step/A"] == 3
    assert found["step/B"] == 2


def test_b22_a_gradient_on_some_ranks_only(tmp_path):
    step = Step({"A": (3,)}, ADAM, mesh={"shard": 2})
    inputs = {"param/A": np.ones(3, np.float32), "grad@1/A": vector(1, 1, 1)}
    found = run(tmp_path, step, inputs, "--steps=1")
    np.testing.assert_allclose(found["exp_avg/A"], 0.1 * 0.5, rtol=1e-6)
    assert found["step/A"] == 1


def test_b25_resumed_step_counts(tmp_path, target):
    hyper = {
        "lr": 1e-3,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "weight_decay": 0,
    }
    step = Step({"p": (4,)}, hyper)
    inputs = {
        "param/p": np.ones(4, np.float32),
        "grad/p": np.full(4, 0.2, np.float32),
    }
    first = run(tmp_path, step, inputs, "--steps=40", target=target)
    np.testing.assert_allclose(first["param/p"], 0.9600000020, rtol=2e-6)
    assert first["step/p"] == 40
    resumed = {"grad/p": inputs["grad/p"]}
    for key in ("param/p", "exp_avg/p", "exp_avg_sq/p", "step/p"):
        resumed[key] = first[key]
    second = run(tmp_path, step, resumed, "--steps=1", target=target)
    np.testing.assert_allclose(second["param/p"], 0.9590000021, rtol=2e-6)
    assert second["step/p"] == 41


def test_b30_remainder_splits_and_joins_exactly(tmp_path, target):
    highs = np.uint32([0x0000, 0x3F7F, 0x3F80, 0x3F81, 0x7F7F, 0xBF80])
    lows = np.arange(0, 0x10000, 7, dtype=np.uint32)
    bits = ((highs[:, None] << 16) | lows).ravel()
    hyper = {**ADAM, "lr": 0.0}
    step = Step({"p": bits.shape}, hyper, storage="remainder", grad="bf16")
    inputs = {
        "master/p": bits.view(np.float32),
        "grad/p:bf16": np.full(bits.shape, 0x3F80, np.uint16),
    }
    found = run(tmp_path, step, inputs, "--steps=2", target=target)
    # -0.0 - 0.0 is -0.0, 0.0 - 0.0 is 0.0: every bit stays.
    assert np.array_equal(found["master/p"].view(np.uint32), bits)
    wanted = ((bits + 0x8000) >> 16).astype(np.uint16)
    assert np.array_equal(found["param/p:bf16"], wanted)
    cast = {"param/p:bf16": np.full(bits.shape, 0x3F80, np.uint16)} | {
        "grad/p:bf16": inputs["grad/p:bf16"]
    }
    found = run(tmp_path, step, cast, "--steps=1", target=target)
    assert (found["master/p"] == 1).all()


def test_b41_hyper_parameters_keep_their_digits(tmp_path, target):
    hyper = {
        "lr": 1e-3,
        "beta1": 0.9,
        "beta2": 0.95,
        "eps": 1e-8,
        "weight_decay": 1e-7,
    }
    found = run(
        tmp_path,
        Step({"p": (3,)}, hyper),
        {"param/p": np.ones(3, np.float32), "grad/p": np.zeros(3, np.float32)},
        "--steps=1",
        target=target,
    )
    assert (found["param/p"] == 1).all()


@pytest.mark.parametrize("storage", ["fp32", "master", "remainder", "bf16"])
def test_storage_formats(tmp_path, target, storage):
    shapes = {"a": (17, 3), "b": (1,)}
    step = Step(
        shapes, ADAM, storage=storage, grad="bf16", scaler=True, clip=0.5
    )
    found = run(tmp_path, step, None, "--steps=5", "--seed=3", target=target)
    for name in shapes:
        if storage == "fp32":
            continue
        if storage == "bf16":
            assert f"param/{name}:bf16" in found.arrays
            continue
        master = found[f"master/{name}"]
        param = found.bf16(f"param/{name}")
        if storage == "master":
            wanted = master.astype(ml_dtypes.bfloat16).astype(np.float32)
            assert np.array_equal(param, wanted)
        assert np.allclose(param, master, rtol=2**-8)


def test_seeded_gradients_average_over_ranks(tmp_path):
    shapes = {"a": (31,), "b": (2, 5)}
    one = run(tmp_path, Step(shapes, ADAM), None, "--steps=3")
    meshes = [{"shard": 2}, {"replicate": 2, "shard": 2}]
    for mesh in meshes:
        many = run(tmp_path, Step(shapes, ADAM, mesh=mesh), None, "--steps=3")
        for key, value in one.arrays.items():
            if key.startswith(("param", "exp_avg")):
                np.testing.assert_allclose(many[key], value, rtol=1e-6)
    distinct = run(
        tmp_path,
        Step(shapes, ADAM, mesh=meshes[1]),
        None,
        "--steps=3",
        "--distinct-gradients",
    )
    assert not np.allclose(distinct["exp_avg/a"], one["exp_avg/a"], rtol=1e-2)


@pytest.mark.parametrize("options", [(), ("--distinct-gradients",)])
@pytest.mark.parametrize("storage", ["fp32", "master", "remainder", "bf16"])
@pytest.mark.parametrize(
    "mesh", [{"shard": 2}, {"shard": 3}, {"replicate": 2, "shard": 2}]
)
def test_ranks_meet_and_agree(tmp_path, mesh, storage, options):
    shapes = {"a": (17, 3), "b": (5,), "empty": (0,), "c": (300, 7)}
    grad = "f32" if storage == "fp32" else "bf16"
    step = Step(
        shapes,
        ADAM,
        mesh=mesh,
        storage=storage,
        grad=grad,
        clip=0.1,
        bucket_bytes=1024,
    )
    found = run(tmp_path, step, None, "--steps=3", *options, target="cpu")
    assert found.report["verify"]["passed"]
    assert found.report["ranks"] == np.prod(list(mesh.values()))


def test_bits_do_not_depend_on_buckets(tmp_path):
    shapes = {"a": (100,), "b": (33, 3), "c": (1,), "d": (257,)}
    outcomes = [
        run(
            tmp_path,
            Step(shapes, ADAM, clip=0.05, bucket_bytes=size),
            None,
            target="cpu",
        )
        for size in (128, 1024, 1 << 20)
    ]
    for other in outcomes[1:]:
        for key, value in outcomes[0].arrays.items():
            assert np.array_equal(value, other[key]), key


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (3, 1, 0, 2)])
def test_orders_are_invisible_in_logical_space(tmp_path, order):
    shapes = {"conv": (4, 3, 5, 2)}
    plain = run(tmp_path, Step(shapes, ADAM), None, target="cpu")
    permuted = Step(shapes, ADAM, orders={"conv": order})
    assert "order = [" in permuted.text
    found = run(tmp_path, permuted, None, target="cpu")
    for key in ("param/conv", "exp_avg/conv", "exp_avg_sq/conv"):
        assert np.array_equal(plain[key], found[key])


def test_seeded_gradients_carry_the_loss_scale(tmp_path, target):
    shapes = {"a": (40, 9), "b": (7,)}
    step = Step(
        shapes, ADAM, grad="bf16", storage="master", scaler=True, clip=0.05
    )
    found = {}
    for scale in (1, 1024, 2.0**20):
        inputs = {"control/scale": np.float64(scale)}
        found[scale] = run(
            tmp_path, step, inputs, "--steps=2", "--seed=5", target=target
        )
        assert found[scale]["control/scale"] == scale
    # 367 elements of deviation 0.01: the clip is at work.
    norm = found[1]["control/norm"]
    assert norm == pytest.approx(0.01 * np.sqrt(367), rel=0.15)
    for scale in (1024, 2.0**20):
        # A power of two: the unscaled gradients have the same bits.
        assert found[scale]["control/norm"] == pytest.approx(norm, rel=1e-12)
        for key in ("master/a", "exp_avg/a", "exp_avg_sq/b"):
            np.testing.assert_allclose(
                found[scale][key], found[1][key], rtol=1e-6
            )


def test_seeded_gradients_follow_a_growing_scale(tmp_path, target):
    step = Step(
        {"a": (64,)},
        ADAM,
        scaler=True,
        clip=0.05,
        control={"growth_interval": 1},
    )
    inputs = {"control/scale": np.float64(256)}
    for steps in (1, 3):
        found = run(tmp_path, step, inputs, f"--steps={steps}", target=target)
        assert found["control/scale"] == 256 * 2**steps
        assert found["control/norm"] == pytest.approx(0.08, rel=0.3)


def test_time_prints_rates(tmp_path):
    step = Step({"p": (1 << 16,)}, ADAM, storage="master", grad="bf16")
    found = run(tmp_path, step, None, "--steps=1", "--time", target="cpu")
    time = found.report["time"]
    # grad and three arrays read, three and the parameter written; the norm
    # reads the gradient once more.
    assert time["bytes"] == (1 << 16) * (2 + 12 + 12 + 2 + 2)
    assert time["ms"] > 0
    assert time["host_us"] > 0
    assert time["batches"] == 5
    assert time["steps_per_batch"] >= (20 if time["ms"] < 25 else 1)
    assert time["copy_gb_per_s"] > 0
    assert time["copy_bytes"] == 1 << 28
    assert time["ratio_to_floor"] == pytest.approx(
        time["ms"] * time["copy_gb_per_s"] * 1e6 / time["bytes"]
    )
    kernels = [c for c in time["commands"] if c["kind"].startswith("launch_")]
    assert all(c["launches"] == 1 and c["ms"] > 0 for c in kernels)
    assert time["kernels_ms"] == pytest.approx(sum(c["ms"] for c in kernels))
    moving = [c for c in kernels if c["kind"] == "launch_elements"]
    assert sorted(c["bytes_per_element"] for c in moving) == [2, 28]
    assert time["bytes"] == sum(c["bytes"] for c in moving)
    for command in moving:
        rate = command["bytes"] / command["ms"] * 1e-6
        assert command["gb_per_s"] == pytest.approx(rate)
        assert command["ratio"] == pytest.approx(rate / time["copy_gb_per_s"])


def test_time_is_of_one_rank(tmp_path):
    step = Step({"p": (1 << 12,)}, ADAM, mesh={"replicate": 2, "shard": 2})
    found = run(tmp_path, step, None, "--steps=1", "--time", target="cpu")
    time = found.report["time"]
    # Each rank updates half; the sums of norms read that half once more.
    assert time["bytes"] == (1 << 11) * (4 + 12 + 12 + 4)
    names = {(c["kind"], c["name"]) for c in time["commands"]}
    assert ("collective", "reduce_scatter") in names
    assert ("collective", "all_gather") in names


def test_time_prints_a_table(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(Step({"p": (5000,)}, ADAM, clip=1.0).text)
    words = [PROGRAM, path, "--time", "--steps=1"]
    text = subprocess.run(
        words, capture_output=True, text=True, check=True, timeout=300
    ).stdout
    lines = text.splitlines()
    head = next(n for n, line in enumerate(lines) if "launches" in line)
    columns = ["kernel", "launches", "B/elem", "MB", "ms", "GB/s", "ratio"]
    assert lines[head].split() == columns
    assert any(line.startswith("copy ") and "256 MiB" in line for line in lines)
    assert any(line.startswith("kernels ") for line in lines)
    rows = [line.split() for line in lines[head + 1 :]]
    element = [row for row in rows if row[-1] != "-"]
    # 4 bytes of the norm, 28 of the update, for 5000 elements.
    assert sorted((row[-5], row[-4]) for row in element) == [
        ("28.00", "0.140"),
        ("4.00", "0.020"),
    ]
