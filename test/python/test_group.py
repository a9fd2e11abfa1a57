# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Groups of ranks through the native module, with a store that is a Python
# object: threads of one process are ranks, which shows that calls let go of the
# interpreter.
"""dfa._core.Group."""

import threading

import dfa
import pytest
from dfa import _core


class DictStore:
    """A store in this process; two threads are two ranks."""

    def __init__(self):
        self.values = {}
        self.lock = threading.Lock()

    def set(self, key, value):
        with self.lock:
            self.values[key] = bytes(value)

    def get(self, key):
        with self.lock:
            return self.values[key]

    def add(self, key, amount):
        with self.lock:
            total = int(self.values.get(key, b"0")) + amount
            self.values[key] = str(total).encode()
            return total


def on_ranks(body, count=2):
    """Runs body(group, rank) on threads; returns results or exceptions."""
    store = DictStore()
    results = [None] * count

    def work(rank):
        try:
            group = _core.Group(
                _core.Device.cpu(1),
                "gloo",
                [("shard", count)],
                rank=rank,
                world_size=count,
                local_rank=rank,
                local_world_size=count,
                run_id="binding",
                timeout_s=20.0,
                store=store,
            )
            results[rank] = body(group, rank)
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=work, args=(r,)) for r in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def test_groups_over_a_python_store():
    def body(group, rank):
        group.agree("the same\n")
        result = (group.axis_rank("shard"), group.axis_size("shard"))
        with pytest.raises(ValueError, match="nowhere"):
            group.axis_rank("nowhere")
        assert group.failure() is None and "gloo" in group.describe().lower()
        group.close()
        return result

    assert on_ranks(body) == [(0, 2), (1, 2)]


def test_ranks_that_disagree():
    def body(group, rank):
        group.agree(f"line\nrank {rank}\n")

    for error in on_ranks(body):
        assert isinstance(error, dfa.CollectiveError)
        assert "rank 0" in str(error) or "rank 1" in str(error)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_store_that_fails():
    class Broken(DictStore):
        def set(self, key, value):
            raise OSError("gone")

    with pytest.raises((dfa.CollectiveError, RuntimeError)):
        _core.Group(
            _core.Device.cpu(1),
            "gloo",
            [("shard", 2)],
            rank=0,
            world_size=2,
            local_rank=0,
            local_world_size=2,
            run_id="broken",
            timeout_s=1.0,
            store=Broken(),
        )


def test_wrong_transport():
    with pytest.raises(ValueError, match="pigeon"):
        _core.Group(_core.Device.cpu(1), "pigeon", [], rank=0, world_size=1)
