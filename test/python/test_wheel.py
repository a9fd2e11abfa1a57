# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The wheel that scripts/wheel.sh makes, in an environment of its own.

``DFA_WHEEL`` names it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

WHEEL = os.environ.get("DFA_WHEEL")
pytestmark = pytest.mark.skipif(
    WHEEL is None, reason="DFA_WHEEL is not set; scripts/wheel.sh sets it"
)

_STEP = """
dfa.layout @model {
  dfa.class @w param = f32 grad = f32 master = none
    states = [exp_avg : f32, exp_avg_sq : f32] rule = adamw
  dfa.group 0 {lr = 1.0e-3, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8,
               weight_decay = 1.0e-2}
  dfa.param "p" : tensor<4xf32>, class = @w, group = 0
}
!flat = !dfa.flat<@model, @w, full, f32>
func.func @step(%g: !flat {dfa.role = "grad"},
    %p: !flat {dfa.role = "param"}, %m: !flat {dfa.role = "exp_avg"},
    %v: !flat {dfa.role = "exp_avg_sq"},
    %ctl: !dfa.control {dfa.role = "control"})
    -> (!flat {dfa.role = "param"}, !flat {dfa.role = "exp_avg"},
        !flat {dfa.role = "exp_avg_sq"}, !dfa.control {dfa.role = "control"}) {
  %false = arith.constant false
  %new:3 = dfa.adam adamw ins(%g : !flat) outs(%p, %m, %v : !flat, !flat, !flat)
      control(%ctl) unless %false -> !flat, !flat, !flat
  %c = dfa.step_count %ctl unless %false
  return %new#0, %new#1, %new#2, %c : !flat, !flat, !flat, !dfa.control
}
"""

# Runs without numpy and torch: buffers are what Python has by itself.
_PROGRAM = """
import array, sys
import dfa
text = sys.stdin.read()
p = array.array("f", [1, 2, 3, 4])
g = array.array("f", [1, -1, 0.5, 0])
step = dfa.jit(text, target="cpu")
step(grad=memoryview(g), param=memoryview(p))
print(list(p))
assert "dfa.kernel" in dfa.passes(text, "dfa-to-kernels")
maps = open("/proc/self/maps").read()
mine = sorted({line.split()[-1] for line in maps.splitlines() if ".so" in line})
print("\\n".join(mine))
assert not any("libLLVM" in name or "libMLIR" in name for name in mine), mine
"""


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", root], check=True)
    python = root / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-index", WHEEL], check=True
    )
    return python


def test_steps_compile_and_run_without_llvm(clean_python: Path):
    done = subprocess.run(
        [clean_python, "-c", _PROGRAM],
        input=_STEP,
        capture_output=True,
        text=True,
        # Nothing but the wheel: no LLVM on a path, no tree beside it.
        env={"PATH": "/usr/bin:/bin", "DFA_CACHE_DIR": ""},
        cwd=clean_python.parent,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    values = eval(done.stdout.splitlines()[0])
    # One AdamW step moves against the sign of the gradient by about lr.
    wanted = [1 - 1e-3 - 1e-5, 2 + 1e-3 - 2e-5, 3 - 1e-3 - 3e-5, 4 - 4e-5]
    assert values == pytest.approx(wanted, rel=2e-6)


def test_libdfa_exports_its_interfaces_only(tmp_path: Path):
    with zipfile.ZipFile(WHEEL) as wheel:
        wheel.extract("dfa/libdfa.so", tmp_path)
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", tmp_path / "dfa" / "libdfa.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [line.split()[-1] for line in listed.splitlines()]
    assert {"dfa_step_compile", "dfa_rt_optimizer_run"} <= set(names)
    assert [name for name in names if not name.startswith("dfa_")] == []


def test_typing_files_are_in_it():
    with zipfile.ZipFile(WHEEL) as wheel:
        names = set(wheel.namelist())
    assert {"dfa/py.typed", "dfa/_core.pyi"} <= names
