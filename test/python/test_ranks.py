# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# dfa-run over ranks: processes that it starts, and those that a launcher
# starts. What happens when a peer dies in a step is in test_ranks_kill.py.
"""dfa-run: ranks as processes, launchers' environments, ends of a run."""

import json
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from run_step import ADAM, PROGRAM, Step, run
from worlds import (
    children,
    environment,
    finish,
    free_port,
    is_alive,
    rank_of,
    start,
    start_world,
    wait_until,
)

SHAPES = {"a": (17, 3), "b": (5,), "c": (300, 7)}
STEP = Step(SHAPES, ADAM, mesh={"shard": 2}, clip=0.1, bucket_bytes=1024)
WIDE = Step(SHAPES, ADAM, mesh={"replicate": 2, "shard": 2}, clip=0.1)
LONG = "--steps=100000000"  # until somebody ends it


@pytest.fixture
def path(tmp_path):
    """A step for two ranks, as a file."""
    path = tmp_path / "step.mlir"
    path.write_text(STEP.text)
    return path


@pytest.fixture
def alone(tmp_path):
    """Arrays that dfa-run's own two processes leave."""
    directory = tmp_path / "alone"
    directory.mkdir()
    return run(directory, STEP, None, target="cpu")


def same(arrays, path):
    """Asserts that a file has the same keys and bits as arrays."""
    found = dict(np.load(path))
    assert found.keys() == arrays.keys()
    for key, value in arrays.items():
        assert np.array_equal(found[key], value), key


@pytest.fixture
def running(tmp_path):
    """A run of four ranks that does not end: (process, pids by rank)."""
    path = tmp_path / "wide.mlir"
    path.write_text(WIDE.text)
    process = start([path, "--ranks=4", LONG], DFA_TIMEOUT_S=20)
    pids = wait_until(
        lambda: (
            (found := children(process.pid))
            and len(found) == 4
            and all(is_alive(pid) for pid in found)
            and found
        )
    )
    time.sleep(1)  # somewhere in the first steps
    yield process, {rank_of(pid): pid for pid in pids}
    process.kill()
    process.communicate()
    assert wait_until(lambda: not any(map(is_alive, pids))), "ranks stay behind"


def test_ranks_are_processes(running):
    process, pids = running
    assert sorted(pids) == [0, 1, 2, 3]
    assert process.poll() is None
    assert len({*pids.values(), process.pid}) == 5


@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_rank_is_reported_and_the_others_end(running, victim):
    process, pids = running
    begin = time.monotonic()
    subprocess.run(["kill", "-KILL", str(pids[victim])], check=True)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - begin < 20
    assert process.returncode == 4
    assert out == ""
    wanted = f"dfa-run: error: rank {victim} was ended by signal 9 (Killed)"
    assert wanted in err.splitlines()
    for rank in set(range(4)) - {victim}:
        # What each survivor saw, in lines of its own.
        line = next(x for x in err.splitlines() if x.startswith(f"[{rank}] "))
        assert f": rank {victim} died" in line
        assert re.search(
            r"collective \d+, \w+ of (bucket \d+|the control)", line
        )
    assert not any(map(is_alive, pids.values()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_ranks(running, number):
    process, pids = running
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == -number
    assert wait_until(lambda: not any(map(is_alive, pids.values())), 5)


def test_ranks_do_not_outlive_a_killed_parent(running):
    process, pids = running
    process.kill()
    assert wait_until(lambda: not any(map(is_alive, pids.values())), 10)


def test_a_stopped_rank_is_an_error_in_time(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(STEP.text)
    process = start([path, LONG], DFA_TIMEOUT_S=5)
    try:
        pids = wait_until(lambda: len(children(process.pid)) == 2) and {
            rank_of(pid): pid for pid in children(process.pid)
        }
        time.sleep(1)
        subprocess.run(["kill", "-STOP", str(pids[1])], check=True)
        begin = time.monotonic()
        _, err = process.communicate(timeout=90)
        assert process.returncode == 4
        assert "[0] dfa-run: error: rank 0: " in err
        assert ": rank 1 died or hangs (no heartbeat for " in err
        # Five seconds to know, 15 that the launcher leaves, 3 to end it.
        assert time.monotonic() - begin < 40
        assert not any(map(is_alive, pids.values()))
    finally:
        process.kill()
        process.communicate()


def test_lines_of_ranks_stay_whole(tmp_path):
    # The layouts' text differs where one rank has another file: all complain.
    words = [tmp_path / "none.mlir"]
    assert finish(start_world(words, 2))[0][0] == 1
    path = tmp_path / "step.mlir"
    path.write_text(WIDE.text)
    process = start([path, "--steps=1"], DFA_LOG="debug")
    [(code, _, err)] = finish([process])
    assert code == 0
    assert all(re.match(r"\[[0-3]\] \S", line) for line in err.splitlines())


def test_joining_by_torchruns_variables(tmp_path, path, alone):
    words = [path, "--verify", "--json", f"--outputs={tmp_path / 'joined.npz'}"]
    done = finish(start_world(words, 2))
    assert [code for code, _, _ in done] == [0, 0], done
    report = json.loads(done[0][1])
    assert report["ranks"] == 2
    assert report["verify"]["passed"]
    assert done[1][1] == ""  # results come from the first rank alone
    same(alone.arrays, tmp_path / "joined.npz")


def test_torchrun_starts_ranks(tmp_path, path, alone):
    pytest.importorskip("torch")
    out = tmp_path / "torchrun.npz"
    words = [sys.executable, "-m", "torch.distributed.run", "--no-python"]
    words += ["--nproc-per-node=2", f"--master-port={free_port()}"]
    words += [PROGRAM, path, "--verify", "--json", f"--outputs={out}"]
    done = subprocess.run(
        words,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verify"]["passed"]
    same(alone.arrays, out)


def test_joining_by_slurms_variables(tmp_path, path, alone):
    out = tmp_path / "slurm.npz"
    host = socket.gethostname()
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        host = "127.0.0.1"
    job = free_port()  # another run's number is another port
    done = finish(
        [
            start(
                [path, "--verify", "--json", f"--outputs={out}"],
                SLURM_PROCID=rank,
                SLURM_NTASKS=2,
                SLURM_LOCALID=rank,
                SLURM_NODEID=0,
                SLURM_JOB_ID=job,
                SLURM_STEP_ID=0,
                SLURM_JOB_NODELIST=host,
                SLURM_STEP_NODELIST=host,
                SLURM_STEP_TASKS_PER_NODE=2,
            )
            for rank in range(2)
        ]
    )
    assert [code for code, _, _ in done] == [0, 0], done
    assert json.loads(done[0][1])["verify"]["passed"]
    same(alone.arrays, out)


def test_joining_through_a_file(tmp_path, path, alone):
    out = tmp_path / "file.npz"
    done = finish(
        [
            start(
                [path, f"--outputs={out}"],
                RANK=rank,
                WORLD_SIZE=2,
                DFA_STORE=f"file:{tmp_path / 'store'}",
            )
            for rank in range(2)
        ]
    )
    assert [code for code, _, _ in done] == [0, 0], done
    same(alone.arrays, out)


def test_one_process_of_a_launcher_starts_the_others(tmp_path, path, alone):
    out = tmp_path / "one.npz"
    process = start([path, f"--outputs={out}"], RANK=0, WORLD_SIZE=1)
    [(code, _, err)] = finish([process])
    assert code == 0, err
    same(alone.arrays, out)


@pytest.mark.parametrize(
    "variables, message",
    [
        (
            {"RANK": 0, "WORLD_SIZE": 3, "DFA_STORE": "file:/nowhere"},
            "expects 2 ranks, as the file's mesh has, but RANK and WORLD_SIZE "
            "say 3",
        ),
        ({"RANK": 0}, "expected both RANK and WORLD_SIZE, found only RANK"),
        ({"RANK": "x", "WORLD_SIZE": 2}, "RANK: expected an integer"),
    ],
)
def test_wrong_environments_are_2(path, variables, message):
    [(code, out, err)] = finish([start([path], **variables)])
    assert code == 2
    assert message in err
    assert out == ""


def test_ranks_that_want_something_else_are_told_apart(path):
    port = free_port()
    done = finish(
        [
            start(
                [path, f"--seed={rank}"],
                RANK=rank,
                WORLD_SIZE=2,
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
                DFA_TIMEOUT_S=20,
            )
            for rank in range(2)
        ]
    )
    for code, _, err in done:
        assert code == 4
        assert "rank 0 has 'seed 0', rank 1 has 'seed 1'" in err


def test_standard_input_reaches_all_ranks(tmp_path, alone):
    out = tmp_path / "stdin.npz"
    done = subprocess.run(
        [PROGRAM, "-", f"--outputs={out}"],
        input=STEP.text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    same(alone.arrays, out)


def test_check_says_what_each_rank_bound_to(path):
    [(code, out, _)] = finish([start([path, "--check"])])
    assert code == 0
    for rank in range(2):
        assert re.search(rf"^rank {rank}: \S", out, re.M)
    assert len(re.findall(r"^gloo on 127\.0\.0\.1 \(lo, ", out, re.M)) == 2
    assert out.count("axis shard: ranks 0 1") == 2


def test_a_trace_has_all_ranks(tmp_path, path):
    trace = tmp_path / "trace.json"
    words = [path, "--steps=2", f"--trace={trace}", "--verify"]
    [(code, _, err)] = finish([start(words)])
    assert code == 0, err
    events = json.loads(trace.read_text())["traceEvents"]
    for rank in range(2):
        names = {e["name"] for e in events if e["pid"] == rank}
        assert {"load", "step 1", "step 2"} <= names
    # A step of the ranks is one step: they wait for each other in it.
    spans = {
        e["pid"]: (e["ts"], e["ts"] + e["dur"])
        for e in events
        if e["name"] == "step 2"
    }
    assert max(b for b, _ in spans.values()) < min(e for _, e in spans.values())


def test_only_the_rank_that_writes_fails_at_it(tmp_path):
    """Results that cannot be written are the first rank's own failure: 1."""
    path = tmp_path / "step.mlir"
    path.write_text(STEP.text)
    process = start([path, "--steps=1", "--outputs=/nowhere/x.npz"])
    [(code, _, err)] = finish([process])
    assert code == 1
    assert "nowhere" in err
    assert "dfa-run: error: rank 0 exited with code 1" in err.splitlines()
    assert "rank 1" not in err
