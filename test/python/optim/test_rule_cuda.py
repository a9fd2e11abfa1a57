# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of users on a GPU: bits of the CPU, graphs, sharded buckets."""

from __future__ import annotations

import pytest
import torch
from gpus import need_gpus
from rule_cases import OPTIONS, Adamw
from test_rule_examples import load
from torch.nn import Parameter

pytestmark = pytest.mark.cuda


@pytest.fixture(autouse=True)
def _gpu() -> None:
    need_gpus(1)


def start() -> tuple[torch.Tensor, list[torch.Tensor]]:
    torch.manual_seed(0)
    return torch.randn(4099), [torch.randn(4099) for _ in range(5)]


@pytest.mark.parametrize("name", ["Adamw", "Adopt", "AdEMAMix"])
def test_bits_of_the_cpu(name: str) -> None:
    cls = Adamw if name == "Adamw" else getattr(load(name.lower()), name)
    values, grads = start()
    found = []
    for device in ("cpu", "cuda"):
        p = Parameter(values.clone().to(device))
        opt = cls([p], lr=1e-2, weight_decay=0.1)
        for grad in grads:
            p.grad = grad.to(device)
            opt.step()
        states = [opt.state[p][n].cpu() for n in cls.rule.signature.states]
        found.append([p.detach().cpu(), *states])
    for cpu, cuda in zip(*found, strict=True):
        assert torch.equal(cpu, cuda)


def test_sharded_class_on_one_rank() -> None:
    values, grads = start()
    found = []
    for make in (Adamw, Adamw.Sharded):
        p = Parameter(values.clone().cuda())
        opt = make([p], **OPTIONS)
        for grad in grads:
            opt.zero_grad()
            (p * grad.cuda()).sum().backward()
            opt.step()
        found.append(p.detach().cpu())
    assert torch.equal(*found)


def test_step_in_a_graph_reads_the_rate_anew() -> None:
    values, grads = start()
    eager = Parameter(values.clone().cuda())
    replayed = Parameter(values.clone().cuda())
    a = Adamw([eager], **OPTIONS)
    b = Adamw([replayed], capturable=True, **OPTIONS)
    eager.grad, replayed.grad = grads[0].cuda(), grads[0].cuda()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        a.step()
        b.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        b.step()
    for index, grad in enumerate(grads):
        rate = 0.05 / (index + 1)
        a.param_groups[0]["lr"] = rate
        b.param_groups[0]["lr"].fill_(rate)
        eager.grad.copy_(grad)
        replayed.grad.copy_(grad)
        a.step()
        graph.replay()
    torch.cuda.synchronize()
    # A rate in device memory is a float32.
    torch.testing.assert_close(replayed, eager, rtol=1e-5, atol=1e-6)
    assert int(b.state[replayed]["step"]) == 6
