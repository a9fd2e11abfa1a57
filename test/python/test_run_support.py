# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# dfa-run's files, conversions and seeded values against NumPy, ml_dtypes and
# an independent Philox. What needs no other implementation to compare with is
# tested in test/unit/Run.
"""Exchange between dfa-run's support library and NumPy."""

import io
import os
import pathlib
import subprocess
import zipfile

import ml_dtypes
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DFA_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "test" / "unit" / "dfa-run-exchange"

DTYPES = ["f2", "f4", "f8", "i4", "i8", "u2", "u4", "u8", "b1"]
SHAPES = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4, 5), (1,) * 8]


def exchange(*words, code=0):
    """Runs the program; returns what it printed on stderr."""
    assert PROGRAM.exists(), f"{PROGRAM} is not built"
    done = subprocess.run(
        [PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stderr.strip()


def sample(shape, dtype, seed=0):
    """Arbitrary bits of a type; booleans are 0 or 1."""
    rng = np.random.default_rng(seed)
    if dtype == "b1":
        return rng.integers(0, 2, shape).astype(bool)
    width = np.dtype(dtype).itemsize
    raw = rng.integers(0, 256, (*shape, width), dtype=np.uint8)
    return np.ascontiguousarray(raw).view(dtype)[..., 0].reshape(shape)


def arrays():
    """One array of each type and shape, in both orders."""
    result = {}
    for dtype in DTYPES:
        for number, shape in enumerate(SHAPES):
            array = sample(shape, dtype, number)
            result[f"param/{dtype}.{number}"] = array
            result[f"grad/{dtype}.{number}"] = np.asfortranarray(array)
    result["exp_avg/größe:bf16"] = sample((5,), "u2")
    return result


def same_bits(left, right):
    """Equal type, shape and bytes."""
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and np.ascontiguousarray(left).tobytes()
        == np.ascontiguousarray(right).tobytes()
    )


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    "options", [(), ("deflate",), ("zip64",), ("deflate", "zip64")]
)
def test_npz_both_ways(tmp_path, save, options):
    written = arrays()
    save(tmp_path / "in.npz", **written)
    exchange("copy", tmp_path / "in.npz", tmp_path / "out.npz", *options)
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        assert archive.testzip() is None
    with np.load(tmp_path / "out.npz") as found:
        assert found.files == list(written)
        for key, array in written.items():
            assert same_bits(found[key], array), key


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(tmp_path, version):
    array = sample((3, 5), "f4")
    data = io.BytesIO()
    np.lib.format.write_array(data, array, version=version)
    with zipfile.ZipFile(tmp_path / "in.npz", "w") as archive:
        archive.writestr("a.npy", data.getvalue())
    exchange("copy", tmp_path / "in.npz", tmp_path / "out.npz")
    assert same_bits(np.load(tmp_path / "out.npz")["a"], array)


def test_streamed_zip_with_data_descriptors(tmp_path):
    # A zip written to a pipe has its sizes behind the data only.
    class Pipe(io.RawIOBase):
        def __init__(self):
            self.data = b""

        def writable(self):
            return True

        def write(self, data):
            self.data += bytes(data)
            return len(data)

    array = sample((100,), "f8")
    data = io.BytesIO()
    np.save(data, array)
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", data.getvalue())
    (tmp_path / "in.npz").write_bytes(pipe.data)
    exchange("copy", tmp_path / "in.npz", tmp_path / "out.npz")
    assert same_bits(np.load(tmp_path / "out.npz")["a"], array)


def test_archive_with_a_comment(tmp_path):
    array = sample((4,), "i8")
    np.savez(tmp_path / "in.npz", a=array)
    with zipfile.ZipFile(tmp_path / "in.npz", "a") as archive:
        archive.comment = b"PK\x05\x06 and more"
    exchange("copy", tmp_path / "in.npz", tmp_path / "out.npz")
    assert same_bits(np.load(tmp_path / "out.npz")["a"], array)


@pytest.mark.parametrize(
    "array, message",
    [
        (
            np.zeros(2, ">f4"),
            "expects little-endian data ('<f4'), but got big-endian '>f4'",
        ),
        (
            np.zeros(2, "c8"),
            "expects dtype f2, f4, f8, i4, i8, u2, u4, u8 or b1, but got '<c8'",
        ),
        (
            np.zeros(2, ml_dtypes.bfloat16),
            "expects dtype f2, f4, f8, i4, i8, u2, u4, u8 or b1, but got '<V2' "
            "(bf16 arrays are stored as their uint16 bits under 'NAME:bf16')",
        ),
    ],
)
def test_other_types_are_refused(tmp_path, array, message):
    path = tmp_path / "in.npz"
    np.savez(path, **{"param/x": array})
    found = exchange("copy", path, tmp_path / "out.npz", code=1)
    assert found == f"{path}: member 'param/x.npy': {message}"
    assert not (tmp_path / "out.npz").exists()


def test_other_compression_is_refused(tmp_path):
    path = tmp_path / "in.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.npy", b"x")
    assert exchange("copy", path, tmp_path / "out.npz", code=1) == (
        f"{path}: member 'a.npy': expects a stored or deflated member, "
        "but got compression method 14"
    )


def boundaries(narrow):
    """All values of a 16-bit format, the middles between neighbours, and the
    f32 values next to those.
    """
    bits = np.arange(0x10000, dtype=np.uint16)
    values = bits.view(narrow).astype(np.float32)
    values = values[np.isfinite(values)]
    ordered = np.unique(values.astype(np.float64))
    middles = ((ordered[1:] + ordered[:-1]) / 2).astype(np.float32)
    top = 2 * ordered[-1] - (ordered[-2] + ordered[-1]) / 2
    middles = np.concatenate([middles, np.float32([top, -top])])
    around = [
        middles,
        np.nextafter(middles, np.float32(np.inf)),
        np.nextafter(middles, np.float32(-np.inf)),
    ]
    return np.concatenate([values, *around])


def test_conversions(tmp_path):
    rng = np.random.default_rng(1)
    arbitrary = rng.integers(0, 1 << 32, 1 << 20, dtype=np.uint32).view(
        np.float32
    )
    highs = np.arange(0x10000, dtype=np.uint32)[:, None] << 16
    lows = np.uint32([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    case = (
        np.uint32([0x0000, 0x3F7F, 0x3F80, 0x3F81, 0x7F7F, 0xBF80])[:, None]
        << 16
    )
    swept = case | np.arange(0x10000, dtype=np.uint32)
    wide = np.concatenate(
        [
            boundaries(ml_dtypes.bfloat16),
            boundaries(np.float16),
            arbitrary,
            (highs | lows).ravel().view(np.float32),
            swept.ravel().view(np.float32),
        ]
    )
    narrow = np.arange(0x10000, dtype=np.uint16)
    np.savez(tmp_path / "in.npz", wide=wide, narrow=narrow)
    exchange("convert", tmp_path / "in.npz", tmp_path / "out.npz")
    found = np.load(tmp_path / "out.npz")
    nan = np.isnan(wide)

    def check(bits, expected, dtype):
        # NaN payloads apart.
        assert np.isnan(bits.view(dtype).astype(np.float32))[nan].all()
        assert np.array_equal(bits[~nan], expected.view(np.uint16)[~nan])

    with np.errstate(over="ignore", invalid="ignore"):
        check(
            found["bf16"], wide.astype(ml_dtypes.bfloat16), ml_dtypes.bfloat16
        )
        check(found["f16"], wide.astype(np.float16), np.float16)
    for key, dtype in [
        ("from_bf16", ml_dtypes.bfloat16),
        ("from_f16", np.float16),
    ]:
        expected = narrow.view(dtype).astype(np.float32)
        ordinary = ~np.isnan(expected)
        assert np.isnan(found[key])[~ordinary].all()
        assert same_bits(found[key][ordinary], expected[ordinary])

    # Ties away from zero: the larger magnitude of the two neighbours.
    bits = wide.view(np.uint32)
    assert same_bits(found["joined"].view(np.uint32), bits)
    assert np.array_equal(found["remainder"], (bits & 0xFFFF).astype(np.uint16))
    low = (bits & 0xFFFF0000).view(np.float32)
    high = ((bits & 0xFFFF0000) + np.uint32(0x10000)).view(np.float32)
    usual = ~nan & np.isfinite(high)
    exact, down, up = (x[usual].astype(np.float64) for x in (wide, low, high))
    nearest = np.where(np.abs(up - exact) <= np.abs(exact - down), up, down)
    param = found["param"].view(ml_dtypes.bfloat16)[usual]
    assert np.array_equal(param.astype(np.float64), nearest)


MASK = (1 << 64) - 1


def mix(value):
    """SplitMix64's output function."""
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & MASK
    return value ^ value >> 31


def fnv(text):
    """64-bit FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def philox(counter, key):
    """Philox4x32-10 on Python integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [
            (second >> 32) ^ c[1] ^ k[0],
            second & 0xFFFFFFFF,
            (first >> 32) ^ c[3] ^ k[1],
            first & 0xFFFFFFFF,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def seeded_value(seed, step, role, name, rank, index):
    """What Seeded.h documents, one value at a time."""
    key = 0
    for part in (seed, fnv(role), fnv(name), rank & MASK):
        key = mix(((key ^ part) + 0x9E3779B97F4A7C15) & MASK)
    words = philox(
        [
            (index >> 1) & 0xFFFFFFFF,
            index >> 33,
            step & 0xFFFFFFFF,
            step >> 32 & 0xFFFFFFFF,
        ],
        [key & 0xFFFFFFFF, key >> 32],
    )
    pair = words[2:] if index & 1 else words[:2]
    total = sum(word & 0xFFFF for word in pair) + sum(
        word >> 16 for word in pair
    )
    unit = np.float32(0.01 * np.sqrt(3.0) / 131072)
    return np.float32(2 * total - 262139) * unit


@pytest.mark.parametrize(
    "seed, step, role, name, rank, begin",
    [
        (0, 1, "grad", "conv_in.weight", -1, 0),
        (2**64 - 1, 3, "param", "a/b:bf16", 7, 5),
        (12, 0, "grad", "größe", 0, 2**33 - 3),
    ],
)
def test_seeded_values(tmp_path, seed, step, role, name, rank, begin):
    path = tmp_path / "s.npy"
    exchange("seeded", seed, step, role, name, rank, begin, 301, path)
    expected = np.float32(
        [
            seeded_value(seed, step, role, name, rank, begin + i)
            for i in range(301)
        ]
    )
    assert same_bits(np.load(path), expected)
