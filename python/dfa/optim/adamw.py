# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FusedAdamW."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dfa.optim.fused import FusedOptimizer, check_range, number
from dfa.optim.rules import ADAMW


def check_adam(
    lr: Any, betas: tuple[Any, Any], eps: float, weight_decay: float
) -> None:
    """Refuses Adam's hyper-parameters out of range (``ValueError``)."""
    check_range(lr, "learning rate", 0.0, None)
    check_range(eps, "epsilon value", 0.0, None)
    for index, beta in enumerate(betas):
        check_range(beta, f"beta parameter at index {index}", 0.0, 1.0)
    check_range(weight_decay, "weight_decay value", 0.0, None)


class FusedAdamW(FusedOptimizer):
    """AdamW on one device, with the arguments of ``torch.optim.AdamW``.

    Source: Loshchilov & Hutter, arXiv:1711.05101; amsgrad: Reddi et al.,
    arXiv:1904.09237. The operations are in docs/rules.md.

    Args:
        params: parameters, groups or named parameters; float64, float32,
            float16 or bfloat16, any dense memory format, one device.
        lr: learning rate; a 0-dim tensor is read anew in each step.
        betas: decay rates of the moments.
        eps: added to the root of the second moment.
        weight_decay: decoupled weight decay.
        amsgrad: divide by the largest second moment so far.
        maximize: climb instead of descending.
        foreach: ignored; there is one implementation.
        capturable: keep ``lr`` in a tensor on the parameters' device.
        differentiable: must be False.
        fused: ignored.
        storage: see :class:`FusedOptimizer`.
        state_dtype: dtype of the moments, float32 by default (torch's have
            the parameter's dtype).
        on_nonfinite: see :class:`FusedOptimizer`.

    Raises:
        ValueError: an argument is out of range, or a parameter cannot be
            updated (dtype, layout, several devices).
        RuntimeError: ``differentiable`` is set.
    """

    rule = ADAMW

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        storage: str = "param",
        state_dtype: torch.dtype | None = None,
        on_nonfinite: str = "skip",
    ) -> None:
        if differentiable:
            raise RuntimeError("dfa.FusedAdamW is not differentiable")
        check_adam(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": False,
            "fused": fused,
            "decoupled_weight_decay": True,
        }
        super().__init__(
            params,
            defaults,
            storage=storage,
            state_dtype=state_dtype,
            on_nonfinite=on_nonfinite,
        )

    def _modes(self, group: dict[str, Any]) -> frozenset[str]:
        return frozenset(
            mode for mode in ("amsgrad", "maximize") if group.get(mode)
        )

    def _hyper(self, group: dict[str, Any]) -> tuple[Any, ...]:
        beta1, beta2 = group["betas"]
        return (
            number(group["lr"], "lr"),
            number(beta1, "beta1"),
            number(beta2, "beta2"),
            number(group["eps"], "eps"),
            number(group["weight_decay"], "weight_decay"),
        )
