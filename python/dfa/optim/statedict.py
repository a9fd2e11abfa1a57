# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State dicts of optimizers on one device, in torch's form.

Loading is in place and all or nothing: everything is checked before anything
is written.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dfa.optim.tensors import join_remainder, local_part, split_remainder

if TYPE_CHECKING:
    from dfa.optim.fused import FusedOptimizer


def detach_step(state: dict[str, Any]) -> dict[str, Any]:
    """The state with a step count of its own, in torch's form."""
    if not isinstance(state.get("step"), Tensor):
        return dict(state)
    step = state["step"].detach().to("cpu", torch.float32, copy=True)
    return {"step": step} | {k: v for k, v in state.items() if k != "step"}


def _exact(param: Tensor, state: dict[str, Any]) -> dict[str, Any]:
    """The state with a float32 ``master`` instead of a remainder."""
    if "remainder" not in state:
        return state
    rest = {k: v for k, v in state.items() if k != "remainder"}
    master = join_remainder(
        local_part(param).detach(), local_part(state["remainder"])
    )
    return rest | {"master": like(param, master)}


def save(
    packed: dict[str, Any], groups: list[dict[str, Any]]
) -> dict[str, Any]:
    """Torch's dict with step counts that later steps do not change."""
    params = [param for group in groups for param in group["params"]]
    keys = [key for group in packed["param_groups"] for key in group["params"]]
    by_key = dict(zip(keys, params, strict=True))
    state = {
        key: _exact(by_key[key], detach_step(value)) if key in by_key else value
        for key, value in packed["state"].items()
    }
    return {**packed, "state": state}


def like(param: Tensor, local: Tensor) -> Tensor:
    """A state as its parameter is: a DTensor for a DTensor."""
    mesh = getattr(param, "device_mesh", None)
    if mesh is None:
        return local
    from torch.distributed.tensor import DTensor

    return DTensor.from_local(
        local,
        mesh,
        param.placements,
        run_check=False,
        shape=param.shape,
        stride=param.stride(),
    )


def _params(optimizer: FusedOptimizer) -> list[tuple[dict[str, Any], Tensor]]:
    return [
        (group, param)
        for group in optimizer.param_groups
        for param in group["params"]
    ]


def match_groups(
    groups: list[dict[str, Any]], saved: list[dict[str, Any]]
) -> list[Any]:
    """The saved ids of all parameters, in the order of ours.

    Raises:
        ValueError: numbers of groups or of parameters differ.
    """
    if len(groups) != len(saved):
        raise ValueError(
            "loaded state dict has a different number of parameter groups: "
            f"expects {len(groups)}, but got {len(saved)}"
        )
    for index, (ours, theirs) in enumerate(zip(groups, saved, strict=True)):
        if len(ours["params"]) != len(theirs["params"]):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't "
                f"match the size of optimizer's group {index}: expects "
                f"{len(ours['params'])} parameters, but got "
                f"{len(theirs['params'])}"
            )
    return [key for group in saved for key in group["params"]]


def merge_group(group: dict[str, Any], saved: dict[str, Any]) -> None:
    """Takes hyper-parameters over; tensors of ours keep their identity."""
    for key, value in saved.items():
        if key == "params":
            continue
        own = group.get(key)
        if isinstance(own, Tensor) and not isinstance(value, (str, tuple)):
            own.copy_(torch.as_tensor(value))
        else:
            group[key] = deepcopy(value)


def _check(param: Tensor, state: dict[str, Any], key: Any) -> None:
    for name, value in state.items():
        if name == "step" or not isinstance(value, Tensor):
            continue
        if value.shape != param.shape:
            raise ValueError(
                f"state '{name}' of parameter {key} expects shape "
                f"{tuple(param.shape)}, but got {tuple(value.shape)}"
            )


def load(optimizer: FusedOptimizer, state_dict: dict[str, Any]) -> None:
    """See ``FusedOptimizer.load_state_dict``."""
    state_dict = dict(state_dict)
    for hook in optimizer._optimizer_load_state_dict_pre_hooks.values():
        changed = hook(optimizer, state_dict)
        state_dict = state_dict if changed is None else changed
    if "state" not in state_dict or "param_groups" not in state_dict:
        raise ValueError(
            "expects a state dict with 'state' and 'param_groups', but got "
            f"keys {sorted(map(str, state_dict))}"
        )
    keys = match_groups(optimizer.param_groups, state_dict["param_groups"])
    rows = list(zip(_params(optimizer), keys, strict=True))
    for (_, param), key in rows:
        _check(param, state_dict["state"].get(key, {}), key)
    pairs = zip(optimizer.param_groups, state_dict["param_groups"], strict=True)
    for group, saved in pairs:
        merge_group(group, saved)
    for (group, param), key in rows:
        saved = state_dict["state"].get(key)
        if saved or optimizer.state.get(param):
            _load_param(optimizer, group, param, saved or {})
    for hook in optimizer._optimizer_load_state_dict_post_hooks.values():
        hook(optimizer)


def _load_param(
    optimizer: FusedOptimizer,
    group: dict[str, Any],
    param: Tensor,
    saved: dict[str, Any],
) -> None:
    optimizer._init_state(group, param)
    state = optimizer.state[param]
    state["step"].fill_(int(saved.get("step", 0)))
    for name in optimizer._spec(group, param).state_names:
        if name in saved:
            _copy(state[name], saved[name])
        else:
            local_part(state[name]).zero_()
    for name, value in saved.items():
        if name not in state and name not in ("master", "remainder"):
            state[name] = deepcopy(value)  # unknown keys survive
    _load_exact(optimizer, param, state, saved)


def _copy(target: Tensor, source: Tensor) -> None:
    local_part(target).copy_(local_part(source))


def _load_exact(
    optimizer: FusedOptimizer,
    param: Tensor,
    state: dict[str, Any],
    saved: dict[str, Any],
) -> None:
    """Parameters come from the dict's masters, or masters from parameters."""
    if "master" not in saved:
        optimizer._refresh_master(param)
        return
    exact = local_part(saved["master"]).to(local_part(param).device)
    if "remainder" in state:
        high, low = split_remainder(exact)
        local_part(state["remainder"]).copy_(low)
        local_part(param).copy_(high)
        return
    if "master" in state:
        _copy(state["master"], exact)
    local_part(param).copy_(exact)
