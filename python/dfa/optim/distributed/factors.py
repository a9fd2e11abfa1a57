# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Deferred factors, the flag, and loss scaling of a sharded optimizer.

Everything is a 0-dim tensor on the device; nothing here waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from dfa.optim.distributed.adam import DistributedFusedAdam


def clip_factor(norm: Tensor, max_norm: float | Tensor) -> Tensor:
    """min(1, max_norm / (norm + 1e-6)); 1 where the norm is inf or nan."""
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    return torch.where(norm.isfinite(), factor, torch.ones_like(factor))


def _stages() -> Any:
    from torch.amp.grad_scaler import OptState

    return OptState


class Factors:
    """What gradients are still to be multiplied with, since ``zero_grad``."""

    def __init__(self, device: torch.device) -> None:
        """The product is 1, and nothing was unscaled."""
        self.device = device
        self.reset()

    def reset(self) -> None:
        """Forgets all factors."""
        self.pending: Tensor | None = None  # float64
        self.unscaled = False
        self.clipped = False

    def multiply(self, factor: Tensor) -> None:
        """Defers one more factor."""
        factor = factor.detach().to(self.device, torch.float64).reshape(())
        if self.pending is None:
            self.pending = factor.clone()
        else:
            self.pending = self.pending * factor

    def total(self, base: float) -> Tensor | float:
        """The whole factor of a stored gradient, with the constant part."""
        return base if self.pending is None else self.pending * base


def _record(optimizer: DistributedFusedAdam, scaler: Any) -> dict[str, Any]:
    return scaler._per_optimizer_states[optimizer._scaler_key]


def _inverse(scaler: Any) -> Tensor:
    if scaler._scale is None:
        raise RuntimeError(
            "the gradient scaler has no scale yet: scale a loss first"
        )
    return scaler._scale.double().reciprocal()


def unscale(optimizer: DistributedFusedAdam, inv_scale: Tensor) -> Tensor:
    """Defers ``inv_scale``; the agreed flag as a float32 tensor.

    Raises:
        RuntimeError: gradients were unscaled, or clipped, before.
    """
    factors = optimizer._factors
    if factors.unscaled:
        raise RuntimeError(
            "gradients were unscaled before, since the last zero_grad or step"
        )
    if factors.clipped:
        raise RuntimeError(
            "gradients were clipped before they were unscaled; call "
            "unscale_grads first"
        )
    flag = optimizer._flag()
    factors.multiply(torch.as_tensor(inv_scale))
    factors.unscaled = True
    return flag


def unscale_with(optimizer: DistributedFusedAdam, scaler: Any) -> Tensor:
    """``unscale`` by a torch scaler, which then knows about it."""
    if not scaler.is_enabled():
        return optimizer._flag()
    stages = _stages()
    record = _record(optimizer, scaler)
    if record["stage"] is stages.UNSCALED:
        raise RuntimeError(
            "unscale_grads() was called, but the scaler has unscaled this "
            "optimizer since the last update()"
        )
    if record["stage"] is stages.STEPPED:
        raise RuntimeError("unscale_grads() is being called after step()")
    flag = unscale(optimizer, _inverse(scaler))
    record["found_inf_per_device"] = {flag.device: flag.clone()}
    record["stage"] = stages.UNSCALED
    return flag


def before_step(optimizer: DistributedFusedAdam, scaler: Any) -> bool:
    """Settles who unscales; whether there is a scaler in use.

    Raises:
        RuntimeError: torch has unscaled some of the gradients only, or one of
            several ranks cannot know whether it has.
    """
    factors = optimizer._factors
    if scaler is None:
        return _from_attributes(optimizer)
    if not scaler.is_enabled():
        return False
    stages = _stages()
    record = _record(optimizer, scaler)
    if record["stage"] is stages.READY:
        unscale_with(optimizer, scaler)
        return True
    if factors.unscaled:
        return True  # by unscale_grads
    found = record["found_inf_per_device"]
    if not found:
        # torch found no gradient to scale: they were in our buckets already.
        flag = unscale(optimizer, _inverse(scaler))
        record["found_inf_per_device"] = {flag.device: flag.clone()}
        return True
    if optimizer._sync.consumed:
        raise RuntimeError(
            "scaler.unscale_() has unscaled some gradients in place, but "
            "others were taken by the optimizer before; use "
            "optimizer.unscale_grads(grad_scaler=scaler)"
        )
    flag = optimizer._flag()
    for tensor in found.values():
        tensor.copy_(torch.maximum(tensor, flag.to(tensor.device)))
    factors.unscaled = True
    return True


def _from_attributes(optimizer: DistributedFusedAdam) -> bool:
    """The way of steps whose signature hides ``grad_scaler``."""
    found = getattr(optimizer, "found_inf", None)
    if found is None:
        return optimizer._factors.unscaled
    if optimizer._factors.unscaled:
        return True
    if optimizer._mesh.size > 1:
        raise RuntimeError(
            "the scaler's flag is one rank's own: wrap step so that "
            "grad_scaler stays in its signature, or call "
            "unscale_grads(grad_scaler=scaler) before"
        )
    scale = getattr(optimizer, "grad_scale", None)
    if scale is not None:
        optimizer._factors.multiply(scale.double().reciprocal())
    if isinstance(found, Tensor):
        found.copy_(torch.maximum(found, optimizer._flag().to(found.device)))
    optimizer._factors.unscaled = True
    return True
