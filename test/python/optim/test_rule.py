# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dfa.rule: what a rule may say, and the services its classes have."""

from __future__ import annotations

import inspect
import math
import pickle

import dfa
import numpy as np
import pytest
import rule_cases as cases
import torch
from dfa import FusedAdamW, passes, rule
from dfa.optim.steptext import ClassSpec, update_step
from rule_cases import Adamw, Momentum
from torch.nn import Parameter


def error(function) -> dfa.CompileError:
    with pytest.raises(dfa.CompileError) as caught:
        dfa.rule(function)
    return caught.value


def check(function, message: str, line: int) -> None:
    """The error says so, and points at a line counted from the function's."""
    found = error(function)
    assert message in str(found)
    first = found.diagnostics[0]
    assert first.file == __file__
    assert first.line == function.__code__.co_firstlineno + line


# === What is refused =========================================================


def test_python_control_flow_on_traced_values() -> None:
    def if_(grad, param, *, lr=0.1):
        if grad > 0.0:
            param = param - lr
        return param

    def while_(grad, param, *, lr=0.1):
        while lr:
            param = param - grad
        return param

    def and_(grad, param, *, lr=0.1):
        return rule.where(grad > 0.0 and param > 0.0, grad, param)

    def chained(grad, param, *, lr=0.1):
        return rule.where(0.0 < grad < 1.0, grad, param)

    for function in (if_, while_, and_, chained):
        check(function, "dfa.rule.where", 1)


def test_operations_that_rules_have_not() -> None:
    def numbers(grad, param, *, lr=0.1):
        return param - lr * math.sqrt(grad)

    def numpys(grad, param, *, lr=0.1):
        return param - lr * np.tanh(grad)

    def torchs(grad, param, *, lr=0.1):
        return param - lr * torch.sqrt(grad)

    def method(grad, param, *, lr=0.1):
        return param - lr * grad.sqrt()

    def modulo(grad, param, *, lr=0.1, step):
        return param - lr * (step % 2) * grad

    def array(grad, param, *, lr=0.1):
        return param - np.ones(3) * grad

    def elements_power(grad, param, *, lr=0.1, step):
        return param**step

    def tensor(grad, param, *, lr=0.1):
        return param - grad * "2"

    def condition(grad, param, *, lr=0.1):
        return param - (grad > 0.0)

    def no_condition(grad, param, *, lr=0.1):
        return rule.where(grad, param, 0.0)

    for function in (
        numbers,
        numpys,
        torchs,
        method,
        modulo,
        array,
        elements_power,
        tensor,
        condition,
        no_condition,
    ):
        check(function, "", 1)
    assert "dfa.rule" in str(error(numpys))


def test_columns_are_given_where_python_knows_them() -> None:
    def bad(grad, param, *, lr=0.1):
        return param - lr * grad.mean()

    column = error(bad).diagnostics[0].column
    line = inspect.getsource(bad).splitlines()[1]
    assert column in (0, 4 + line.index("grad") + 1, line.index("grad") + 1)


def test_wrong_returns_and_signatures() -> None:
    def one_too_few(grad, param, average, *, lr=0.1):
        return param - lr * grad

    def none(grad, param, *, lr=0.1):
        pass

    def truth(grad, param, *, lr=0.1):
        return grad > 0.0

    def no_grad(param, *, lr=0.1):
        return param

    def no_lr(grad, param):
        return param

    def no_default(grad, param, *, lr):
        return param

    def default(grad, param, lr=0.1):
        return param

    def everything(grad, param, *states, lr=0.1):
        return param

    def taken(grad, param, master, *, lr=0.1):
        return param, master

    def kind(grad, param, *, lr=0.1, table=[1]):  # noqa: B006
        return param

    check(one_too_few, "2 values (param, average), but returned 1", 0)
    check(none, "'param', but returned None", 0)
    check(truth, "a number for 'param'", 0)
    check(no_grad, "'grad' and 'param'", 0)
    check(no_lr, "'lr'", 0)
    check(no_default, "'lr' expects a default", 0)
    check(default, "come after '*'", 0)
    check(everything, "named parameters", 0)
    check(taken, "'master' is reserved", 0)
    check(kind, "'table' expects a number", 0)


# === What is written =========================================================


def test_scalars_of_the_step_are_derived_once() -> None:
    made = Adamw.rule
    modes = made.modes_of({})
    spec = ClassSpec(made, "f32", "f32", "none", ("f32", "f32"), modes)
    text = update_step([spec])
    derive, apply = text.split("derive {")[1].split("apply {")
    assert derive.count("dfa.powi") == 2
    assert "f64" not in apply
    assert apply.count("arith.divf") == 1  # no division by a correction
    ir = passes(text, "builtin.module(dfa-to-kernels)")
    assert ir.count("dfa.launch_elements") == 1


def test_text_of_a_class_depends_on_its_static_values() -> None:
    traced = Momentum.rule
    plain = traced.trace(traced.modes_of({}))
    nesterov = traced.trace(traced.modes_of({"nesterov": True}))
    assert plain != nesterov
    assert traced.trace(traced.modes_of({"nesterov": False})) is plain


# === Services ================================================================


def train(params, opt, steps=5, scale=1.0):
    for index in range(steps):
        torch.manual_seed(index)
        opt.zero_grad()
        for p in params:
            p.grad = (torch.randn(p.shape) * scale).to(p.dtype)
        opt.step()


def params(dtype=torch.float32):
    torch.manual_seed(3)
    made = [torch.randn(5, 3, 2, 2), torch.randn(7), torch.zeros(0)]
    made[0] = made[0].contiguous(memory_format=torch.channels_last)
    return [Parameter(p.to(dtype)) for p in made]


@pytest.mark.parametrize(
    ("dtype", "storage", "state"),
    [
        (torch.float32, "param", torch.float32),
        (torch.float32, "param", torch.bfloat16),
        (torch.bfloat16, "param", torch.float32),
        (torch.bfloat16, "master", torch.float32),
        (torch.bfloat16, "remainder", torch.float32),
        (torch.float16, "master", torch.float16),
        (torch.float64, "param", torch.float32),
    ],
)
def test_same_bits_as_the_named_rule(dtype, storage, state) -> None:
    """AdamW, written as docs/rules.md has it, in every storage format."""
    ours, theirs = params(dtype), params(dtype)
    common = {"lr": 0.01, "weight_decay": 0.1, "betas": (0.9, 0.99)}
    options = {"storage": storage, "state_dtype": state}
    a = Adamw(ours, **common, **options)
    b = FusedAdamW(theirs, **common, **options)
    train(ours, a)
    train(theirs, b)
    for p, q in zip(ours, theirs, strict=True):
        assert torch.equal(p, q)
        assert p.stride() == q.stride()
        for name, value in b.state[q].items():
            assert torch.equal(a.state[p][name], value), name


def test_class_is_torchs_optimizer() -> None:
    assert issubclass(Adamw, torch.optim.Optimizer)
    assert Adamw.__name__ == "Adamw"
    assert Adamw.__module__ == "rule_cases"
    assert "AdamW" in Adamw.__doc__
    names = list(inspect.signature(Adamw).parameters)
    assert names[:4] == ["params", "lr", "betas", "eps"]
    p, q = Parameter(torch.ones(2)), Parameter(torch.ones(2))
    opt = Adamw(
        [{"params": [p], "lr": 0.5}, {"params": [q]}], 0.25, weight_decay=0.0
    )
    assert [group["lr"] for group in opt.param_groups] == [0.5, 0.25]
    for wrong in ({"momentum": 0.9}, {"storage": "none"}, {"lr": math.inf}):
        with pytest.raises((TypeError, ValueError)):
            Adamw([p], **wrong)
    with pytest.raises(ValueError, match="2 values of betas"):
        Adamw([p], betas=(0.9,))
    p.grad, q.grad = torch.ones(2), torch.ones(2)

    def closure():
        return torch.tensor(3.0)

    assert opt.step(closure).item() == 3.0
    assert p[0].item() == pytest.approx(0.5, abs=1e-5)
    assert q[0].item() == pytest.approx(0.75, abs=1e-5)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda _: 0.5)
    opt.step()
    schedule.step()
    assert p[0].item() == pytest.approx(0.25, abs=1e-5)


def test_checkpoints_and_pickles() -> None:
    ours, fresh = params(), params()
    opt = Adamw(ours, lr=0.01)
    train(ours, opt, 3)
    saved = opt.state_dict()
    assert set(saved["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    with torch.no_grad():
        for p, q in zip(fresh, ours, strict=True):
            p.copy_(q)
    other = Adamw(fresh, lr=1.0)
    other.load_state_dict(saved)
    assert other.param_groups[0]["lr"] == 0.01
    again = pickle.loads(pickle.dumps(opt))
    copies = [p for group in again.param_groups for p in group["params"]]
    for made, own in ((other, fresh), (again, copies), (opt, ours)):
        train(own, made, 2)
    for p, q, r in zip(ours, fresh, copies, strict=True):
        assert torch.equal(p, q)
        assert torch.equal(p, r)


def test_static_values_differ_by_group_and_are_live() -> None:
    made = [Parameter(torch.zeros(1)) for _ in range(2)]
    opt = Momentum(
        [{"params": made[:1], "nesterov": True}, {"params": made[1:]}],
        lr=1.0,
        beta=0.5,
    )

    def step():
        for p in made:
            p.grad = torch.ones(1)
        opt.step()

    step()
    assert [p.item() for p in made] == [-1.5, -1.0]
    opt.param_groups[1]["nesterov"] = True
    opt.param_groups[0]["lr"] = 0.5
    step()  # average 1.5: 1 + 0.75 in a step
    assert [p.item() for p in made] == [-1.5 - 0.875, -1.0 - 1.75]


def test_scaler_clipping_and_skipping() -> None:
    p = Parameter(torch.zeros(4))
    opt = Momentum([p], lr=1.0, beta=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale((p * 3.0).sum()).backward()
    scaler.unscale_(opt)
    norm = torch.nn.utils.clip_grad_norm_([p], 3.0)
    assert norm.item() == 6.0
    scaler.step(opt)
    scaler.update()
    assert p[0].item() == pytest.approx(-1.5, rel=1e-6)
    opt.zero_grad()
    scaler.scale((p * math.inf).sum()).backward()
    scaler.step(opt)
    scaler.update()
    assert scaler.get_scale() == 4.0
    assert p[0].item() == pytest.approx(-1.5, rel=1e-6)
    assert int(opt.state[p]["step"]) == 1


def test_sharded_on_one_rank() -> None:
    cases.sharded({})


@pytest.mark.parametrize(
    ("world", "name"), [(2, "plain"), (2, "remainder"), (4, "replicas")]
)
def test_sharded(ranks, world, name) -> None:
    ranks(world, cases.sharded, {"case": name})


def test_sharded_checkpoint_on_another_number_of_ranks(ranks) -> None:
    saved = ranks(2, cases.save)
    ranks(4, cases.load, saved[0])
    cases.load(saved[0])
    cases.load(saved[1])
