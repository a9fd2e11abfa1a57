# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# One rank of four is killed at a random point of a run, from its start on.
# DFA_KILL_REPEATS says how often (4 by default, 50 with the mark `slow`).
"""dfa-run: every survivor names rank, collective and bucket, in time."""

import os
import random
import re
import subprocess
import time

import pytest
from run_step import ADAM, Step
from worlds import start_world

RANKS = 4
TIMEOUT = 8.0
# What a rank that found no store to meet in says instead of a collective.
NO_STORE = re.compile(r"rank \d+ cannot connect to rank 0|does not answer")
BLAME = re.compile(
    r"collective (?:\d+, )?[\w-]+(?: \w+)? of "
    r"(bucket \d+|the control exchange): "
    r"rank (\d+) (died|has not entered it|left)"
)


def kill_once(tmp_path, victim, delay, extra=()):
    """Runs four ranks, kills one after `delay` seconds; the survivors' words.

    Returns a list of (phase, seconds) by survivor, where phase is "bucket",
    "control exchange" or "store".
    """
    shapes = {"a": (170, 30), "b": (5,), "c": (300, 70)}
    mesh = {"shard": RANKS}
    path = tmp_path / "step.mlir"
    path.write_text(Step(shapes, ADAM, mesh=mesh, bucket_bytes=8192).text)
    words = [path, "--steps=100000000", "--threads=1", *extra]
    ranks = start_world(words, RANKS, DFA_TIMEOUT_S=TIMEOUT)
    phases = []
    try:
        time.sleep(delay)
        assert all(r.poll() is None for r in ranks), "ended by themselves"
        ranks[victim].kill()
        begin = time.monotonic()
        for rank, process in enumerate(ranks):
            try:
                out, err = process.communicate(timeout=TIMEOUT + 7)
            except subprocess.TimeoutExpired:
                pytest.fail(f"rank {rank} hangs ({victim=}, {delay=})")
            seconds = time.monotonic() - begin
            if rank == victim:
                continue
            context = f"{victim=} {delay=} {rank=} {seconds=}: {err}"
            assert process.returncode == 4, context
            assert out == "", context
            # To be sure takes a heartbeat more than the wait itself.
            assert seconds < TIMEOUT + 2, context
            found = BLAME.search(err)
            if not found:
                assert victim == 0 and NO_STORE.search(err), context
                phases.append(("store", seconds))
                continue
            assert int(found[2]) == victim, context
            phases.append((found[1].rpartition("the ")[2], seconds))
    finally:
        for process in ranks:
            process.kill()
            process.communicate()
    return phases


def repeat(tmp_path, count, extra=()):
    seed = int(os.environ.get("DFA_KILL_SEED", time.time_ns() % 10**6))
    print(f"DFA_KILL_SEED={seed}")
    points = random.Random(seed)
    seen = {}
    for number in range(count):
        # The first steps come after some 0.2 seconds, later on a busy machine.
        delay = points.uniform(0, 0.6 if number % 3 == 0 else 2.5)
        victim = points.randrange(RANKS)
        for phase, seconds in kill_once(tmp_path, victim, delay, extra):
            key = phase.split()[0]
            seen.setdefault(key, []).append(seconds)
    for key, times in seen.items():
        print(f"{key}: {len(times)} survivors, slowest {max(times):.2f} s")
    return seen


def test_every_survivor_of_a_kill_says_who_where_and_why(tmp_path):
    repeat(tmp_path, int(os.environ.get("DFA_KILL_REPEATS", 4)))


def test_kills_in_replays(tmp_path):
    seen = repeat(
        tmp_path, int(os.environ.get("DFA_KILL_REPEATS", 2)), ["--replay"]
    )
    assert seen


@pytest.mark.slow
@pytest.mark.skipif(
    "DFA_SLOW" not in os.environ, reason="takes minutes; set DFA_SLOW=1"
)
def test_fifty_kills(tmp_path):
    seen = repeat(tmp_path, 50)
    assert "bucket" in seen
