# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Standing in for apex, and torch's functions that clip gradients."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor

from dfa.optim.distributed.adam import DistributedFusedAdam

_PATH = ("apex", "contrib", "optimizers", "distributed_fused_adam")

#: Methods that subclasses of apex's class override, and that do not exist
#: here: a silent override would do nothing.
_INTERNALS = (
    "_make_post_backward_hook",
    "_init_param_state",
    "_param_copy_fragments",
    "_check_params_shard_dtypes",
    "_grad_copy",
    "_try_start_bucket_grad_sync",
    "_try_start_bucket_param_sync",
)


class ApexDistributedFusedAdam(DistributedFusedAdam):
    """:class:`dfa.DistributedFusedAdam` with apex's rule for missing gradients.

    A parameter without a gradient counts as one with a zero gradient, under
    the global step (``missing_grad="zero"``).
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        """As the base class."""
        options.setdefault("missing_grad", "zero")
        super().__init__(*args, **options)

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuses overrides of apex's internals.

        Raises:
            TypeError: the subclass overrides one of them.
        """
        super().__init_subclass__(**options)
        for name in _INTERNALS:
            if name in cls.__dict__:
                raise TypeError(
                    f"'{cls.__name__}' overrides '{name}', an internal of "
                    "apex's class that dfa's has not"
                )


ApexDistributedFusedAdam.__name__ = "DistributedFusedAdam"
ApexDistributedFusedAdam.__qualname__ = "DistributedFusedAdam"


@contextmanager
def _disable_pre_forward_hook(_param: Tensor) -> Iterator[None]:
    """Nothing to disable: there are no hooks in parameters' methods."""
    yield


def _multi_tensor_copy(
    sources: Iterable[Tensor], targets: Iterable[Tensor], **_: Any
) -> None:
    """Copies tensors to tensors of the same sizes."""
    pairs = zip(sources, targets, strict=True)
    with torch.no_grad():
        for source, target in pairs:
            target.copy_(source)


def install_as_apex() -> None:
    """Makes ``apex.contrib.optimizers.distributed_fused_adam`` import to dfa.

    An installed apex keeps everything else; without one, the packages on the
    way are made. Calling it again changes nothing.
    """
    module = ModuleType(".".join(_PATH))
    module.__doc__ = "dfa.DistributedFusedAdam under the name of apex's module."
    module.DistributedFusedAdam = ApexDistributedFusedAdam
    module._disable_pre_forward_hook = _disable_pre_forward_hook
    module._multi_tensor_copy = _multi_tensor_copy
    parent: ModuleType | None = None
    for depth in range(1, len(_PATH)):
        parent = _package(".".join(_PATH[:depth]), parent, _PATH[depth - 1])
    sys.modules[module.__name__] = module
    setattr(parent, _PATH[-1], module)
    parent.DistributedFusedAdam = ApexDistributedFusedAdam


def _package(name: str, parent: ModuleType | None, last: str) -> ModuleType:
    found = sys.modules.get(name)
    if found is None:
        try:
            found = __import__(name, fromlist=["_"])
        except ImportError:
            found = ModuleType(name)
            found.__path__ = []
            sys.modules[name] = found
    if parent is not None:
        setattr(parent, last, found)
    return found


# === torch.nn.utils ==========================================================

_optimizers: WeakSet[DistributedFusedAdam] = WeakSet()


def _owner(params: list[Tensor]) -> DistributedFusedAdam | None:
    """The optimizer that manages all of these parameters.

    Raises:
        RuntimeError: it manages some of them only.
    """
    for optimizer in _optimizers:
        managed = [param in optimizer._member_of for param in params]
        if params and all(managed):
            return optimizer
        if any(managed):
            raise RuntimeError(
                "expects parameters of one dfa.DistributedFusedAdam to be "
                "clipped apart from others"
            )
    return None


def _wrap(torchs: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(torchs)
    def clip_grad_norm_(
        parameters: Any,
        max_norm: float,
        norm_type: float = 2.0,
        error_if_nonfinite: bool = False,
        foreach: bool | None = None,
    ) -> Tensor:
        if isinstance(parameters, Tensor):
            params = [parameters]
        else:
            params = list(parameters)
        optimizer = _owner(params)
        if optimizer is None:
            return torchs(
                params, max_norm, norm_type, error_if_nonfinite, foreach
            )
        if len(params) == len(optimizer._members):
            params = None
        norm = optimizer.clip_grad_norm(max_norm, params, norm_type)
        if error_if_nonfinite and not norm.isfinite():
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from "
                "`parameters` is non-finite, so it cannot be clipped"
            )
        return norm

    clip_grad_norm_._dfa_wraps = torchs
    return clip_grad_norm_


def patch_clip_grad(*optimizers: DistributedFusedAdam) -> None:
    """Reroutes ``torch.nn.utils.clip_grad_norm_`` for managed parameters.

    Torch's function skips parameters whose ``.grad`` is None, and ours are in
    buckets: it would do nothing. Calls for other parameters reach torch.

    Args:
        optimizers: whose parameters; they are kept by weak reference.
    """
    _optimizers.update(optimizers)
    for module in (torch.nn.utils, torch.nn.utils.clip_grad):
        if not hasattr(module.clip_grad_norm_, "_dfa_wraps"):
            module.clip_grad_norm_ = _wrap(module.clip_grad_norm_)
