# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dfa compiles optimizer steps.

``passes`` and ``jit`` are the compiler; ``DistributedFusedAdam`` and the other
optimizers are for torch, which is imported when one of them is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dfa._core import version as __version__
from dfa.errors import CollectiveError, CompileError, DeviceError
from dfa.jit import jit
from dfa.passes import passes

if TYPE_CHECKING:
    from dfa.optim.adamw import FusedAdamW
    from dfa.optim.apex import install_as_apex
    from dfa.optim.clip import patch_clip_grad
    from dfa.optim.distributed.adam import DistributedFusedAdam
    from dfa.optim.distributed.mesh import node_local_groups
    from dfa.optim.lamb import FusedLAMB
    from dfa.optim.lion import FusedLion
    from dfa.optim.sgd import FusedSGD
    from dfa.rules import rule

__all__ = [
    "CollectiveError",
    "CompileError",
    "DeviceError",
    "DistributedFusedAdam",
    "FusedAdamW",
    "FusedLAMB",
    "FusedLion",
    "FusedSGD",
    "__version__",
    "install_as_apex",
    "jit",
    "node_local_groups",
    "passes",
    "patch_clip_grad",
    "rule",
]

#: Names that need torch, and the modules that have them.
_LAZY = {
    "DistributedFusedAdam": "dfa.optim.distributed.adam",
    "FusedAdamW": "dfa.optim.adamw",
    "FusedLAMB": "dfa.optim.lamb",
    "FusedLion": "dfa.optim.lion",
    "FusedSGD": "dfa.optim.sgd",
    "install_as_apex": "dfa.optim.apex",
    "node_local_groups": "dfa.optim.distributed.mesh",
    "patch_clip_grad": "dfa.optim.clip",
    "rule": "dfa.rules",
}


#: Modules for other packages, imported when they are used.
_ADAPTERS = ("lightning", "nemo")


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if name in _ADAPTERS:
        return importlib.import_module(f"dfa.{name}")
    if module is None:
        raise AttributeError(f"module 'dfa' has no attribute '{name}'")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_ADAPTERS})
