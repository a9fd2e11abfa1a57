# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers of one device under FSDP2, on Gloo ranks."""

from __future__ import annotations

import fsdp_cases as cases
import pytest


@pytest.mark.parametrize("kind", ["named", "rule"])
@pytest.mark.parametrize(("world", "replicate"), [(2, 1), (4, 2)])
def test_training_with_clipping(ranks, kind, world, replicate) -> None:
    ranks(world, cases.trained, kind, replicate)
