#!/usr/bin/env python3
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the examples of the op descriptions through dfa-opt.

Reads what `mlir-tblgen -gen-op-doc` prints. Every op must have an ```mlir
block, and every block must parse, verify, name its op, and print to a fixed
point.

usage: extract_examples.py DFA_OPT SOURCE_ROOT     mlir-tblgen is on the PATH
"""

import pathlib
import re
import shutil
import subprocess
import sys

HEADING = re.compile(r"^### `(dfa\.\w+)`", re.M)
BLOCK = re.compile(r"^```mlir\n(.*?)^```$", re.M | re.S)


def run(opt, text, *options):
    """dfa-opt's status, output and diagnostics for text."""
    result = subprocess.run(
        [opt, "-", *options], input=text, capture_output=True, text=True
    )
    return result.returncode, result.stdout, result.stderr


def make_document(root):
    """The generated page on all ops."""
    tblgen = pathlib.Path(shutil.which("mlir-tblgen"))
    dialects = pathlib.Path(root) / "dialects"
    include = tblgen.resolve().parent.parent / "include"
    source = dialects / "dfa" / "IR" / "DfaOps.td"
    return subprocess.run(
        [tblgen, "-gen-op-doc", f"-I{dialects}", f"-I{include}", source],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def check(opt, text):
    """What is wrong with text, or None."""
    status, printed, errors = run(opt, text, "--split-input-file")
    if status != 0:
        return errors
    status, again, errors = run(opt, printed, "--split-input-file")
    if status != 0 or again != printed:
        return "does not print to a fixed point\n" + errors
    return None


def main():
    opt, document = sys.argv[1], make_document(sys.argv[2])
    parts = HEADING.split(document)[1:]
    examples, problems = [], []
    for op, text in zip(parts[::2], parts[1::2], strict=True):
        blocks = BLOCK.findall(text)
        examples += [(op, block) for block in blocks]
        if not any(re.search(rf"\b{re.escape(op)}\b", b) for b in blocks):
            problems.append(f"{op}: has no example")
    # All in one process, and one by one only to say which is wrong.
    if check(opt, "\n// -----\n".join(block for _, block in examples)):
        for op, block in examples:
            problem = check(opt, block)
            if problem:
                problems.append(f"{op}: {problem}")
        problems = problems or ["wrong together, but not one by one"]
    print("\n".join(problems))
    print(
        f"{len(parts) // 2} ops, {len(examples)} examples, "
        f"{len(problems)} failures"
    )
    return 1 if problems or not examples else 0


if __name__ == "__main__":
    sys.exit(main())
