# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The native module: what it exports, its errors, memory from Python, and other
# libraries in the process. Groups are in test_group.py.
"""dfa._core and dfa.passes."""

import array
import ast
import ctypes
import json
import pathlib
import pickle
import shutil
import subprocess
import sys
import threading

import dfa
import numpy as np
import pytest
from dfa import _core
from dfa._binding import StepFacts
from gpus import GPUS

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADAMW = (ROOT / "examples" / "adamw.mlir").read_text()


def python(code):
    """Runs code in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
    )


# === The package =============================================================


def test_import_needs_neither_torch_nor_numpy():
    result = python(
        "import sys; import dfa; dfa.passes('module {}', '');"
        "print([m for m in ('torch', 'numpy') if m in sys.modules])"
    )
    assert (result.stdout.strip(), result.returncode) == ("[]", 0)


def test_import_is_fast():
    code = (
        "import time; t = time.process_time(); import dfa;"
        "print(time.process_time() - t)"
    )
    # Time of the processor: the machine may be busy. The first warms caches.
    seconds = min(float(python(code).stdout) for _ in range(3))
    assert seconds <= 0.2


def test_version_has_one_source():
    assert dfa.__version__ == (ROOT / "VERSION").read_text().strip()


def stub_names():
    """Classes with their members, and functions, of the stub."""
    tree = ast.parse((ROOT / "python/dfa/_core.pyi").read_text())
    names = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = None
        elif isinstance(node, ast.ClassDef) and node.name != "Store":
            names[node.name] = {
                member.name
                if isinstance(member, ast.FunctionDef)
                else member.target.id
                for member in node.body
                if isinstance(member, ast.FunctionDef | ast.AnnAssign)
            }
    return names


def test_stub_is_the_module():
    def public(names):
        return {n for n in names if not n.startswith("_") or n == "__init__"}

    stub = stub_names()
    assert set(stub) == public(set(dir(_core)))
    for name, members in stub.items():
        if members is None:
            continue
        real = public(set(vars(getattr(_core, name))))
        # nanobind gives every class an __init__.
        assert members - {"__init__"} == real - {"__init__"}, name


def test_only_the_names_that_python_needs_are_hidden_from_others():
    """Runtime and Gloo stay inside, also where MLIR's names cannot."""
    result = subprocess.run(
        ["nm", "-D", "--defined-only", "-C", _core.__file__],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = result.stdout.splitlines()
    assert any("PyInit__core" in line for line in lines)
    leaks = [
        line
        for line in lines
        if any(
            f" {kind} {prefix}" in line
            for kind in "TDB"
            for prefix in ("dfa::rt::", "dfa::python::", "gloo::")
        )
    ]
    assert leaks == []


# === Passes ==================================================================


def test_passes_returns_the_module():
    text = dfa.passes(ADAMW, "dfa-to-kernels")
    assert "dfa.program" in text and "func.func @step" not in text
    assert dfa.passes(text, "") == text


def test_passes_takes_paths_options_and_anchors(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(ADAMW)
    plain = dfa.passes(ADAMW, "dfa-to-cpu{vector-width=8}")
    assert dfa.passes(path, "builtin.module(dfa-to-cpu{vector-width=8})") == (
        plain
    )
    assert dfa.passes(str(path), "dfa-to-cpu{vector-width=8}") == plain
    assert dfa.passes(ADAMW, "dfa-to-cpu{vector-width=4}") != plain


def test_diagnostics_have_places(tmp_path):
    path = tmp_path / "wrong.mlir"
    path.write_text("module {\n  func.func @f() {\n    no.op\n  }\n}\n")
    with pytest.raises(dfa.CompileError) as caught:
        dfa.passes(path, "cse")
    first = caught.value.diagnostics[0]
    assert (first.severity, first.file) == ("error", str(path))
    assert (first.line, first.column) == (3, 5)
    assert "no.op" in first.message
    assert str(caught.value).startswith(f"{path}:3:5: error: ")


def test_diagnostics_of_passes_have_places():
    text = ADAMW.replace(
        "class = @weights, group = 0", "class = @no, group = 0"
    )
    with pytest.raises(dfa.CompileError) as caught:
        dfa.jit(text)
    first = caught.value.diagnostics[0]
    line = next(n for n, s in enumerate(text.splitlines(), 1) if "@no," in s)
    assert abs(first.line - line) <= 1 and first.file == "<string>"


@pytest.mark.parametrize("pipeline", ["nonesuch", "cse{", "cse,,cse", "a(b)"])
def test_wrong_pipelines(pipeline):
    with pytest.raises(dfa.CompileError) as caught:
        dfa.passes("module {}", pipeline)
    assert f"'{pipeline}'" in caught.value.diagnostics[0].message


def test_deep_nesting_is_an_error_not_a_crash():
    text = "module attributes {a = " + "[" * 100000 + "]" * 100000 + "} {}"
    with pytest.raises(dfa.CompileError) as caught:
        dfa.passes(text, "")
    assert caught.value.diagnostics[0].line == 1


def test_compile_errors_can_be_pickled():
    with pytest.raises(dfa.CompileError) as caught:
        dfa.passes("func.func", "")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.diagnostics[0].line == caught.value.diagnostics[0].line
    error = dfa.CollectiveError("m", 3, "all_gather", 7)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.rank, copy.collective, copy.bucket) == (3, "all_gather", 7)


def test_passes_of_wrong_types():
    with pytest.raises(TypeError):
        dfa.passes(3, "cse")
    with pytest.raises(OSError):
        dfa.passes("nowhere.mlir", "cse")


def test_threads_compile_side_by_side():
    results = []

    def work():
        results.append(dfa.passes(ADAMW, "dfa-to-kernels"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 4 and len(set(results)) == 1


# === Devices and layouts =====================================================


def test_devices():
    device = _core.Device.cpu(2)
    assert (device.kind, device.chip) == ("cpu", "")
    assert "2 threads" in device.name
    with pytest.raises(ValueError, match="threads"):
        _core.Device.cpu(-1)
    assert _core.cuda_device_count() == GPUS


@pytest.mark.skipif(GPUS > 0, reason="there is a GPU")
def test_no_gpu_is_a_device_error():
    with pytest.raises(dfa.DeviceError):
        dfa.jit(ADAMW, "cuda")


def test_device_memory():
    device = _core.Device.cpu(1)
    source = np.arange(8, dtype=np.int32)
    target = device.allocate(32)
    device.copy(target, source.ctypes.data, 32)
    back = np.empty(8, np.int32)
    device.copy(back.ctypes.data, target, 32)
    device.synchronize()
    assert (back == source).all()
    device.zero(target, 16)
    device.copy(back.ctypes.data, target, 32)
    assert back.tolist() == [0, 0, 0, 0, 4, 5, 6, 7]
    device.free(target, 32)
    assert device.counters()["allocations"] >= 1


def make_layout(order="reverse"):
    layout = _core.Layout(bucket_bytes=1 << 20, fill_order=order)
    layout.add_class("w", "f32")
    layout.add_array("param", "f32")
    layout.add_array("grad", "f32")
    layout.add_param("a", [3, 5])
    layout.add_param("b", [2, 4, 3], strides=[12, 1, 4])
    layout.add_param("c", [7], frozen=True)
    layout.plan()
    return layout


def test_layout():
    layout = make_layout()
    a, b, c = layout.placements()
    assert (a.elements, b.elements, c.elements) == (15, 24, 7)
    # Reverse order: b first; starts are multiples of 128 bytes.
    assert (b.start, a.start) == (0, 32)
    assert (c.bucket, c.segment) == (-1, -1)
    (bucket,) = layout.buckets()
    assert bucket.used == 32 + 15
    forward = make_layout("forward").placements()
    assert (forward[0].start, forward[1].start) == (0, 32)
    assert make_layout([0, 1]).text == make_layout("forward").text
    with pytest.raises(ValueError, match="fill_order"):
        make_layout("backward")
    with pytest.raises(RuntimeError):
        layout.add_param("late", [1])
    with pytest.raises(ValueError, match="as many strides"):
        _core.Layout().add_param("a", [2, 2], strides=[1])


# === Optimizers ==============================================================


def make_optimizer(device=None):
    step = _core.Step(ADAMW, "adamw.mlir")
    facts = StepFacts(json.loads(step.facts))
    artifact = step.compile("cpu")
    program = _core.Program(artifact.program_text)
    layout = facts.plan()
    return (
        _core.Optimizer(
            device or _core.Device.cpu(1), program, layout, artifact
        ),
        program,
        layout,
    )


def test_many_addresses_in_one_call():
    optimizer, program, _ = make_optimizer()
    cls = program.class_index("weights")
    grad = program.array(cls, "grad")
    count = 4
    memory = [np.zeros(600000, np.float32) for _ in range(count)]
    wanted = [m.ctypes.data for m in memory]
    for addresses in (
        wanted,
        tuple(wanted),
        array.array("Q", wanted),
        np.array(wanted, np.uint64),
        np.array(wanted, np.int64),
    ):
        optimizer.bind_segments(cls, grad, [0x1000] * count)
        optimizer.bind_segments(cls, grad, addresses)
        assert optimizer.segment_addresses(cls, grad, count) == wanted
    # Zero leaves a segment as it is.
    optimizer.bind_segments(cls, grad, [0, 0x2000])
    assert optimizer.segment_address(cls, grad, 0) == wanted[0]
    assert optimizer.segment_address(cls, grad, 1) == 0x2000
    for wrong in (array.array("f", [1.0]), np.zeros((2, 2), np.int64), b"12"):
        with pytest.raises(TypeError):
            optimizer.bind_segments(cls, grad, wrong)
    with pytest.raises(ValueError):
        optimizer.bind_segments(cls, grad, [1] * 1000)


def test_hyper_rows_and_closing():
    optimizer, program, _ = make_optimizer()
    names = StepFacts.hyper_names(program.text)
    optimizer.set_hypers(0, [i + 0.5 for i in range(len(names))])
    for column in range(len(names)):
        assert optimizer.get_hyper(0, column) == column + 0.5
    with pytest.raises(ValueError):
        optimizer.set_hyper(9, 0, 1.0)
    with pytest.raises(ValueError, match="no_such"):
        optimizer.set_control("no_such", 1.0)
    optimizer.close()
    optimizer.close()
    with pytest.raises(RuntimeError, match="closed"):
        optimizer.run(0)


def test_python_allocator():
    device = _core.Device.cpu(1)
    living = {}

    def allocate(size, stream):
        assert stream == 0
        block = ctypes.create_string_buffer(size + 128)
        address = (ctypes.addressof(block) + 127) & -128
        living[address] = (block, size)
        return address

    def free(address, size):
        assert living.pop(address)[1] == size

    device.set_allocator(allocate, free)
    optimizer, _, _ = make_optimizer(device)
    optimizer.prepare()
    assert living
    optimizer.close()
    assert not living


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_allocator_that_fails():
    device = _core.Device.cpu(1)

    def allocate(size, stream):
        raise RuntimeError("none left")

    device.set_allocator(allocate, lambda address, size: None)
    optimizer, _, _ = make_optimizer(device)
    with pytest.raises(MemoryError):
        optimizer.prepare()
    with pytest.raises(TypeError):
        device.set_allocator(1, 2)


# === Tensors =================================================================


def test_describe():
    data = np.zeros((2, 3, 4), np.float16)[:, 1:, ::2]
    info = _core.describe(data)
    assert info.address == data.ctypes.data
    assert (info.shape, info.strides) == ((2, 2, 2), (12, 4, 2))
    assert (info.format, info.kind) == ("f16", "cpu")
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    for wrong in (frozen, 3, "text", None, b"read only"):
        with pytest.raises(TypeError):
            _core.describe(wrong)


def test_view_keeps_its_owner():
    data = np.arange(6, dtype=np.float32)
    count = sys.getrefcount(data)
    tensor = _core.view(data.ctypes.data, [3, 2], [1, 3], "f32", "cpu", 0, data)
    assert np.from_dlpack(tensor).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert sys.getrefcount(data) == count + 1
    del tensor
    assert sys.getrefcount(data) == count
    with pytest.raises(ValueError, match="f24"):
        _core.view(data.ctypes.data, [1], [1], "f24", "cpu", 0, data)


@pytest.mark.parametrize("wide", ["f32", "f64"])
def test_widen_every_half(wide):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    bits = np.arange(1 << 16, dtype=np.uint16)
    types = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
    for name, dtype in types.items():
        with np.errstate(invalid="ignore"):  # signalling nans
            wanted = bits.view(dtype).astype(wide.replace("f", "float"))
        got = np.empty_like(wanted)
        _core.widen(bits.ctypes.data, name, got.ctypes.data, wide, len(bits))
        assert np.array_equal(got, wanted, equal_nan=True)
        assert (np.signbit(got) == np.signbit(wanted)).all()


# === Beside others ===========================================================

BESIDE = """
{first}
{second}
import numpy as np
step = dfa.jit({path!r}, cache=False)
tensors = {{r: {{p.name: torch.ones(p.shape).as_strided(p.shape, p.strides)
                for p in step._facts.params}} for r in ("grad", "param")}}
step(**tensors)
x = torch.ones(4, requires_grad=True)
(x * x).sum().backward()
print(step.control.step, x.grad.tolist())
"""


@pytest.mark.parametrize("first", ["import torch", "import dfa"])
def test_beside_torch(first):
    pytest.importorskip("torch")
    second = "import dfa" if first == "import torch" else "import torch"
    result = python(
        BESIDE.format(
            first=first,
            second=second,
            path=str(ROOT / "examples" / "adamw.mlir"),
        )
    )
    assert result.stdout.strip() == "1.0 [2.0, 2.0, 2.0, 2.0]", result.stderr


@pytest.mark.parametrize("standard", ["c11", "c++17"])
def test_header_of_the_compiler_is_plain_c(tmp_path, standard):
    compiler = shutil.which("c++" if "+" in standard else "cc")
    if compiler is None:
        pytest.skip("no compiler here")
    source = tmp_path / ("a.cpp" if "+" in standard else "a.c")
    source.write_text('#include "dfa-c/dfa.h"\nint main(void) { return 0; }\n')
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    subprocess.run(
        [compiler, f"-std={standard}", *flags, f"-I{ROOT}/include", source],
        check=True,
    )
