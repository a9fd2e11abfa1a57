# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of DistributedFusedAdam: sync, norms, clipping, unscaling."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from dfa.optim.distributed import factors
from dfa.optim.distributed.buckets import Member


def _kind(norm_type: float | str) -> tuple[str, float | None]:
    value = math.inf if norm_type == "inf" else float(norm_type)
    if value == math.inf:
        return "inf", None
    if value in (1.0, 2.0):
        return f"l{int(value)}", None
    if not value > 0:
        raise ValueError(f"expects a positive norm_type, but got {norm_type}")
    return "lp", value


class GradientMethods:
    """The part of DistributedFusedAdam that deals with gradients."""

    #: (norm of stored gradients, flag, whether it is of all, kind) or None.
    _cached: tuple[Tensor, Tensor, bool, Any] | None = None

    def _prescale(self) -> float:
        """A power of two that keeps sums of float16 gradients in range."""
        narrow = self._storage.grad_sync_dtype == torch.float16
        if not narrow or self.contiguous_grad_buffer:
            return 1.0
        return 2.0 ** -math.ceil(math.log2(self._mesh.size))

    def _base_factor(self) -> float:
        """From stored sums to the wanted gradient, without deferred factors."""
        average = 1.0 / self._mesh.size if self.average_grad_sync else 1.0
        return average / self._sync.prescale

    # === Life of gradients ===================================================

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Forgets all gradients, deferred factors and the flag.

        Args:
            set_to_none: gradients that autograd still holds become None; they
                do in any case, but with contiguous gradient buffers.
        """
        del set_to_none
        self._sync.forget()
        self._factors.reset()
        self._cached = None
        for group in self.param_groups:
            for param in group["params"]:
                param.grad = None
        if self.contiguous_grad_buffer:
            self._sync.bind_grads(self._members)
        self._adopt_unfrozen()

    @contextmanager
    def no_sync(self, greedy_grad_copy: bool = False) -> Iterator[None]:
        """Inside, backward passes accumulate and nothing is reduced.

        Args:
            greedy_grad_copy: move gradients to the buckets at once.
        """
        held, greedy = self._sync.held, self._sync.greedy
        self._sync.held, self._sync.greedy = True, greedy_grad_copy
        try:
            yield
        finally:
            self._sync.held, self._sync.greedy = held, greedy

    @torch.no_grad()
    def grad_sync(self) -> None:
        """Ends the reduction of all gradients; a collective."""
        self._adopt_unfrozen()
        before = self._sync.passes
        carried = self._sync.finish()
        if self._sync.passes == before and self._cached is not None:
            return
        engine = self._engine
        reducer = engine.reducer
        reducer.finish()
        instance = reducer
        if carried:
            self._sync.add_carried()
            instance = engine.norm(None)
        self._remember(instance, True, ("l2", None))

    def _remember(self, instance: Any, whole: bool, kind: Any) -> None:
        # The fields themselves: a program that runs again is remembered again.
        self._cached = (
            instance.field("norm"),
            instance.field("found_inf"),
            whole,
            kind,
        )
        if whole:
            self._found = self._cached[1]

    def grad_buffer_view(self, param: Tensor) -> Tensor:
        """A parameter's gradient as a view of the flat buffer.

        Raises:
            RuntimeError: without ``contiguous_grad_buffer``, or the parameter
                is not managed.
        """
        if not self.contiguous_grad_buffer:
            raise RuntimeError(
                "grad_buffer_view expects contiguous_grad_buffer=True"
            )
        member = self._managed(param)
        if member is None:
            raise RuntimeError("a frozen parameter has no gradient buffer")
        return member.view(member.bucket.grad)

    # === Norm and clipping ===================================================

    def _flag_word(self) -> Tensor:
        """1 (int32) if a gradient is inf or nan on any rank."""
        self.grad_sync()
        return self._found

    def _flag(self) -> Tensor:
        """The flag as torch's scaler wants it: a float32 tensor."""
        return self._flag_word().to(torch.float32)

    def _true_norm(self, stored: Tensor) -> Tensor:
        factor = self._factors.total(self._base_factor())
        return stored * abs(factor)

    @torch.no_grad()
    def grad_norm(
        self,
        parameters: Iterable[Tensor] | Tensor | None = None,
        norm_type: float = 2.0,
        force: bool = False,
    ) -> Tensor:
        """The norm of the gradients, with all deferred factors; a collective.

        Args:
            parameters: all by default; else the norm is of exactly these.
            norm_type: p of the norm, or inf.
            force: compute it again even if nothing has changed.

        Returns:
            A float64 tensor of no dims, equal on all ranks; inf or nan only
            if a gradient is.

        Raises:
            RuntimeError: a parameter is not managed.
        """
        self._touch()
        self.grad_sync()
        kind = _kind(norm_type)
        members = self._subset(parameters)
        cached = self._cached
        fits = cached[2] and cached[3] == kind and members is None
        if not fits or force:
            self._remember(
                self._engine.norm(members, *kind), members is None, kind
            )
        return self._true_norm(self._cached[0])

    def _subset(self, parameters: Any) -> list[Member] | None:
        """The members of a subset; None if these are all."""
        if parameters is None:
            return None
        if isinstance(parameters, Tensor):
            parameters = [parameters]
        members = dict.fromkeys(self._managed(p) for p in parameters)
        chosen = [member for member in members if member is not None]
        return None if len(chosen) == len(self._members) else chosen

    @torch.no_grad()
    def clip_grad_norm(
        self,
        max_norm: float | Tensor,
        parameters: Iterable[Tensor] | Tensor | None = None,
        norm_type: float = 2.0,
    ) -> Tensor:
        """Scales gradients down to a norm; the scaling is deferred.

        Args:
            max_norm: the bound, greater than 0.
            parameters: all by default; else exactly these are scaled. After
                ``grad_norm`` of some parameters, a call without parameters
                clips all of them by that norm.
            norm_type: p of the norm, or inf.

        Returns:
            The norm before clipping, as of :meth:`grad_norm`.

        Raises:
            ValueError: ``max_norm`` is not greater than 0.
            RuntimeError: a parameter is not managed.
        """
        if not isinstance(max_norm, Tensor) and not max_norm > 0:
            raise ValueError(f"expects a positive max_norm, but got {max_norm}")
        self._touch()
        self.grad_sync()
        members = self._subset(parameters)
        kind = _kind(norm_type)
        if parameters is None and self._cached[3] == kind:
            norm = self._true_norm(self._cached[0])
        else:
            norm = self.grad_norm(parameters, norm_type)
        factor = factors.clip_factor(norm, max_norm)
        self._factors.clipped = True
        if members is None:
            self._factors.multiply(factor)
        else:
            self._scale(members, factor)
        return norm

    def _scale(self, members: list[Member], factor: Tensor) -> None:
        """Scales reduced gradients of some parameters in place."""
        for member in members:
            low, high = member.own_range()
            if high > low:
                at = member.start + low
                part = member.bucket.grad.narrow(0, at, high - low)
                part.copy_(part.double().mul_(factor))
        found = self._found.clone()
        self._remember(self._engine.norm(None), True, ("l2", None))
        self._found = found

    @torch.no_grad()
    def unscale_grads(
        self,
        *args: Any,
        inv_scale: Tensor | None = None,
        grad_scaler: Any = None,
    ) -> dict[torch.device, Tensor]:
        """Divides the gradients by the loss scale; the division is deferred.

        Args:
            args: for scalers of others: ``inv_scale`` first; what follows it
                is ignored.
            inv_scale: the factor.
            grad_scaler: torch's scaler; it then knows that this optimizer is
                unscaled.

        Returns:
            The flag that all ranks agreed on (float32), by device.

        Raises:
            ValueError: both or none of ``inv_scale`` and ``grad_scaler``.
            RuntimeError: gradients were unscaled, clipped or stepped with
                before, or the scaler has no scale.
        """
        if args:
            if inv_scale is not None:
                raise ValueError("expects inv_scale once")
            inv_scale = args[0]
        if (inv_scale is None) == (grad_scaler is None):
            raise ValueError("expects either inv_scale or grad_scaler")
        self._touch()
        if grad_scaler is not None:
            flag = factors.unscale_with(self, grad_scaler)
        else:
            flag = factors.unscale(self, inv_scale)
        return {flag.device: flag}
