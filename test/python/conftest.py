# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What all Python tests share.
"""Fixtures of the whole suite."""

import pytest
from gpus import need_gpus


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
