# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dfa.nemo against a stand-in that calls what NeMo calls, in its order."""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from types import ModuleType

import dfa
import nemo_cases as cases
import pytest
import torch
from dfa import nemo
from torch.nn import Parameter


@pytest.fixture
def installed():
    dfa.install_as_apex()
    yield
    for name in list(sys.modules):
        if name.split(".")[0] in ("apex", "nemo"):
            del sys.modules[name]


def make(params, **options):
    options = {"lr": 0.1, "eps": 1.0, "bucket_cap_mb": 1e-3, **options}
    return nemo.MegatronDistributedFusedAdam(params, **options)


def test_found_where_nemo_looks(installed) -> None:
    # What is imported by that name, whether or not NeMo's package is there.
    for name in ("nemo", "nemo.core", "nemo.core.optim"):
        package = ModuleType(name)
        package.__path__ = []
        sys.modules.setdefault(name, package)
    module = importlib.import_module("nemo.core.optim.distributed_adam")
    cls = module.MegatronDistributedFusedAdam
    assert cls is nemo.MegatronDistributedFusedAdam
    apex = importlib.import_module(
        "apex.contrib.optimizers.distributed_fused_adam"
    )
    assert issubclass(cls, apex.DistributedFusedAdam)
    assert nemo._multi_tensor_copy is apex._multi_tensor_copy
    assert nemo._disable_pre_forward_hook is apex._disable_pre_forward_hook
    names = list(inspect.signature(cls).parameters)
    assert names[:4] == [
        "params",
        "disable_distributed_parameters",
        "distribute_within_nodes",
        "lock_timeout",
    ]


def test_a_registry_that_exists_is_changed(installed) -> None:
    registry = ModuleType("nemo.core.optim.optimizers")
    registry.AVAILABLE_OPTIMIZERS = {"distributed_fused_adam": None, "sgd": 1}
    sys.modules[registry.__name__] = registry
    nemo.install()
    assert {
        "distributed_fused_adam": nemo.MegatronDistributedFusedAdam,
        "sgd": 1,
    } == registry.AVAILABLE_OPTIMIZERS


def test_overriding_internals_names_the_adapter() -> None:
    for base in (nemo.MegatronDistributedFusedAdam,):
        with pytest.raises(TypeError, match=r"nemo\.Megatron"):
            type("Own", (base,), {"_make_post_backward_hook": lambda *_: None})


def test_words_for_dtypes_and_bad_arguments() -> None:
    p = Parameter(torch.ones(2, dtype=torch.bfloat16))
    opt = make([p], dtype="fp32", grad_sync_dtype="bf16-mixed")
    assert opt.dtype == torch.float32
    assert opt.grad_sync_dtype == torch.bfloat16
    with pytest.raises(ValueError, match="precision"):
        make([p], dtype="fp12")
    with pytest.raises(RuntimeError, match="exclude"):
        make(
            [p],
            disable_distributed_parameters=True,
            distribute_within_nodes=True,
        )


def test_nemos_scaler() -> None:
    cases.scaled(cases.Scaler())


def test_nemos_scaler_skips() -> None:
    p = Parameter(torch.ones(3))
    opt = make([p])
    scaler = cases.Scaler()
    scaler.scale((p * math.inf).sum()).backward()
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
    assert scaler.get_scale() == 512.0
    assert (p == 1.0).all()


def test_main_grad() -> None:
    params = [Parameter(torch.ones(3)), Parameter(torch.ones(2))]
    opt = make(params, contiguous_grad_buffer=True, overlap_grad_sync=False)
    opt.zero_grad()
    for p in params:
        assert p.main_grad.data_ptr() == opt.grad_buffer_view(p).data_ptr()
        p.main_grad.fill_(1.0)  # as a fused weight gradient does
    opt.step()
    assert [p[0].item() for p in params] == pytest.approx([0.95, 0.95])
    opt.zero_grad()
    assert all((p.main_grad == 0.0).all() for p in params)


@pytest.mark.parametrize("contiguous", [False, True])
def test_attributes_of_parameters(contiguous) -> None:
    cases.attributes(contiguous)


def test_ranks(ranks) -> None:
    ranks(2, cases.scaled, cases.Scaler())
    ranks(2, cases.attributes, False)


@pytest.mark.parametrize("case", ["alone", "nodes", "model_parallel"])
def test_groups(ranks, case) -> None:
    ranks(4, cases.groups, case)
