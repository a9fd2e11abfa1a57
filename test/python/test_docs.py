# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Pages whose Python blocks are one program, from top to bottom.
"""What the documentation says in Python runs."""

import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["checkpoints.md", "cuda-graphs.md"])
def test_page(page, tmp_path):
    blocks = BLOCK.findall((DOCS / page).read_text())
    assert blocks
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
