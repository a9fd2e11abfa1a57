# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# dfa.jit: results against float64, binding, live values, and its errors.
"""Compiled steps on tensors of several frameworks."""

import gc
import pathlib
import weakref

import dfa
import numpy as np
import pytest
from run_step import ADAM, Step

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SHAPES = {"conv": (8, 3, 5, 5), "bias": (8,), "none": (0, 4), "one": (1,)}
ORDERS = {"conv": [0, 2, 3, 1]}


@pytest.fixture(autouse=True)
def folder(tmp_path_factory, monkeypatch):
    """One cache for all tests here, apart from the user's."""
    path = tmp_path_factory.getbasetemp() / "jit-cache"
    monkeypatch.setenv("DFA_CACHE_DIR", str(path))


def dense(values, order=None):
    """The values, lying in memory in the given order of dims."""
    if order is None:
        return np.ascontiguousarray(values)
    inverse = np.argsort(order)
    return np.ascontiguousarray(values.transpose(order)).transpose(inverse)


def sample(rng, scale=1.0):
    return {
        name: dense(
            (scale * rng.standard_normal(shape)).astype(np.float32),
            ORDERS.get(name),
        )
        for name, shape in SHAPES.items()
    }


def adamw(param, grad, m, v, step, hyper):
    """One update in float64, after Loshchilov and Hutter."""
    lr, beta1, beta2 = hyper["lr"], hyper["beta1"], hyper["beta2"]
    param = param * (1 - lr * hyper["weight_decay"])
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad * grad
    away = np.sqrt(v / (1 - beta2**step)) + hyper["eps"]
    return param - lr * (m / (1 - beta1**step)) / away, m, v


def plain(**options):
    return Step(SHAPES, ADAM, orders=ORDERS, **options)


# === Results =================================================================


def test_adamw_against_float64():
    rng = np.random.default_rng(1)
    param, hyper = sample(rng), dict(ADAM)
    state = {
        n: (p.astype(float), np.zeros(p.shape), np.zeros(p.shape))
        for n, p in param.items()
    }
    step = dfa.jit(plain().text)
    assert dict(step.groups[0]) == pytest.approx(hyper)
    for number in range(1, 6):
        grad = sample(rng)
        if number == 4:  # hyper-parameters are live
            step.groups[0]["lr"] = hyper["lr"] = 0.5
            step.groups[0]["beta2"] = hyper["beta2"] = 0.7
        step(grad=grad, **({"param": param} if number == 1 else {}))
        for name, (p, m, v) in state.items():
            state[name] = adamw(p, grad[name], m, v, number, hyper)
    for name, (p, m, v) in state.items():
        np.testing.assert_allclose(param[name], p, rtol=3e-6, atol=3e-6)
        for role, wanted in (("exp_avg", m), ("exp_avg_sq", v)):
            got = np.from_dlpack(step.array(role, name))
            assert got.shape == SHAPES[name]
            np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=1e-6)
    assert step.steps("conv") == 5
    assert step.control.step == step.control["step"] == 5
    assert step.control.mirror("step") == 5


def test_missing_gradients_leave_parameters_alone():
    rng = np.random.default_rng(2)
    param = sample(rng)
    before = {n: p.copy() for n, p in param.items()}
    step = dfa.jit(plain().text)
    grad = sample(rng)
    step(grad={**grad, "bias": None}, param=param)
    assert (param["bias"] == before["bias"]).all()
    assert not (param["conv"] == before["conv"]).any()
    assert (step.steps("bias"), step.steps("conv")) == (0, 1)
    step(grad={"bias": grad["bias"]})
    assert not (param["bias"] == before["bias"]).any()
    assert (step.steps("bias"), step.steps("conv")) == (1, 2)


def test_overflow_changes_nothing():
    rng = np.random.default_rng(3)
    param, grad = sample(rng), sample(rng)
    step = dfa.jit(plain(scaler=True, control={"scale": 8.0}).text)
    grad["conv"][1, 2, 3, 4] = np.inf
    before = {n: p.copy() for n, p in param.items()}
    step(grad=grad, param=param)
    assert all((param[n] == before[n]).all() for n in param)
    assert (step.control.skipped, step.control.step) == (1, 0)
    assert (step.control.found_inf, step.control.scale) == (1, 4.0)
    grad["conv"][1, 2, 3, 4] = 0
    step()
    assert (step.control.skipped, step.control.step) == (1, 1)
    assert not (param["bias"] == before["bias"]).any()
    step.control.scale = 1024.0
    assert step.control["scale"] == 1024.0


def test_master_starts_as_the_parameter():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    hyper = dict(ADAM)
    text = Step(
        SHAPES, hyper, orders=ORDERS, storage="master", grad="bf16"
    ).text
    param = {}
    for name, shape in SHAPES.items():
        tensor = torch.randn(shape).bfloat16()
        if name in ORDERS:
            tensor = tensor.to(memory_format=torch.channels_last)
        param[name] = tensor.requires_grad_()
    master = {n: p.detach().float().requires_grad_() for n, p in param.items()}
    reference = torch.optim.AdamW(
        master.values(),
        lr=hyper["lr"],
        betas=(hyper["beta1"], hyper["beta2"]),
        eps=hyper["eps"],
        weight_decay=hyper["weight_decay"],
    )
    step = dfa.jit(text)
    for _ in range(3):
        grad = {n: torch.randn_like(p) for n, p in param.items()}
        step(grad=grad, param=param)
        for name, tensor in master.items():
            tensor.grad = grad[name].float()
        reference.step()
    for name in SHAPES:
        mine = torch.from_dlpack(step.array("master", name))
        torch.testing.assert_close(mine, master[name].detach())
        # The parameter is the encoding of our own master, exactly.
        assert torch.equal(param[name].detach(), mine.bfloat16())


def test_bf16_of_numpy_and_remainders():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(4)
    text = Step({"w": (33,)}, ADAM, storage="remainder", grad="bf16").text
    param = rng.standard_normal(33).astype(ml_dtypes.bfloat16)
    start = param.astype(np.float32)
    grad = rng.standard_normal(33).astype(ml_dtypes.bfloat16)
    rest = np.zeros(33, np.int16)
    step = dfa.jit(text)
    # One parameter: tensors need no names.
    step(grad=grad, param=param, remainder=rest)
    wanted, _, _ = adamw(
        start.astype(float), grad.astype(float), 0.0, 0.0, 1, ADAM
    )
    bits = param.view(np.uint16).astype(np.int64) << 16
    exact = (bits + rest).astype(np.uint32).view(np.float32)
    np.testing.assert_allclose(exact, wanted, rtol=1e-6, atol=1e-6)
    assert step.array("remainder") is rest


def test_replay_and_threads_give_the_same_bits():
    rng = np.random.default_rng(5)
    start, grad = sample(rng), sample(rng)
    results = []
    for options in ({}, {"threads": 1}, {"replay": True}, {"cache": False}):
        param = {n: p.copy(order="K") for n, p in start.items()}
        step = dfa.jit(plain().text, **options)
        for _ in range(3):
            step(grad=grad, param=param)
        results.append(b"".join(p.tobytes() for p in param.values()))
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    "name", ["adamw", "mixed_precision", "lamb", "user_rule"]
)
def test_examples(name):
    torch = pytest.importorskip("torch")
    step = dfa.jit(EXAMPLES / f"{name}.mlir")
    types = {"bf16": torch.bfloat16, "f32": torch.float32}
    torch.manual_seed(0)
    roles = {"grad": {}, "param": {}}
    for role, tensors in roles.items():
        for param in step._facts.params:
            element = step._facts.classes[param.cls].formats[role]
            tensors[param.name] = torch.empty_strided(
                param.shape, param.strides, dtype=types[element]
            ).normal_()
    before = {n: p.clone() for n, p in roles["param"].items()}
    step(**roles)
    assert step.control.step == 1
    for param, tensor in roles["param"].items():
        assert torch.isfinite(tensor).all()
        assert not torch.equal(tensor, before[param])


# === What a step tells =======================================================


def test_program_report_and_code():
    step = dfa.jit(plain().text)
    assert step.program.startswith("dfa-program 1\n")
    assert step.code.startswith(b"\x7fELF")
    report = step.report()
    assert report["version"] == 1 and report["bytes_per_element"] == 32
    assert report["elements"] == 8 * 3 * 5 * 5 + 8 + 1
    slow = step.report(bandwidth=report["floor_ms"])
    assert slow["floor_ms"] > report["floor_ms"]
    with pytest.raises(dfa.CompileError):
        step.report(bandwidth=-1.0)
    assert (step.target, step.roles["exp_avg"]) == ("cpu", list(SHAPES))
    assert "scale" in set(step.control) and len(step.control) > 10
    with pytest.raises(KeyError):
        step.groups[0]["nonesuch"]
    with pytest.raises(TypeError):
        del step.groups[0]["lr"]


def test_bound_tensors_live_and_go():
    class Array(np.ndarray):
        pass

    step = dfa.jit(Step({"w": (64,)}, ADAM).text)
    grad = np.ones(64, np.float32).view(Array)
    watch = weakref.ref(grad)
    step(grad=grad, param=np.ones(64, np.float32))
    del grad
    gc.collect()
    assert watch() is not None
    step(grad=np.ones(64, np.float32))
    gc.collect()
    assert watch() is None
    state = step.array("exp_avg")
    del step
    gc.collect()
    assert np.isfinite(np.from_dlpack(state)).all()


# === Errors ==================================================================


@pytest.fixture
def one():
    return dfa.jit(Step({"w": (4, 6)}, ADAM).text)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    "roles, error, message",
    [
        ({"grad": zeros(4, 5)}, ValueError, r"shape \(4, 6\).*\(4, 5\)"),
        ({"grad": zeros(24)}, ValueError, "shape"),
        ({"grad": zeros(4, 6, dtype=np.float64)}, TypeError, "f32.*f64"),
        ({"grad": zeros(4, 6, dtype=np.int32)}, TypeError, "f32.*i32"),
        ({"grad": zeros(6, 4).T}, ValueError, r"strides \(6, 1\).*\(1, 4\)"),
        ({"grad": zeros(4, 12)[:, ::2]}, ValueError, "strides"),
        ({"grads": zeros(4, 6)}, ValueError, "grad, .*'grads'"),
        ({"grad": {"v": zeros(4, 6)}}, ValueError, "'v'"),
        ({"grad": 3}, TypeError, "writable tensor.*'int'"),
        ({"grad": [[0.0] * 6] * 4}, TypeError, "'list'"),
        ({"param": None}, TypeError, "None"),
        ({"master": zeros(4, 6)}, ValueError, "'master'"),
    ],
)
def test_wrong_tensors(one, roles, error, message):
    with pytest.raises(error, match=message):
        one(**roles)
    with pytest.raises(error, match=message):
        one.bind(**roles)


def test_read_only_memory_is_refused(one):
    frozen = zeros(4, 6)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match="writable"):
        one.bind(param=frozen)


def test_nothing_is_bound_if_one_is_wrong(one):
    good = zeros(4, 6)
    one(grad=good, param=zeros(4, 6))
    with pytest.raises(ValueError):
        one.bind(param=zeros(4, 6), grad=zeros(1))
    assert one.array("grad") is good


def test_missing_arrays(one):
    with pytest.raises(RuntimeError, match=r"param.*'w'"):
        one(grad=zeros(4, 6))
    with pytest.raises(RuntimeError, match=r"grad.*'w'"):
        dfa.jit(Step({"w": (4, 6)}, ADAM).text)(param=zeros(4, 6))
    step = dfa.jit(plain().text)
    with pytest.raises(RuntimeError, match="'conv' and 3 more"):
        step()
    with pytest.raises(ValueError, match="4 parameters"):
        step(grad=zeros(4, 6))


def test_dims_of_size_one_have_any_stride(one):
    step = dfa.jit(Step({"w": (4, 1, 6)}, ADAM).text)
    data = np.lib.stride_tricks.as_strided(
        np.ones(24, np.float32), (4, 1, 6), (24, 4, 4)
    )
    step(grad=data, param=data.copy())
    assert step.steps() == 1


def test_wrong_arguments(tmp_path):
    text = Step({"w": (4,)}, ADAM).text
    with pytest.raises(ValueError, match="'tpu'"):
        dfa.jit(text, "tpu")
    with pytest.raises(TypeError, match="speed"):
        dfa.jit(text, speed=3)
    with pytest.raises(FileNotFoundError):
        dfa.jit(tmp_path / "none.mlir")
    with pytest.raises(dfa.CompileError, match="@step"):
        dfa.jit("module {}")
    with pytest.raises(dfa.CompileError, match="vector"):
        dfa.jit(text, vector_width=3, cache=False)
    with pytest.raises(ValueError, match="mesh has 2"):
        dfa.jit(Step({"w": (4,)}, ADAM, mesh={"shard": 2}).text)


def test_dfa_errors_have_places_in_files(tmp_path):
    path = tmp_path / "step.mlir"
    text = Step({"w": (4,)}, ADAM).text
    path.write_text(text.replace('"grad"', '"gradient"'))
    with pytest.raises(dfa.CompileError) as caught:
        dfa.jit(path)
    first = caught.value.diagnostics[0]
    assert first.file == str(path) and first.line > 0


# === On a GPU ================================================================


def test_cuda_gives_the_bits_of_the_cpu(gpu):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA here")
    rng = np.random.default_rng(6)
    start, grad = sample(rng), sample(rng)
    results = []
    for target in ("cpu", "cuda"):
        tensors = {
            role: {
                n: torch.from_numpy(t.copy(order="K")).to(target)
                for n, t in values.items()
            }
            for role, values in (("param", start), ("grad", grad))
        }
        step = dfa.jit(plain().text, target, replay=target == "cuda")
        for _ in range(3):
            step(**tensors)
        step.synchronize()
        final = [p.cpu().numpy() for p in tensors["param"].values()]
        results.append(b"".join(p.tobytes() for p in final))
    assert results[0] == results[1]
