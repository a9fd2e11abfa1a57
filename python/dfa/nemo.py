# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NeMo's optimizer ``distributed_fused_adam``, over dfa.

NeMo's own class is a subclass of apex's that overrides its internals. This one
has the same constructor and methods; :func:`install` puts it in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from dfa.optim.apex import (
    ApexDistributedFusedAdam,
    _disable_pre_forward_hook,
    _multi_tensor_copy,
)
from dfa.optim.distributed.buckets import Member
from dfa.optim.distributed.mesh import node_local_groups
from dfa.optim.steptext import ClassSpec

__all__ = [
    "NAME",
    "MegatronDistributedFusedAdam",
    "_disable_pre_forward_hook",
    "_multi_tensor_copy",
    "install",
]

#: The name under which NeMo's configurations ask for it.
NAME = "distributed_fused_adam"
_MODULE = "nemo.core.optim.distributed_adam"
_REGISTRY = "nemo.core.optim.optimizers"


def _dtype(value: Any) -> Any:
    """A dtype, or NeMo's word for one ("fp32", "bf16-mixed", 16, ...)."""
    if value is None or isinstance(value, torch.dtype):
        return value
    word = str(value).removesuffix("-mixed").removesuffix("-true")
    known = {
        "32": torch.float32,
        "fp32": torch.float32,
        "float32": torch.float32,
        "16": torch.float16,
        "fp16": torch.float16,
        "float16": torch.float16,
        "bf16": torch.bfloat16,
        "bfloat16": torch.bfloat16,
    }
    if word not in known:
        raise ValueError(f"expects a dtype or a precision, but got {value!r}")
    return known[word]


def _data_parallel_group() -> Any:
    """Megatron's data-parallel ranks, if Megatron is in use; else None."""
    state = sys.modules.get("megatron.core.parallel_state")
    if state is None or not state.model_parallel_is_initialized():
        return None
    return state.get_data_parallel_group(with_context_parallel=True)


class MegatronDistributedFusedAdam(ApexDistributedFusedAdam):
    """``dfa.DistributedFusedAdam`` as NeMo and Megatron use it.

    Attributes of parameters are honoured: ``_with_fp32_optimizer`` (float32
    states, master and gradients), ``_disable_greedy_grad_copy`` (the gradient
    stays in ``.grad`` until ``grad_sync``), ``_disable_overlap_grad_sync``
    (its bucket is not started by it). With ``contiguous_grad_buffer``,
    ``main_grad`` is the parameter's view of the gradient buffer.

    NeMo's gradient scaler calls ``unscale_grads`` itself, so torch's protocol
    of optimizers that unscale in ``step`` is off.

    Args:
        params: as for :class:`dfa.DistributedFusedAdam`.
        disable_distributed_parameters: every rank keeps all states.
        distribute_within_nodes: shard within a node, replicate across.
        lock_timeout: accepted; hooks need no lock.
        options: those of :class:`dfa.DistributedFusedAdam`; dtypes may be
            NeMo's words. ``process_group`` is Megatron's data-parallel group
            by default.

    Raises:
        ValueError: ranks of nodes do not divide the group, or a dtype is
            unknown.
        RuntimeError: options exclude each other.
    """

    _step_supports_amp_scaling = False
    #: The norm that is over the world already.
    _combined: Any = None

    def __init__(
        self,
        params: Any,
        disable_distributed_parameters: bool = False,
        distribute_within_nodes: bool = False,
        lock_timeout: float | None = None,
        **options: Any,
    ) -> None:
        self.lock_timeout = lock_timeout
        for name in ("dtype", "grad_sync_dtype", "param_sync_dtype"):
            if name in options:
                options[name] = _dtype(options[name])
        if options.get("process_group") is None:
            options["process_group"] = _data_parallel_group()
        if disable_distributed_parameters and distribute_within_nodes:
            raise RuntimeError(
                "disable_distributed_parameters and distribute_within_nodes "
                "exclude each other"
            )
        if dist.is_available() and dist.is_initialized():
            if disable_distributed_parameters:
                options.update(_alone(options["process_group"]))
            elif distribute_within_nodes:
                within, across = node_local_groups(options["process_group"])
                options["distributed_process_group"] = within
                options["redundant_process_group"] = across
        if isinstance(params, Tensor):
            raise TypeError("expects an iterable of parameters or of groups")
        params = list(params)
        if params and not isinstance(params[0], dict):
            params = [{"params": params}]
        super().__init__(params, **options)
        self._show_main_grads()

    def _broadcast_params(self) -> None:
        """Nothing: NeMo's parameters agree when it makes the optimizer."""

    def _spec(self, group: dict[str, Any], param: Tensor) -> ClassSpec:
        if not getattr(param, "_with_fp32_optimizer", False):
            return super()._spec(group, param)
        storage = replace(
            self._storage,
            dtype=torch.float32,
            grad_sync_dtype=torch.float32,
            param_sync_dtype=param.dtype,
            store_params=True,
            store_param_remainders=False,
            with_scaled_states=False,
        )
        return storage.spec(param, self._rule(group), self._modes(group))

    # === Gradients ===========================================================

    def _register_hook(self, member: Member) -> None:
        param, sync = member.param, self._sync
        if not param.requires_grad:
            return

        def hook(_param: Tensor) -> None:
            if getattr(param, "_disable_greedy_grad_copy", False):
                return
            if getattr(param, "_disable_overlap_grad_sync", False):
                with self.no_sync(greedy_grad_copy=True):
                    sync.on_gradient(member)
                return
            sync.on_gradient(member)

        self._hooks.append(param.register_post_accumulate_grad_hook(hook))

    def try_grad_sync(self, params: Iterable[Tensor]) -> None:
        """Moves gradients that are still in ``.grad`` to their buckets.

        Parameters with ``_disable_greedy_grad_copy`` or
        ``_disable_overlap_grad_sync`` are left out. Reductions start with the
        backward pass, or with ``grad_sync``.
        """
        with torch.no_grad(), self.no_sync(greedy_grad_copy=True):
            for param in params:
                late = getattr(param, "_disable_greedy_grad_copy", False)
                apart = getattr(param, "_disable_overlap_grad_sync", False)
                member = self._managed(param)
                if member is not None and not late and not apart:
                    self._sync.on_gradient(member)

    def _show_main_grads(self) -> None:
        if self.contiguous_grad_buffer:
            for member in self._members:
                member.param.main_grad = self.grad_buffer_view(member.param)

    def zero_grad(self, *args: Any, **options: Any) -> None:
        """As the base class; ``main_grad`` is the buffer's view again."""
        super().zero_grad(*args, **options)
        self._show_main_grads()

    def grad_norm(
        self,
        parameters: Iterable[Tensor] | Tensor | None = None,
        norm_type: float = 2.0,
        force: bool = False,
    ) -> Tensor:
        """The 2-norm over all ranks of the world, model-parallel ones too.

        Arguments and errors as for the base class; another ``norm_type`` is a
        ``ValueError``.
        """
        if norm_type != 2:
            raise ValueError(f"expects norm_type 2, but got {norm_type}")
        super().grad_norm(parameters, norm_type, force)
        self._combine()
        return self._true_norm(self._cached[0])

    def clip_grad_norm(
        self,
        max_norm: float | Tensor,
        parameters: Iterable[Tensor] | Tensor | None = None,
        norm_type: float = 2.0,
    ) -> Tensor:
        """As the base class, by the norm over the world."""
        self._touch()
        self.grad_sync()
        if parameters is None and norm_type == 2:
            self._combine()
        return super().clip_grad_norm(max_norm, parameters, norm_type)

    def _combine(self) -> None:
        """Adds norms over the world, once for each that was taken."""
        if self._cached is self._combined or not dist.is_initialized():
            return
        if dist.get_world_size() > self._mesh.size:
            # Ranks of one data-parallel group know the same sum.
            stored, *rest = self._cached
            square = stored.square() / self._mesh.size
            dist.all_reduce(square)
            self._cached = (square.sqrt(), *rest)
        self._combined = self._cached

    @property
    def _grad_scale(self) -> Tensor:
        """The product of deferred factors, as apex's class has it."""
        pending = self._factors.pending
        if pending is None:
            return torch.ones((), device=self.device)
        return pending.to(torch.float32)


def _alone(group: Any) -> dict[str, Any]:
    """Groups of one rank to shard over, and the whole to replicate over."""
    own = None
    for rank in range(dist.get_world_size()):
        made = dist.new_group([rank])
        own = made if rank == dist.get_rank() else own
    whole = dist.group.WORLD if group is None else group
    return {"distributed_process_group": own, "redundant_process_group": whole}


def install() -> None:
    """Makes NeMo find this class under ``distributed_fused_adam``.

    Its module of that optimizer becomes this one; a NeMo that was imported
    before has its registry changed. Calling it again changes nothing.
    """
    module = ModuleType(_MODULE)
    module.__doc__ = __doc__
    module.MegatronDistributedFusedAdam = MegatronDistributedFusedAdam
    sys.modules[_MODULE] = module
    parent = sys.modules.get(_MODULE.rpartition(".")[0])
    if parent is not None:
        parent.distributed_adam = module
    registry = getattr(sys.modules.get(_REGISTRY), "AVAILABLE_OPTIMIZERS", None)
    if registry is not None:
        registry[NAME] = MegatronDistributedFusedAdam
