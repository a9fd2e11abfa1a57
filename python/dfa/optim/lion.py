# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FusedLion."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dfa.optim.fused import FusedOptimizer, check_range, number
from dfa.optim.rules import LION


class FusedLion(FusedOptimizer):
    """Lion on one device: the sign of an interpolated momentum.

    Source: Chen et al., arXiv:2302.06675. The operations are in docs/rules.md.

    Args:
        params: as for :class:`dfa.FusedAdamW`.
        lr: learning rate; a 0-dim tensor is read anew in each step.
        betas: the interpolation's rate, and the momentum's.
        weight_decay: decoupled weight decay.
        maximize: climb instead of descending.
        storage: see :class:`FusedOptimizer`.
        state_dtype: dtype of the momentum, float32 by default.
        on_nonfinite: see :class:`FusedOptimizer`.

    Raises:
        ValueError: an argument is out of range, or a parameter cannot be
            updated.
    """

    rule = LION

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        storage: str = "param",
        state_dtype: torch.dtype | None = None,
        on_nonfinite: str = "skip",
    ) -> None:
        check_range(lr, "learning rate", 0.0, None)
        for index, beta in enumerate(betas):
            check_range(beta, f"beta parameter at index {index}", 0.0, 1.0)
        check_range(weight_decay, "weight_decay value", 0.0, None)
        defaults = {
            "lr": lr,
            "betas": betas,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(
            params,
            defaults,
            storage=storage,
            state_dtype=state_dtype,
            on_nonfinite=on_nonfinite,
        )

    def _modes(self, group: dict[str, Any]) -> frozenset[str]:
        return frozenset({"maximize"} if group.get("maximize") else ())

    def _hyper(self, group: dict[str, Any]) -> tuple[Any, ...]:
        beta1, beta2 = group["betas"]
        return (
            number(group["lr"], "lr"),
            number(beta1, "beta1"),
            number(beta2, "beta2"),
            number(group["weight_decay"], "weight_decay"),
        )
