# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every rank of the tests of patch_clip_grad runs."""

from __future__ import annotations

import dfa
import pytest
import torch
import torch.distributed as dist
from torch.nn import Parameter


def clipped() -> None:
    """Norm and value of averaged gradients, the same on all ranks."""
    world, rank = dist.get_world_size(), dist.get_rank()
    params = [Parameter(torch.zeros(40)), Parameter(torch.zeros(3))]
    opt = dfa.DistributedFusedAdam(params, lr=0.1, eps=1.0, bucket_cap_mb=1e-4)
    # Averages are 2 and -3, whatever the number of ranks.
    share = 2.0 * (rank + 1) / (world + 1)
    with dfa.patch_clip_grad():

        def backward() -> None:
            opt.zero_grad()
            loss = 2.0 * params[0].sum() - 3.0 * params[1].sum()
            (share * loss).backward()

        backward()
        norm = torch.nn.utils.clip_grad_norm_(params, 1.0)
        true = (40 * 4.0 + 3 * 9.0) ** 0.5
        assert norm.item() == pytest.approx(true, rel=1e-6)
        opt.step()
        for p, g in zip(params, (2.0, -3.0), strict=True):
            small = g / true
            want = -0.1 * small / (abs(small) + 1.0)
            torch.testing.assert_close(p.detach(), torch.full_like(p, want))
        backward()
        torch.nn.utils.clip_grad_value_(params, 2.5)
        norm = opt.grad_norm()
        true = (40 * 4.0 + 3 * 6.25) ** 0.5
        assert norm.item() == pytest.approx(true, rel=1e-6)
        opt.step()
    values = [None] * world
    dist.all_gather_object(values, [p.tolist() for p in params])
    assert all(value == values[0] for value in values)
    opt.close()
