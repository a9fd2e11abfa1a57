# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every rank of the tests of dfa.nemo runs."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
import torch.distributed as dist
from dfa.nemo import MegatronDistributedFusedAdam
from torch.nn import Parameter


class Scaler(torch.amp.GradScaler):
    """The protocol of NeMo's scaler: it asks the optimizer to unscale.

    The optimizer gets torch's three positional arguments; the flag is agreed
    by the caller's ranks; ``step`` is called without the scaler.
    """

    def __init__(self) -> None:
        super().__init__("cpu", init_scale=1024.0)

    def _unscale_grads_(self, optimizer: Any, *args: Any) -> Any:
        assert optimizer._custom_amp_unscale_grads
        assert len(args) == 3
        return optimizer.unscale_grads(*args)

    def _maybe_opt_step(
        self, optimizer: Any, state: Any, *args: Any, **kwargs: Any
    ) -> Any:
        assert not kwargs
        flags = sum(
            flag.item() for flag in state["found_inf_per_device"].values()
        )
        return None if flags else optimizer.step(*args)


def make(params: Any, **options: Any) -> MegatronDistributedFusedAdam:
    options = {"lr": 0.1, "eps": 1.0, "bucket_cap_mb": 1e-4, **options}
    return MegatronDistributedFusedAdam(params, **options)


def scaled(scaler: Scaler) -> None:
    """Scale, unscale, NeMo's two calls that clip, step."""
    params = [Parameter(torch.zeros(40)), Parameter(torch.zeros(3))]
    opt = make(params)
    assert not opt._step_supports_amp_scaling
    for step in range(2):
        opt.zero_grad()
        scaler.scale(3.0 * params[0].sum() + 4.0 * params[1].sum()).backward()
        scaler.unscale_(opt)
        assert opt._grad_scale.item() == pytest.approx(1 / 1024)
        # The norm is of the parameters given, and all are clipped by it.
        norm = opt.grad_norm(parameters=params[1:])
        assert norm.item() == pytest.approx(48.0**0.5, rel=1e-6)
        again = opt.clip_grad_norm(1.0)
        assert again.item() == norm.item()
        scaler.step(opt)
        scaler.update()
        assert int(opt.state[params[0]]["step"]) == step + 1
        if step == 0:
            small = 3.0 / 48.0**0.5
            want = -0.1 * small / (small + 1.0)
            assert params[0][0].item() == pytest.approx(want, rel=1e-5)
    with pytest.raises(ValueError, match="norm_type"):
        opt.grad_norm(norm_type=1.0)
    opt.close()


def attributes(contiguous: bool) -> None:
    """Attributes of parameters, in bf16 training with overlap."""
    exact, late, apart, plain = (
        Parameter(torch.ones(n, dtype=torch.bfloat16)) for n in (5, 3, 2, 9)
    )
    exact._with_fp32_optimizer = True
    late._disable_greedy_grad_copy = True
    apart._disable_overlap_grad_sync = True
    params = [exact, late, apart, plain]
    opt = make(
        params,
        dtype=torch.bfloat16,
        contiguous_grad_buffer=contiguous,
        lr=2.0**-12,
    )
    spec = opt._member_of[exact].spec
    assert (spec.grad, spec.master, spec.states) == ("f32", "f32", ("f32",) * 2)
    assert opt._member_of[plain].spec.grad == "bf16"
    opt.zero_grad()
    sum(p.sum() for p in params).backward()
    if not contiguous:
        assert late.grad is not None
        assert plain.grad is None
        assert apart.grad is None
        # Tied embeddings are added over pipeline stages at this point.
        late.grad.mul_(3.0)
        opt.try_grad_sync(params)
        assert late.grad is not None
    norm = opt.grad_norm()
    weight = 1.0 if contiguous else 9.0
    true = (5 + 3 * weight + 2 + 9) ** 0.5
    assert norm.item() == pytest.approx(true, rel=1e-2)
    for _ in range(4):
        opt.step()
    # Four steps of 2^-13 are half a unit of bf16 below 1, kept by the master.
    row = opt.state_dict()["state"][0]
    assert row["param"].dtype == torch.float32
    assert row["param"][0].item() < 1.0
    opt.close()


def groups(case: str) -> None:
    """Where states are, and over which ranks norms are."""
    rank = dist.get_rank()
    options: dict[str, Any] = {}
    if case == "alone":
        options["disable_distributed_parameters"] = True
    elif case == "nodes":
        os.environ["LOCAL_WORLD_SIZE"] = "2"
        options["distribute_within_nodes"] = True
    else:
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        options["process_group"] = pairs[rank // 2]
    p = Parameter(torch.zeros(70))
    opt = make([p], **options)
    sizes = {"alone": (1, 4), "nodes": (2, 2), "model_parallel": (2, 1)}[case]
    assert (opt.distributed_size, opt.redundant_size) == sizes
    # Ranks 0 and 1 hold one part of a model, 2 and 3 another.
    value = 1.0 + rank // 2 if case == "model_parallel" else 1.0
    (value * p.sum()).backward()
    square = 70 * (1.0 + 4.0) if case == "model_parallel" else 70.0
    norm = opt.clip_grad_norm(1.0)
    assert norm.item() == pytest.approx(square**0.5, rel=1e-6)
    opt.step()
    small = value / square**0.5
    want = -0.1 * small / (small + 1.0)
    torch.testing.assert_close(p.detach(), torch.full_like(p, want))
    opt.close()
    os.environ.pop("LOCAL_WORLD_SIZE", None)
