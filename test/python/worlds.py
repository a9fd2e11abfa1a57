# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Processes of dfa-run for tests: started one by one as a launcher would, and
# looked at from outside. What is tested is in test_ranks*.py.
"""Start ranks of dfa-run by hand, and find processes that belong to a run."""

import contextlib
import os
import pathlib
import random
import socket
import subprocess
import time

from run_step import PROGRAM

LAUNCHER = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "DFA_STORE",
    "DFA_STORE_FD",
)


def free_port():
    """Returns a TCP port (int) that is free now, as is the one behind it.

    Both lie below the range from which connections take their own ports.
    """
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def environment(**variables):
    """Returns this process's environment without a launcher's, and more."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in LAUNCHER and not key.startswith("SLURM_")
    }
    return kept | {key: str(value) for key, value in variables.items()}


def start(words, **variables):
    """Starts dfa-run on words; stdout and stderr are pipes of text."""
    return subprocess.Popen(
        [PROGRAM, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )


def start_world(words, size, **variables):
    """Starts `size` ranks as torchrun would; a list of processes by rank."""
    port = free_port()
    return [
        start(
            words,
            RANK=rank,
            WORLD_SIZE=size,
            LOCAL_RANK=rank,
            LOCAL_WORLD_SIZE=size,
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
            **variables,
        )
        for rank in range(size)
    ]


def finish(processes, timeout=120):
    """Waits for all; returns (code, stdout, stderr) by rank.

    Processes that are still there after `timeout` seconds are killed and
    reported as TimeoutExpired.
    """
    try:
        return [
            (done.returncode, out, err)
            for done in processes
            for out, err in [done.communicate(timeout=timeout)]
        ]
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()


def children(pid):
    """Returns the children of a process (set of int)."""
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return set(map(int, path.read_text().split()))
    except FileNotFoundError:
        return set()


def rank_of(pid):
    """Returns the RANK that a process was started with (int)."""
    pairs = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return int(dict(p.split(b"=", 1) for p in pairs if p)[b"RANK"])


def is_alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition, seconds=30.0):
    """Waits for a condition; its value, false after the time."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return value
