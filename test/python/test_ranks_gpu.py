# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# dfa-run over NCCL: processes on two GPUs, four ranks that share them, peers
# that die in steps and in replays, and more elements than 32 bits count.
"""dfa-run on GPUs: the CPU's bits where sums are exact, no hang, B18."""

import concurrent.futures
import os
import time

import numpy as np
import pytest
from gpus import need_gpus
from run_step import ADAM, Step, run
from test_ranks_kill import BLAME
from test_ranks_model import assert_same_bits, resnet50, whole_numbers
from worlds import finish, free_port, start, start_world

SHAPES = {"a": (17, 3), "b": (5,), "c": (300, 7), "d": (1 << 16,)}
TIMEOUT = 12.0


@pytest.fixture
def two_gpus():
    """Two CUDA devices."""
    need_gpus(2)


@pytest.mark.cuda
@pytest.mark.multigpu
@pytest.mark.parametrize("mesh", [{"shard": 2}, {"replicate": 2}])
@pytest.mark.parametrize("options", [(), ("--replay",)])
@pytest.mark.parametrize("storage", ["fp32", "remainder"])
def test_processes_over_nccl(tmp_path, two_gpus, mesh, options, storage):
    step = Step(
        SHAPES,
        ADAM,
        mesh=mesh,
        storage=storage,
        grad="f32" if storage == "fp32" else "bf16",
        clip=0.1,
        bucket_bytes=1 << 16,
    )
    words = ["--distinct-gradients", *options]
    found = run(tmp_path, step, None, *words, target="cuda")
    assert found.report["verify"]["passed"]
    assert found.report["ranks"] == 2


@pytest.mark.cuda
@pytest.mark.multigpu
@pytest.mark.parametrize("options", [(), ("--replay",)])
def test_four_ranks_on_two_gpus_give_the_cpus_bits(tmp_path, two_gpus, options):
    # Two ranks a host for NCCL, which refuses two ranks of one on one GPU.
    shapes = resnet50(width=8, classes=10)
    inputs = {}
    for rank, arrays in enumerate(whole_numbers(shapes, 4)):
        inputs |= {f"grad@{rank}/{name}": a for name, a in arrays.items()}
    step = Step(
        shapes,
        ADAM,
        mesh={"replicate": 2, "shard": 2},
        clip=0.5,
        orders={n: (0, 2, 3, 1) for n, s in shapes.items() if len(s) == 4},
        bucket_bytes=1 << 18,
    )
    cpu = run(tmp_path, step, inputs, "--steps=3", target="cpu")
    out = tmp_path / "gpu.npz"
    words = [tmp_path / "step.mlir", "--target=cuda", "--steps=3", "--verify"]
    words += [f"--inputs={tmp_path / 'in.npz'}", f"--outputs={out}", *options]
    port = free_port()
    done = finish(
        [
            start(
                words,
                RANK=rank,
                WORLD_SIZE=4,
                LOCAL_RANK=rank % 2,
                LOCAL_WORLD_SIZE=2,
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
                NCCL_HOSTID=f"h{rank // 2}",
                NCCL_SOCKET_IFNAME="lo",
            )
            for rank in range(4)
        ]
    )
    assert [code for code, _, _ in done] == [0] * 4, done
    assert_same_bits(cpu.arrays, dict(np.load(out)))


def kill_one(path, number, options):
    """Kills one of two ranks; (error of the survivor, seconds it took)."""
    words = [path, "--target=cuda", "--steps=100000000", *options]
    ranks = start_world(words, 2, DFA_TIMEOUT_S=TIMEOUT)
    victim = number % 2
    try:
        # Somewhere between the warm-up and many steps.
        time.sleep(4 + 0.3 * number)
        assert all(rank.poll() is None for rank in ranks)
        ranks[victim].kill()
        begin = time.monotonic()
        _, err = ranks[1 - victim].communicate(timeout=TIMEOUT + 10)
        seconds = time.monotonic() - begin
        assert ranks[1 - victim].returncode == 4, err
        return err, seconds
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


@pytest.mark.cuda
@pytest.mark.multigpu
@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--replay",)])
def test_ten_kills_over_nccl(tmp_path, two_gpus, options):
    shapes = {"a": (1 << 20,), "b": (5,), "c": (300, 70)}
    mesh = {"shard": 2}
    path = tmp_path / "step.mlir"
    path.write_text(Step(shapes, ADAM, mesh=mesh, bucket_bytes=1 << 20).text)
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        runs = [pool.submit(kill_one, path, n, options) for n in range(10)]
        outcomes = [run.result() for run in runs]
    for number, (err, seconds) in enumerate(outcomes):
        found = BLAME.search(err)
        assert found, err
        assert int(found[2]) == number % 2, err
        assert seconds < TIMEOUT, err


@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.skipif(
    "DFA_SLOW" not in os.environ,
    reason="takes 40 GB of memory and of disk, and minutes; set DFA_SLOW=1",
)
def test_b18_more_than_32_bits_of_elements(tmp_path, gpu):
    elements = 2**31 + 8
    hyper = {**ADAM, "lr": 0.125, "beta2": 0.999, "weight_decay": 0.0}
    step = Step({"p": (elements,)}, hyper, storage="bf16", grad="bf16")
    path, out = tmp_path / "step.mlir", tmp_path / "out.npz"
    path.write_text(step.text)
    ones = np.full(elements, 0x3F80, np.uint16)
    np.savez(tmp_path / "in.npz", **{"param/p:bf16": ones, "grad/p:bf16": ones})
    words = [path, "--target=cuda", "--steps=1", f"--outputs={out}"]
    words.append(f"--inputs={tmp_path / 'in.npz'}")
    [(code, _, err)] = finish([start(words)], timeout=600)
    assert code == 0, err
    found = np.load(out)["param/p:bf16"]
    assert found.size == elements
    for index in (0, 2**31 - 1, 2**31, elements - 1):
        assert found[index] == 0x3F60  # 0.875
    assert np.count_nonzero(found != 0x3F80) == elements
