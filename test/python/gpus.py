# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Whether there is a GPU, and what a missing one means for a test.
"""GPUs of this machine."""

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
