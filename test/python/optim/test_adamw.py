# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FusedAdamW against torch in float64, and against numbers worked out by hand.

Names such as b01 are those of public bug reports that the case restates.
"""

from __future__ import annotations

import math

import pytest
import torch
from dfa.optim import FusedAdamW, FusedLAMB, FusedLion, FusedSGD
from torch.nn import Parameter


def param(values, dtype=torch.float32) -> Parameter:
    return Parameter(torch.tensor(values, dtype=dtype))


def close(actual, expected, rtol=2e-6, atol=2e-7) -> None:
    if not isinstance(expected, torch.Tensor):
        expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(
        actual.detach().double(), expected.double(), rtol=rtol, atol=atol
    )


# === Numbers =================================================================


def test_b01_decoupled_decay() -> None:
    p = param([0.5, -1.25, 2.0, -0.75, 1.5, -3.0])
    g = torch.tensor([0.1, -0.2, 0.05, 0.3, -0.4, 0.25])
    opt = FusedAdamW(
        [p], lr=0.02, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.25
    )
    for _ in range(3):
        p.grad = g.clone()
        opt.step()
    close(
        p,
        [
            0.4328369435,
            -1.1716430967,
            1.9104492619,
            -0.7985066543,
            1.5373128110,
            -3.0149251226,
        ],
    )
    close(opt.state[p]["exp_avg"][0], 0.0271, rtol=2e-5)
    close(opt.state[p]["exp_avg_sq"][0], 2.9701e-04, rtol=2e-5)


def test_b01_negative_decay_is_refused() -> None:
    with pytest.raises(ValueError, match=r"weight_decay value: -0\.25"):
        FusedAdamW([param([1.0])], weight_decay=-0.25)


@pytest.mark.parametrize("channels_last", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_b03_gradients_in_another_order(channels_last) -> None:
    def order(tensor, last):
        form = torch.channels_last if last else torch.contiguous_format
        return tensor.contiguous(memory_format=form)

    index = torch.arange(24).reshape(2, 3, 2, 2)
    sign = torch.tensor([1.0, -1.0, 1.0]).reshape(1, 3, 1, 1)
    p = Parameter(order(0.1 * index, channels_last[0]))
    opt = FusedAdamW([p], lr=0.1, eps=0.1, weight_decay=0.0)
    p.grad = order(0.01 * (index + 1) * sign, channels_last[1])
    strides = p.stride()
    opt.step()
    close(p[0, 0, 0, 0], -0.0090909091)
    close(p[0, 1, 0, 1], 0.5375)
    close(p[1, 2, 1, 0], 2.1303030303)
    close(p[1, 1, 1, 1], 1.9666666667)
    close(p.double().sum(), 27.2210154038)
    close(opt.state[p]["exp_avg"][0, 1, 0, 1], -0.006, rtol=2e-5)
    assert p.stride() == strides


def steps(make, dtype, count, shape=(257,), lr=1e-2):
    """Parameters after some steps on seeded gradients."""
    torch.manual_seed(3)
    start = torch.randn(shape, dtype=torch.float64).float()
    p = Parameter(start.to(dtype))
    opt = make([p], lr)
    for _ in range(count):
        p.grad = torch.randn(shape, dtype=torch.float64).float().to(dtype)
        opt.step()
    return p.detach().double()


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_error_against_float64(amsgrad: bool, maximize: bool) -> None:
    options = {
        "weight_decay": 0.1,
        "amsgrad": amsgrad,
        "maximize": maximize,
        "betas": (0.9, 0.99),
    }

    def torchs(params, lr, **extra):
        return torch.optim.AdamW(params, lr=lr, **options, **extra)

    def ours(params, lr):
        return FusedAdamW(params, lr=lr, **options)

    shape = (4099,)
    exact = steps(torchs, torch.float64, 30, shape)
    fused = steps(
        lambda p, lr: torchs(p, lr, fused=True), torch.float32, 30, shape
    )
    foreach = steps(
        lambda p, lr: torchs(p, lr, foreach=True), torch.float32, 30, shape
    )
    own = steps(ours, torch.float32, 30, shape)
    largest = (own - exact).abs().max()
    assert largest <= 1.1 * (fused - exact).abs().max()
    rms = (own - exact).square().mean().sqrt()
    assert rms <= (foreach - exact).square().mean().sqrt()


def test_one_step_within_two_ulp() -> None:
    def ours(params, lr):
        return FusedAdamW(params, lr=lr)

    def exact(params, lr):
        return torch.optim.AdamW(params, lr=lr)

    a = steps(ours, torch.float32, 1, (5003,))
    b = steps(exact, torch.float64, 1, (5003,))
    bound = 2 * torch.finfo(torch.float32).eps * b.abs().clamp(min=1e-2)
    assert ((a - b).abs() <= bound).all()


def test_b16_one_rank_any_size() -> None:
    params = [Parameter(torch.ones(n)) for n in (7, 13, 1, 129)]
    opt = FusedAdamW(params, lr=0.01, weight_decay=0.1)
    for p in params:
        p.grad = torch.full_like(p, 0.5)
    opt.step()
    for p in params:
        close(p, torch.full_like(p, 0.9890000002).double())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_b31_no_underflow_of_eps(dtype: torch.dtype) -> None:
    p = param([0.5], dtype)
    opt = FusedAdamW([p], eps=1e-8, weight_decay=0.0)
    p.grad = torch.zeros_like(p)
    opt.step()
    assert p.item() == 0.5
    assert opt.state[p]["exp_avg"].item() == 0
    assert opt.state[p]["exp_avg_sq"].item() == 0


def test_b41_eps_reaches_the_device() -> None:
    p = param([1.0])
    opt = FusedAdamW(
        [p], lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=1e-7
    )
    p.grad = torch.zeros_like(p)
    opt.step()
    assert p.item() == 1.0
    opt.param_groups[0]["eps"] = float("nan")
    with pytest.raises(ValueError, match="finite eps"):
        opt.step()


# === Parameters that are empty, absent, frozen ===============================


@pytest.mark.parametrize("empties", [(0, 1), (1, 0), (1000, 0)])
def test_b20_empty_parameters(empties: tuple[int, int]) -> None:
    p = param([1.0, 2.0, 3.0])
    before = [Parameter(torch.empty(0)) for _ in range(empties[0])]
    after = [Parameter(torch.empty(3, 0)) for _ in range(empties[1])]
    opt = FusedAdamW([*before, p, *after], lr=0.1, weight_decay=0.0)
    for each in (*before, p, *after):
        each.grad = torch.full_like(each, 0.1)
    opt.step()
    close(p, [0.9000000100, 1.9000000100, 2.9000000100])
    assert int(opt.state[p]["step"]) == 1
    opt.zero_grad()
    opt.load_state_dict(opt.state_dict())
    assert int(opt.state[p]["step"]) == 1


def test_b20_only_empty_parameters() -> None:
    p = Parameter(torch.empty(0))
    opt = FusedAdamW([p])
    p.grad = torch.empty(0)
    opt.step()
    opt.load_state_dict(opt.state_dict())


def test_b22_missing_gradients_have_their_own_step() -> None:
    a, b = param([1.0]), param([1.0])
    opt = FusedAdamW([a, b], lr=0.01, betas=(0.9, 0.99), weight_decay=0.1)
    values = []
    for grad in (0.5, None, 0.2):
        a.grad = torch.tensor([0.5])
        b.grad = None if grad is None else torch.tensor([grad])
        opt.step()
        values.append(b.item())
    assert values[0] == values[1] == pytest.approx(0.9890000002, rel=2e-6)
    assert values[2] == pytest.approx(0.9790104852, rel=2e-6)
    assert int(opt.state[a]["step"]) == 3
    assert int(opt.state[b]["step"]) == 2


def test_b22_unfrozen_later() -> None:
    a, b = param([1.0]), param([1.0])
    b.requires_grad_(False)
    opt = FusedAdamW([a, b], lr=0.01, betas=(0.9, 0.99), weight_decay=0.1)
    for step in range(3):
        if step == 2:
            b.requires_grad_(True)
            b.grad = torch.tensor([0.2])
        a.grad = torch.tensor([0.5])
        opt.step()
        assert (b.item() == 1.0) == (step < 2)
        assert bool(opt.state.get(b)) == (step == 2)
    assert int(opt.state[a]["step"]) == 3
    assert int(opt.state[b]["step"]) == 1


def test_b13_non_finite_changes_nothing() -> None:
    a, b = param([1.0, 2.0]), param([3.0])
    opt = FusedAdamW([a, b])
    a.grad, b.grad = torch.tensor([1.0, math.inf]), torch.tensor([1.0])
    opt.step()
    assert a.tolist() == [1.0, 2.0]
    assert b.tolist() == [3.0]
    assert opt.step_was_skipped
    assert opt.skipped_steps == 1
    assert int(opt.state[a]["step"]) == 0
    a.grad = torch.tensor([1e20, 1e20])
    opt.step()
    assert not opt.step_was_skipped
    assert int(opt.state[a]["step"]) == 1


def test_ten_skips_in_a_row_warn_once() -> None:
    a = param([1.0])
    opt = FusedAdamW([a])
    a.grad = torch.tensor([math.nan])
    with pytest.warns(RuntimeWarning, match="10 steps in a row") as seen:
        for _ in range(30):
            opt.step()
    assert len(seen) == 1
    assert opt.skipped_steps == 30


def test_propagate_is_torchs_behaviour() -> None:
    a = param([1.0])
    opt = FusedAdamW([a], on_nonfinite="propagate")
    a.grad = torch.tensor([math.nan])
    opt.step()
    assert math.isnan(a.item())
    assert int(opt.state[a]["step"]) == 1


# === Groups, learning rates ==================================================


@pytest.mark.parametrize("as_tensor", [False, True])
def test_b23_schedulers_set_and_do_not_compound(as_tensor: bool) -> None:
    lr = torch.tensor(0.8) if as_tensor else 0.8
    a, b = param([1.0]), param([1.0])
    opt = FusedAdamW(
        [{"params": [a], "lr": lr}, {"params": [b], "lr": lr}],
        capturable=not as_tensor,
    )
    first, second = (group["lr"] for group in opt.param_groups)
    assert isinstance(first, torch.Tensor)
    assert first is not second
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda _: 0.25)
    for _ in range(5):
        a.grad, b.grad = torch.ones(1), torch.ones(1)
        opt.step()
        schedule.step()
        for group, kept in zip(opt.param_groups, (first, second), strict=True):
            assert group["lr"] is kept
            assert float(group["lr"]) == pytest.approx(0.2)
            assert float(group["initial_lr"]) == pytest.approx(0.8)
    assert [float(v) for v in schedule.base_lrs] == pytest.approx([0.8, 0.8])
    first.fill_(0.0)
    before = (a.item(), b.item())
    opt.step()
    assert a.item() == before[0]
    assert b.item() != before[1]


def test_hyper_parameters_are_live() -> None:
    a, b = param([1.0, -2.0]), param([1.0, -2.0])
    ours, torchs = FusedAdamW([a]), torch.optim.AdamW([b])
    for step in range(6):
        for opt in (ours, torchs):
            group = opt.param_groups[0]
            group["lr"] = 0.1 / (step + 1)
            group["betas"] = (0.8 + 0.02 * step, 0.99)
            group["weight_decay"] = 0.01 * step
        a.grad = torch.tensor([0.3, -0.1]) * (step + 1)
        b.grad = a.grad.clone()
        ours.step()
        torchs.step()
        close(a, b)


def test_a_tensor_is_read_where_it_is() -> None:
    """The way of learning rates on a GPU, which the host never looks at."""
    p = param([1.0])
    opt = FusedAdamW([p], weight_decay=0.0)
    rate = torch.tensor(0.5)
    row = opt._hyper(opt.param_groups[0])
    opt._hyper = lambda _group: (rate, *row[1:])
    opt._live = [0]
    values = []
    for value in (0.5, 0.25, 0.0):
        rate.fill_(value)
        p.grad = torch.ones(1)
        opt.step()
        values.append(p.item())
    assert values == pytest.approx([0.5, 0.25, 0.25], rel=1e-5)


def test_b25_bits_do_not_depend_on_neighbours() -> None:
    one = Parameter(torch.ones(5))
    many = [Parameter(torch.ones(5)) for _ in range(5)]
    opts = [FusedAdamW([one], lr=1e-3), FusedAdamW(many, lr=1e-3)]
    opts.append(FusedAdamW([{"params": [p]} for p in many], lr=1e-3))
    for _ in range(40):
        for p in (one, *many):
            p.grad = torch.full((5,), 0.2)
        for opt in opts[:2]:
            opt.step()
    for p in many:
        assert torch.equal(p, one)


def test_add_param_group_keeps_step_counts() -> None:
    a, b = param([1.0]), param([1.0])
    opt = FusedAdamW([a], lr=0.1)
    for _ in range(3):
        a.grad = torch.ones(1)
        opt.step()
    opt.add_param_group({"params": [b], "lr": 0.5})
    a.grad, b.grad = torch.ones(1), torch.ones(1)
    opt.step()
    assert int(opt.state[a]["step"]) == 4
    assert int(opt.state[b]["step"]) == 1
    close(b, [1 - 0.5 - 0.5 * 0.01], rtol=1e-5)


def test_moved_parameters_are_found() -> None:
    a = Parameter(torch.randn(2, 3, 4, 4))
    b = Parameter(a.detach().clone())
    ours, torchs = FusedAdamW([a], lr=0.1), torch.optim.AdamW([b], lr=0.1)
    for step in range(4):
        if step == 1:
            a.data = a.data.clone()
        if step == 2:
            a.data = a.data.contiguous(memory_format=torch.channels_last)
        a.grad = torch.randn(2, 3, 4, 4)
        b.grad = a.grad.clone()
        ours.step()
        torchs.step()
        close(a, b)
    assert a.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (torch.ones(3, dtype=torch.complex64), "complex64"),
        (torch.ones(4, 4)[:, ::2], "strides"),
    ],
)
def test_parameters_that_cannot_be_updated(bad, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FusedAdamW([Parameter(bad)])


def test_sparse_gradients_are_refused() -> None:
    p = Parameter(torch.ones(3))
    opt = FusedAdamW([p])
    p.grad = torch.sparse_coo_tensor([[0]], [1.0], (3,))
    with pytest.raises(RuntimeError, match="sparse"):
        opt.step()


def test_version_counters_show_the_write() -> None:
    p = Parameter(torch.ones(3))
    opt = FusedAdamW([p])
    loss = (p * p).sum()
    p.grad = torch.ones(3)
    opt.step()
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        loss.backward()


def test_closure_and_hooks() -> None:
    p = Parameter(torch.ones(3))
    opt = FusedAdamW([p])
    seen = []
    opt.register_step_pre_hook(lambda *_: seen.append("pre"))
    opt.register_step_post_hook(lambda *_: seen.append("post"))

    def closure():
        opt.zero_grad()
        loss = p.sum()
        loss.backward()
        return loss

    assert opt.step(closure).item() == 3.0
    assert seen == ["pre", "post"]
    with pytest.raises(RuntimeError, match="differentiable"):
        FusedAdamW([p], differentiable=True)


# === Other rules =============================================================


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"momentum": 0.9, "dampening": 0.5, "maximize": True},
    ],
)
def test_sgd_against_torch(options) -> None:
    a = Parameter(torch.randn(37))
    b = Parameter(a.detach().clone().double())
    ours = FusedSGD([a], lr=0.1, **options)
    torchs = torch.optim.SGD([b], lr=0.1, **options)
    for _ in range(5):
        a.grad = torch.randn(37)
        b.grad = a.grad.double()
        ours.step()
        torchs.step()
    close(a, b, rtol=5e-6, atol=1e-6)


def test_lion_by_hand() -> None:
    p = Parameter(torch.tensor([1.0, -1.0, 0.5]))
    want = p.detach().double()
    m = torch.zeros(3, dtype=torch.float64)
    opt = FusedLion([p], lr=0.01, weight_decay=0.1)
    for _ in range(5):
        g = torch.randn(3)
        p.grad = g
        opt.step()
        u = (0.9 * m + 0.1 * g.double()).sign()
        m = 0.99 * m + 0.01 * g.double()
        want = want - 0.01 * (u + 0.1 * want)
    close(p, want, rtol=5e-6)


def test_lamb_by_hand() -> None:
    p = Parameter(torch.randn(50))
    want = p.detach().double()
    m, v = torch.zeros_like(want), torch.zeros_like(want)
    opt = FusedLAMB([p], lr=0.01, weight_decay=0.1, max_grad_norm=1.0)
    for t in range(1, 5):
        p.grad = torch.randn(50)
        g = p.grad.double()
        g = g * min(1.0, 1.0 / (g.norm().item() + 1e-6))
        opt.step()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        u = (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-6)
        u = u + 0.1 * want
        want = want - 0.01 * want.norm() / u.norm() * u
    close(p, want, rtol=2e-5, atol=1e-6)
