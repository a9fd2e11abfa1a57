#!/usr/bin/env python3
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tree's own rules: lit tests that cannot fail, includes that cross a
border, files that grew too long, marks of unfinished work.

usage: scripts/lint.py [ROOT]     exit status 1 if a rule is broken
"""

import pathlib
import re
import subprocess
import sys

MAX_LINES = 500
MAX_BYTES = 512 * 1024
SOURCES = (".cpp", ".h", ".c", ".td", ".py", ".def")

# Where a pattern must not occur: (folder, suffixes, pattern, why).
BORDERS = [
    (
        "runtime/",
        (".cpp", ".h", ".c", ".def", ".txt"),
        r'#\s*include\s*[<"](mlir|llvm|mlir-c|llvm-c|dfa|dfa-c)/|[<"]Python\.h|'
        r"find_package\((MLIR|LLVM|Python3?)\b",
        "the runtime never includes LLVM, MLIR, the compiler or Python",
    ),
    (
        "dialects/",
        (".td", ".md"),
        r"(?i)\bcuda|\bcublas|\bnccl|\bnvvm\b|\bptx\b",
        "dialect text names no CUDA and no NCCL; lowering passes do",
    ),
    (
        "dialects/",
        (".cpp", ".h"),
        r"(?s).",
        "dialects/ holds no C++; put it in include/ or lib/",
    ),
    (
        "include/dfa-c/",
        (".h",),
        r'#\s*include\s*[<"](mlir|llvm|dfa)/',
        "the C API includes mlir-c only",
    ),
    (
        "python/",
        (".cpp", ".h"),
        r'#\s*include\s*[<"](mlir|llvm|dfa)/|#\s*include\s*"(\.\./)+(lib|runtime)/',
        "Python reaches nothing but the two C APIs",
    ),
    (
        "lib/",
        (".cpp", ".h"),
        r'#\s*include\s*[<"](Python\.h|nanobind/|cuda|nccl)',
        "the compiler knows neither Python nor CUDA headers",
    ),
]

DIRECTIVE = re.compile(r"^\s*(?://|#|;)?\s*([A-Z][A-Z0-9_-]*?)"
                       r"(?:-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+))?"
                       r"(?:\{LITERAL\})?:")  # fmt: skip
RUN = re.compile(r"\bRUN:\s*(.*)")
# What looks like a directive and is none, so that FileCheck would ignore it.
TYPOS = re.compile(
    r"^\s*(?://|#|;)?\s*(?:"
    r"(?!CHECK\b)(?i:check)[-_:]|CHEKC|CEHCK|CHCEK|CHECk|HCECK|CHECKS?\s+:|"
    r"CHECK[A-Z0-9-]*_(?:NEXT|SAME|NOT|DAG|LABEL)|CHECK(?:NEXT|SAME|NOT|DAG|LABEL)|"
    r"CHECK[A-Z0-9-]*-(?:NXET|NEX|SMAE|LABLE|LABEl|EMTPY)\b|"
    r"(?i:run)(?<!RUN):"
    r")"
)
# Commands whose exit status alone is a test.
SELF_CHECKING = re.compile(
    r"-verify-diagnostics|--verify\b|\bdiff\b|\bcmp\b|%python|\bnot\b"
)


def tracked(root):
    """Files known to git, as POSIX paths relative to root."""
    out = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    ).stdout
    return sorted(
        p for p in out.decode().split("\0") if p and (root / p).is_file()
    )


def run_lines(text):
    """RUN commands with continued lines joined."""
    commands, open_line = [], ""
    for command in RUN.findall(text):
        command = open_line + command.rstrip()
        if command.endswith("\\"):
            open_line = command[:-1]
            continue
        commands.append(command)
        open_line = ""
    return commands


def lint_lit(path, text):
    """Problems of one lit test."""
    commands = run_lines(text)
    if not commands:
        yield 0, "a lit test needs a RUN line"
        return
    if not any("FileCheck" in c or SELF_CHECKING.search(c) for c in commands):
        yield 0, "no RUN line pipes into FileCheck or checks by itself"
    prefixes = set()
    for command in commands:
        for use in command.split("FileCheck")[1:]:
            use = use.split("|")[0]
            named = re.findall(r"--?check-prefix(?:es)?[= ](\S+)", use)
            prefixes.update(",".join(named).split(",") if named else ["CHECK"])
    used = set()
    for number, line in enumerate(text.splitlines(), 1):
        if TYPOS.match(line):
            yield number, f"looks like a directive but is none: {line.strip()}"
        directive = DIRECTIVE.match(line)
        if directive:
            used.add(directive.group(1))
    for prefix in sorted(prefixes - used):
        yield 0, f"FileCheck looks for '{prefix}:' lines and the file has none"
    for prefix in sorted(used):
        if prefix.startswith("CHECK") and prefix not in prefixes:
            yield 0, f"'{prefix}:' lines are read by no FileCheck"


def lint_borders(path, text):
    """Includes and words where they must not be."""
    for folder, suffixes, pattern, why in BORDERS:
        if path.startswith(folder) and path.endswith(suffixes):
            found = re.search(pattern, text)
            if found:
                yield text.count("\n", 0, found.start()) + 1, why


def lint_file(root, path):
    """Problems of one file as (line, message)."""
    data = (root / path).read_bytes()
    if len(data) > MAX_BYTES:
        yield (
            0,
            f"{len(data)} bytes; at most {MAX_BYTES} in the tree",
        )
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    in_test = path.startswith("test/") and "/Inputs/" not in path
    if in_test and path.endswith((".mlir", ".test")):
        yield from lint_lit(path, text)
    if not path.endswith(SOURCES):
        return
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        yield 0, f"{len(lines)} lines; split it: at most {MAX_LINES}"
    if lines and not any(
        "SPDX-License-Identifier:" in line for line in lines[:5]
    ):
        yield 1, "the header lacks the SPDX line"
    guard = "DFA_" + re.sub(r"\W", "_", path.split("include/")[-1]).upper()
    if path.endswith(".h") and "#ifndef DFA_" not in text:
        yield 1, f"include guard missing; expected the likes of {guard}"
    for number, line in enumerate(lines, 1):
        if (
            re.search(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))", line)
            and path != "scripts/lint.py"
        ):
            yield number, "unfinished work without an issue number"
    yield from lint_borders(path, text)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    broken = 0
    for path in tracked(root):
        for line, message in lint_file(root, path):
            print(f"{path}:{line}: {message}" if line else f"{path}: {message}")
            broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
