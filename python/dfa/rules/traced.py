# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Python function as an update rule: its signature, and its trace."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dfa.optim.rules import Rule
from dfa.rules.text import regions
from dfa.rules.trace import (
    DERIVED,
    ELEMENT,
    Node,
    Value,
    fail,
    floating,
    node_of,
)

#: Roles of arrays that are not a rule's.
_RESERVED = frozenset(
    {"grad", "param", "master", "remainder", "step", "control", "params"}
)


@dataclass(frozen=True)
class Signature:
    """What the parameters of a rule's function stand for.

    ``hyper`` maps a name to its default: a number, or a tuple of numbers.
    ``static`` has those that the code depends on: bools, words and None.
    """

    states: tuple[str, ...]
    hyper: Mapping[str, Any]
    static: Mapping[str, Any]
    takes_step: bool

    @property
    def defaults(self) -> dict[str, Any]:
        """All keyword arguments with their defaults."""
        return {**self.hyper, **self.static}

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the group table: a tuple has one an item."""
        names: list[str] = []
        for name, value in self.hyper.items():
            if isinstance(value, tuple):
                names += [f"{name}_{index}" for index in range(len(value))]
            else:
                names.append(name)
        return tuple(names)


def _start(function: Callable[..., Any]) -> tuple[str, int, int]:
    code = function.__code__
    return code.co_filename, code.co_firstlineno, 0


def read_signature(function: Callable[..., Any]) -> Signature:
    """Sorts a function's parameters; errors are ``dfa.CompileError``."""
    where = _start(function)
    positional, hyper, static = [], {}, {}
    takes_step = False
    for name, item in inspect.signature(function).parameters.items():
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            fail(f"a rule expects named parameters, but got '{item}'", where)
        if item.kind is not item.KEYWORD_ONLY:
            if item.default is not item.empty:
                fail(
                    f"'{name}' has a default, so it is a hyper-parameter; "
                    "those come after '*'",
                    where,
                )
            positional.append(name)
        elif name == "step":
            takes_step = True
        elif item.default is item.empty:
            fail(f"hyper-parameter '{name}' expects a default", where)
        elif isinstance(item.default, (bool, str, type(None))):
            static[name] = item.default
        elif _is_number(item.default) or (
            isinstance(item.default, tuple)
            and all(map(_is_number, item.default))
        ):
            hyper[name] = item.default
        else:
            fail(
                f"hyper-parameter '{name}' expects a number, a tuple of "
                f"numbers, a bool or a str, but got {item.default!r}",
                where,
            )
    if positional[:2] != ["grad", "param"]:
        fail(
            "a rule expects 'grad' and 'param' as its first parameters, but "
            f"got {positional[:2]}",
            where,
        )
    if "lr" not in hyper:
        fail("a rule expects a hyper-parameter 'lr'", where)
    for name in (*positional[2:], *hyper, *static):
        if name in _RESERVED:
            fail(f"'{name}' is reserved, but a rule has it", where)
    return Signature(tuple(positional[2:]), hyper, static, takes_step)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _static_words(values: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(f"{name}={value!r}" for name, value in values.items())


@dataclass(frozen=True, eq=False)
class TracedRule(Rule):
    """The rule that a function describes.

    Its modes are the values of the function's static parameters: each
    combination is traced on its own.
    """

    function: Callable[..., Any] = field(default=lambda: None)
    signature: Signature = field(
        default_factory=lambda: Signature((), {}, {}, False)
    )
    _static: dict[frozenset[str], dict[str, Any]] = field(default_factory=dict)
    _traces: dict[frozenset[str], list[str]] = field(default_factory=dict)

    def __reduce__(self) -> Any:
        """By the name of the optimizer class that the function became."""
        return _find, (self.function.__module__, self.function.__qualname__)

    def __deepcopy__(self, memo: Any) -> TracedRule:
        """Itself: rules do not change."""
        return self

    def modes_of(self, values: Mapping[str, Any]) -> frozenset[str]:
        """The modes for a group's values of the static parameters."""
        static = {
            name: values.get(name, default)
            for name, default in self.signature.static.items()
        }
        modes = _static_words(static)
        self._static.setdefault(modes, static)
        return modes

    def trace(self, modes: frozenset[str]) -> list[str]:
        """The regions, as lines of text; traced once for these modes.

        Raises:
            dfa.CompileError: the function does what a rule cannot.
        """
        lines = self._traces.get(modes)
        if lines is None:
            lines = self._traces[modes] = self._trace(self._static[modes])
        return lines

    def _trace(self, static: Mapping[str, Any]) -> list[str]:
        signature = self.signature
        names = ("grad", "param", *signature.states)
        elements = [Node("argument", (), name, "f", ELEMENT) for name in names]
        step = Node("argument", (), "step", "i", DERIVED)
        hyper: list[Node] = []
        keywords: dict[str, Any] = dict(static)
        for name, default in signature.hyper.items():
            count = len(default) if isinstance(default, tuple) else None
            titles = (
                [name]
                if count is None
                else [f"{name}_{index}" for index in range(count)]
            )
            made = [Node("argument", (), t, "f", DERIVED) for t in titles]
            hyper += made
            values = tuple(Value(node) for node in made)
            keywords[name] = values[0] if count is None else values
        if signature.takes_step:
            keywords["step"] = Value(step)
        arguments = [Value(node) for node in elements]
        returned = self.function(*arguments, **keywords)
        results = self._results(returned)
        return regions(elements, step, hyper, results)[0]

    def _results(self, returned: Any) -> list[Node]:
        where = _start(self.function)
        names = ("param", *self.signature.states)
        if not isinstance(returned, (tuple, list)):
            returned = (returned,)
        if len(returned) != len(names):
            fail(
                f"rule '{self.function.__name__}' expects to return "
                f"{len(names)} values ({', '.join(names)}), but returned "
                f"{len(returned)}",
                where,
            )
        results = []
        for name, value in zip(names, returned, strict=True):
            node = node_of(value) if _is_scalar(value) else None
            if node is None or node.kind == "b":
                fail(
                    f"rule '{self.function.__name__}' expects to return a "
                    f"number for '{name}', but returned {value!r}",
                    where,
                )
            results.append(floating(node))
        return results

    def lines(
        self,
        new: str,
        grad: str,
        outs: Sequence[str],
        type_: str,
        modes: frozenset[str],
    ) -> list[str]:
        """The generic update; see the base class."""
        types = ", ".join([type_] * len(outs))
        count = f":{len(outs)}" if len(outs) > 1 else ""
        return [
            f"{new}{count} = dfa.update ins({grad} : {type_}) "
            f"outs({', '.join(outs)} : {types}) control(%ctl) unless %skip",
            *self.trace(modes),
            f"  }} : {types}",
        ]


def _find(module: str, name: str) -> TracedRule:
    """The rule of a class, for pickle."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found.rule


def _is_scalar(value: Any) -> bool:
    return isinstance(value, Value) or _is_number(value)


def trace_rule(function: Callable[..., Any]) -> TracedRule:
    """The rule of a function, traced with its defaults.

    Raises:
        dfa.CompileError: the function is not one of scalars.
    """
    signature = read_signature(function)
    rule = TracedRule(
        "custom",
        "update",
        signature.columns,
        signature.states,
        (),
        function=function,
        signature=signature,
    )
    rule.trace(rule.modes_of({}))
    return rule
