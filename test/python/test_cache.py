# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The compile cache: what makes a new key and what does not (case B43), damaged
# and foreign entries, limits, and several writers.
"""dfa.cache."""

import hashlib
import os
import pathlib
import subprocess
import sys

import dfa
import numpy as np
import pytest
from dfa import _core
from dfa.cache import Cache, default_directory

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADAMW = (ROOT / "examples" / "adamw.mlir").read_text()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache."""
    path = tmp_path / "cache"
    monkeypatch.setenv("DFA_CACHE_DIR", str(path))
    monkeypatch.delenv("DFA_CACHE_LIMIT_MB", raising=False)
    monkeypatch.delenv("DFA_PTXAS", raising=False)
    return path


def key(text=ADAMW, target="cpu", **options):
    return _core.Step(text).key(target, **options)


def half_states():
    """The same step with one state in another format."""
    half = "!dfa.flat<@model, @weights, full, bf16>"
    return (
        ADAMW.replace("exp_avg : f32,", "exp_avg : bf16,")
        .replace("%m: !flat", f"%m: {half}")
        .replace(
            '(!flat {dfa.role = "param"}, !flat',
            f'(!flat {{dfa.role = "param"}}, {half}',
        )
        .replace(
            "  %new:3",
            f"  %wide = dfa.decode bf16 %m : {half} -> !flat\n  %new:3",
        )
        .replace("outs(%param, %m,", "outs(%param, %wide,")
        .replace(
            "  %counted",
            f"  %low = dfa.encode bf16 %new#1 : !flat -> {half}\n  %counted",
        )
        .replace("%new#0, %new#1, %new#2", "%new#0, %low, %new#2")
        .replace(
            ": !flat, !flat, !flat, !dfa.control",
            f": !flat, {half}, !flat, !dfa.control",
        )
    )


def assembler(path, release):
    """Something that says it is an assembler."""
    path.write_text(
        "#!/bin/sh\necho 'Cuda compilation tools, release "
        f"{release}, V{release}.1'\n"
    )
    path.chmod(0o755)
    return str(path)


def entries(folder):
    return sorted(folder.glob("*.dfa"))


# === Keys (B43) ==============================================================


def test_b43_what_makes_a_new_key(tmp_path, monkeypatch):
    one = assembler(tmp_path / "one", "13.0")
    two = assembler(tmp_path / "two", "13.1")
    cuda = {"target": "cuda", "chip": "sm_90", "ptxas": one}
    keys = {
        "cuda": key(**cuda),
        "chip": key(**{**cuda, "chip": "sm_90a"}),
        "assembler": key(**{**cuda, "ptxas": two}),
        "format": key(**{**cuda, "format": "fatbin"}),
        "ptx": key(**{**cuda, "format": "ptx"}),
        "block": key(**cuda, block=256),
        "unroll": key(**cuda, unroll=2),
        "registers": key(**cuda, max_registers=64),
        "vector": key(**cuda, vector_width=8),
        "cpu": key(),
        "cpu vector": key(vector_width=8),
        "rule": key(ADAMW.replace("dfa.adam adamw", "dfa.adam adam")),
        "dtype": key(half_states()),
    }
    monkeypatch.setenv("DFA_PTXAS", two)
    keys["variable"] = key("\n" + ADAMW, target="cuda", chip="sm_90")
    assert keys.pop("variable") == keys["assembler"]
    assert len(set(keys.values())) == len(keys)


def test_b43_what_keeps_the_key(tmp_path, monkeypatch):
    one = assembler(tmp_path / "one", "13.0")
    base = key()
    # Places in the source, comments, spelling.
    assert key("\n\n// more\n" + ADAMW) == base
    assert _core.Step(ADAMW, "elsewhere.mlir").key() == base
    # What is read at run time: parameters, sizes, hyper-parameters.
    assert key(ADAMW.replace("64x3x7x7", "8x3x7x7")) == base
    assert key(ADAMW.replace('"fc.bias"', '"other"')) == base
    assert key(ADAMW.replace("eps = 1.0e-8", "eps = 1.0e-6")) == base
    assert (
        key(ADAMW.replace("@model {", "@model bucket_bytes = 4096 {")) == base
    )
    # Defaults, unset and spelled out.
    assert key(vector_width=16) == base
    monkeypatch.setenv("DFA_PTXAS", one)
    named = key(target="cuda", chip="sm_90", ptxas=one)
    assert key(target="cuda") == named
    assert key(target="cuda", format="cubin", block=128, unroll=4) == named
    # A text needs no assembler.
    ptx = key(target="cuda", format="ptx")
    monkeypatch.setenv("DFA_PTXAS", str(tmp_path / "missing"))
    assert key(target="cuda", format="ptx") == ptx
    with pytest.raises(dfa.CompileError, match="missing"):
        key(target="cuda")


def test_versions_are_in_the_key():
    text = key()
    for part in (
        f"dfa {_core.version}",
        f"llvm {_core.llvm_version}",
        f"abi {_core.abi_version}",
        f"program {_core.program_version}",
    ):
        assert f"{part}\n" in text


# === Entries =================================================================


def results(step):
    """The bits of two steps on fixed inputs."""
    rng = np.random.default_rng(0)
    tensors = {"grad": {}, "param": {}}
    for role in tensors:
        for param in step._facts.params:
            flat = rng.standard_normal(param.elements).astype(np.float32)
            strides = [4 * stride for stride in param.strides]
            tensors[role][param.name] = np.lib.stride_tricks.as_strided(
                flat, param.shape, strides
            )
    step(**tensors)
    step()
    return b"".join(t.tobytes() for t in tensors["param"].values())


def test_second_time_from_the_cache(folder):
    first = dfa.jit(ADAMW)
    (entry,) = entries(folder)
    assert first.origin == "compiled"
    wanted = results(first)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import dfa, hashlib, test_cache as t;"
        "s = dfa.jit(t.ADAMW); print(s.origin);"
        "print(hashlib.sha256(t.results(s)).hexdigest())"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    origin, digest = other.stdout.split()
    assert origin == "cache", other.stderr
    assert digest == hashlib.sha256(wanted).hexdigest()
    # The same code serves a layout of other parameters.
    assert dfa.jit(ADAMW.replace("64x3x7x7", "4x3x7x7")).origin == "cache"
    assert entries(folder) == [entry]
    assert [p for p in folder.iterdir() if p != entry] == []


def test_text_for_gpus_is_kept_too(folder):
    step = _core.Step(ADAMW)
    cache = Cache(folder, 1 << 30)
    options = {"chip": "sm_90", "format": "ptx"}
    artifact = step.compile("cuda", **options)
    name = step.key("cuda", **options)
    cache.store(name, artifact)
    loaded = cache.load(name)
    assert loaded.target == "cuda" and loaded.kernels == {}
    assert loaded.code == artifact.code and b".target sm_90" in loaded.code
    assert loaded.program_text == artifact.program_text
    assert cache.load(step.key("cuda", chip="sm_90a", format="ptx")) is None


def damage_nothing_left(data):
    return b""


def damage_truncated(data):
    return data[: len(data) // 2]


def damage_garbage(data):
    return os.urandom(1000)


def damage_one_bit(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def damage_other_version(data):
    return data.replace(b"dfa-cache 1", b"dfa-cache 0", 1)


@pytest.mark.parametrize(
    "damage",
    [
        damage_nothing_left,
        damage_truncated,
        damage_garbage,
        damage_one_bit,
        damage_other_version,
    ],
)
def test_b43_damaged_entries_are_made_again(folder, damage):
    dfa.jit(ADAMW)
    (entry,) = entries(folder)
    good = entry.read_bytes()
    entry.write_bytes(damage(good))
    with pytest.warns(RuntimeWarning, match="made again"):
        step = dfa.jit(ADAMW)
    assert step.origin == "compiled"
    assert dfa.jit(ADAMW).origin == "cache"


def test_b43_foreign_entries_are_made_again(folder):
    dfa.jit(ADAMW)
    (entry,) = entries(folder)
    # An entry for another kind of vector, under this one's name.
    dfa.jit(ADAMW, vector_width=8)
    (other,) = set(entries(folder)) - {entry}
    entry.write_bytes(other.read_bytes())
    with pytest.warns(RuntimeWarning, match="something else"):
        assert dfa.jit(ADAMW).origin == "compiled"


def test_wrong_code_behind_a_right_checksum(folder):
    """An object file that the loader refuses is made again too."""
    step = _core.Step(ADAMW)
    artifact = step.compile()
    real = artifact.code

    class Fake:
        target = "cpu"
        program_text = artifact.program_text
        code = real[: len(real) // 2]

    cache = Cache(folder, 1 << 30)
    cache.store(step.key(), Fake)
    with pytest.warns(RuntimeWarning, match="cannot be loaded"):
        assert dfa.jit(ADAMW).origin == "compiled"


def test_limit(folder):
    artifact = _core.Step(ADAMW).compile()
    Cache(folder, 1 << 30).store("0", artifact)
    (first,) = entries(folder)
    size = first.stat().st_size
    cache = Cache(folder, 3 * size + size // 2)
    for name in "123":
        os.utime(first, ns=(1, 1))
        cache.store(name, artifact)
    # The oldest is gone, and only it.
    assert len(entries(folder)) == 3 and not first.exists()
    assert all(cache.load(name) for name in "123")
    # One that is too large for the folder is not kept.
    small = Cache(folder / "small", size - 1)
    small.store("0", artifact)
    assert small.load("0") is None


def test_reading_keeps_an_entry(folder):
    artifact = _core.Step(ADAMW).compile()
    wide = Cache(folder, 1 << 30)
    for name, when in (("0", 1), ("1", 2)):
        wide.store(name, artifact)
        os.utime(wide.path(name), ns=(when, when))
    assert wide.load("0")
    size = wide.path("0").stat().st_size
    Cache(folder, 2 * size + size // 2).store("2", artifact)
    assert wide.path("0").exists() and not wide.path("1").exists()


def test_environment(folder, monkeypatch, tmp_path):
    assert default_directory() == folder
    monkeypatch.setenv("DFA_CACHE_DIR", "")
    assert default_directory() is None
    assert dfa.jit(ADAMW).origin == "compiled"
    assert not folder.exists()
    monkeypatch.delenv("DFA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_directory() == tmp_path / "xdg" / "dfa"
    monkeypatch.setenv("DFA_CACHE_LIMIT_MB", "many")
    with pytest.raises(ValueError, match="many"):
        dfa.jit(ADAMW)
    assert dfa.jit(ADAMW, cache=False).origin == "compiled"


def test_disk_that_refuses(folder, monkeypatch):
    # A file where the folder should be.
    folder.write_text("")
    with pytest.warns(RuntimeWarning, match="cannot"):
        assert dfa.jit(ADAMW).origin == "compiled"


def test_many_writers(folder):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import warnings; warnings.simplefilter('error');"
        "import dfa, test_cache as t;"
        "[dfa.jit(t.ADAMW, vector_width=w) for w in (4, 8, 16)]"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, os.path.dirname(__file__)],
            stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    assert len(entries(folder)) == 3 and len(list(folder.iterdir())) == 3
    for width in (4, 8, 16):
        assert dfa.jit(ADAMW, vector_width=width).origin == "cache"
