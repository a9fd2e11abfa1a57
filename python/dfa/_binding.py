# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a step says of itself, and whether a tensor fits it. Internal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dfa import _core

#: Values that torch gives hyper-parameters which a group does not name.
_DEFAULTS: dict[str, dict[str, float]] = {
    "adam": {"lr": 1e-3, "beta2": 0.999, "eps": 1e-8},
    "adamw": {"lr": 1e-3, "beta2": 0.999, "eps": 1e-8, "weight_decay": 1e-2},
    "lamb": {"lr": 1e-3, "beta2": 0.999, "eps": 1e-6, "weight_decay": 1e-2},
    "lion": {"lr": 1e-4, "beta2": 0.99},
    "sgd": {"lr": 1e-3},
    "adagrad": {"lr": 1e-2, "eps": 1e-10},
    "rmsprop": {"lr": 1e-2, "eps": 1e-8, "alpha": 0.99},
}


@dataclass(frozen=True)
class ClassFacts:
    name: str
    rule: str
    formats: dict[str, str]  # by role

    def format_of(self, role: str) -> str:
        return self.formats[role]


@dataclass(frozen=True)
class ParamFacts:
    index: int
    name: str
    shape: list[int]
    strides: list[int]
    cls: int
    group: int

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class StepFacts:
    """``_core.Step.facts`` in Python's terms."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.bucket_bytes: int = facts["bucket_bytes"]
        self.mesh = {axis["name"]: axis["size"] for axis in facts["mesh"]}
        self.classes = [
            ClassFacts(
                cls["name"],
                cls["rule"],
                {array["name"]: array["format"] for array in cls["arrays"]},
            )
            for cls in facts["classes"]
        ]
        self.params = [
            ParamFacts(
                index,
                param["name"],
                param["shape"],
                param["strides"],
                param["class"],
                param["group"],
            )
            for index, param in enumerate(facts["params"])
        ]
        self.groups: list[dict[str, float]] = [
            {name: float(value) for name, value in group["hyper"].items()}
            for group in facts["groups"]
        ]
        self.control = {
            field: float(value) for field, value in facts["control"].items()
        }
        self._by_name = {param.name: param for param in self.params}

    @property
    def ranks(self) -> int:
        return math.prod(self.mesh.values())

    def find_param(self, name: str | None) -> ParamFacts:
        if name is None:
            if len(self.params) != 1:
                raise ValueError(
                    "expects a parameter's name, or a mapping from names, for "
                    f"a step of {len(self.params)} parameters"
                )
            return self.params[0]
        if name not in self._by_name:
            raise ValueError(
                "expects the name of a parameter of the layout, but got "
                f"'{name}'"
            )
        return self._by_name[name]

    def plan(self) -> _core.Layout:
        """The layout, planned; classes and parameters keep their numbers."""
        layout = _core.Layout(
            replicate=self.mesh.get("replicate", 1),
            shard=self.mesh.get("shard", 1),
            bucket_bytes=self.bucket_bytes,
        )
        for cls in self.classes:
            layout.add_class(cls.name, cls.formats["grad"])
            for role, element in cls.formats.items():
                layout.add_array(role, element)
        for param in self.params:
            layout.add_param(
                param.name,
                param.shape,
                strides=param.strides,
                class_index=param.cls,
                group=param.group,
            )
        layout.plan()
        return layout

    @staticmethod
    def hyper_names(program: str) -> list[str]:
        """Columns of a program's group table."""
        for line in program.splitlines():
            words = line.split()
            if words[:1] == ["hyper"]:
                return words[1:]
        return []

    def hypers(self, columns: Iterable[str]) -> Iterator[dict[str, float]]:
        """Initial values of each group: as given, else the rule's."""
        columns = list(columns)
        for index, given in enumerate(self.groups):
            rules = {
                self.classes[param.cls].rule
                for param in self.params
                if param.group == index
            }
            defaults: dict[str, float] = {"beta1": 0.9}
            for rule in sorted(rules):
                defaults.update(_DEFAULTS.get(rule, {}))
            yield {
                name: given.get(name, defaults.get(name, 0.0))
                for name in columns
            }


class TensorLook:
    """A tensor of some framework, and where it lies."""

    def __init__(self, tensor: Any) -> None:
        # A leaf of autograd refuses DLPack; its detached alias does not.
        if getattr(tensor, "requires_grad", False):
            tensor = tensor.detach()
        self.tensor = tensor
        element = ""
        exported = tensor
        # NumPy has no bf16 of its own; ml_dtypes' travels as 16-bit integers.
        dtype = getattr(tensor, "dtype", None)
        if getattr(dtype, "name", "") == "bfloat16" and hasattr(
            tensor, "__array_interface__"
        ):
            exported, element = tensor.view("uint16"), "bf16"
        try:
            info = _core.describe(exported)
        except TypeError:
            raise TypeError(
                "expects a writable tensor (DLPack or the buffer protocol), "
                f"but got '{type(tensor).__name__}'"
            ) from None
        self.address: int = info.address
        self.shape = list(info.shape)
        self.strides = list(info.strides)
        self.element = element or info.format
        self.kind = info.kind
        self.ordinal = info.ordinal

    def check(
        self,
        what: str,
        param: ParamFacts,
        element: str,
        kind: str,
        ordinal: int,
    ) -> None:
        """Raises unless this is an array of the parameter."""
        allowed = ("i16", "u16") if element == "remainder" else (element,)
        if self.element not in allowed:
            raise TypeError(
                f"expects elements of {allowed[0]} as {what}, but got "
                f"{self.element}"
            )
        if self.shape != param.shape:
            raise ValueError(
                f"expects shape {tuple(param.shape)} as {what}, but got "
                f"{tuple(self.shape)}"
            )
        if param.elements and any(
            size != 1 and mine != theirs
            for size, mine, theirs in zip(
                param.shape, self.strides, param.strides, strict=True
            )
        ):
            raise ValueError(
                f"expects strides {tuple(param.strides)} as {what}, but got "
                f"{tuple(self.strides)}"
            )
        if self.kind != kind or (kind == "cuda" and self.ordinal != ordinal):
            wanted = f"{kind}:{ordinal}" if kind == "cuda" else kind
            found = (
                f"{self.kind}:{self.ordinal}"
                if self.kind == "cuda"
                else self.kind
            )
            raise ValueError(
                f"expects memory of {wanted} as {what}, but got {found}"
            )
