# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A channels_last ResNet-50 on one rank and on several: the same bits where the
# reduced gradients are. The whole model is slow; CI runs one that is narrower.
"""dfa-run: shards and replicas give the parameters that one rank gives."""

import os
import subprocess

import numpy as np
import pytest
from run_step import ADAM, BUILD, Step, keyed, run

MESHES = [
    pytest.param(shard, replicate, id=f"{shard}x{replicate}")
    for replicate in (1, 2)
    for shard in (1, 2, 3, 4)
    if shard * replicate > 1
]


def mesh_of(shard, replicate):
    """The axes of a mesh, slowest first, without those of one rank."""
    axes = {"replicate": replicate, "shard": shard}
    return {
        name: size for name, size in axes.items() if size > 1 or name == "shard"
    }


def resnet50(width=64, classes=1000):
    """Shapes of a ResNet-50's parameters by name, in torch's order."""
    shapes = {"conv1.weight": (width, 3, 7, 7)}

    def norm(name, channels):
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (channels,)

    norm("bn1", width)
    inputs = width
    for stage, blocks in enumerate((3, 4, 6, 3)):
        planes = width << stage
        for block in range(blocks):
            name = f"layer{stage + 1}.{block}"
            shapes[f"{name}.conv1.weight"] = (planes, inputs, 1, 1)
            norm(f"{name}.bn1", planes)
            shapes[f"{name}.conv2.weight"] = (planes, planes, 3, 3)
            norm(f"{name}.bn2", planes)
            shapes[f"{name}.conv3.weight"] = (4 * planes, planes, 1, 1)
            norm(f"{name}.bn3", 4 * planes)
            if block == 0:
                shapes[f"{name}.downsample.0.weight"] = (
                    4 * planes,
                    inputs,
                    1,
                    1,
                )
                norm(f"{name}.downsample.1", 4 * planes)
            inputs = 4 * planes
    shapes["fc.weight"] = (classes, inputs)
    shapes["fc.bias"] = (classes,)
    return shapes


def whole_numbers(shapes, ranks=1):
    """Gradients whose sums, of values and of squares, are exact.

    Returns a list of arrays by name, one for each rank. They differ, and their
    mean over 1, 2, 3, 4, 6 or 8 ranks is the same to the last bit: a sum of
    whole numbers is exact, and 1/3 rounded up to f32 gives it back.
    """
    rng = np.random.default_rng(50)
    middle = {
        name: rng.integers(-40, 41, shape) for name, shape in shapes.items()
    }
    steps = 2 * np.arange(ranks) - (ranks - 1)  # their mean is 0
    return [
        {n: ((g + step) / 64).astype(np.float32) for n, g in middle.items()}
        for step in steps
    ]


def assert_same_bits(one, many):
    assert one.keys() == many.keys()
    for key, value in one.items():
        assert value.tobytes() == many[key].tobytes(), key


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """Shapes and orders of a narrow model, and one rank's results."""
    shapes = resnet50(width=4, classes=10)
    orders = {n: (0, 2, 3, 1) for n, s in shapes.items() if len(s) == 4}
    inputs = keyed("grad", whole_numbers(shapes)[0])
    step = Step(shapes, ADAM, clip=0.5, orders=orders, bucket_bytes=65536)
    directory = tmp_path_factory.mktemp("one")
    found = run(directory, step, inputs, "--steps=3", target="cpu")
    assert found["control/norm"] > 0.5  # the clip is at work
    return shapes, orders, found.arrays


@pytest.mark.parametrize("shard, replicate", MESHES)
def test_a_narrow_resnet_on_ranks(tmp_path, narrow, shard, replicate):
    shapes, orders, one = narrow
    ranks = shard * replicate
    inputs = {}
    for rank, arrays in enumerate(whole_numbers(shapes, ranks)):
        inputs |= {f"grad@{rank}/{name}": a for name, a in arrays.items()}
    step = Step(
        shapes,
        ADAM,
        clip=0.5,
        orders=orders,
        bucket_bytes=65536,
        mesh=mesh_of(shard, replicate),
    )
    found = run(tmp_path, step, inputs, "--steps=3", target="cpu")
    assert found.report["ranks"] == ranks
    assert_same_bits(one, found.arrays)


def layout(directory, shard=1, replicate=1):
    """The step of ResNet-50 that dfa-layout makes, as text.

    Without a clip: it would join the average in one f32 factor, and a third of
    that is not exact.
    """
    path = directory / "resnet50.mlir"
    words = [BUILD / "bin" / "dfa-layout", "--model=resnet50", "-o", path]
    words += ["--memory-format=channels_last", "--bucket-mb=25"]
    if shard * replicate > 1:
        words.append(f"--mesh=replicate={replicate},shard={shard}")
    subprocess.run(list(map(str, words)), check=True, timeout=60)
    return path.read_text()


@pytest.mark.slow
@pytest.mark.skipif(
    "DFA_SLOW" not in os.environ, reason="takes minutes; set DFA_SLOW=1"
)
def test_the_whole_resnet_on_ranks(tmp_path):
    shapes = resnet50()
    assert sum(map(np.prod, shapes.values())) == 25_557_032
    inputs = keyed("grad", whole_numbers(shapes)[0])
    one = run(tmp_path, layout(tmp_path), inputs, "--steps=2", target="cpu")
    assert one["control/step"] == 2
    for shard, replicate in (p.values for p in MESHES):
        text = layout(tmp_path, shard, replicate)
        found = run(tmp_path, text, inputs, "--steps=2", target="cpu")
        assert found.report["ranks"] == shard * replicate
        assert_same_bits(one.arrays, found.arrays)
        print(f"{shard} shards x {replicate} replicas: equal bits")
