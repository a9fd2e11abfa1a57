#!/usr/bin/env python3
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mutates .mlir files and feeds them to dfa-opt.

Wrong input may be rejected (status 1) or happen to be valid (status 0). A
signal, another status, an assertion, a sanitizer's report or a run that does
not end is a failure; the input is kept and a command that repeats it printed.

usage: scripts/fuzz.py [--opt build/bin/dfa-opt] [--count 2000] [--seed 0]
                       [--pipeline "--cse --canonicalize" ...]
                       [FILE.mlir ...]          default: examples/*.mlir
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PIPELINES = (
    ["--canonicalize", "--cse"],
    ["--dfa-to-kernels"],
    ["--dfa-to-kernels", "--dfa-verify-capturable"],
    ["--dfa-report"],
    ["--dfa-to-cpu"],
    ["--dfa-to-cuda=chip=sm_90 format=ptx"],
)
BATCH = 20
SEPARATOR = "\n// -----\n"
TOKEN = re.compile(r'"[^"\n]*"|[%@!#]?[\w.$-]+|->|::|\S|\s+')
NUMBERS = [
    "0",
    "-1",
    "1",
    "2",
    "3",
    "127",
    "128",
    "255",
    "4096",
    "2147483647",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "0.0",
    "-0.0",
    "1.0e300",
    "-1.0",
    "0x7FC00000",
    "0x7FF0000000000000",
    "1.0e-320",
]
WORDS = [
    "f32",
    "f64",
    "f16",
    "bf16",
    "i1",
    "i8",
    "i32",
    "i64",
    "index",
    "none",
    "full",
    "shard",
    "sum",
    "max",
    "adam",
    "tensor<?xf32>",
    "tensor<0xf32>",
    "tensor<1x2x3xbf16>",
    "memref<4xf32>",
    "()",
    "{}",
    "[]",
    "<>",
]
BROKEN = re.compile(
    r"AddressSanitizer|LeakSanitizer|UndefinedBehavior|runtime error:|"
    r"Assertion .* failed|LLVM ERROR|Stack dump|UNREACHABLE executed|"
    r"terminate called"
)


def mutate(text, others, rng):
    """One to four small changes of text, all decided by rng."""
    for _ in range(rng.randint(1, 4)):
        tokens = TOKEN.findall(text)
        words = [i for i, t in enumerate(tokens) if not t.isspace()]
        if not words:
            return text
        i, j = rng.choice(words), rng.choice(words)
        kind = rng.randrange(10)
        if kind == 0:
            tokens[i] = ""
        elif kind == 1:
            tokens[i] += " " + tokens[i]
        elif kind == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif kind == 3:
            digits = [k for k in words if re.match(r"-?\d", tokens[k])]
            tokens[rng.choice(digits or [i])] = rng.choice(NUMBERS)
        elif kind == 4:
            tokens[i] = rng.choice(WORDS)
        elif kind == 5:
            # A word of another file in the place of one of the same kind.
            donors = TOKEN.findall(rng.choice(others))
            alike = [t for t in donors if t[:1] == tokens[i][:1]]
            tokens[i] = rng.choice(alike or donors)
        elif kind in (6, 7):
            lines = text.splitlines(keepends=True)
            line = rng.randrange(len(lines))
            if kind == 6:
                del lines[line]
            else:
                lines.insert(rng.randrange(len(lines) + 1), lines[line])
            text = "".join(lines)
            continue
        elif kind == 8:
            at = rng.randrange(len(text))
            text = text[:at] + chr(rng.randrange(1, 127)) + text[at + 1 :]
            continue
        else:
            text = text[: rng.randrange(1, len(text) + 1)]
            continue
        text = "".join(tokens)
    return text


def broken(opt, pipeline, source, timeout):
    """What is wrong with how dfa-opt ended on source, or None."""
    command = [
        opt,
        "-",
        *pipeline,
        "--split-input-file",
        "--mlir-disable-threading",
    ]
    try:
        result = subprocess.run(
            command,
            input=source.encode(),
            capture_output=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {timeout} s"
    output = (result.stderr + result.stdout).decode(errors="replace")
    found = BROKEN.search(output)
    if found:
        line = output[found.start() :].splitlines()[0]
        return f"status {result.returncode}: {line}"
    if result.returncode not in (0, 1):
        return f"status {result.returncode}: {output[-300:].strip()}"
    return None


def run_batch(args, number, sources, pipelines):
    """Failures among BATCH mutants as (pipeline, mutant, reason)."""
    rng = random.Random(f"{args.seed}/{number}")
    mutants = [
        mutate(rng.choice(sources), sources, rng).replace("// -----", "")
        for _ in range(BATCH)
    ]
    pipeline = pipelines[number % len(pipelines)]
    if not broken(args.opt, pipeline, SEPARATOR.join(mutants), args.timeout):
        return []
    failures = []
    for mutant in mutants:
        reason = broken(args.opt, pipeline, mutant, args.timeout)
        if reason:
            failures.append((pipeline, mutant, reason))
    return failures or [(pipeline, SEPARATOR.join(mutants), "in a batch only")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opt", default=str(ROOT / "build/bin/dfa-opt"))
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--keep", default=str(ROOT / "build/fuzz"))
    parser.add_argument("--pipeline", action="append", default=[])
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    pipelines = [p.split() for p in args.pipeline] or PIPELINES
    files = args.files or sorted((ROOT / "examples").glob("*.mlir"))
    sources = [pathlib.Path(f).read_text() for f in files]
    if not sources:
        print("fuzz: no input files", file=sys.stderr)
        return 2
    # A tool that does not start, or an option that is gone, would reject every
    # mutant, and this would pass.
    for pipeline in pipelines:
        for file in files:
            command = [args.opt, str(file), *pipeline]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode != 0:
                print(f"fuzz: unchanged input fails: {' '.join(command)}")
                print(result.stderr[-1000:])
                return 1

    batches = (args.count + BATCH - 1) // BATCH
    failures = 0
    keep = pathlib.Path(args.keep)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            pool.submit(run_batch, args, n, sources, pipelines)
            for n in range(batches)
        ]
        for job in jobs:
            for pipeline, mutant, reason in job.result():
                failures += 1
                keep.mkdir(parents=True, exist_ok=True)
                path = keep / f"failure-{failures}.mlir"
                path.write_text(mutant)
                print(f"{reason}\n  {args.opt} {path} {' '.join(pipeline)}")
    print(f"fuzz: {batches * BATCH} mutants, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
