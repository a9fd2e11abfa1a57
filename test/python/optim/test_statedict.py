# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Saving and loading of optimizers on one device."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from dfa.optim import FusedAdamW
from dfa.optim.tensors import join_remainder, split_remainder
from torch.nn import Parameter


def trained(cls, count=3, **options):
    torch.manual_seed(5)
    params = [
        Parameter(
            torch.randn(4, 3, 2, 2).to(memory_format=torch.channels_last)
        ),
        Parameter(torch.randn(7)),
    ]
    opt = cls(params, lr=0.01, weight_decay=0.1, **options)
    step(params, opt, count)
    return params, opt


def step(params, opt, count=1, seed=9):
    torch.manual_seed(seed)
    for _ in range(count):
        for p in params:
            p.grad = torch.randn(p.shape)
        opt.step()


@pytest.mark.parametrize("amsgrad", [False, True])
def test_torch_reads_ours_and_we_read_torchs(amsgrad: bool) -> None:
    ours, a = trained(FusedAdamW, amsgrad=amsgrad)
    theirs, b = trained(torch.optim.AdamW, amsgrad=amsgrad)
    first, second = a.state_dict(), b.state_dict()
    for key, state in second["state"].items():
        assert state.keys() == first["state"][key].keys()
    a.load_state_dict(copy.deepcopy(second))
    b.load_state_dict(copy.deepcopy(first))
    step(ours, a, 2)
    step(theirs, b, 2)
    for p, q in zip(ours, theirs, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
    assert int(a.state[ours[0]]["step"]) == 5


def test_b28_torch_dict_with_fewer_keys() -> None:
    p = Parameter(torch.tensor([1.0]))
    torchs = torch.optim.AdamW([p], lr=0.01, weight_decay=0.1)
    values = []
    for grad in (0.5, 0.2):
        p.grad = torch.tensor([grad])
        torchs.step()
        values.append(p.item())
    saved = torchs.state_dict()
    for key in ("maximize", "amsgrad", "capturable"):
        del saved["param_groups"][0][key]
    q = Parameter(p.detach().clone())
    ours = FusedAdamW(
        [
            q,
        ],
        lr=0.5,
    )
    ours.load_state_dict(saved)
    q.grad = torch.tensor([-0.3])
    ours.step()
    values.append(q.item())
    assert values == pytest.approx(
        [0.9890000002, 0.9790252484, 0.9750906898], rel=2e-6
    )


def test_b26_states_keep_dtype_and_bits() -> None:
    for dtype, state in [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.bfloat16),
    ]:
        p = Parameter(torch.tensor([1.0], dtype=dtype))
        opt = FusedAdamW([p], state_dtype=state)
        saved = opt.state_dict()
        saved["state"] = {
            0: {
                "step": torch.tensor(7.0),
                "exp_avg": torch.tensor([0.123456789]).to(state),
                "exp_avg_sq": torch.tensor([3.3e-7]).to(state),
            }
        }
        opt.load_state_dict(saved)
        buffer = io.BytesIO()
        torch.save(opt.state_dict(), buffer)
        buffer.seek(0)
        again = Parameter(p.detach().clone())
        other = FusedAdamW([again], state_dtype=state)
        other.load_state_dict(torch.load(buffer, weights_only=True))
        row = other.state[again]
        assert row["exp_avg"].dtype == state
        if state == torch.float32:
            bits = [
                row[name].view(torch.int32).item()
                for name in ("exp_avg", "exp_avg_sq")
            ]
            assert bits == [0x3DFCD6EA, 0x34B12ADB]
        for param, each in ((p, opt), (again, other)):
            param.grad = torch.full_like(param, 0.25)
            each.step()
        assert torch.equal(p, again)


def test_b30_remainders_are_exact() -> None:
    low = torch.arange(65536, dtype=torch.int64)
    for high in (0x0000, 0x3F7F, 0x3F80, 0x3F81, 0x7F7F, 0xBF80):
        bits = (high << 16) | low
        exact = torch.where(bits >= 2**31, bits - 2**32, bits).to(torch.int32)
        exact = exact.view(torch.float32)
        param, rest = split_remainder(exact)
        back = join_remainder(param, rest)
        assert torch.equal(back.view(torch.int32), exact.view(torch.int32))
    param, _ = split_remainder(torch.tensor([1.00390625]))
    assert param.view(torch.int16).item() == 0x3F81


@pytest.mark.parametrize("bits", [0x3F808000, 0x3F807FFF, 0x3F818000])
def test_b30_the_compiled_step_uses_the_same_rounding(bits: int) -> None:
    exact = torch.tensor([bits], dtype=torch.int32).view(torch.float32)
    p = Parameter(torch.zeros(1, dtype=torch.bfloat16))
    opt = FusedAdamW([p], lr=0.0, weight_decay=0.0, storage="remainder")
    saved = opt.state_dict()
    zero = torch.zeros(1)
    saved["state"] = {
        0: {"step": 1.0, "exp_avg": zero, "exp_avg_sq": zero, "master": exact}
    }
    opt.load_state_dict(saved)
    before = p.detach().clone()
    p.grad = torch.ones(1, dtype=torch.bfloat16)
    opt.step()
    assert torch.equal(p, before)
    assert torch.equal(opt.state_dict()["state"][0]["master"], exact)


@pytest.mark.parametrize("storage", ["master", "remainder"])
def test_exact_copies_make_bf16_train_as_f32(storage: str) -> None:
    start = torch.randn(301).bfloat16()
    p = Parameter(start.clone())
    q = Parameter(start.float())
    opt = FusedAdamW([p], lr=1e-3, storage=storage)
    ref = torch.optim.AdamW([q], lr=1e-3)
    for _ in range(20):
        g = torch.randn(301).bfloat16()
        p.grad, q.grad = g, g.float()
        opt.step()
        ref.step()
    master = opt.state_dict()["state"][0]["master"]
    torch.testing.assert_close(master, q.detach(), rtol=2e-6, atol=2e-7)
    if storage == "master":
        assert torch.equal(p, master.bfloat16())
    # Storage may change between saving and loading.
    other = "remainder" if storage == "master" else "master"
    r = Parameter(torch.zeros_like(p))
    moved = FusedAdamW([r], lr=1e-3, storage=other)
    moved.load_state_dict(opt.state_dict())
    for param, each in ((p, opt), (r, moved)):
        param.grad = torch.full_like(param, 0.5)
        each.step()
    a, b = (o.state_dict()["state"][0]["master"] for o in (opt, moved))
    assert torch.equal(a, b)


def test_loading_is_all_or_nothing() -> None:
    params, opt = trained(FusedAdamW)
    before = copy.deepcopy(opt.state_dict())
    for change in ("groups", "count", "shape", "keys"):
        bad = copy.deepcopy(before)
        bad["param_groups"][0]["lr"] = 99.0
        if change == "groups":
            bad["param_groups"].append(bad["param_groups"][0])
        elif change == "count":
            bad["param_groups"][0]["params"].pop()
        elif change == "shape":
            bad["state"][1]["exp_avg"] = torch.zeros(3)
        else:
            del bad["state"]
        with pytest.raises(ValueError, match="expects"):
            opt.load_state_dict(bad)
        after = opt.state_dict()
        assert after["param_groups"][0]["lr"] == 0.01
        for key, row in before["state"].items():
            for name, value in row.items():
                assert torch.equal(value, after["state"][key][name])
    del params


def test_loading_keeps_tensors_where_they_are() -> None:
    params, opt = trained(FusedAdamW, capturable=True)
    saved = copy.deepcopy(opt.state_dict())
    rate = opt.param_groups[0]["lr"]
    states = {
        name: value.data_ptr() for name, value in opt.state[params[0]].items()
    }
    step(params, opt, 2)
    opt.load_state_dict(saved)
    assert opt.param_groups[0]["lr"] is rate
    for name, value in opt.state[params[0]].items():
        assert value.data_ptr() == states[name]
    assert int(opt.state[params[0]]["step"]) == 3


def test_pickle_and_deepcopy() -> None:
    params, opt = trained(FusedAdamW)
    other = pickle.loads(pickle.dumps(opt))
    copied = copy.deepcopy(opt)
    step(params, opt)
    for each in (other, copied):
        twins = each.param_groups[0]["params"]
        step(twins, each)
        for p, q in zip(params, twins, strict=True):
            assert torch.equal(p, q)
