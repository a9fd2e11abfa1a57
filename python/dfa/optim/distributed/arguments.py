# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The storage arguments of DistributedFusedAdam: checks, and what they mean."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from dfa.optim.rules import Rule
from dfa.optim.steptext import ClassSpec
from dfa.optim.tensors import format_of

_STATE_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
#: Integer dtypes that mean "the bits of the parameter": bytes an element.
_BITS = {torch.int32: 4, torch.int64: 8}


@dataclass(frozen=True)
class Storage:
    """Dtypes and storage options, checked."""

    dtype: torch.dtype
    grad_sync_dtype: torch.dtype
    param_sync_dtype: torch.dtype
    store_params: bool
    store_param_remainders: bool
    with_scaled_states: bool

    def sync_format(self, param: Tensor) -> str:
        """The format in which a parameter is gathered.

        Raises:
            ValueError: an integer dtype of another size than the parameter's.
        """
        wanted = self.param_sync_dtype
        if wanted in _BITS:
            if param.element_size() != _BITS[wanted]:
                raise ValueError(
                    f"param_sync_dtype {wanted} expects parameters of "
                    f"{_BITS[wanted]} bytes, but got {param.dtype}"
                )
            return format_of(param.dtype, "parameters")
        return format_of(wanted, "param_sync_dtype")

    def spec(
        self, param: Tensor, rule: Rule, modes: frozenset[str]
    ) -> ClassSpec:
        """The class of a parameter that this rule updates.

        Raises:
            RuntimeError: remainders with parameters that are not bfloat16.
        """
        format_of(param.dtype, "parameters")
        sync = self.sync_format(param)
        own = format_of(self.dtype, "states")
        if self.store_param_remainders:
            if param.dtype != torch.bfloat16:
                raise RuntimeError(
                    "store_param_remainders expects bfloat16 parameters, but "
                    f"got {param.dtype}"
                )
            master = "remainder"
        elif not self.store_params or sync == "f32":
            master = "none"  # the gathered part is exact
        elif sync == own and sync != "f64":
            master = "none"
        else:
            master = "f32"
        # Scaled states are kept in float32: a superset of what was asked.
        state = "f32" if self.with_scaled_states else own
        states = (state,) * len(rule.state_names(modes))
        grad = format_of(self.grad_sync_dtype, "grad_sync_dtype")
        return ClassSpec(rule, sync, grad, master, states, modes)


def _known(dtype: torch.dtype, name: str) -> None:
    if dtype not in _STATE_DTYPES:
        raise ValueError(
            f"expects {name} float32, float16 or bfloat16, but got {dtype}"
        )


def check_storage(
    dtype: torch.dtype,
    grad_sync_dtype: torch.dtype | None,
    param_sync_dtype: torch.dtype | None,
    store_params: bool,
    store_param_remainders: bool,
    with_scaled_states: bool,
) -> Storage:
    """Checks the storage arguments as apex does.

    Raises:
        ValueError: a dtype is not supported.
        RuntimeError: options exclude each other.
    """
    _known(dtype, "dtype")
    grad = dtype if grad_sync_dtype is None else grad_sync_dtype
    _known(grad, "grad_sync_dtype")
    param = dtype if param_sync_dtype is None else param_sync_dtype
    if param is torch.uint8:
        raise ValueError(
            "param_sync_dtype uint8 would keep one byte of each parameter; "
            "expects a floating dtype, int32 or int64"
        )
    if param not in _BITS:
        _known(param, "param_sync_dtype")
    if store_param_remainders:
        if store_params:
            raise RuntimeError(
                "store_param_remainders expects store_params=False"
            )
        if dtype != torch.float32:
            raise RuntimeError(
                f"store_param_remainders expects dtype float32, but got {dtype}"
            )
        if param_sync_dtype is None:
            param = torch.bfloat16
        elif param != torch.bfloat16:
            raise RuntimeError(
                "store_param_remainders expects param_sync_dtype bfloat16, "
                f"but got {param}"
            )
    if with_scaled_states:
        if dtype == torch.float32:
            raise RuntimeError(
                "with_scaled_states expects dtype float16 or bfloat16"
            )
        if not store_params or store_param_remainders:
            raise RuntimeError(
                "with_scaled_states expects store_params, and no remainders"
            )
        if param == torch.float32:
            raise RuntimeError(
                "with_scaled_states expects a param_sync_dtype other than "
                "float32"
            )
        warnings.warn(
            "with_scaled_states: states are kept in float32",
            UserWarning,
            stacklevel=4,
        )
    return Storage(
        dtype,
        grad,
        param,
        store_params,
        store_param_remainders,
        with_scaled_states,
    )
