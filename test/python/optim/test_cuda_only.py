# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What only a GPU has: streams, graphs, torch's allocator, NCCL."""

from __future__ import annotations

import dfa
import pytest
import torch
from cuda_cases import batch, compare, loss_of, masters, net, train_beside_ddp
from dfa.optim import DistributedFusedAdam, FusedAdamW
from gpus import need_gpus
from torch import nn

pytestmark = pytest.mark.cuda


@pytest.fixture(autouse=True)
def _gpu() -> None:
    need_gpus(1)


def test_bits_of_the_cpu() -> None:
    """Elementwise arithmetic is the same on both devices."""
    torch.manual_seed(0)
    start = torch.randn(4099)
    grads = [torch.randn(4099) for _ in range(5)]
    found = []
    for device in ("cpu", "cuda"):
        p = nn.Parameter(start.clone().to(device))
        opt = FusedAdamW([p], lr=1e-2, weight_decay=0.1)
        for grad in grads:
            p.grad = grad.to(device)
            opt.step()
        found.append(p.detach().cpu())
    assert torch.equal(*found)


def test_jit() -> None:
    text = open_example()
    p = torch.ones(4, device="cuda")
    g = torch.full((4,), 2.0, device="cuda")
    step = dfa.jit(text, target="cuda")
    step(grad=g, param=p)
    torch.cuda.synchronize()
    # AdamW's first step goes by lr; the default decay is 1e-2.
    wanted = torch.full((4,), 1 - 1e-3 - 1e-5)
    torch.testing.assert_close(p.cpu(), wanted, rtol=2e-6, atol=0)


def open_example() -> str:
    from dfa.optim.rules import ADAMW
    from dfa.optim.steptext import ClassSpec, update_step

    spec = ClassSpec(ADAMW, "f32", "f32", "none", ("f32", "f32"))
    text = update_step([spec], check=True).replace("tensor<1x", "tensor<4x")
    group = (
        "  dfa.group 0 {lr = 1.0e-3, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, "
        "weight_decay = 1.0e-2}\n"
    )
    return text.replace("  dfa.param", group + "  dfa.param", 1)


def test_work_is_on_the_current_stream() -> None:
    p = nn.Parameter(torch.zeros(1 << 20, device="cuda"))
    opt = FusedAdamW([p], lr=0.1)
    p.grad = torch.ones_like(p)
    opt.step()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    for _ in range(20):
        with torch.cuda.stream(side):
            torch.cuda._sleep(2_000_000)
            p.grad = torch.ones_like(p)
            opt.step()
            copy = p.detach().clone()
            p.grad.fill_(float("nan"))  # after the step, in stream order
        torch.cuda.current_stream().wait_stream(side)
        assert copy.isfinite().all()
        assert torch.equal(copy, p.detach())
    assert int(opt.state[p]["step"]) == 21


def test_memory_is_torchs() -> None:
    torch.cuda.synchronize()
    params = [
        nn.Parameter(torch.zeros(1 << 16, device="cuda")) for _ in range(9)
    ]
    opt = FusedAdamW(params, lr=0.1)
    for p in params:
        p.grad = torch.ones_like(p)
    opt.step()
    states = 9 * 2 * 4 * (1 << 16)
    first = torch.cuda.memory_allocated()
    assert first >= states
    device = opt._engine.update.optimizer
    assert device is not None
    for _ in range(5):
        opt.step()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == first
    opt._drop_engine()
    assert torch.cuda.memory_allocated() < first


def test_gradients_are_not_kept_alive() -> None:
    p = nn.Parameter(torch.zeros(1 << 22, device="cuda"))
    opt = FusedAdamW([p], lr=0.1)
    for _ in range(4):
        p.grad = torch.ones_like(p)
        opt.step()
        opt.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    p.grad = torch.ones_like(p)
    assert torch.cuda.memory_allocated() == before + 4 * (1 << 22)


@pytest.mark.parametrize("capturable", [False, True])
@pytest.mark.parametrize("storage", ["param", "master", "remainder"])
def test_whole_iteration_in_a_graph(capturable: bool, storage: str) -> None:
    dtype = torch.float32 if storage == "param" else torch.bfloat16
    model = net("cuda", dtype, True)
    opt = FusedAdamW(
        model.parameters(), lr=1e-2, capturable=capturable, storage=storage
    )
    check_graph(model, opt, dtype, capturable)


@pytest.mark.parametrize("capturable", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"contiguous_grad_buffer": True},
        {
            "store_params": False,
            "store_param_remainders": True,
            "param_sync_dtype": torch.bfloat16,
        },
    ],
    ids=str,
)
def test_sharded_iteration_in_a_graph(capturable: bool, options) -> None:
    dtype = torch.bfloat16 if options.get("store_param_remainders") else None
    dtype = dtype or torch.float32
    model = net("cuda", dtype, True)
    opt = DistributedFusedAdam(
        model.parameters(),
        lr=1e-2,
        weight_decay=1e-2,
        capturable=capturable,
        **options,
    )
    check_graph(model, opt, dtype, capturable)
    opt.close()


def check_graph(model, opt, dtype, capturable) -> None:
    """Captures an iteration, replays it with other data and rates."""
    exact = masters(model, torch.float64)
    reference = torch.optim.AdamW(exact, lr=1e-2)
    data = batch("cuda", dtype, 0)
    scale = torch.ones((), device="cuda")

    def iteration() -> None:
        (loss_of(model, data) * scale).backward()
        opt.step()
        opt.zero_grad(set_to_none=False)

    def wanted(lr: float) -> None:
        twin = net("cuda", dtype, True)
        with torch.no_grad():
            for a, b in zip(twin.parameters(), model.parameters(), strict=True):
                a.copy_(b)
        loss_of(twin, data).backward()
        for e, t in zip(exact, twin.parameters(), strict=True):
            e.grad = t.grad.double()
        reference.param_groups[0]["lr"] = lr
        reference.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            wanted(1e-2)
            iteration()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        iteration()
    torch.cuda.synchronize()
    for step, lr in enumerate((1e-2, 3e-3, 5e-4, 2e-2)):
        data.copy_(batch("cuda", dtype, step + 1))
        wanted(lr)
        group = opt.param_groups[0]
        if capturable:
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr
            opt.push_hyperparameters()
        graph.replay()
    torch.cuda.synchronize()
    compare(model.parameters(), exact, 1e-4 if dtype == torch.float32 else 4e-2)
    assert int(opt.state[next(model.parameters())]["step"]) == 7


def test_changes_that_were_not_pushed() -> None:
    p = nn.Parameter(torch.zeros(8, device="cuda"))
    p.grad = torch.ones_like(p)
    opt = FusedAdamW([p], lr=0.1)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        opt.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        opt.step()
    opt.param_groups[0]["lr"] = 0.2
    graph.replay()
    with pytest.raises(RuntimeError, match="push_hyperparameters"):
        opt.step()
    with pytest.raises(RuntimeError, match="group 0"):
        opt.state_dict()
    opt.push_hyperparameters()
    graph.replay()
    assert float(opt.state_dict()["state"][0]["step"]) == 3


def test_another_device_than_the_current_one() -> None:
    need_gpus(2)
    before = torch.cuda.memory_allocated(0)
    p = nn.Parameter(torch.ones(100, device="cuda:1"))
    opt = FusedAdamW([p], lr=0.1)
    for _ in range(3):
        p.grad = torch.ones_like(p)
        opt.step()
    assert torch.cuda.current_device() == 0
    assert (p.detach().cpu() < 0.75).all()
    assert torch.cuda.memory_allocated(0) == before
    q = nn.Parameter(torch.ones(100, device="cuda:0"))
    with pytest.raises(ValueError, match="cuda:0"):
        other = FusedAdamW([p, q])
        q.grad = torch.ones_like(q)
        other.step()


@pytest.mark.multigpu
@pytest.mark.parametrize("scaler", ["", "step", "explicit"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"grad_sync_dtype": torch.bfloat16},
        {"contiguous_grad_buffer": True},
        {"overlap_grad_sync": False},
        {"capturable": True},
    ],
    ids=str,
)
def test_two_gpus_beside_ddp(ranks, scaler: str, options) -> None:
    need_gpus(2)
    case = {
        "device": "cuda",
        "dtype": torch.float32,
        "channels_last": True,
        "options": options,
        "scaler": scaler,
        # Clipping goes after unscaling, so not with the implicit spelling.
        "clip": None if scaler == "step" else 1.0,
    }
    bound = 3e-2 if "grad_sync_dtype" in options else 1e-4
    assert max(ranks(2, train_beside_ddp, case)) < bound
