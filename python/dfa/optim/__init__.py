# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers for PyTorch. Importing this package imports torch."""

from dfa.optim.adamw import FusedAdamW
from dfa.optim.distributed import DistributedFusedAdam, node_local_groups
from dfa.optim.fused import FusedOptimizer
from dfa.optim.lamb import FusedLAMB
from dfa.optim.lion import FusedLion
from dfa.optim.sgd import FusedSGD

__all__ = [
    "DistributedFusedAdam",
    "FusedAdamW",
    "FusedLAMB",
    "FusedLion",
    "FusedOptimizer",
    "FusedSGD",
    "node_local_groups",
]
