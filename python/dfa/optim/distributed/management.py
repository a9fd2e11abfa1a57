# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which parameters DistributedFusedAdam manages, and their place in buckets."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from dfa.optim.distributed.buckets import Buckets, Member
from dfa.optim.distributed.engine import ShardedEngine
from dfa.optim.fused import check_distinct
from dfa.optim.rules import ADAM, ADAMW, Rule
from dfa.optim.steptext import ClassSpec
from dfa.optim.tensors import is_dense

#: Below this share of used elements a warning is given, as in apex.
_FILL_WARNING = 0.7


def _listed(params: Any) -> list[Tensor]:
    return [params] if isinstance(params, Tensor) else list(params)


class Management:
    """The part of DistributedFusedAdam that plans buckets."""

    def _start_management(self) -> None:
        self._constructed = self._closed = False
        self._touched = False  # exact copies and step counts are in use
        self._member_of: dict[Tensor, Member] = {}
        self._members: list[Member] = []
        self._order: list[int] | None = None
        self._names: dict[Tensor, str] = {}
        self._hooks: list[Any] = []
        self._checked_modes: list[frozenset[str]] = []
        self._epoch = 0
        self._units = 0
        self._buckets: Any = None
        self._engine: Any = None

    # === Groups ==============================================================

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As torch's; after construction it appends buckets (a collective).

        Raises:
            ValueError: a parameter cannot be updated (dtype, layout).
        """
        Optimizer.add_param_group(self, param_group)
        group = self.param_groups[-1]
        try:
            check_distinct(group["params"])
            for param in group["params"]:
                if not is_dense(param):
                    raise ValueError(
                        "expects dense parameters, but got one of shape "
                        f"{tuple(param.shape)} with strides {param.stride()}"
                    )
                self._spec(group, param)
        except Exception:
            self.param_groups.pop()
            raise
        lr = group["lr"]
        if self.capturable:
            device = group["params"][0].device if group["params"] else "cpu"
            group["lr"] = (
                torch.as_tensor(lr, dtype=torch.float32).to(device).clone()
            )
        elif isinstance(lr, Tensor) and any(
            other["lr"] is lr for other in self.param_groups[:-1]
        ):
            group["lr"] = lr.clone()
        if self._constructed:
            self._replan()

    def _modes(self, group: dict[str, Any]) -> frozenset[str]:
        modes = set()
        if group.get("amsgrad", self._amsgrad):
            modes.add("amsgrad")
        if group.get("maximize", self._maximize):
            modes.add("maximize")
        if not group.get("bias_correction", True):
            modes.add("no_bias_correction")
        return frozenset(modes)

    def _spec(self, group: dict[str, Any], param: Tensor) -> ClassSpec:
        return self._storage.spec(param, self._rule(group), self._modes(group))

    def _rule(self, group: dict[str, Any]) -> Rule:
        """The rule of a group; those of all groups have the same columns."""
        return ADAMW if group.get("adam_w_mode", self._adam_w_mode) else ADAM

    def _check_modes(self) -> None:
        modes = [self._modes(group) for group in self.param_groups]
        if modes == self._checked_modes:
            return
        for member in self._members:
            if member.spec.modes != modes[member.group]:
                raise RuntimeError(
                    "amsgrad, maximize and bias_correction of a group cannot "
                    "change after construction"
                )
        self._checked_modes = modes

    # === Plans ===============================================================

    def _new_members(self) -> list[Member]:
        """Members for parameters that need a gradient and have no place."""
        fresh = []
        for index, group in enumerate(self.param_groups):
            names = group.get("param_names")
            for at, param in enumerate(group["params"]):
                if names:
                    self._names[param] = names[at]
                if param in self._member_of or not param.requires_grad:
                    continue
                name = names[at] if names else f"{index}.{at}"
                spec = self._spec(group, param)
                member = Member(param, index, name, spec, epoch=self._epoch)
                self._member_of[param] = member
                fresh.append(member)
        return fresh

    def _plan(self) -> None:
        """Plans all members, binds them and registers hooks."""
        fresh = self._new_members()
        self._members.extend(fresh)
        self._checked_modes = []
        order = self._order
        if order is None:
            # Gradients arrive in reverse order of parameters.
            order = list(reversed(range(len(self._members))))
        self._buckets = Buckets(
            self._members,
            order,
            self._mesh,
            self.device,
            int(self.bucket_cap_mb * 2**20),
        )
        self._engine = ShardedEngine(
            self._buckets, self._group, gathers=self._gathers is None
        )
        with torch.no_grad():
            for member in self._members:
                self._buckets.bind_param(member)
                self._buckets.mark(member)
        self._buckets.start_watch()
        engine = self._engine
        self._sync.attach(self._buckets, lambda: engine.reducer)
        self._sync.prescale = self._prescale()
        if self.contiguous_grad_buffer:
            self._sync.bind_grads(self._members)
        for member in fresh:
            self._register_hook(member)
            if "step" not in self.state[member.param]:
                self.state[member.param]["step"] = torch.zeros(
                    (), dtype=torch.int64
                )
        self._warn_of_padding()

    def _register_hook(self, member: Member) -> None:
        if not member.param.requires_grad:
            return
        sync = self._sync

        def hook(_param: Tensor) -> None:
            sync.on_gradient(member)

        self._hooks.append(
            member.param.register_post_accumulate_grad_hook(hook)
        )

    def _warn_of_padding(self) -> None:
        ratio = self._buckets.fill_ratio()
        if ratio < _FILL_WARNING and self._buckets.buckets:
            warnings.warn(
                f"only {ratio:.0%} of the buckets' elements are used. "
                "Consider decreasing the bucket_cap_mb argument.",
                UserWarning,
                stacklevel=4,
            )

    def _replan(self) -> None:
        """Appends buckets for new parameters; the old ones stay in place."""
        if not any(
            param.requires_grad and param not in self._member_of
            for group in self.param_groups
            for param in group["params"]
        ):
            return
        if self.contiguous_grad_buffer and not self._sync.empty:
            raise RuntimeError(
                "with contiguous_grad_buffer parameters can be added, or "
                "unfrozen, only while there are no gradients: call zero_grad "
                "first"
            )
        self.param_sync()
        if self._order is None:
            self._order = list(reversed(range(len(self._members))))
        count = len(self._members)
        old, engine = self._buckets, self._engine
        steps = [int(self._step_of(m)) for m in self._members]
        self._epoch += 1
        self._order = [
            *self._order,
            *reversed(range(count, count + self._count_new())),
        ]
        with torch.no_grad():
            self._plan()
            self._sync.move(old, self._buckets)
            self._cached = None
            for before, after in zip(
                old.shards, self._buckets.shards, strict=False
            ):
                for role, tensor in before.items():
                    after[role][: tensor.numel()].copy_(tensor)
            engine.close()
            for member in self._members[count:]:
                if self._touched:
                    self._buckets.take_master(member)
            if self._touched:
                self._adopt_steps([*steps, *([0] * len(self._members))])

    def _count_new(self) -> int:
        # Most optimizers manage all they were given.
        total = sum(len(group["params"]) for group in self.param_groups)
        if total == len(self._member_of):
            return 0
        return sum(
            param.requires_grad and param not in self._member_of
            for group in self.param_groups
            for param in group["params"]
        )

    def _adopt_unfrozen(self) -> None:
        """Manages parameters that have been unfrozen."""
        if self._count_new():
            self._replan()

    def _reset_plan(self, members: list[Member], order: list[int]) -> None:
        if self._touched or not self._sync.empty:
            raise RuntimeError(
                "init_params expects to be called before the first gradient "
                "and step"
            )
        self._engine.close()
        self._members = members
        self._order = order
        self._plan()
        self._sync.forget()

    def init_params(
        self,
        params: Iterable[Tensor] | Tensor | None = None,
        dtype: torch.dtype | None = None,
        grad_sync_dtype: torch.dtype | None = None,
        param_sync_dtype: torch.dtype | None = None,
    ) -> None:
        """Places parameters into buckets in the order given.

        Args:
            params: all parameters by default.
            dtype: must be the optimizer's.
            grad_sync_dtype: dtype of these gradients in buckets.
            param_sync_dtype: dtype in which these parameters are gathered.

        Raises:
            ValueError: another optimizer dtype.
            RuntimeError: there were gradients already, or a parameter is not
                managed.
        """
        self._init(params, dtype, grad_sync_dtype, param_sync_dtype, -1)

    def init_params_bucket(
        self,
        params: Iterable[Tensor] | Tensor,
        dtype: torch.dtype | None = None,
        grad_sync_dtype: torch.dtype | None = None,
        param_sync_dtype: torch.dtype | None = None,
    ) -> None:
        """Puts parameters into buckets of their own: one unit.

        Arguments and errors as for :meth:`init_params`.
        """
        unit = self._units
        self._units += 1
        self._init(params, dtype, grad_sync_dtype, param_sync_dtype, unit)

    def _init(
        self,
        params: Any,
        dtype: torch.dtype | None,
        grad_sync_dtype: torch.dtype | None,
        param_sync_dtype: torch.dtype | None,
        unit: int,
    ) -> None:
        if dtype is not None and dtype != self.dtype:
            raise ValueError(
                f"expects the optimizer's dtype {self.dtype}, but got {dtype}"
            )
        wanted = _listed(list(self.parameters()) if params is None else params)
        members = [self._managed(param) for param in wanted]
        members = [m for m in dict.fromkeys(members) if m is not None]
        first = [self._members.index(member) for member in members]
        placed = [] if self._order is None else self._placed
        order = [*(i for i in placed if i not in first), *first]
        self._placed = order
        rest = [
            i for i in reversed(range(len(self._members))) if i not in order
        ]
        for member in members:
            member.unit = unit
            if grad_sync_dtype or param_sync_dtype:
                self._retype(member, grad_sync_dtype, param_sync_dtype)
        self._reset_plan(self._members, [*order, *rest])

    def _retype(
        self,
        member: Member,
        grad: torch.dtype | None,
        param: torch.dtype | None,
    ) -> None:
        from dataclasses import replace

        storage = replace(
            self._storage,
            grad_sync_dtype=grad or self._storage.grad_sync_dtype,
            param_sync_dtype=param or self._storage.param_sync_dtype,
        )
        group = self.param_groups[member.group]
        member.spec = storage.spec(
            member.param, self._rule(group), self._modes(group)
        )

    def _managed(self, param: Tensor) -> Member | None:
        member = self._member_of.get(param)
        if member is not None:
            return member
        if any(param is own for own in self.parameters()):
            return None  # frozen
        raise RuntimeError(
            "expects parameters of this optimizer, but got one of shape "
            f"{tuple(param.shape)} that is not"
        )

    def init_param_buffer(self) -> None:
        """Does nothing: parameters are in their buckets from the start."""

    # === Exact copies and step counts ========================================

    def _touch(self) -> None:
        """Takes exact copies at first use, and after writes from outside."""
        if self._closed:
            raise RuntimeError("the optimizer is closed")
        self.param_sync()
        self._adopt_unfrozen()
        first = not self._touched
        self._touched = True
        changed = self._members if first else self._buckets.changed()
        for member in changed:
            moved = member.param.data_ptr() != member.address
            if moved and not first:
                self._check_moved(member)
            if moved:
                self._buckets.unbind(member)
            with torch.no_grad():
                self._buckets.take_master(member)
        if first:
            self._adopt_steps([0] * len(self._members))

    def _check_moved(self, member: Member) -> None:
        param = member.param
        if param.device == self.device and is_dense(param):
            return
        raise RuntimeError(
            f"parameter '{member.name}' was moved to {param.device} with "
            f"strides {param.stride()} after it was placed in a bucket"
        )

    def reload_params(self) -> None:
        """Makes exact copies agree with parameters that were written to."""
        self.param_sync()
        with torch.no_grad():
            for member in self._members:
                self._buckets.take_master(member)

    def _adopt_steps(self, steps: list[int]) -> None:
        for member, step in zip(self._members, steps, strict=False):
            count = self._engine.steps(member)
            count.fill_(step)
            self.state[member.param]["step"] = count

    def _step_of(self, member: Member) -> Tensor:
        return self.state[member.param]["step"]

    def _set_step(self, member: Member, step: int) -> None:
        self._step_of(member).fill_(step)

    def close(self) -> None:
        """Releases programs, then communicators; the optimizer ends here.

        Parameters keep their values. A second call does nothing.
        """
        if self._closed:
            return
        self.param_sync()
        self._closed = True
        for handle in self._hooks:
            handle.remove()
        self._hooks.clear()
        self._engine.close()
        if self._group is not None:
            self._group.close()
            self._group = None
