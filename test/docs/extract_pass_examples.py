#!/usr/bin/env python3
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the examples of the pass descriptions through dfa-opt.

A description has ```mlir blocks: the one after "Before" goes through the pass
and must become the one after "After" (both are canonicalized, so that names and
line breaks do not matter). A block without such a word must pass as it is.

usage: extract_pass_examples.py DFA_OPT PASSES_TD
"""

import pathlib
import re
import subprocess
import sys

PASS = re.compile(r'^def \w+ : Pass<"([\w-]+)"', re.M)


def run(opt, text, *options):
    """Output of dfa-opt, or its diagnostics as an exception."""
    result = subprocess.run(
        [opt, "-", *options, "--canonicalize", "--cse"],
        input=text,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise ValueError(result.stderr)
    return result.stdout


def check(opt, name, text):
    """Problems and the number of examples of one pass."""
    before, problems, count = None, [], 0
    for block in re.finditer(r"^ *```mlir\n(.*?)^ *```$", text, re.M | re.S):
        lead = text[: block.start()].strip().splitlines()[-1].strip()
        code = block.group(1)
        count += 1
        try:
            if lead.startswith("Before"):
                before = run(opt, code, f"--{name}")
            elif lead.startswith("After"):
                if before != run(opt, code):
                    problems.append(f"{name}: expected\n{code}\ngot\n{before}")
            else:
                run(opt, code, f"--{name}")
        except ValueError as error:
            problems.append(f"{name}: {error}")
    return problems, count


def main():
    opt, source = sys.argv[1:]
    text = pathlib.Path(source).read_text()
    names = PASS.findall(text)
    parts = PASS.split(text)[2::2]
    problems, count = [], 0
    for name, part in zip(names, parts, strict=True):
        found, examples = check(opt, name, part)
        problems += found
        count += examples
    print("\n".join(problems))
    print(f"{len(names)} passes, {count} examples, {len(problems)} failures")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
