# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host time of optimizer steps in Python, its parts apart.

    python benchmarks/host_time.py [--device cuda] [--rounds 50]

* step: one ``step()`` whose gradients lie where they lay. On a CPU the work
  itself is done in the call; ``run`` is that alone, and ``host`` the rest.
* assigned: what fresh gradients in ``.grad`` add (``set_to_none=True``).
* hook: a parameter's post-accumulate hook, and its part of the bucket's call.
* start: ``import dfa``, and the first step of a process, cold and warm.

Medians; parameters have one element, so that a GPU is never behind.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from dfa.optim import DistributedFusedAdam, FusedAdamW
from torch import nn

SIZES = (10, 100, 1000, 10000)


def median_us(body, rounds: int, device: str, before=lambda: None) -> float:
    times = []
    for _ in range(rounds):
        before()
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter_ns()
        body()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e3


def make_params(count: int, device: str) -> list[nn.Parameter]:
    return [nn.Parameter(torch.zeros(1, device=device)) for _ in range(count)]


def make_groups(params: list, groups: int) -> list[dict]:
    return [{"params": params[at::groups]} for at in range(groups)]


def fused(count: int, groups: int, device: str, rounds: int) -> None:
    params = make_params(count, device)
    opt = FusedAdamW(make_groups(params, groups))
    for p in params:
        p.grad = torch.ones_like(p)
    for _ in range(5):
        opt.step()
    step = median_us(opt.step, rounds, device)
    run = median_us(opt._engine.update.finish, rounds, device)

    def assign() -> None:
        for p in params:
            p.grad = torch.ones_like(p)

    assign()
    fresh = median_us(opt.step, rounds, device, assign)
    print(
        f"FusedAdamW {count:6} params {groups:2} groups: step {step:8.1f} us, "
        f"run {run:8.1f}, host {step - run:8.1f}; assigned adds "
        f"{(fresh - step) / count * 1e3:6.0f} ns a param"
    )


def sharded(count: int, groups: int, device: str, rounds: int) -> None:
    params = make_params(count, device)
    opt = DistributedFusedAdam(make_groups(params, groups), missing_grad="zero")
    filled = [0]
    fill = opt._sync._fill

    def timed_fill(bucket) -> None:
        start = time.perf_counter_ns()
        fill(bucket)
        filled[0] += time.perf_counter_ns() - start

    opt._sync._fill = timed_fill

    def backward(of: list) -> None:
        torch._foreach_mul(of, 1.0)
        sum_of(of).backward()

    def hooks() -> None:
        backward(params)

    def zero() -> None:
        opt.zero_grad()
        filled[0] = 0

    for _ in range(3):
        zero()
        hooks()
        opt.step()
    with_hooks = median_us(hooks, rounds, device, zero)
    in_fill = filled[0] / 1e3
    others = make_params(count, device)

    def clear() -> None:
        for p in others:
            p.grad = None

    plain = median_us(lambda: backward(others), rounds, device, clear)

    def ready() -> None:
        zero()
        hooks()

    step = median_us(opt.step, rounds, device, ready)
    run = median_us(opt._engine.updater.finish, rounds, device)
    hook = (with_hooks - plain - in_fill) / count
    print(
        f"DistributedFusedAdam {count:6} params {groups:2} groups: step "
        f"{step:8.1f} us, run {run:8.1f}, host {step - run:8.1f}; hook "
        f"{hook:6.2f} us a param, bucket {in_fill / count:6.2f} us a param"
    )
    opt.close()


def sum_of(params: list) -> torch.Tensor:
    return torch.cat(params).sum()


_FIRST = """
import time
import torch
p = torch.nn.Parameter(torch.zeros(10, device="{device}"))
p.grad = torch.ones_like(p)
start = time.perf_counter()
import dfa
loaded = time.perf_counter()
opt = dfa.FusedAdamW([p])
ready = time.perf_counter()
opt.step()
if "{device}" == "cuda": torch.cuda.synchronize()
print(loaded - start, time.perf_counter() - ready)
"""
_IMPORT = """
import time
start = time.perf_counter()
import dfa
print(time.perf_counter() - start)
"""


def start(device: str) -> None:
    def child(text: str, cache: str) -> list[float]:
        env = {**os.environ, "DFA_CACHE_DIR": cache}
        done = subprocess.run(
            [sys.executable, "-c", text],
            capture_output=True,
            text=True,
            check=True,
            env=env,
        )
        return [float(word) for word in done.stdout.split()]

    with tempfile.TemporaryDirectory() as cache:
        child(_IMPORT, cache)
        (alone,) = child(_IMPORT, cache)
        text = _FIRST.format(device=device)
        _, cold = child(text, cache)
        _, warm = child(text, cache)
    print(
        f"import dfa {alone:.3f} s; first step cold {cold:.3f} s, "
        f"warm {warm:.3f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options = parser.parse_args()
    for count in options.sizes:
        for groups in (1, 10):
            fused(count, groups, options.device, options.rounds)
    for count in options.sizes:
        sharded(count, 1, options.device, min(options.rounds, 20))
    start(options.device)


if __name__ == "__main__":
    main()
