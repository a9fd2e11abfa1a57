# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What only a GPU can show: the same bits as the CPU, replay, every example.
"""dfa-run on CUDA. Skipped, aloud, where there is no device."""

import pathlib
import subprocess

import numpy as np
import pytest
from gpus import need_gpus
from run_step import ADAM, PROGRAM, Step, keyed, run

pytestmark = pytest.mark.usefixtures("gpu")
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ["adamw", "mixed_precision", "lamb", "user_rule"]
SHAPES = {"a": (37, 5, 3, 3), "b": (1,), "c": (0,), "d": (20000,)}
ORDERS = {"a": [0, 2, 3, 1]}


def special(shape, seed):
    """Normal numbers, subnormals, signed zeros and extremes, shuffled."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    values = rng.standard_normal(count).astype(np.float32)
    tiny = rng.integers(1, 1 << 23, count).astype(np.uint32).view(np.float32)
    pick = rng.integers(0, 8, count)
    values = np.where(pick == 1, tiny, values)
    values = np.where(pick == 2, -tiny, values)
    values = np.where(pick == 3, np.float32(-0.0), values)
    values = np.where(pick == 4, values * np.float32(1e-30), values)
    values = np.where(pick == 5, values * np.float32(1e15), values)
    return values.astype(np.float32).reshape(shape)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("replay", [False, True])
def test_examples_verify(name, replay):
    words = [PROGRAM, ROOT / "examples" / f"{name}.mlir", "--target=cuda"]
    words += ["--steps=3", "--verify"] + ["--replay"] * replay
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr + done.stdout


RULES = [
    ("adamw", (), None),
    ("adam", (), None),
    ("adamw", ("amsgrad",), ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"]),
    ("sgd", (), None),
    ("lion", (), None),
    ("adagrad", (), None),
    ("rmsprop", (), None),
    (
        "rmsprop",
        ("centered", "with_momentum"),
        ["square_avg", "grad_avg", "momentum_buffer"],
    ),
]


@pytest.mark.parametrize(("rule", "flags", "states"), RULES)
@pytest.mark.parametrize("storage", ["fp32", "master", "remainder", "half"])
def test_bits_are_those_of_the_cpu(tmp_path, rule, flags, states, storage):
    """Every stored value, subnormals included, over three steps."""
    hyper = {
        "lr": 1e-3,
        "weight_decay": 0.1,
        "momentum": 0.9,
        "beta1": 0.9,
        "beta2": 0.99,
        "eps": 1e-8,
        "alpha": 0.95,
        "lr_decay": 0.01,
    }
    step = Step(
        SHAPES,
        hyper,
        rule,
        flags=flags,
        states=states,
        storage=storage,
        grad="f16" if storage == "half" else "f32",
        orders=ORDERS,
        clip=1e3,
    )
    inputs = {}
    for seed, (name, shape) in enumerate(SHAPES.items()):
        inputs[f"param/{name}"] = special(shape, seed)
        for number in (1, 2, 3):
            inputs[f"grad.{number}/{name}"] = special(shape, 10 * number + seed)
    results = []
    for target in ("cpu", "cuda"):
        place = tmp_path / target
        place.mkdir()
        outcome = run(place, step, inputs, "--steps=3", target=target)
        results.append(outcome.arrays)
    cpu, cuda = results
    assert cpu.keys() == cuda.keys()
    different = [k for k in cpu if cpu[k].tobytes() != cuda[k].tobytes()]
    assert not different


@pytest.mark.parametrize("state", ["f32", "f16"])
@pytest.mark.parametrize("replay", [False, True])
def test_f16_storage(tmp_path, state, replay):
    """Against float64, as on the CPU."""
    step = Step(
        SHAPES,
        ADAM,
        storage="half",
        grad="f16",
        state_format=state,
        scaler=True,
        clip=0.5,
        control={"scale": 1024.0},
        orders=ORDERS,
    )
    options = ["--steps=3"] + ["--replay"] * replay
    run(tmp_path, step, None, *options, target="cuda")


@pytest.mark.parametrize("replay", [False, True])
def test_accumulate(tmp_path, replay):
    """The device decides by generation what copies, in replays too."""
    step = Step(
        SHAPES, ADAM, grad="bf16", storage="master", accumulate="f32",
        scaler=True, clip=1.0, orders=ORDERS,
    )  # fmt: skip
    options = ["--steps=4", "--micro-batches=3"] + ["--replay"] * replay
    run(tmp_path, step, None, *options, target="cuda")


def test_many_small_parameters(tmp_path):
    """Parameters that share blocks, odd sizes among them, replayed."""
    shapes = {f"p{i}": (1 + i % 200,) for i in range(1000)}
    step = Step(shapes, ADAM, scaler=True, clip=1.0)
    run(tmp_path, step, None, "--steps=3", "--replay", target="cuda")


def test_replay_gives_the_bits_of_eager(tmp_path):
    rng = np.random.default_rng(3)
    inputs = keyed(
        "param",
        {n: rng.standard_normal(s).astype("f") for n, s in SHAPES.items()},
    )
    for number in range(1, 21):
        for name, shape in SHAPES.items():
            grad = rng.standard_normal(shape).astype("f")
            if number == 7 and name == "d":
                grad[5] = np.inf
            inputs[f"grad.{number}/{name}"] = grad
    step = Step(SHAPES, ADAM, scaler=True, clip=1.0, orders=ORDERS)
    results = []
    for options in ([], ["--replay"]):
        place = tmp_path / f"run{len(results)}"
        place.mkdir()
        outcome = run(
            place, step, inputs, "--steps=20", *options, target="cuda"
        )
        results.append(outcome.arrays)
    for key, value in results[0].items():
        assert value.tobytes() == results[1][key].tobytes(), key
    assert results[0]["control/skipped"] == 1


@pytest.mark.parametrize("mesh", [{"shard": 2}, {"replicate": 2, "shard": 1}])
def test_two_gpus(tmp_path, mesh):
    need_gpus(2)
    step = Step(
        {"a": (300, 70), "b": (513,)},
        ADAM,
        storage="master",
        grad="bf16",
        mesh=mesh,
        clip=1.0,
    )
    run(
        tmp_path,
        step,
        None,
        "--steps=3",
        "--ranks=2",
        "--distinct-gradients",
        target="cuda",
    )
