# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of the optimizers on one device.

In steady state it is one native call, ``engine.stepper.run``, whatever the
number of parameters; here is what happens when something has changed.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from dfa.optim.inplace import InPlaceEngine
from dfa.optim.program import current_stream
from dfa.optim.tensors import local_part

#: Skipped steps in a row, without a scaler, after which a warning is given.
SKIPS_BEFORE_WARNING = 10


class Stepping:
    """The part of ``FusedOptimizer`` that runs steps."""

    _engine: InPlaceEngine | None
    #: Whether the factor of a step depends on the gradients' norm.
    _reads_norm = False
    #: Whether a step was recorded into a graph of the user's.
    _captured = False

    def _step(self) -> None:
        engine = self._engine
        scaled = getattr(self, "found_inf", None) is not None
        if (
            engine is None
            or engine.stepper is None
            or self._reads_norm
            or (engine.check and scaled)
            or (self.on_nonfinite == "skip" and not (scaled or engine.check))
        ):
            engine = self._ready_engine()
            if engine is None:
                return
            if engine.stepper is None or self._reads_norm:
                self._step_slowly(engine)
                return
        if engine.device.type == "cuda":
            self._watch_capture()
        if scaled or engine.scaled:
            with torch.no_grad():
                self._take_scale(engine)
        for index in self._live:
            engine.set_hyper(index, self._hyper(self.param_groups[index]))
        stream = current_stream(engine.device)
        odd = engine.stepper.run(stream)
        while odd is not None:
            with torch.no_grad():
                engine = self._settle(*odd)
            odd = engine.stepper.run(stream)
        if engine.check:
            self._watch_skips(engine)

    def _watch_capture(self) -> None:
        """Remembers captures; what replays would not see is an error."""
        if torch.cuda.is_current_stream_capturing():
            self._captured = True
        else:
            self._check_pushed()

    def _check_pushed(self) -> None:
        """Refuses hyper-parameters that no replay has seen.

        A replay runs no Python: it goes on with the values that were pushed.

        Raises:
            RuntimeError: a float has changed since the step was captured, or
                since ``push_hyperparameters``.
        """
        if not self._captured or self._engine is None:
            return
        for index, group in enumerate(self.param_groups):
            if self._engine.is_pending(index, self._hyper(group)):
                raise RuntimeError(
                    f"hyper-parameters of group {index} have changed since "
                    "the step was captured: call push_hyperparameters() after "
                    "a change and before the replay"
                )

    def _settle(
        self, changed: list[int], moved: list[int], odd: list[int]
    ) -> InPlaceEngine:
        """Deals with what a steady step does not expect."""
        engine = self._engine
        if moved or self._modes_changed(changed):
            if self._is_stale():
                self._drop_engine()
                return self._make_engine()
            engine.rebind_params()
            engine.attach(self._bound, self._idle, self.param_groups)
            return engine
        for index in changed:
            values = self._hyper(self.param_groups[index])
            engine.set_hyper(index, values)
            engine.stepper.accept_group(index)
            self._note_live(index)
        for at in odd:
            engine.convert(at, self._bound[at].grad)
        return engine

    def _note_live(self, index: int) -> None:
        """Remembers groups whose tensors must be read in every step."""
        group = self.param_groups[index]
        values = (group.get("lr"), *group.get("betas", ()), *self._hyper(group))
        live = {*self._live} - {index}
        if any(isinstance(value, Tensor) for value in values):
            live.add(index)
        self._live = sorted(live)

    def _modes_changed(self, changed: list[int]) -> bool:
        if not changed:
            return False
        modes = {
            index: self._modes(self.param_groups[index]) for index in changed
        }
        rules = {
            index: self._rule(self.param_groups[index]) for index in changed
        }
        return any(
            slot.group in modes
            and (
                slot.spec.modes != modes[slot.group]
                or slot.spec.rule is not rules[slot.group]
            )
            for slot in self._engine.slots
        )

    def _take_scale(self, engine: InPlaceEngine) -> None:
        """Tells the device a scaler's factor and flag, or that none is."""
        scale = getattr(self, "grad_scale", None)
        found = getattr(self, "found_inf", None)
        engine.scaled = scale is not None or found is not None
        if scale is None:
            engine.factor.fill_(1.0)
        else:
            engine.factor.copy_(scale.double().reciprocal().reshape(()))
        if found is None:
            engine.found_inf.zero_()
        else:
            engine.found_inf.copy_((found != 0).reshape(()))

    def _step_slowly(self, engine: InPlaceEngine) -> None:
        """A step that looks at every parameter in Python."""
        grads = [
            None if param.grad is None else local_part(param.grad)
            for param in self._bound
        ]
        with torch.no_grad():
            engine.bind(grads)
            for index, group in enumerate(self.param_groups):
                engine.set_hyper(index, self._hyper(group))
            self._take_scale(engine)
            if self.on_nonfinite == "skip" and not (
                engine.scaled or engine.check
            ):
                flag = engine.norm().field("found_inf")
                self._agree(flag)
                engine.found_inf.copy_(flag)
            engine.update.finish()
        written = [
            param
            for param, grad in zip(self._bound, grads, strict=True)
            if grad is not None
        ]
        torch.autograd.graph.increment_version(written)
        if self.on_nonfinite == "skip" and not engine.scaled:
            self._watch_skips(engine)

    def _agree(self, flag: Tensor) -> None:
        """Under FSDP2 a rank sees its part only: all ranks take the maximum."""
        param = self._bound[0]
        mesh = getattr(param, "device_mesh", None)
        if mesh is None:
            return
        for dim in range(mesh.ndim):
            torch.distributed.all_reduce(
                flag,
                op=torch.distributed.ReduceOp.MAX,
                group=mesh.get_group(dim),
            )

    def _watch_skips(self, engine: InPlaceEngine) -> None:
        # The mirror shows a finished step; it never waits for a running one.
        if not engine.update.mirror("found_inf"):
            self._skips = 0
            return
        self._skips += 1
        if self._skips >= SKIPS_BEFORE_WARNING and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._skips} steps in a row were skipped, because gradients "
                "were inf or nan",
                RuntimeWarning,
                stacklevel=5,
            )

    def _is_stale(self) -> bool:
        bound = self._bound
        at = 0
        for group in self.param_groups:
            modes, rule = self._modes(group), self._rule(group)
            for param in group["params"]:
                if at < len(bound) and bound[at] is param:
                    spec = self._specs[at]
                    if spec.modes != modes or spec.rule is not rule:
                        return True
                    slot = self._engine.slots[at]
                    local = local_part(param)
                    if (
                        slot.param.stride() != local.stride()
                        or slot.param.dtype != local.dtype
                        or slot.param.device != local.device
                    ):
                        self._refit(group, param)
                        return True
                    if slot.param.data_ptr() != local.data_ptr():
                        slot.param = local.detach()
                        self._refresh_master(param)
                    at += 1
                elif param.requires_grad or param.grad is not None:
                    return True
        return at != len(bound)
