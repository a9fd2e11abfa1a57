# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each rank does in test_distributed.py; failures are exceptions."""

from __future__ import annotations

import math
import os
import time
from typing import Any

import pytest
import torch
import torch.distributed as dist
from dfa import CollectiveError
from dfa.optim import DistributedFusedAdam, node_local_groups
from torch.nn import Parameter

TINY = 1e-4  # MiB: a bucket a parameter


def ones(*sizes: int) -> list[Parameter]:
    return [Parameter(torch.ones(size)) for size in sizes]


def make(params: Any, **options: Any) -> DistributedFusedAdam:
    return DistributedFusedAdam(params, **{"bucket_cap_mb": TINY, **options})


def backward(params: Any, grads: Any) -> None:
    """Makes autograd produce these gradients, hooks included."""
    pairs = zip(params, grads, strict=True)
    sum((p * g).sum() for p, g in pairs if g is not None).backward()


def same_everywhere(value: float) -> None:
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    assert all(v == values[0] or (v != v) for v in values), values


def groups(name: str) -> dict[str, Any]:
    if name == "flat":
        return {}
    sharded, copies = node_local_groups(local_world_size=2)
    return {
        "distributed_process_group": sharded,
        "redundant_process_group": copies,
    }


# === Cases ===================================================================


def b03(channels_last: tuple[int, int]) -> None:
    def order(tensor: torch.Tensor, last: int) -> torch.Tensor:
        form = torch.channels_last if last else torch.contiguous_format
        return tensor.contiguous(memory_format=form)

    index = torch.arange(24).reshape(2, 3, 2, 2)
    sign = torch.tensor([1.0, -1.0, 1.0]).reshape(1, 3, 1, 1)
    p = Parameter(order(0.1 * index, channels_last[0]))
    opt = make([p], lr=0.1, eps=0.1)
    p.grad = order(0.01 * (index + 1) * sign, channels_last[1])
    opt.step()
    assert p[0, 1, 0, 1].item() == pytest.approx(0.5375, rel=2e-6)
    assert p.double().sum().item() == pytest.approx(27.2210154038, rel=1e-6)
    row = opt.state_dict()["state"][0]
    assert row["exp_avg"][0, 1, 0, 1].item() == pytest.approx(-0.006, rel=2e-5)
    opt.close()


def b05(shape: tuple[int, ...]) -> None:
    form = {4: torch.channels_last, 5: torch.channels_last_3d}[len(shape)]
    torch.manual_seed(2)
    values = torch.randn(shape).bfloat16()
    p = Parameter(values.clone(memory_format=torch.preserve_format))
    p.data = p.data.contiguous(memory_format=form)
    strides = p.stride()
    opt = make([p], lr=0.0, param_sync_dtype=torch.bfloat16)
    address = p.data_ptr()
    torch.manual_seed(dist.get_rank())
    p.grad = torch.randn(shape).bfloat16().contiguous(memory_format=form)
    opt.step()
    assert torch.equal(p, values)
    assert (p.stride(), p.data_ptr()) == (strides, address)
    saved = opt.state_dict()
    row = saved["state"][0]
    assert row["exp_avg"].is_contiguous()
    q = Parameter(values.clone())
    other = make([q], lr=0.0, param_sync_dtype=torch.bfloat16)
    other.load_state_dict(saved)
    again = other.state_dict()["state"][0]
    for name in ("param", "exp_avg", "exp_avg_sq"):
        assert torch.equal(row[name], again[name])
    assert row["exp_avg"].abs().sum() > 0
    opt.close()
    other.close()


def b09(where: str) -> None:
    rank = dist.get_rank()
    params = ones(8, 8, 8)
    opt = make(params)
    amp = torch.amp.GradScaler("cpu", init_scale=16384.0)
    amp.scale(torch.zeros(()))
    grads = [torch.full((8,), 0.1 * 16384.0) for _ in params]
    if rank == 1:
        grads[2][5] = math.inf if where == "inf" else math.nan
    backward(params, grads)
    opt.unscale_grads(grad_scaler=amp)
    opt.clip_grad_norm(1.0)
    amp.step(opt)
    amp.update()
    assert amp.get_scale() == 8192.0
    assert opt.step_was_skipped
    assert all(torch.equal(p, torch.ones(8)) for p in params)
    opt.zero_grad()
    backward(params, [torch.full((8,), 0.1 * 8192.0) for _ in params])
    amp.step(opt)
    amp.update()
    assert int(opt.state[params[0]]["step"]) == 1
    assert opt.skipped_steps == 1
    opt.close()


def b12() -> None:
    a, b = ones(1, 1)
    opt = make([a, b], lr=0.1, eps=0.5, betas=(0.9, 0.99))
    amp = torch.amp.GradScaler("cpu", init_scale=1024.0)
    amp.scale(torch.zeros(()))
    backward([a, b], [3.0 * 1024, 4.0 * 1024])
    opt.unscale_grads(grad_scaler=amp)
    assert opt.clip_grad_norm(2.5).item() == pytest.approx(5.0, rel=1e-7)
    amp.step(opt)
    assert a.item() == pytest.approx(0.9250000037, rel=2e-6)
    assert b.item() == pytest.approx(0.9200000032, rel=2e-6)
    opt.close()


def b15() -> None:
    a = Parameter(torch.ones(2))
    b = Parameter(torch.ones(1))
    opt = make([a, b], **groups("hybrid"))
    backward([a, b], [torch.tensor([6.0, 8.0]), torch.tensor([2.4])])
    norm = opt.grad_norm().item()
    assert norm == pytest.approx(10.2839681057, rel=1e-7)
    same_everywhere(norm)
    opt.close()


def b16(cap: float) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    params = ones(7, 13, 1, 129)
    opt = make(params, lr=0.01, weight_decay=0.1, bucket_cap_mb=cap)
    share = 0.2 * (rank + 1) * (0.5 / (0.2 * (world + 1) / 2))
    backward(params, [torch.full_like(p, share) for p in params])
    norm = opt.grad_norm().item()
    assert norm == pytest.approx(6.1237243570, rel=2e-6)
    opt.step()
    for p in params:
        want = torch.full_like(p, 0.9890000002)
        torch.testing.assert_close(p.detach(), want, rtol=2e-6, atol=0)
    saved = opt.state_dict()["state"]
    assert [saved[i]["param"].numel() for i in range(4)] == [7, 13, 1, 129]
    opt.close()


def b20() -> None:
    p = Parameter(torch.tensor([1.0, 2.0, 3.0]))
    empties = ones(0, 0)
    opt = make([empties[0], p, empties[1]], lr=0.1)
    backward([empties[0], p, empties[1]], [0.1, 0.1, 0.1])
    assert opt.grad_norm().item() == pytest.approx(0.1732050808, rel=1e-6)
    opt.step()
    want = torch.tensor([0.9000000100, 1.9000000100, 2.9000000100])
    torch.testing.assert_close(p.detach(), want, rtol=2e-6, atol=0)
    opt.load_state_dict(opt.state_dict())
    opt.close()
    only = make(ones(0))
    only.step()
    assert only.grad_norm().item() == 0
    only.close()


def b22(missing: str, absent_on: str) -> None:
    rank = dist.get_rank()
    a, b = ones(1, 1)
    opt = make(
        [a, b],
        lr=0.01,
        betas=(0.9, 0.99),
        weight_decay=0.1,
        missing_grad=missing,
    )
    values = []
    for step, grad in enumerate((0.5, None, 0.2)):
        opt.zero_grad()
        if absent_on == "one" and grad is not None:
            # Only rank 0 has it: the others contribute zeros.
            world = dist.get_world_size()
            grad = grad * world if rank == 0 else None
        backward([a, b], [0.5, grad])
        opt.step()
        values.append(b.item())
        assert int(opt.state[a]["step"]) == step + 1
    if missing == "skip":
        want = [0.9890000002, 0.9890000002, 0.9790104852]
        assert values[0] == values[1]
        assert int(opt.state[b]["step"]) == 2
    else:
        want = [0.9890000002, 0.9812951989, 0.9731073085]
        assert int(opt.state[b]["step"]) == 3
    assert values == pytest.approx(want, rel=2e-6)
    opt.close()


def unfrozen() -> None:
    a, b = ones(3, 40)
    b.requires_grad_(False)
    opt = make([a, b], lr=0.1)
    for step in range(4):
        opt.zero_grad()
        if step == 2:
            b.requires_grad_(True)
        grads = [torch.full((3,), 0.5), None]
        if step >= 2:
            grads[1] = torch.full((40,), 0.25)
        backward([a, b], grads)
        opt.step()
    assert int(opt.state[a]["step"]) == 4
    assert int(opt.state[b]["step"]) == 2
    want = torch.full((40,), 0.8)
    torch.testing.assert_close(b.detach(), want, rtol=1e-5, atol=0)
    c = Parameter(torch.ones(5))
    opt.zero_grad()
    opt.add_param_group({"params": [c], "lr": 0.5})
    backward([a, b, c], [1.0, 1.0, 1.0])
    opt.step()
    assert int(opt.state[a]["step"]) == 5
    assert int(opt.state[c]["step"]) == 1
    assert c[0].item() == pytest.approx(0.5, rel=1e-5)
    opt.close()


def b36(case: str) -> None:
    rank = dist.get_rank()
    params = ones(100, 50)
    opt = make(params)
    amp = torch.amp.GradScaler("cpu", init_scale=65536.0)
    amp.scale(torch.zeros(()))
    if case == "inf":
        grads = [torch.ones(100), torch.ones(50)]
        if rank == 1:
            grads[0][-1] = math.inf
        backward(params, grads)
        opt.unscale_grads(grad_scaler=amp)
        opt.clip_grad_norm(1.0)
        amp.step(opt)
        amp.update()
        assert amp.get_scale() == 32768.0
        assert all((p == 1).all() for p in params)
    else:
        if rank == 0:
            backward(params, [torch.ones(100), torch.ones(50)])
        norm = opt.grad_norm().item()
        world = dist.get_world_size()
        assert norm == pytest.approx(math.sqrt(150) / world, rel=1e-6)
        opt.step()
        assert all((p < 1).all() for p in params)
    opt.close()


def b36_missing_rank() -> None:
    """A rank that never comes is an error on the others, not a hang."""
    os.environ["DFA_TIMEOUT_S"] = "5"
    try:
        params = ones(10)
        opt = make(params)
    finally:
        del os.environ["DFA_TIMEOUT_S"]
    if dist.get_rank() == 0:
        start = time.monotonic()
        with pytest.raises(CollectiveError):
            backward(params, [1.0])
            opt.step()
            opt.grad_norm().item()
        assert time.monotonic() - start < 60
    dist.barrier()


def late_gradient() -> None:
    """Two backwards outside no_sync are two passes: they add up."""
    a, b = ones(6, 6)
    opt = make([a, b], lr=0.1, eps=1.0)
    for value in (1.0, 2.0):
        backward([a, b], [value, 3 * value])
    assert opt.grad_norm().item() == pytest.approx(
        math.sqrt(6 * 9 + 6 * 81), rel=1e-6
    )
    opt.step()
    assert a[0].item() == pytest.approx(1 - 0.1 * 3 / 4, rel=1e-5)
    opt.close()


def b27_model() -> list[Parameter]:
    values = 0.001 * torch.arange(1037, dtype=torch.float64)
    first = Parameter(values[:1000].float())
    return [first, *(Parameter(v.float().clone()) for v in values[1000:])]


def b27_steps(params: Any, opt: Any, first: int, count: int) -> None:
    k = torch.arange(1037)
    for t in range(first, first + count):
        g = 0.01 * (((k + t) % 7) - 3).float()
        opt.zero_grad()
        backward(params, [g[:1000], *g[1000:]])
        opt.step()


B27 = {"lr": 1e-3, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.01}


def b27_save() -> Any:
    params = b27_model()
    opt = make(params, **B27)
    b27_steps(params, opt, 1, 5)
    saved = opt.state_dict()
    opt.close()
    return saved if dist.get_rank() == 0 else None


def b27_load(saved: Any, options: dict[str, Any]) -> None:
    params = b27_model()
    opt = make(params, **B27, **options)
    opt.load_state_dict(saved)
    b27_steps(params, opt, 6, 5)
    values = [params[0][0], params[0][999], params[1], params[37]]
    assert [v.item() for v in values] == pytest.approx(
        [0.0028650241, 0.9988458430, 1.0044445261, 1.0387614287], rel=3e-6
    )
    opt.close()


def b25() -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    params = ones(64, 3)
    opt = make([{"params": params[:1]}, {"params": params[1:]}], lr=1e-3)
    for _ in range(40):
        opt.zero_grad()
        backward(params, [0.2, 0.2])
        opt.step()
    for p in params:
        assert int(opt.state[p]["step"]) == 40
        assert p[0].item() == pytest.approx(0.9600000020, rel=2e-6)
    saved = opt.state_dict()
    opt.close()
    swapped = dist.new_group(list(reversed(range(world))))
    other = ones(64, 3)
    opt = make(
        [{"params": other[:1]}, {"params": other[1:]}],
        lr=1e-3,
        process_group=swapped,
    )
    opt.load_state_dict(saved)
    backward(other, [0.2, 0.2])
    opt.step()
    for p in other:
        assert p[0].item() == pytest.approx(0.9590000021, rel=2e-6)
        assert int(opt.state[p]["step"]) == 41
    del rank
    opt.close()


def consolidated() -> None:
    params = ones(5)
    opt = make(params)
    backward(params, [1.0])
    opt.step()
    opt.consolidate_state_dict(to=0)
    saved = opt.state_dict()
    assert (0 in saved["state"]) == (dist.get_rank() == 0)
    assert 0 in opt.state_dict()["state"]
    opt.close()


def wrong_groups() -> None:
    with pytest.raises(ValueError, match="divide"):
        node_local_groups(local_world_size=3)
    half = dist.new_group([0])
    if dist.get_rank() == 0:
        with pytest.raises(RuntimeError, match="distributed x redundant"):
            make(ones(1), distributed_process_group=half)


def fsdp(amsgrad: bool) -> None:
    """FusedAdamW under FSDP2: states are DTensors as their parameters."""
    from dfa.optim import FusedAdamW
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    world = dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))

    def build() -> torch.nn.Module:
        torch.manual_seed(3)
        # One row less than ranks: an empty shard is legal.
        return torch.nn.Sequential(
            torch.nn.Linear(4, 5), torch.nn.Linear(5, world - 1, bias=False)
        )

    ours, theirs = build(), build()
    fully_shard(ours, mesh=mesh)
    a = FusedAdamW(ours.parameters(), lr=0.1, amsgrad=amsgrad)
    b = torch.optim.AdamW(theirs.parameters(), lr=0.1, amsgrad=amsgrad)
    for step in range(4):
        a.zero_grad()
        b.zero_grad()
        for rank in range(world):
            torch.manual_seed(10 * step + rank)
            x = torch.randn(3, 4)
            (theirs(x).square().sum() / world).backward()
            if rank == dist.get_rank():
                mine = x
        ours(mine).square().sum().backward()
        if step == 2:  # one rank's part of a gradient is not finite
            if dist.get_rank() == 0:
                grad = next(iter(ours.parameters())).grad
                grad.to_local().fill_(math.nan)
            a.step()
            assert a.step_was_skipped
            continue
        a.step()
        b.step()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(
            p.full_tensor(), q.detach(), rtol=1e-4, atol=1e-5
        )
        state = a.state[p]["exp_avg"]
        assert state.placements == p.placements
        torch.testing.assert_close(
            state.full_tensor(), b.state[q]["exp_avg"], rtol=1e-4, atol=1e-5
        )
        assert int(a.state[p]["step"]) == 3
