# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of a step that live on the device: control fields, groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING

from dfa import _core

if TYPE_CHECKING:
    from dfa.jit import Jitted

_FIELDS = (
    "norm",
    "max_norm",
    "average",
    "growth_factor",
    "backoff_factor",
    "step",
    "skipped",
    "scale",
    "factor",
    "clip_factor",
    "found_inf",
    "growth_tracker",
    "growth_interval",
    "hysteresis_tracker",
    "hysteresis",
    "generation",
)


class Control(Mapping[str, float]):
    """Control fields of a step: ``control["norm"]``, or ``control.norm``.

    Reading asks the device and waits; ``mirror`` does not wait. Assigning
    writes in stream order: ``control.scale = 1024.0``. The fields are those of
    the compiler's control block, e.g. norm, scale, found_inf, step, skipped.
    """

    _step: Jitted

    def __init__(self, step: Jitted) -> None:
        object.__setattr__(self, "_step", step)

    def __getitem__(self, field: str) -> float:
        step = self._step
        try:
            return step._prepared().fetch_control(field, step._stream())
        except ValueError as error:
            raise KeyError(str(error)) from None

    def __setitem__(self, field: str, value: float) -> None:
        step = self._step
        step._optimizer.set_control(field, float(value), step._stream())

    def __getattr__(self, field: str) -> float:
        if field.startswith("_"):
            raise AttributeError(field)
        try:
            return self[field]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __setattr__(self, field: str, value: float) -> None:
        self[field] = value

    def __iter__(self) -> Iterator[str]:
        return iter(_FIELDS)

    def __len__(self) -> int:
        return len(_FIELDS)

    def mirror(self, field: str) -> float:
        """The value that the last finished step left; never waits."""
        return self._step._prepared().mirror_control(field)


class Group(MutableMapping[str, float]):
    """Hyper-parameters of one group, live: ``step.groups[0]["lr"] = 1e-4``."""

    def __init__(
        self, optimizer: _core.Optimizer, index: int, columns: dict[str, int]
    ) -> None:
        self._optimizer = optimizer
        self._index = index
        self._columns = columns

    def _column(self, name: str) -> int:
        if name not in self._columns:
            known = ", ".join(self._columns)
            raise KeyError(f"expects one of {known}, but got '{name}'")
        return self._columns[name]

    def __getitem__(self, name: str) -> float:
        return self._optimizer.get_hyper(self._index, self._column(name))

    def __setitem__(self, name: str, value: float) -> None:
        self._optimizer.set_hyper(self._index, self._column(name), float(value))

    def __delitem__(self, name: str) -> None:
        raise TypeError("hyper-parameters cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
