# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State dicts of the sharded optimizer: format 2, and torch's AdamW dicts.

Tensors are whole, on the CPU and in logical order, so they load with any
number of ranks, bucket size, storage and memory format.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from dfa.optim.statedict import match_groups, merge_group
from dfa.optim.tensors import flat, in_order_of

if TYPE_CHECKING:
    from dfa.optim.distributed.adam import DistributedFusedAdam
    from dfa.optim.distributed.buckets import Bucket, Member

FORMAT = 2


def _gather(optimizer: DistributedFusedAdam, own: Tensor) -> Tensor:
    """All ranks' parts of a bucket, one after the other, on the CPU."""
    mesh = optimizer._mesh
    if mesh.shard == 1:
        return own.cpu()
    parts = [torch.empty_like(own) for _ in range(mesh.shard)]
    dist.all_gather(parts, own.contiguous(), group=mesh.distributed_group)
    return torch.cat([part.cpu() for part in parts])


def _shards(
    optimizer: DistributedFusedAdam, bucket: Bucket
) -> dict[str, Tensor]:
    buckets = optimizer._buckets
    spec = buckets.classes[bucket.class_index]
    rows = {"param": buckets.exact_shard(bucket)}
    for name in spec.state_names:
        rows[name] = buckets.shard(bucket, name)
    return rows


def save(optimizer: DistributedFusedAdam, keep: bool) -> dict[str, Any]:
    """The dict of format 2; with ``keep`` False this rank takes part only."""
    groups, index = [], {}
    for group in optimizer.param_groups:
        numbers = []
        for param in group["params"]:
            index[param] = len(index)
            numbers.append(index[param])
        saved = {k: deepcopy(v) for k, v in group.items() if k != "params"}
        for key, value in saved.items():
            if isinstance(value, Tensor):
                saved[key] = value.detach().cpu()
        groups.append({**saved, "params": numbers})
    result: dict[str, Any] = {
        "state": {"step": 0},
        "param_groups": groups,
        "format": FORMAT,
    }
    if not optimizer._touched:
        return result
    state = result["state"]
    steps = {m: int(optimizer._step_of(m)) for m in optimizer._buckets.members}
    state["step"] = max(steps.values(), default=0)
    for bucket in optimizer._buckets.buckets:
        for name, own in _shards(optimizer, bucket).items():
            whole = _gather(optimizer, own)
            if not keep:
                continue
            for member in bucket.members:
                row = state.setdefault(index[member.param], {})
                view = member.view(whole)
                row[name] = view.clone(memory_format=torch.contiguous_format)
    if keep:
        for member, step in steps.items():
            if step != state["step"]:
                state.setdefault(index[member.param], {})["step"] = step
    return result


def _rows(
    optimizer: DistributedFusedAdam, state_dict: dict[str, Any]
) -> list[tuple[Member, dict[str, Any]]]:
    """What the dict has for each member, checked."""
    state = state_dict["state"]
    params = [p for g in optimizer.param_groups for p in g["params"]]
    keys = match_groups(optimizer.param_groups, state_dict["param_groups"])
    members = optimizer._member_of
    rows = []
    for param, key in zip(params, keys, strict=True):
        row = state.get(key)
        if row is None and key not in state:
            row = state.get(optimizer._names.get(param))
        member = members.get(param)
        if member is None:
            continue
        row = row or {}
        for name, value in row.items():
            if not isinstance(value, Tensor) or name == "step":
                continue
            if value.shape != param.shape:
                raise ValueError(
                    f"state '{name}' of parameter '{member.name}' expects "
                    f"shape {tuple(param.shape)}, but got {tuple(value.shape)}"
                )
        rows.append((member, row))
    return rows


def load(optimizer: DistributedFusedAdam, state_dict: dict[str, Any]) -> None:
    """Loads in place; every rank has the whole dict.

    Raises:
        ValueError: format, groups or shapes are wrong; nothing has changed.
    """
    version = state_dict.get("format", FORMAT)
    if version != FORMAT:
        raise ValueError(
            f"expects a state dict of format {FORMAT}, but got {version}"
        )
    if "state" not in state_dict or "param_groups" not in state_dict:
        raise ValueError(
            "expects a state dict with 'state' and 'param_groups', but got "
            f"keys {sorted(map(str, state_dict))}"
        )
    rows = _rows(optimizer, state_dict)
    common = state_dict["state"].get("step", 0)
    # Read before anything is written: what is no number is an error here.
    steps = [int(row.get("step", common)) for _, row in rows]
    pairs = zip(optimizer.param_groups, state_dict["param_groups"], strict=True)
    for group, saved in pairs:
        merge_group(group, saved)
    if not optimizer._touched and not any(row for _, row in rows):
        return
    optimizer._touch()
    for (member, row), step in zip(rows, steps, strict=True):
        _load_member(optimizer, member, row, step)


def _load_member(
    optimizer: DistributedFusedAdam,
    member: Member,
    row: dict[str, Any],
    step: int,
) -> None:
    buckets = optimizer._buckets
    like = member.param.detach()
    low, high = member.own_range()
    exact = row.get("param", row.get("master"))
    if exact is not None:
        ordered = in_order_of(exact.to(like.device), like, torch.float32)
        buckets.set_exact(member, flat(ordered))
    else:
        buckets.take_master(member)
    for name in member.spec.state_names:
        own = buckets.own(member, name)
        if name not in row:
            own.zero_()
            continue
        value = row[name].to(like.device)
        own.copy_(flat(in_order_of(value, like, value.dtype))[low:high])
    optimizer._set_step(member, step)
