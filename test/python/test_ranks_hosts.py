# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# dfa-run across two machines, which two network namespaces stand in for. The
# work is in test/integration/two-hosts.sh.
"""dfa-run: ranks on two hosts run a step, lose a peer, lose the network."""

import subprocess

import pytest
from run_step import ADAM, PROGRAM, ROOT, Step

NOT_PERMITTED = 77


def test_two_hosts(tmp_path):
    shapes = {"a": (17, 3), "b": (5,), "c": (300, 7)}
    mesh = {"replicate": 2, "shard": 2}
    path = tmp_path / "step.mlir"
    path.write_text(Step(shapes, ADAM, mesh=mesh, clip=0.1).text)
    script = ROOT / "test" / "integration" / "two-hosts.sh"
    done = subprocess.run(
        [script, PROGRAM, path],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    if done.returncode == NOT_PERMITTED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("steps: verify passed", "check:", "death:", "cable:"):
        assert word in done.stdout
