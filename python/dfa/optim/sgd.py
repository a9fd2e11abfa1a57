# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FusedSGD."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dfa.optim.fused import FusedOptimizer, check_range, number
from dfa.optim.rules import SGD


class FusedSGD(FusedOptimizer):
    """SGD on one device, with the arguments of ``torch.optim.SGD``.

    Source: Sutskever et al. (ICML 2013), in torch's form. The operations are
    in docs/rules.md.

    Args:
        params: as for :class:`dfa.FusedAdamW`.
        lr: learning rate; a 0-dim tensor is read anew in each step.
        momentum: factor of the momentum buffer; 0: there is no buffer.
        dampening: what the gradient loses on its way into the buffer.
        weight_decay: L2 penalty.
        nesterov: Nesterov's momentum; needs momentum and no dampening.
        maximize: climb instead of descending.
        foreach: ignored; there is one implementation.
        differentiable: must be False.
        fused: ignored.
        storage: see :class:`FusedOptimizer`.
        state_dtype: dtype of the buffer, float32 by default.
        on_nonfinite: see :class:`FusedOptimizer`.

    Raises:
        ValueError: an argument is out of range, or a parameter cannot be
            updated.
        RuntimeError: ``differentiable`` is set.
    """

    rule = SGD

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
        storage: str = "param",
        state_dtype: torch.dtype | None = None,
        on_nonfinite: str = "skip",
    ) -> None:
        if differentiable:
            raise RuntimeError("dfa.FusedSGD is not differentiable")
        check_range(lr, "learning rate", 0.0, None)
        check_range(momentum, "momentum value", 0.0, None)
        check_range(weight_decay, "weight_decay value", 0.0, None)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "Nesterov momentum requires a momentum and zero dampening"
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": False,
            "fused": fused,
        }
        super().__init__(
            params,
            defaults,
            storage=storage,
            state_dtype=state_dtype,
            on_nonfinite=on_nonfinite,
        )

    def _modes(self, group: dict[str, Any]) -> frozenset[str]:
        modes = {m for m in ("nesterov", "maximize") if group.get(m)}
        if group["momentum"]:
            modes.add("momentum")
        return frozenset(modes)

    def _hyper(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return (
            number(group["lr"], "lr"),
            number(group["weight_decay"], "weight_decay"),
            number(group["momentum"], "momentum"),
            number(group["dampening"], "dampening"),
        )
