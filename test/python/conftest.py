# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What all Python tests share: whether there is a GPU, and what a missing one
# means.
"""Fixtures of the whole suite."""

import ctypes
import os

import pytest


def count_gpus():
    """CUDA devices that answer, asked without any framework."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    if driver.cuInit(0) != 0:
        return 0
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


GPUS = count_gpus()


def need_gpus(count=1):
    """Skips the test, or fails it where DFA_REQUIRE_GPU=1 asks for a GPU."""
    if count <= GPUS:
        return
    reason = f"needs {count} CUDA device(s), but found {GPUS}"
    if os.environ.get("DFA_REQUIRE_GPU") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def gpu():
    """One CUDA device."""
    need_gpus(1)


def pytest_terminal_summary(terminalreporter):
    """Says aloud what was left out for want of a GPU."""
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if "CUDA device" in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(
            f"NOT RUN: {len(skipped)} GPU tests, no CUDA device here "
            "(DFA_REQUIRE_GPU=1 makes this a failure)"
        )
