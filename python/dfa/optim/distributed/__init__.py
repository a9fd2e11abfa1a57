# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharded optimizer and the groups it wants."""

from dfa.optim.distributed.adam import DistributedFusedAdam
from dfa.optim.distributed.mesh import node_local_groups

__all__ = ["DistributedFusedAdam", "node_local_groups"]
