# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# dfa-run's exit codes and messages for what goes wrong.
"""dfa-run: wrong usage, wrong files, wrong data, differences, no device."""

import ctypes
import json
import subprocess
import xml.etree.ElementTree

import numpy as np
import pytest
from run_step import PROGRAM, Step, run

HYPER = {
    "lr": 1e-3,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.01,
}
SHAPES = {"w": (2, 3), "b": (3,)}
STEP = Step(SHAPES, HYPER, storage="master", grad="bf16")


def call(*words):
    """Runs dfa-run on words; a signal would be a negative code."""
    return subprocess.run(
        [PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120
    )


def fails(tmp_path, text, code, message, *words, inputs=None):
    path = tmp_path / "step.mlir"
    path.write_text(getattr(text, "text", text))
    if inputs is not None:
        np.savez(tmp_path / "in.npz", **inputs)
        words += (f"--inputs={tmp_path / 'in.npz'}",)
    done = call(path, *words)
    assert done.returncode == code, done.stderr + done.stdout
    assert message in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "words, message",
    [
        ([], "expects a file STEP.mlir, but got none"),
        (["--nonsense", "x"], "Unknown command line argument '--nonsense'"),
        (["--steps=-1", "x"], "expects --steps of at least 0, but got -1"),
        (["--steps=many", "x"], "'many' value invalid"),
        (["--target=tpu", "x"], "Cannot find option named 'tpu'"),
        (["--ranks=-2", "x"], "expects --ranks of at least 1, but got -2"),
        (
            ["--target=reference", "--verify", "x"],
            "expects --verify and --time with a compiled target",
        ),
        (["x", "y"], "Too many positional arguments"),
    ],
)
def test_wrong_usage_is_2(words, message):
    done = call(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_help_and_version():
    done = call("--help")
    assert done.returncode == 0
    assert "--verify" in done.stdout
    assert "--x86" not in done.stdout
    assert call("--version").stdout.startswith("dfa-run ")


def test_missing_files_are_1(tmp_path):
    done = call(tmp_path / "none.mlir")
    assert done.returncode == 1
    assert "none.mlir" in done.stderr
    message = "none.npz"
    fails(tmp_path, STEP, 1, message, f"--inputs={tmp_path / 'none.npz'}")
    message = "nowhere"
    fails(tmp_path, STEP, 1, message, "--outputs=/nowhere/out.npz")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "expects a function @step, but found none"),
        ("garbage", "error"),
        (STEP.text[:-30], "error"),
        (
            STEP.text.replace('dfa.role = "exp_avg"', 'dfa.role = "velocity"'),
            "expects the role of argument 2 to be one that class @w has "
            "('grad', 'param', 'master', 'exp_avg', 'exp_avg_sq'), but got "
            '"velocity"',
        ),
        (
            STEP.text.replace(' {dfa.role = "grad"}', ""),
            "expects a 'dfa.role' attribute on argument 0 of @step",
        ),
        (STEP.text.replace("@step", "@stride"), "expects a function @step"),
        (
            STEP.text.replace(
                "{\n  %u",
                "attributes {dfa.control = {tempo = 1.0}} {\n  %u",
            ),
            "tempo",
        ),
    ],
)
def test_wrong_steps_are_1_with_a_place(tmp_path, text, message):
    stderr = fails(tmp_path, text, 1, message, "--target=reference")
    assert "step.mlir:" in stderr


@pytest.mark.parametrize(
    "inputs, message",
    [
        (
            {"param/w": np.zeros((3, 2), np.float32)},
            "key 'param/w': expects shape [2, 3], but got [3, 2]",
        ),
        (
            {"param/nobody": np.zeros(3, np.float32)},
            "expects the name of a parameter of '@m' behind the slash, but "
            "got 'nobody'",
        ),
        (
            {"momentum/w": np.zeros((2, 3), np.float32)},
            "expects one of grad, param, master, step, control, exp_avg, "
            "exp_avg_sq before the slash, but got 'momentum'",
        ),
        ({"w": np.zeros(3)}, "expects a key of the form KIND/NAME"),
        (
            {"param/w": np.zeros((2, 3), np.int64)},
            "expects f2, f4 or f8 (or u2 under ':bf16'), but got i8[2, 3]",
        ),
        (
            {"param/w:bf16": np.zeros((2, 3), np.float32)},
            "expects u2 (the bits of bf16), but got f4[2, 3]",
        ),
        (
            {
                "param/w": np.zeros((2, 3), np.float32),
                "param/w:bf16": np.zeros((2, 3), np.uint16),
            },
            "the array is given twice",
        ),
        ({"control/speed": np.float64(1)}, "expects a control field (norm, "),
        ({"control/scale": np.zeros(2)}, "expects one number, but got f8[2]"),
        (
            {"grad.0/w": np.zeros((2, 3), np.float32)},
            "expects grad, grad.STEP, grad@RANK or grad.STEP@RANK",
        ),
        (
            {"grad@1/w": np.zeros((2, 3), np.float32)},
            "a rank below 1, but got 'grad@1'",
        ),
        ({"step/w": np.float64(3)}, "expects one i8 (int64) number"),
    ],
)
def test_wrong_inputs_are_1(tmp_path, inputs, message):
    stderr = fails(tmp_path, STEP, 1, message, inputs=inputs)
    assert "in.npz: key '" in stderr


def test_ranks_must_be_the_meshs(tmp_path):
    fails(tmp_path, STEP, 2, "expects --ranks=1, the ranks", "--ranks=2")


def test_a_difference_is_3(tmp_path):
    # This step stores another value than the master's encoding, which is what
    # a parameter beside a master is to hold.
    text = STEP.text.replace("dfa.encode bf16 %x#0", "dfa.encode bf16 %x#1")
    assert text != STEP.text
    path = tmp_path / "step.mlir"
    path.write_text(text)
    done = call(path, "--verify", "--steps=1")
    assert done.returncode == 3, done.stderr
    assert "verify failed: 9 of" in done.stdout
    assert "worst 'param/" in done.stdout


def test_no_gpu_is_4(tmp_path):
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        driver = None
    if driver is not None and driver.cuInit(0) == 0:
        pytest.skip("this machine has a GPU")
    fails(tmp_path, STEP, 4, "expects a GPU, but", "--target=cuda")


def test_trace_and_plan(tmp_path):
    step = Step(SHAPES, HYPER, mesh={"shard": 2}, bucket_bytes=128)
    path = tmp_path / "step.mlir"
    path.write_text(step.text)
    trace, plan = tmp_path / "t.json", tmp_path / "p.svg"
    done = call(path, "--steps=2", f"--trace={trace}", f"--plan={plan}")
    assert done.returncode == 0, done.stderr
    events = json.loads(trace.read_text())["traceEvents"]
    # Both ranks did the same.
    assert {e["pid"] for e in events} == {0, 1}
    assert [e["name"] for e in events if e["pid"] == 0] == [
        "compile",
        "create",
        "load",
        "gradients 1",
        "step 1",
        "gradients 2",
        "step 2",
    ]
    root = xml.etree.ElementTree.parse(plan).getroot()
    titles = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "w: 6 from 32" in titles  # 128 bytes on
    assert "b: 3 from 0" in titles
    # Below it the streams: the bucket is reduced, updated and gathered.
    for what in ("reduce_scatter", "update_w", "all_gather"):
        assert titles.count(f"{what}, bucket 0") == 1


def test_check_names_every_rank(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(Step(SHAPES, HYPER, mesh={"shard": 2}).text)
    done = call(path, "--check")
    assert done.returncode == 0, done.stderr
    assert "rank 0: cpu" in done.stdout
    assert "rank 1: cpu" in done.stdout


def test_json_of_an_overflow(tmp_path):
    inputs = {
        "grad/w": np.full((2, 3), np.inf, np.float32),
        "grad/b": np.zeros(3, np.float32),
    }
    found = run(tmp_path, STEP, inputs, "--steps=1", target="cpu")
    assert found.report["control"]["norm"] == "inf"
    assert found.report["control"]["skipped"] == 1
