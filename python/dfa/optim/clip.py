# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Torch's functions that clip gradients, for parameters that dfa manages.

Torch's skip parameters whose ``.grad`` is None, and gradients of a sharded
optimizer are in its buckets: they would do nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import torch
from torch import Tensor

if TYPE_CHECKING:
    from dfa.optim.distributed.adam import DistributedFusedAdam

#: Every sharded optimizer of this process that is alive.
alive: WeakSet[DistributedFusedAdam] = WeakSet()

#: Patches in force; torch's functions are rerouted while there is one.
_patches: list[ClipPatch] = []
_NAMES = ("clip_grad_norm_", "clip_grad_value_")
_MODULES = (torch.nn.utils, torch.nn.utils.clip_grad)


@torch.no_grad()
def clip_grad_value(
    optimizer: DistributedFusedAdam,
    clip_value: float,
    parameters: list[Tensor] | None = None,
) -> None:
    """Clamps reduced gradients to ``[-clip_value, clip_value]``, in place.

    Factors that are deferred (average, unscaling) count as applied. A gradient
    that is inf or nan still skips the step.

    Args:
        optimizer: whose gradients; its ranks all call this.
        clip_value: the bound, greater than 0.
        parameters: all by default.

    Raises:
        ValueError: ``clip_value`` is not greater than 0.
        RuntimeError: a parameter is not managed.
    """
    if not clip_value > 0:
        raise ValueError(f"expects a positive clip_value, but got {clip_value}")
    optimizer._touch()
    optimizer.grad_sync()
    chosen = optimizer._subset(parameters)
    factor = optimizer._factors.total(optimizer._base_factor())
    bound = torch.as_tensor(
        clip_value, dtype=torch.float64, device=optimizer.device
    ) / abs(factor)
    for member in optimizer._members if chosen is None else chosen:
        low, high = member.own_range()
        if high > low:
            grad = member.bucket.grad
            own = grad.narrow(0, member.start + low, high - low)
            limit = bound.to(own.dtype)
            torch.clamp(own, -limit, limit, out=own)
    optimizer._factors.clipped = True
    found = optimizer._found.clone()
    optimizer._remember(optimizer._engine.norm(None), True, ("l2", None))
    optimizer._found = found


def _owner(params: list[Tensor]) -> DistributedFusedAdam | None:
    """The optimizer that manages these parameters; None if torch does.

    What has no gradient of torch's, and is frozen, belongs to anyone.

    Raises:
        RuntimeError: it manages some of them only.
    """
    everyone = any(not patch.optimizers for patch in _patches)
    candidates = alive if everyone else _chosen()
    for optimizer in candidates:
        if getattr(optimizer, "_closed", False):
            continue
        managed = [param in optimizer._member_of for param in params]
        if not any(managed):
            continue
        for param, own in zip(params, managed, strict=True):
            if not own and param.grad is not None:
                raise RuntimeError(
                    "expects parameters of one dfa.DistributedFusedAdam to be "
                    "clipped apart from others"
                )
        return optimizer
    return None


def _chosen() -> WeakSet[DistributedFusedAdam]:
    chosen: WeakSet[DistributedFusedAdam] = WeakSet()
    for patch in _patches:
        chosen.update(patch.optimizers or ())
    return chosen


def _listed(parameters: Any) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        return [parameters]
    return list(parameters)


def _subset(
    optimizer: DistributedFusedAdam, params: list[Tensor]
) -> list[Tensor] | None:
    """The managed ones; None if these are all."""
    own = [param for param in params if param in optimizer._member_of]
    return None if len(set(own)) == len(optimizer._members) else own


def _wrap_norm(torchs: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(torchs)
    def clip_grad_norm_(
        parameters: Any,
        max_norm: float,
        norm_type: float = 2.0,
        error_if_nonfinite: bool = False,
        foreach: bool | None = None,
    ) -> Tensor:
        params = _listed(parameters)
        optimizer = _owner(params)
        if optimizer is None:
            return torchs(
                params, max_norm, norm_type, error_if_nonfinite, foreach
            )
        norm = optimizer.grad_norm(
            _subset(optimizer, params), norm_type, force=True
        )
        if error_if_nonfinite and not norm.isfinite():
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from "
                "`parameters` is non-finite, so it cannot be clipped"
            )
        return optimizer.clip_grad_norm(
            max_norm, _subset(optimizer, params), norm_type
        )

    return clip_grad_norm_


def _wrap_value(torchs: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(torchs)
    def clip_grad_value_(
        parameters: Any, clip_value: float, foreach: bool | None = None
    ) -> None:
        params = _listed(parameters)
        optimizer = _owner(params)
        if optimizer is None:
            return torchs(params, clip_value, foreach)
        return clip_grad_value(
            optimizer, float(clip_value), _subset(optimizer, params)
        )

    return clip_grad_value_


class ClipPatch:
    """What :func:`patch_clip_grad` did; ``undo()``, or leaving it, ends it."""

    def __init__(self, optimizers: WeakSet[DistributedFusedAdam]) -> None:
        """``optimizers`` is empty for all there are and will be."""
        self.optimizers = optimizers

    def undo(self) -> None:
        """Ends the rerouting; torch's functions return with the last one.

        A second call does nothing.
        """
        if self not in _patches:
            return
        _patches.remove(self)
        if _patches:
            return
        for module in _MODULES:
            for name in _NAMES:
                wrapped = getattr(module, name)
                torchs = getattr(wrapped, "_dfa_wraps", None)
                if torchs is not None:
                    setattr(module, name, torchs)

    def __enter__(self) -> ClipPatch:
        """The patch, which is in force already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """As ``undo``."""
        self.undo()


def patch_clip_grad(*optimizers: DistributedFusedAdam) -> ClipPatch:
    """Reroutes torch's ``clip_grad_norm_`` and ``clip_grad_value_``.

    Calls for parameters of the optimizers reach these, on all their ranks;
    other calls reach torch. Whoever has taken the function itself out of
    ``torch.nn.utils`` before (``from torch.nn.utils import clip_grad_norm_``)
    keeps torch's. Patching twice is the same as once.

    Args:
        optimizers: whose parameters; by default those of every
            ``DistributedFusedAdam`` there is and will be. They are kept by
            weak reference.

    Returns:
        What undoes it: a context manager with a method ``undo``.
    """
    patch = ClipPatch(WeakSet(optimizers))
    _patches.append(patch)
    wrappers = (_wrap_norm, _wrap_value)
    for module in _MODULES:
        for name, wrap in zip(_NAMES, wrappers, strict=True):
            torchs = getattr(module, name)
            if not hasattr(torchs, "_dfa_wraps"):
                wrapped: Any = wrap(torchs)
                wrapped._dfa_wraps = torchs
                setattr(module, name, wrapped)
    return patch
