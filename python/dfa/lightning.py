# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Precision plugins for Lightning's Trainer that know dfa's optimizers.

Lightning's own unscale after they clip, refuse to clip for optimizers that
unscale in ``step``, or clip by torch's functions, which see no gradient of a
sharded optimizer. These do, in this order: unscale, clip, step. Needs the
package ``lightning``; other optimizers behave as with Lightning's plugins.

Under several ranks the optimizer itself reduces gradients, so the model must
not be under DDP: give every process ``SingleDeviceStrategy``, and a sampler of
its own part of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch.plugins.precision import HalfPrecision as _Half
from lightning.pytorch.plugins.precision import MixedPrecision as _Mixed
from lightning.pytorch.plugins.precision import Precision as _Plain
from lightning.pytorch.utilities import GradClipAlgorithmType

from dfa.optim.clip import clip_grad_value
from dfa.optim.distributed.adam import DistributedFusedAdam
from dfa.optim.fused import FusedOptimizer

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule

__all__ = ["HalfPrecision", "MixedPrecision", "Precision", "precision_plugin"]


def _inner(optimizer: Any) -> Any:
    """The optimizer inside Lightning's wrapper."""
    from lightning.pytorch.core.optimizer import LightningOptimizer

    wrapped = isinstance(optimizer, LightningOptimizer)
    return optimizer.optimizer if wrapped else optimizer


class _Clips:
    """Clipping by the optimizer that has the gradients."""

    def clip_gradients(
        self,
        optimizer: Any,
        clip_val: float = 0.0,
        gradient_clip_algorithm: Any = GradClipAlgorithmType.NORM,
    ) -> None:
        """Clips by norm or value; Lightning calls it after the backward."""
        inner = _inner(optimizer)
        if clip_val is None or clip_val <= 0:
            return
        if isinstance(inner, FusedOptimizer):
            # Its gradients are torch's, unscaled by the plugin before.
            _Plain.clip_gradients(
                self, inner, clip_val, gradient_clip_algorithm
            )
        elif not isinstance(inner, DistributedFusedAdam):
            super().clip_gradients(optimizer, clip_val, gradient_clip_algorithm)
        elif gradient_clip_algorithm == GradClipAlgorithmType.VALUE:
            clip_grad_value(inner, clip_val)
        else:
            inner.clip_grad_norm(clip_val)


class Precision(_Clips, _Plain):
    """``Trainer(plugins=...)`` for training in float32."""


class HalfPrecision(_Clips, _Half):
    """For models in bfloat16 or float16 throughout."""


class MixedPrecision(_Clips, _Mixed):
    """For autocast, with a gradient scaler where it is float16.

    Args:
        precision: ``"16-mixed"`` or ``"bf16-mixed"``.
        device: autocast's device, ``"cuda"`` or ``"cpu"``.
        scaler: by default torch's for the device, with ``"16-mixed"``.

    Raises:
        ValueError: another precision.
    """

    def optimizer_step(
        self,
        optimizer: Any,
        model: LightningModule,
        closure: Callable[[], Any],
        **options: Any,
    ) -> Any:
        """Forward and backward, then unscaling, clipping and the step."""
        inner = _inner(optimizer)
        ours = isinstance(inner, (DistributedFusedAdam, FusedOptimizer))
        if self.scaler is None or not ours:
            return super().optimizer_step(
                optimizer, model=model, closure=closure, **options
            )
        loss = closure()
        # A training step that returns None leaves nothing to unscale.
        if loss is None and model.automatic_optimization:
            self._after_closure(model, optimizer)
            return loss
        if isinstance(inner, DistributedFusedAdam):
            inner.unscale_grads(grad_scaler=self.scaler)
        else:
            self.scaler.unscale_(inner)
        self._after_closure(model, optimizer)
        result = self.scaler.step(inner, **options)
        self.scaler.update()
        return loss if result is None else result


def precision_plugin(
    precision: str = "32-true",
    device: str = "cuda",
    scaler: torch.amp.GradScaler | None = None,
) -> Precision | HalfPrecision | MixedPrecision:
    """The plugin for one of Lightning's words.

    Args:
        precision: ``"32-true"``, ``"bf16-true"``, ``"16-true"``,
            ``"bf16-mixed"`` or ``"16-mixed"``.
        device: autocast's device.
        scaler: of ``"16-mixed"``; torch's by default.

    Raises:
        ValueError: another word.
    """
    if precision == "32-true":
        return Precision()
    if precision in ("bf16-true", "16-true"):
        return HalfPrecision(precision)
    if precision in ("bf16-mixed", "16-mixed"):
        return MixedPrecision(precision, device, scaler)
    raise ValueError(
        "expects precision 32-true, bf16-true, 16-true, bf16-mixed or "
        f"16-mixed, but got '{precision}'"
    )
