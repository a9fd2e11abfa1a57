# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Standing in for apex."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

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
                    "apex's class that dfa's has not; "
                    "dfa.nemo.MegatronDistributedFusedAdam does what NeMo's "
                    "subclass does"
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
    way are made. NeMo's module of its subclass of that class becomes
    ``dfa.nemo``. Calling it again changes nothing.
    """
    from dfa import nemo

    nemo.install()
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
