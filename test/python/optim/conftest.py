# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures of the optimizer tests: ranks that stay alive between tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from ranks import Pools  # noqa: E402


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def ranks() -> Iterator[Pools]:
    """``ranks(world, function, *arguments)`` calls it on every rank."""
    pools = Pools()
    yield pools
    pools.close()
