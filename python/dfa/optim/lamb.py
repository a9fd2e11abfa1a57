# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FusedLAMB."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from dfa.optim.adamw import check_adam
from dfa.optim.fused import FusedOptimizer, check_range, number
from dfa.optim.inplace import InPlaceEngine
from dfa.optim.rules import LAMB


class FusedLAMB(FusedOptimizer):
    """LAMB on one device: Adam's direction, scaled by a trust ratio.

    Source: You et al., arXiv:1904.00962. The operations are in docs/rules.md.

    Args:
        params: as for :class:`dfa.FusedAdamW`.
        lr: learning rate; a 0-dim tensor is read anew in each step.
        bias_correction: divide the moments by 1 - beta^t.
        betas: decay rates of the moments.
        eps: added to the root of the second moment.
        weight_decay: added to the direction, before the trust ratio.
        max_grad_norm: bound of the global gradient norm; 0 or None: none.
        maximize: climb instead of descending.
        storage: see :class:`FusedOptimizer`.
        on_nonfinite: see :class:`FusedOptimizer`.

    Raises:
        ValueError: an argument is out of range, or a parameter cannot be
            updated.
    """

    rule = LAMB

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        *,
        max_grad_norm: float | None = 1.0,
        maximize: bool = False,
        storage: str = "param",
        on_nonfinite: str = "skip",
    ) -> None:
        check_adam(lr, betas, eps, weight_decay)
        if max_grad_norm is not None:
            check_range(max_grad_norm, "max_grad_norm value", 0.0, None)
        defaults = {
            "lr": lr,
            "bias_correction": bias_correction,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        self.max_grad_norm = max_grad_norm
        self._reads_norm = bool(max_grad_norm)
        super().__init__(
            params, defaults, storage=storage, on_nonfinite=on_nonfinite
        )

    def _modes(self, group: dict[str, Any]) -> frozenset[str]:
        modes = {"maximize"} if group.get("maximize") else set()
        if not group.get("bias_correction", True):
            modes.add("no_bias_correction")
        return frozenset(modes)

    def _hyper(self, group: dict[str, Any]) -> tuple[Any, ...]:
        beta1, beta2 = group["betas"]
        return (
            number(group["lr"], "lr"),
            number(beta1, "beta1"),
            number(beta2, "beta2"),
            number(group["eps"], "eps"),
            number(group["weight_decay"], "weight_decay"),
        )

    def _take_scale(self, engine: InPlaceEngine) -> None:
        super()._take_scale(engine)
        if not self.max_grad_norm:
            return
        norm = engine.norm().field("norm") * engine.factor.double().abs()
        clip = (self.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
        # A step with such a norm is skipped or propagated, never scaled.
        clip = clip.where(norm.isfinite(), 1.0)
        engine.factor.mul_(clip.float())
