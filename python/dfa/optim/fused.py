# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base of optimizers on one device: torch's contract over an engine.

Rules are in files of their own; loading and saving is in statedict.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from dfa.optim import statedict
from dfa.optim.inplace import InPlaceEngine, Slot
from dfa.optim.rules import Rule
from dfa.optim.statedict import like
from dfa.optim.stepping import SKIPS_BEFORE_WARNING, Stepping
from dfa.optim.steptext import ClassSpec
from dfa.optim.tensors import format_of, is_dense, local_part

__all__ = ["SKIPS_BEFORE_WARNING", "FusedOptimizer"]

_STORAGES = {"param": "none", "master": "f32", "remainder": "remainder"}


def number(value: Any, name: str) -> Any:
    """A hyper-parameter as a finite float, or as the device's tensor.

    Raises:
        ValueError: it is not finite; what a device holds is not looked at.
    """
    if isinstance(value, Tensor) and value.device.type != "cpu":
        return value
    result = float(value)
    if not math.isfinite(result):
        raise ValueError(f"expects a finite {name}, but got {result}")
    return result


class FusedOptimizer(Stepping, Optimizer):
    """A ``torch.optim.Optimizer`` whose step is compiled by dfa.

    Parameters may have any dense memory format and any of float64, float32,
    float16 and bfloat16; the arithmetic is that of docs/rules.md, in float32.
    Under FSDP2 they are DTensors, and each rank updates its local part.

    Keyword arguments that all rules share:

    * ``storage``: ``"param"`` (the parameter itself is updated), ``"master"``
      (a float32 copy is, and the parameter is its rounding) or
      ``"remainder"`` (bfloat16 parameters: 16 more bits make them exact).
    * ``state_dtype``: dtype of the states, float32 by default.
    * ``on_nonfinite``: ``"skip"`` (a step with an inf or nan gradient changes
      nothing) or ``"propagate"``.
    """

    #: torch's GradScaler hands its scale and flag over around ``step``.
    _step_supports_amp_scaling = True

    rule: Rule

    def __init__(
        self,
        params: Any,
        defaults: dict[str, Any],
        *,
        storage: str = "param",
        state_dtype: torch.dtype | None = None,
        on_nonfinite: str = "skip",
    ) -> None:
        """Checks the arguments; states are made with the first step."""
        if storage not in _STORAGES:
            raise ValueError(
                f"expects storage among {sorted(_STORAGES)}, but got "
                f"'{storage}'"
            )
        if on_nonfinite not in ("skip", "propagate"):
            raise ValueError(
                "expects on_nonfinite 'skip' or 'propagate', but got "
                f"'{on_nonfinite}'"
            )
        self.storage = storage
        self.state_dtype = state_dtype or torch.float32
        format_of(self.state_dtype, "states")
        self.on_nonfinite = on_nonfinite
        self._engine: InPlaceEngine | None = None
        self._bound: list[Tensor] = []
        self._live: list[int] = []
        self._skips = 0
        self._warned = False
        super().__init__(params, defaults)

    # === What a rule says ====================================================

    def _modes(self, group: dict[str, Any]) -> frozenset[str]:
        """The modes of the rule for a group."""
        raise NotImplementedError

    def _hyper(self, group: dict[str, Any]) -> tuple[Any, ...]:
        """The group's row, in the order of ``rule.hyper``."""
        raise NotImplementedError

    def _rule(self, _group: dict[str, Any]) -> Rule:
        return self.rule

    # === Parameters ==========================================================

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As torch's; refuses parameters that no engine could update.

        Raises:
            ValueError: a parameter is complex, integer or not dense.
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            check_distinct(group["params"])
            for param in group["params"]:
                self._check_param(param)
        except Exception:
            self.param_groups.pop()
            raise
        lr = group.get("lr")
        if isinstance(lr, Tensor) and any(
            other.get("lr") is lr for other in self.param_groups[:-1]
        ):
            group["lr"] = lr.clone()  # schedulers fill each group's own
        elif group.get("capturable") and not isinstance(lr, Tensor):
            device = group["params"][0].device if group["params"] else "cpu"
            group["lr"] = torch.tensor(
                float(lr), dtype=torch.float32, device=device
            )
        self._drop_engine()

    def _check_param(self, param: Tensor) -> None:
        local = local_part(param)
        fmt = format_of(local.dtype, "parameters")
        if self.storage == "remainder" and fmt != "bf16":
            raise ValueError(
                f"expects bfloat16 parameters with remainders, but got "
                f"{local.dtype}"
            )
        if not is_dense(local):
            raise ValueError(
                "expects dense parameters, but got one of shape "
                f"{tuple(local.shape)} with strides {local.stride()}"
            )

    def _spec(self, group: dict[str, Any], param: Tensor) -> ClassSpec:
        fmt = format_of(local_part(param).dtype, "parameters")
        master = _STORAGES[self.storage]
        if fmt == "f64":
            master = "f32"
        elif fmt == "f32":
            master = "none"
        rule, modes = self._rule(group), self._modes(group)
        state = format_of(self.state_dtype, "states")
        states = (state,) * len(rule.state_names(modes))
        return ClassSpec(rule, fmt, fmt, master, states, modes)

    def _init_state(self, group: dict[str, Any], param: Tensor) -> None:
        """Makes what is missing of a parameter's state."""
        state = self.state[param]
        spec = self._spec(group, param)
        local = local_part(param)
        if "step" not in state:
            state["step"] = torch.zeros((), dtype=torch.int64)
        for name in spec.state_names:
            if name not in state:
                zeros = torch.zeros_like(local, dtype=self.state_dtype)
                state[name] = like(param, zeros)
        if spec.master == "f32" and "master" not in state:
            state["master"] = like(param, local.detach().float().clone())
        if spec.master == "remainder" and "remainder" not in state:
            zeros = torch.zeros_like(local, dtype=torch.int16)
            state["remainder"] = like(param, zeros)

    def _drop_engine(self) -> None:
        """Forgets the compiled step; step counts move to plain tensors."""
        if self._engine is None:
            return
        for param in self._bound:
            state = self.state.get(param)
            if state and "step" in state:
                state["step"] = state["step"].detach().cpu().clone()
        self._engine.close()
        self._engine = None
        self._captured = False
        self._bound = []

    def _make_engine(self) -> InPlaceEngine | None:
        slots, params, steps, frozen = [], [], [], []
        for number_, group in enumerate(self.param_groups):
            for param in group["params"]:
                idle = not param.requires_grad and param.grad is None
                if idle and not self.state.get(param):
                    frozen.append(param)
                    continue  # they have no state
                self._init_state(group, param)
                state = self.state[param]
                arrays = {
                    name: local_part(value)
                    for name, value in state.items()
                    if isinstance(value, Tensor) and name != "step"
                }
                spec = self._spec(group, param)
                local = local_part(param).detach()
                slots.append(Slot(local, spec, number_, arrays))
                params.append(param)
                steps.append(int(state["step"]))
        if not slots:
            return None
        engine = InPlaceEngine(
            slots, len(self.param_groups), check=self._checks(params)
        )
        for param, slot, step in zip(params, slots, steps, strict=True):
            count = engine.update.steps(slot.class_index, slot.segment)
            count.fill_(step)
            self.state[param]["step"] = count
        self._engine, self._bound, self._idle = engine, params, frozen
        self._specs = [slot.spec for slot in slots]
        engine.attach(params, frozen, self.param_groups)
        return engine

    def _checks(self, params: list[Tensor]) -> bool:
        """Whether a step looks for inf and nan itself.

        Not if a scaler has looked, nor where ranks must agree.
        """
        return (
            self.on_nonfinite == "skip"
            and getattr(self, "found_inf", None) is None
            and not any(hasattr(param, "device_mesh") for param in params)
        )

    def _ready_engine(self) -> InPlaceEngine | None:
        """The engine for the parameters as they are now."""
        engine = self._engine
        if (
            engine is not None
            and engine.check == self._checks(self._bound)
            and not self._is_stale()
        ):
            return engine
        self._drop_engine()
        return self._make_engine()

    def _refit(self, group: dict[str, Any], param: Tensor) -> None:
        """Moves a state to a parameter's new device and order of dims."""
        state = self.state[param]
        local = local_part(param)
        spec = self._spec(group, param)
        for name in (*spec.state_names, "remainder"):
            if name in state:
                old = local_part(state[name])
                new = torch.empty_like(local, dtype=old.dtype)
                state[name] = like(param, new.copy_(old))
        if "master" in state:
            del state["master"]

    def _refresh_master(self, param: Tensor) -> None:
        """Takes the exact copy from the parameter, after a write to it."""
        state = self.state[param]
        if "master" in state:
            local_part(state["master"]).copy_(local_part(param).detach())
        if "remainder" in state:
            local_part(state["remainder"]).zero_()

    @torch.no_grad()
    def reload_params(self) -> None:
        """Makes exact copies agree with parameters that were written to."""
        for param in self._bound:
            self._refresh_master(param)

    # === The step ============================================================

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters that have a gradient.

        Args:
            closure: reevaluates the model; its value is returned.

        Raises:
            RuntimeError: a gradient is sparse or on another device.
            ValueError: a hyper-parameter is not finite.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._step()
        return loss

    # === What can be read ====================================================

    @property
    def skipped_steps(self) -> int:
        """Steps that changed nothing, as far as is known without waiting."""
        if self._engine is None:
            return 0
        return int(self._engine.update.mirror("skipped"))

    @property
    def step_was_skipped(self) -> bool:
        """Whether the last step that has finished changed nothing."""
        if self._engine is None:
            return False
        return bool(self._engine.update.mirror("found_inf"))

    def push_hyperparameters(self) -> None:
        """Uploads hyper-parameters, before the replay of a captured step."""
        engine = self._engine
        if engine is None:
            return
        with torch.no_grad():
            for index, group in enumerate(self.param_groups):
                engine.set_hyper(index, self._hyper(group))
        engine.push()

    # === Saving and loading ==================================================

    def state_dict(self) -> dict[str, Any]:
        """A dict in torch's form; ``step`` is a float32 tensor on the CPU.

        Raises:
            RuntimeError: the step was captured, and hyper-parameters have
                changed that were not pushed.
        """
        self._check_pushed()
        return statedict.save(super().state_dict(), self.param_groups)

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads in place a dict of this class, or of torch's of that name.

        States keep their dtype, tensors of hyper-parameters their identity,
        and hyper-parameters that the dict lacks their present values.

        Raises:
            ValueError: groups or shapes differ; nothing has changed then.
        """
        statedict.load(self, state_dict)
        if self._captured:
            self.push_hyperparameters()

    def __getstate__(self) -> dict[str, Any]:
        """What pickle keeps: no engine, and step counts of their own."""
        state = self.__dict__.copy()
        state["_engine"], state["_bound"] = None, []
        state["state"] = {
            param: statedict.detach_step(values)
            for param, values in self.state.items()
        }
        return state


def check_distinct(params: list[Tensor]) -> None:
    """Refuses a group that has a parameter twice (``ValueError``).

    It would be updated twice, and counted twice in a norm.
    """
    if len(set(params)) != len(params):
        raise ValueError("expects distinct parameters, but got one twice")


def check_range(value: Any, name: str, low: float, high: float | None) -> None:
    """Refuses hyper-parameters out of range, in torch's words."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")
        return
    if not (low <= value and (high is None or value < high)):
        raise ValueError(f"Invalid {name}: {value}")
