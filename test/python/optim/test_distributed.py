# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DistributedFusedAdam over Gloo on 2, 3 and 4 ranks.

Names such as b05 are those of public bug reports that the case restates.
"""

from __future__ import annotations

import pytest
import sharded_cases as cases
from sharded_training import training

REMAINDERS = {"store_params": False, "store_param_remainders": True}

# Every pair of values of two different columns is in one of the rows.
TRAINING = [
    # world, groups, dtype, NHWC, options, scaler, clip, accumulate
    (2, "flat", "float32", True, {}, False, False, 1),
    (2, "flat", "float32", False, {"overlap_grad_sync": False}, True, True, 2),
    (2, "flat", "bfloat16", True, REMAINDERS, False, True, 1),
    (2, "flat", "bfloat16", False, {"param_sync": "bf16"}, True, False, 2),
    (2, "flat", "float32", True, {"contiguous_grad_buffer": True}, 1, 1, 2),
    (4, "hybrid", "float32", True, {}, True, True, 1),
    (4, "hybrid", "bfloat16", True, REMAINDERS, True, False, 2),
    (4, "flat", "float32", False, {"amsgrad": True}, False, True, 2),
    (4, "flat", "bfloat16", True, {"capturable": True}, False, False, 1),
]


@pytest.mark.parametrize("row", TRAINING, ids=lambda row: f"{row[0]}-{row[2]}")
def test_training_against_torch(ranks, row) -> None:
    import torch

    world, groups, dtype, last, options, scaler, clip, accumulate = row
    options = dict(options)
    if options.pop("param_sync", None):
        options["param_sync_dtype"] = torch.bfloat16
    case = {
        "groups": groups,
        "dtype": dtype,
        "channels_last": last,
        "options": options,
        "scaler": scaler,
        "clip": clip,
        "accumulate": accumulate,
        "rtol": 5e-5 if dtype == "float32" else 2e-2,
    }
    ranks(world, training, case)


@pytest.mark.parametrize("order", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_b03(ranks, order) -> None:
    ranks(2, cases.b03, order)


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("shape", [(4, 8, 3, 3), (2, 4, 2, 3, 3)])
def test_b05(ranks, world, shape) -> None:
    ranks(world, cases.b05, shape)


@pytest.mark.parametrize("where", ["inf", "nan"])
def test_b09(ranks, where) -> None:
    ranks(2, cases.b09, where)


def test_b12(ranks) -> None:
    ranks(2, cases.b12)


def test_b15(ranks) -> None:
    ranks(4, cases.b15)


@pytest.mark.parametrize("world", [3, 4])
@pytest.mark.parametrize("cap", [1e-4, 4e-4, 100.0])
def test_b16(ranks, world, cap) -> None:
    ranks(world, cases.b16, cap)


def test_b20(ranks) -> None:
    ranks(2, cases.b20)


@pytest.mark.parametrize("missing", ["skip", "zero"])
@pytest.mark.parametrize("absent_on", ["all", "one"])
def test_b22(ranks, missing, absent_on) -> None:
    ranks(2, cases.b22, missing, absent_on)


def test_unfrozen_and_added(ranks) -> None:
    ranks(2, cases.unfrozen)


def test_b25(ranks) -> None:
    ranks(2, cases.b25)


@pytest.mark.parametrize("case", ["inf", "absent"])
def test_b36(ranks, case) -> None:
    ranks(2, cases.b36, case)


def test_b36_missing_rank(ranks) -> None:
    ranks(2, cases.b36_missing_rank)


def test_two_passes_add_up(ranks) -> None:
    ranks(2, cases.late_gradient)


def test_b27(ranks) -> None:
    saved = ranks(4, cases.b27_save)[0]
    for world in (4, 3, 2):
        ranks(world, cases.b27_load, saved, {})
    ranks(2, cases.b27_load, saved, {"bucket_cap_mb": 100.0})


def test_consolidated(ranks) -> None:
    ranks(2, cases.consolidated)


def test_wrong_groups(ranks) -> None:
    ranks(2, cases.wrong_groups)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_fused_adamw_under_fsdp2(ranks, amsgrad) -> None:
    ranks(2, cases.fsdp, amsgrad)
