# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The training examples, each for a few steps; each compares its own results
# and exits with an error if they are wrong.
"""examples/training runs as the pages say."""

import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

pytest.importorskip("torch")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_example(name, *options):
    """The lines that an example prints."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "training" / name, *options],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def polylines(path):
    root = ElementTree.parse(path).getroot()
    return [
        line.get("points").split()
        for line in root.iter("{http://www.w3.org/2000/svg}polyline")
    ]


def test_unet_denoiser(tmp_path):
    picture = tmp_path / "curves.svg"
    lines = run_example(
        "unet_denoiser.py", "--steps=12", f"--picture={picture}"
    )
    assert lines[0] == "device cpu, ranks 2, steps 12"
    assert [len(points) for points in polylines(picture)] == [12, 12]


def test_unet_denoiser_says_when_trainings_differ(tmp_path):
    """The comparison can fail: other rates in one of the two trainings."""
    example = ROOT / "examples" / "training" / "unet_denoiser.py"
    text = example.read_text()
    wrong = text.replace("lr=LR,", "lr=LR * 0.9,", 1)
    assert wrong != text
    (tmp_path / example.name).write_text(wrong)
    common = example.with_name("common.py")
    (tmp_path / common.name).write_text(common.read_text())
    done = subprocess.run(
        [sys.executable, example.name, "--steps=12", "--ranks=1"],
        cwd=tmp_path,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert "the two trainings differ" in done.stderr


def test_gpt(tmp_path):
    picture = tmp_path / "curves.svg"
    lines = run_example("gpt.py", "--steps=20", f"--picture={picture}")
    assert lines[0] == "device cpu, ranks 2, steps 20"
    assert len(polylines(picture)) == 2


def test_resume_on_other_world_sizes():
    lines = run_example("resume.py", "--before=3", "--after=3")
    assert [line.split(",")[0] for line in lines] == [
        "2 ranks: 6 steps",
        "1 ranks: resumed",
        "4 ranks: resumed",
    ]
