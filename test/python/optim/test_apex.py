# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""apex's module name, constructor and errors; torch's contract on one rank."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import sys

import pytest
import torch
from dfa.optim import DistributedFusedAdam, FusedAdamW
from dfa.optim.apex import install_as_apex
from torch.nn import Parameter

APEX_ARGUMENTS = """
params lr bias_correction betas eps adam_w_mode weight_decay amsgrad dtype
grad_sync_dtype param_sync_dtype device process_group distributed_process_group
redundant_process_group average_grad_sync overlap_grad_sync overlap_param_sync
bucket_cap_mb pipeline_size contiguous_param_buffer contiguous_grad_buffer
store_params store_param_remainders with_scaled_states nccl_ub capturable
"""


def make(params, **options):
    return DistributedFusedAdam(params, **{"bucket_cap_mb": 1e-3, **options})


def backward(params, value=1.0):
    sum((p * value).sum() for p in params).backward()


@pytest.fixture
def apex():
    install_as_apex()
    yield importlib.import_module(
        "apex.contrib.optimizers.distributed_fused_adam"
    )
    for name in [n for n in sys.modules if n.split(".")[0] in ("apex", "nemo")]:
        del sys.modules[name]


def test_install_as_apex(apex) -> None:
    from apex.contrib.optimizers import DistributedFusedAdam as Short

    assert Short is apex.DistributedFusedAdam
    assert issubclass(Short, DistributedFusedAdam)
    p, q = Parameter(torch.ones(3)), Parameter(torch.ones(3))
    opt = Short([p, q], lr=0.1, bucket_cap_mb=1e-3)
    backward([p])
    opt.step()
    assert int(opt.state[q]["step"]) == 1  # apex's rule: a zero gradient
    with apex._disable_pre_forward_hook(p):
        pass
    target = torch.zeros(3)
    apex._multi_tensor_copy([torch.ones(3)], [target])
    assert target.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(TypeError, match="_init_param_state"):

        class Megatrons(Short):
            def _init_param_state(self, param):
                pass


def test_constructor_is_apexs() -> None:
    names = list(inspect.signature(DistributedFusedAdam).parameters)
    assert names[:27] == APEX_ARGUMENTS.split()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"dtype": torch.float64}, ValueError),
        ({"grad_sync_dtype": torch.int8}, ValueError),
        ({"param_sync_dtype": torch.uint8}, ValueError),
        ({"param_sync_dtype": torch.int64}, ValueError),
        ({"store_param_remainders": True}, RuntimeError),
        (
            {
                "store_param_remainders": True,
                "store_params": False,
                "dtype": torch.bfloat16,
            },
            RuntimeError,
        ),
        ({"store_param_remainders": True, "store_params": False}, RuntimeError),
        ({"with_scaled_states": True}, RuntimeError),
        ({"nccl_ub": True}, RuntimeError),
        ({"bucket_cap_mb": -1.0}, ValueError),
        ({"lr": -1.0}, ValueError),
        ({"betas": (1.0, 0.9)}, ValueError),
        ({"missing_grad": "none"}, ValueError),
        ({"on_nonfinite": "raise"}, ValueError),
    ],
)
def test_arguments_that_are_refused(options, error) -> None:
    with pytest.raises(error):
        make([Parameter(torch.ones(3))], **options)


@pytest.mark.parametrize("adam_w_mode", [True, False])
@pytest.mark.parametrize("bias_correction", [True, False])
def test_b01_modes(adam_w_mode: bool, bias_correction: bool) -> None:
    p = Parameter(torch.tensor([0.5, -1.25, 2.0, -0.75, 1.5, -3.0]))
    g = torch.tensor([0.1, -0.2, 0.05, 0.3, -0.4, 0.25])
    opt = make(
        [p],
        lr=0.02,
        betas=(0.9, 0.99),
        weight_decay=0.25,
        adam_w_mode=adam_w_mode,
        bias_correction=bias_correction,
    )
    for _ in range(3):
        opt.zero_grad()
        backward([p], g)
        opt.step()
    decoupled = [0.4328369435, -1.1716430967, 1.9104492619]
    classic = [0.4400442181, -1.1900180493, 1.9400167523]
    want = decoupled if adam_w_mode else classic
    near = p[:3].tolist() == pytest.approx(want, rel=2e-6)
    assert near == bias_correction


def test_init_params_orders_buckets() -> None:
    params = [Parameter(torch.full((40,), float(i))) for i in range(4)]
    opt = make(params, lr=0.1)
    opt.init_params_bucket([params[2], params[0]])
    opt.init_params(params[1:2])
    first = opt._member_of[params[2]].bucket
    assert opt._member_of[params[0]].bucket is first
    assert opt._member_of[params[1]].bucket is not first
    for index, p in enumerate(params):
        assert p.tolist() == [float(index)] * 40
    with pytest.raises(ValueError, match="dtype"):
        opt.init_params(params, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="this optimizer"):
        opt.init_params([Parameter(torch.ones(1))])
    backward(params)
    opt.step()
    for index, p in enumerate(params):
        assert p[0].item() == pytest.approx(index - 0.1, rel=1e-5)
    with pytest.raises(RuntimeError, match="before the first"):
        opt.init_params()


def test_model_loaded_after_construction_is_respected() -> None:
    net = torch.nn.Linear(3, 2)
    opt = make(net.parameters(), lr=0.0, param_sync_dtype=torch.bfloat16)
    other = torch.nn.Linear(3, 2)
    net.load_state_dict(other.state_dict())
    net(torch.ones(3)).sum().backward()
    opt.step()
    saved = opt.state_dict()["state"]
    for index, p in enumerate(other.parameters()):
        assert torch.equal(saved[index]["param"], p.detach())
    with torch.no_grad():
        net.weight.fill_(0.5)  # a later edit refreshes the exact copy
    opt.step()
    assert (opt.state_dict()["state"][0]["param"] == 0.5).all()


def test_contiguous_gradients() -> None:
    params = [Parameter(torch.ones(4)), Parameter(torch.ones(2, 2))]
    opt = make(params, lr=0.1, contiguous_grad_buffer=True)
    opt.zero_grad()
    views = [opt.grad_buffer_view(p) for p in params]
    for p, view in zip(params, views, strict=True):
        assert p.grad.data_ptr() == view.data_ptr()
    backward(params, 3.0)
    assert all((view == 3.0).all() for view in views)
    opt.step()
    opt.zero_grad()
    assert all((view == 0.0).all() for view in views)
    with pytest.raises(RuntimeError, match="contiguous_grad_buffer"):
        make([Parameter(torch.ones(1))]).grad_buffer_view(params[0])


def test_b08_gradients_do_not_pile_up() -> None:
    for set_to_none in (False, True):
        p = Parameter(torch.ones(1))
        opt = make(
            [p],
            lr=0.01,
            betas=(0.9, 0.99),
            eps=0.1,
            contiguous_grad_buffer=True,
        )
        for _ in range(3):
            opt.zero_grad(set_to_none=set_to_none)
            backward([p], 0.2)
            opt.step()
        row = opt.state_dict()["state"][0]
        assert row["exp_avg"].item() == pytest.approx(0.0542, rel=2e-5)
        assert row["exp_avg_sq"].item() == pytest.approx(0.00118804, rel=2e-5)
        assert p.item() == pytest.approx(0.98, rel=2e-6)


def test_float64_parameters_with_float32_state() -> None:
    p = Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))
    opt = make([p], lr=0.5)
    backward([p])
    opt.step()
    assert p.dtype == torch.float64
    assert p.tolist() == pytest.approx([0.5, 1.5], rel=1e-6)


def test_torchs_contract() -> None:
    params = [Parameter(torch.ones(3)), Parameter(torch.ones(2))]
    opt = make([{"params": params[:1], "name": "a"}, {"params": params[1:]}])
    assert isinstance(opt, torch.optim.Optimizer)
    assert opt.state
    assert opt.param_groups[0]["name"] == "a"
    assert list(opt.parameters()) == params
    assert opt.parameter(1, 0) is params[1]
    assert "grad_scaler" in inspect.signature(opt.step).parameters
    for broken in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            broken(opt)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        opt, max_lr=[0.1, 0.2], total_steps=4
    )

    def closure():
        opt.zero_grad()
        backward(params)
        return torch.tensor(7.0)

    for _ in range(3):
        assert opt.step(closure).item() == 7.0
        schedule.step()
    opt.load_state_dict(opt.state_dict())
    assert int(opt.state[params[0]]["step"]) == 3
    p = params[0]
    loss = (p * p).sum()
    opt.step()
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        loss.backward()


def test_untouched_state_is_cheap_and_loads() -> None:
    params = [Parameter(torch.ones(3))]
    opt = make(params)
    saved = opt.state_dict()
    assert saved["format"] == 2
    opt.load_state_dict(saved)
    assert not opt._engine.has_updater


def test_torch_dict_and_bad_dicts() -> None:
    p, q = Parameter(torch.ones(1)), Parameter(torch.ones(1))
    torchs = torch.optim.AdamW([q], lr=0.01, weight_decay=0.1)
    for grad in (0.5, 0.2):
        q.grad = torch.tensor([grad])
        torchs.step()
    opt = make([p])
    with torch.no_grad():
        p.copy_(q)
    opt.load_state_dict(torchs.state_dict())
    backward([p], -0.3)
    opt.step()
    assert p.item() == pytest.approx(0.9750906898, rel=2e-6)
    good = opt.state_dict()
    for key, value in (("format", 7), ("param_groups", []), ("state", None)):
        bad = {**good, key: value}
        if value is None:
            del bad[key]
        with pytest.raises(ValueError, match="expects"):
            opt.load_state_dict(bad)
    named = {**good, "state": {"w": good["state"][0], "step": 3}}
    named["param_groups"] = [{**good["param_groups"][0], "params": ["w"]}]
    opt.load_state_dict(named)
    assert torch.equal(
        opt.state_dict()["state"][0]["exp_avg"], good["state"][0]["exp_avg"]
    )
    with pytest.raises(ValueError, match="state_dict_format"):
        opt.state_dict(state_dict_format=1)


def test_padding_is_warned_of() -> None:
    params = [Parameter(torch.ones(1)) for _ in range(5)]
    with pytest.warns(UserWarning, match="Consider decreasing"):
        make(params)


def test_steps_without_gradients_do_nothing() -> None:
    p = Parameter(torch.ones(3))
    opt = make([p], weight_decay=0.5)
    opt.step()
    assert p.tolist() == [1.0, 1.0, 1.0]
    assert int(opt.state[p]["step"]) == 0
    opt.close()


@pytest.mark.filterwarnings("ignore:optimizer contains")
@pytest.mark.parametrize("cls", [DistributedFusedAdam, FusedAdamW])
def test_b15_tied_parameters_are_updated_once(cls) -> None:
    p = Parameter(torch.ones(2))
    with pytest.raises(ValueError, match="twice"):
        cls([p, p])
    net = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2, bias=False)})
    net["b"] = torch.nn.Linear(2, 2, bias=False)
    net["b"].weight = net["a"].weight
    opt = cls(net.parameters(), lr=0.1, weight_decay=0.0)
    before = net["a"].weight.detach().clone()
    net["a"].weight.grad = torch.ones(2, 2)
    opt.step()
    torch.testing.assert_close(net["b"].weight.detach(), before - 0.1)


def test_a_failed_load_changes_nothing() -> None:
    p = Parameter(torch.ones(4))
    opt = make([p], lr=0.1)
    backward([p])
    opt.step()
    saved = opt.state_dict()
    saved["param_groups"][0]["lr"] = 0.5
    saved["state"]["step"] = "many"
    before = p.detach().clone()
    with pytest.raises(ValueError, match="many"):
        opt.load_state_dict(saved)
    assert opt.param_groups[0]["lr"] == 0.1
    assert torch.equal(p.detach(), before)
    saved["state"]["step"] = 1
    opt.load_state_dict(saved)
    assert opt.param_groups[0]["lr"] == 0.5
