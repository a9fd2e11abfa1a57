# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine of optimizers on one device: tensors stay where torch put them.

Gradients, parameters and states are bound by address; nothing is copied but
gradients whose dims lie in another order than their parameter's.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from dfa import _core
from dfa.optim.program import Instance, current_stream
from dfa.optim.steptext import ClassSpec, class_name, norm_step, update_step
from dfa.optim.tensors import dtype_of, in_order_of, same_order

#: What classes have whose tensors lie in their own storage.
_PLAIN_DISPATCH = torch._C._disabled_torch_dispatch_impl


@dataclass(eq=False)
class Slot:
    """One parameter of the engine, and the tensors that belong to it."""

    param: Tensor
    spec: ClassSpec
    group: int
    #: Tensors by role: master, remainder and the rule's states.
    arrays: dict[str, Tensor]
    class_index: int = -1
    segment: int = -1
    grad: Tensor | None = field(default=None, repr=False)


class _Rows:
    """What is bound for one class, a place a segment."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.grads = array("Q")
        self.params = array("Q")
        self.present = bytearray()


class InPlaceEngine:
    """Runs one rule over parameters of one device."""

    def __init__(
        self, slots: Sequence[Slot], groups: int, *, check: bool = False
    ) -> None:
        """Compiles and binds; all slots must be on one device.

        With ``check`` a step itself looks for gradients that are inf or nan,
        and sets ``found_inf``; else ``found_inf`` is the caller's to set.

        Raises:
            ValueError: tensors are on more than one device.
        """
        devices = {slot.param.device for slot in slots}
        if len(devices) != 1:
            raise ValueError(
                "expects all parameters on one device, but got "
                f"{sorted(str(device) for device in devices)}"
            )
        self.device = devices.pop()
        self.slots = list(slots)
        # The runtime's table ends with the last group that has parameters.
        self.groups = min(groups, 1 + max(slot.group for slot in slots))
        self.classes = list(dict.fromkeys(slot.spec for slot in slots))
        self._rows = [_Rows() for _ in self.classes]
        self._layout = self._plan()
        self.check = check
        self.update = Instance(
            update_step(self.classes, check=check), self.device, self._layout
        )
        self.stepper: _core.Stepper | None = None
        #: Whether somebody has set factor or found_inf.
        self.scaled = False
        self._norms: dict[str, Instance] = {}
        self._bind_states()
        self.update.prepare()
        self.factor = self.update.field("factor")
        self.found_inf = self.update.field("found_inf")
        self._names = self.classes[0].rule.hyper  # one rule, or its kin

    def _plan(self) -> _core.Layout:
        layout = _core.Layout()
        for index, spec in enumerate(self.classes):
            layout.add_class(class_name(index), spec.grad)
            for role, fmt in spec.arrays:
                layout.add_array(role, fmt)
        # Groups exist even if no parameter of theirs is here.
        for number, slot in enumerate(self.slots):
            slot.class_index = self.classes.index(slot.spec)
            param = slot.param
            layout.add_param(
                f"p{number}",
                tuple(param.shape),
                strides=tuple(param.stride()) if param.numel() else None,
                class_index=slot.class_index,
                group=slot.group,
            )
        layout.plan()
        placed = zip(self.slots, layout.placements(), strict=True)
        for slot, placement in placed:
            slot.segment = placement.segment
            self._rows[slot.class_index].slots.append(slot)
        for rows in self._rows:
            rows.slots.sort(key=lambda slot: slot.segment)
            rows.params = array("Q", [s.param.data_ptr() for s in rows.slots])
            # A gradient that never came needs an address all the same.
            rows.grads = array("Q", rows.params)
            rows.present = bytearray(b"\x01" * len(rows.slots))
        return layout

    def _bind_states(self) -> None:
        optimizer = self.update.optimizer
        for index, (spec, rows) in enumerate(
            zip(self.classes, self._rows, strict=True)
        ):
            number = self.update.index(index)
            for role, fmt in spec.arrays:
                if role == "grad":
                    addresses = rows.grads
                elif role == "param":
                    addresses = rows.params
                else:
                    tensors = [slot.arrays[role] for slot in rows.slots]
                    for slot, tensor in zip(rows.slots, tensors, strict=True):
                        _check_state(slot, role, tensor, dtype_of(fmt))
                    addresses = array("Q", [t.data_ptr() for t in tensors])
                optimizer.bind_segments(
                    number, self.update.array(index, role), addresses
                )

    # === A step ==============================================================

    def bind(self, grads: Sequence[Tensor | None]) -> None:
        """Takes the step's gradients, one a slot; None: not in this step.

        Raises:
            RuntimeError: a gradient is sparse or on another device.
        """
        seen = [bytearray(len(rows.slots)) for rows in self._rows]
        moved = [False] * len(self._rows)
        for slot, grad in zip(self.slots, grads, strict=True):
            rows = self._rows[slot.class_index]
            at = slot.segment
            slot.grad = None
            address = slot.param.data_ptr()
            if rows.params[at] != address:
                rows.params[at] = address
                moved[slot.class_index] = True
            if grad is None:
                continue
            seen[slot.class_index][at] = 1
            if (
                grad.layout != torch.strided
                or grad.device != self.device
                or grad.dtype != slot.param.dtype
                or not same_order(grad, slot.param)
            ):
                grad = _converted(grad, slot)
            slot.grad = grad  # alive until the next step has replaced it
            rows.grads[at] = grad.data_ptr()
        for index, rows in enumerate(self._rows):
            self._push_rows(index, rows, seen[index], moved[index])

    def _push_rows(
        self, index: int, rows: _Rows, seen: bytearray, moved: bool
    ) -> None:
        changed = seen != rows.present
        rows.present = seen
        instances = [self.update, *self._norms.values()]
        for instance in instances:
            number = instance.index(index)
            optimizer = instance.optimizer
            if changed:
                optimizer.set_presents(number, bytes(seen))
            optimizer.bind_segments(
                number, instance.array(index, "grad"), rows.grads
            )
        if moved:
            self.update.optimizer.bind_segments(
                self.update.index(index),
                self.update.array(index, "param"),
                rows.params,
            )

    def attach(
        self,
        params: Sequence[Tensor],
        idle: Sequence[Tensor],
        groups: Sequence[dict[str, Any]],
    ) -> None:
        """Makes ``stepper``, the one native call of a steady step.

        Args:
            params: whose gradients are bound, one a slot.
            idle: further parameters, which have had no gradient yet.
            groups: dicts whose values are watched for changes.

        Where tensors cannot be read fast (DTensors, an old torch, inference
        tensors) there is none, and ``bind`` is to be used.
        """
        self.stepper = None
        plain = all(
            type(param).__torch_dispatch__ is _PLAIN_DISPATCH
            and not param.is_inference()
            for param in (*params, *idle)
        )
        if not plain or not _core.can_read_fast():
            return
        numbers = range(len(self.classes))
        self.stepper = _core.Stepper(
            self.update.optimizer,
            self.update.entry_finish,
            list(params),
            list(idle),
            [slot.class_index for slot in self.slots],
            [slot.segment for slot in self.slots],
            [self.update.index(number) for number in numbers],
            [self.update.array(number, "grad") for number in numbers],
        )
        keys = dict.fromkeys(key for group in groups for key in group)
        keys.pop("params", None)
        self.stepper.watch_groups(list(groups), list(keys))

    def rebind_params(self) -> None:
        """Binds parameters that have moved in memory."""
        for index, rows in enumerate(self._rows):
            rows.params = array("Q", [s.param.data_ptr() for s in rows.slots])
            self.update.optimizer.bind_segments(
                self.update.index(index),
                self.update.array(index, "param"),
                rows.params,
            )

    def convert(self, at: int, grad: Tensor) -> None:
        """Gives ``stepper`` a gradient that does not lie as it must.

        Raises:
            RuntimeError: it is sparse or on another device.
        """
        slot = self.slots[at]
        slot.grad = _converted(grad, slot)  # alive until the next step
        self.stepper.put(at, slot.grad.data_ptr())

    def set_hyper(self, group: int, values: tuple[Any, ...]) -> None:
        """A row of the group table; uploaded with the next step."""
        if group < self.groups:
            self.update.set_hyper(group, self._names, values)

    def is_pending(self, group: int, values: tuple[Any, ...]) -> bool:
        """Whether a row differs from what ``set_hyper`` was last given."""
        return group < self.groups and self.update.is_pending(
            group, self._names, values
        )

    def norm(self, kind: str = "l2", order: float | None = None) -> Instance:
        """Takes the norm and the flag of what is bound; see ``norm_step``."""
        key = kind if order is None else f"{kind} {order}"
        instance = self._norms.get(key)
        if instance is None:
            text = norm_step(self.classes, kind=kind, order=order)
            instance = Instance(text, self.device, self._layout)
            for index, rows in enumerate(self._rows):
                number = instance.index(index)
                instance.optimizer.bind_segments(
                    number, instance.array(index, "grad"), rows.grads
                )
                instance.optimizer.set_presents(number, bytes(rows.present))
            instance.prepare()
            self._norms[key] = instance
        instance.finish()
        return instance

    def push(self) -> None:
        """Uploads rows that changed, for the replay of a user's capture."""
        self.update.optimizer.push(current_stream(self.device))

    def close(self) -> None:
        """Waits for the work and releases the tables."""
        self.stepper = None
        for instance in (self.update, *self._norms.values()):
            instance.close()
        self._norms.clear()


def _check_state(
    slot: Slot, role: str, tensor: Tensor, dtype: torch.dtype
) -> None:
    if (
        tensor.dtype == dtype
        and tensor.shape == slot.param.shape
        and tensor.device == slot.param.device
        and same_order(tensor, slot.param)
    ):
        return
    raise ValueError(
        f"expects state '{role}' of shape {tuple(slot.param.shape)}, strides "
        f"{slot.param.stride()}, {dtype} on {slot.param.device}, but got shape "
        f"{tuple(tensor.shape)}, strides {tensor.stride()}, {tensor.dtype} on "
        f"{tensor.device}"
    )


def _converted(grad: Tensor, slot: Slot) -> Tensor:
    if grad.layout != torch.strided:
        raise RuntimeError(
            f"expects dense gradients, but got one of layout {grad.layout}"
        )
    if grad.device != slot.param.device:
        raise RuntimeError(
            f"expects a gradient on {slot.param.device}, but got one on "
            f"{grad.device}"
        )
    return in_order_of(grad, slot.param, slot.param.dtype)
