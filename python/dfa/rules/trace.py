# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalars that write down what is done to them.

A rule is run once, on these; nothing here knows torch, or how a rule is
spelled as text. What depends on step and hyper-parameters only is derived: it
is computed once a parameter, in f64. The rest is computed once an element, in
f32.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from dfa._core import Diagnostic
from dfa.errors import CompileError

CONSTANT, DERIVED, ELEMENT = 0, 1, 2
#: Frames of this folder are not the user's.
_HERE = str(Path(__file__).parent)


@dataclass(frozen=True)
class Node:
    """One operation. Equal nodes are one value.

    ``kind`` is ``"f"`` (a float), ``"i"`` (i64, derived only) or ``"b"``;
    ``value`` is a constant, the name of an argument, or a predicate.
    """

    op: str
    operands: tuple[Node, ...] = ()
    value: Any = None
    kind: str = "f"
    level: int = CONSTANT

    def __hash__(self) -> int:
        """Kept: nodes are shared, and hashing a tree again is exponential."""
        known = self.__dict__.get("_hash")
        if known is None:
            # repr tells 0.0 from -0.0, and a bool from an int.
            known = hash((self.op, self.operands, repr(self.value), self.kind))
            object.__setattr__(self, "_hash", known)
        return known

    def __eq__(self, other: object) -> bool:
        """Same operation on the same operands."""
        if self is other:
            return True
        return (
            isinstance(other, Node)
            and hash(self) == hash(other)
            and (self.op, self.kind, self.level, repr(self.value))
            == (other.op, other.kind, other.level, repr(other.value))
            and self.operands == other.operands
        )


def make(op: str, *operands: Node, value: Any = None, kind: str = "f") -> Node:
    """A node as high as the highest of its operands."""
    level = max((node.level for node in operands), default=CONSTANT)
    return Node(op, operands, value, kind, level)


def constant(value: float, kind: str = "f") -> Node:
    """A constant; it takes the type of what it is used with."""
    return Node("constant", (), value, kind)


def place() -> tuple[str, int, int]:
    """File, line and column of the user's code that is running."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    if frame is None:
        return "", 0, 0
    column = 0
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is not None:
        at = list(positions())[frame.f_lasti // 2]
        column = 0 if at[2] is None else at[2] + 1
    return frame.f_code.co_filename, frame.f_lineno, column


def fail(message: str, where: tuple[str, int, int] | None = None) -> NoReturn:
    """Raises ``dfa.CompileError`` at a place of the user's code."""
    raise CompileError([Diagnostic("error", message, *(where or place()))])


def _refuse(what: str) -> Callable[..., Any]:
    def method(self: Value, *_: Any, **__: Any) -> NoReturn:
        fail(
            f"a rule is traced once, and {what} needs a value that is known "
            "only when it runs; use dfa.rule.where for choices, and the "
            "functions of dfa.rule for mathematics"
        )

    return method


def _binary(op: str, swap: bool = False) -> Callable[..., Any]:
    def method(self: Value, other: Any) -> Value:
        right = node_of(other)
        left = self.node
        return (
            arithmetic(op, right, left) if swap else arithmetic(op, left, right)
        )

    return method


def _compare(predicate: str) -> Callable[..., Any]:
    def method(self: Value, other: Any) -> Value:
        pair = (floating(self.node), floating(node_of(other)))
        return Value(make("cmp", *pair, value=predicate, kind="b"))

    return method


def _logic(op: str) -> Callable[..., Any]:
    def method(self: Value, other: Any) -> Value:
        nodes = (self.node, node_of(other))
        if any(node.kind != "b" for node in nodes):
            fail(f"'{op}' expects conditions, such as a comparison")
        return Value(make(op, *nodes, kind="b"))

    return method


class Value:
    """A scalar of a rule: a gradient's element, a state's, a hyper-parameter.

    ``+ - * / **``, ``abs`` and comparisons make new ones; each is one IEEE
    operation, and nothing is contracted. Conditions are combined with ``&``,
    ``|`` and ``~``.
    """

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        """Stands for the result of ``node``."""
        self.node = node

    __add__, __radd__ = _binary("add"), _binary("add", swap=True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", swap=True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", swap=True)
    __truediv__, __rtruediv__ = _binary("div"), _binary("div", swap=True)
    __lt__, __le__ = _compare("olt"), _compare("ole")
    __gt__, __ge__ = _compare("ogt"), _compare("oge")
    __eq__, __ne__ = _compare("oeq"), _compare("une")  # type: ignore[assignment]
    __hash__ = object.__hash__
    __and__, __rand__ = _logic("and"), _logic("and")
    __or__, __ror__ = _logic("or"), _logic("or")
    __xor__, __rxor__ = _logic("xor"), _logic("xor")

    def __neg__(self) -> Value:
        """The negative."""
        return Value(make("neg", floating(self.node)))

    def __pos__(self) -> Value:
        """The same."""
        return self

    def __abs__(self) -> Value:
        """The absolute value."""
        return Value(make("abs", floating(self.node)))

    def __invert__(self) -> Value:
        """The opposite condition."""
        if self.node.kind != "b":
            fail("'~' expects a condition, such as a comparison")
        return Value(make("xor", self.node, constant(1, "b"), kind="b"))

    def __pow__(self, exponent: Any) -> Value:
        """See ``dfa.rule.pow``."""
        from dfa.rules.functions import pow

        return pow(self, exponent)

    def __rpow__(self, base: Any) -> Value:
        """See ``dfa.rule.pow``."""
        from dfa.rules.functions import pow

        return pow(base, self)

    __bool__ = _refuse("a Python condition ('if', 'while', 'and', 'or')")
    __float__ = __int__ = __index__ = _refuse("a conversion to a number")
    __iter__ = __len__ = __getitem__ = __contains__ = _refuse("indexing")
    __round__ = __trunc__ = __floor__ = __ceil__ = _refuse("rounding")
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse(
        "a division with remainder"
    )
    __array_ufunc__ = __array__ = _refuse("a NumPy function")

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> NoReturn:
        """Torch's functions are unknown to rules."""
        fail("expects functions of dfa.rule in a rule, but got one of torch")

    def __getattr__(self, name: str) -> NoReturn:
        """Scalars have operators only."""
        if name.startswith("__"):
            raise AttributeError(name)
        fail(
            f"a traced scalar has no '{name}'; expects operators and the "
            "functions of dfa.rule"
        )

    def __repr__(self) -> str:
        """Its operation."""
        return f"<traced {self.node.op}>"


def node_of(value: Any) -> Node:
    """The node of a scalar, or of a number of Python."""
    if isinstance(value, Value):
        return value.node
    if isinstance(value, bool):
        return constant(int(value), "b")
    if isinstance(value, int):
        return constant(value, "i")
    if isinstance(value, float):
        return constant(value)
    fail(
        "expects numbers and traced scalars in a rule, but got "
        f"'{type(value).__name__}'"
    )


def floating(node: Node) -> Node:
    """The node as a float; a condition is an error."""
    if node.kind == "f":
        return node
    if node.kind == "b":
        fail("expects a number, but got a condition; use dfa.rule.where")
    if node.op == "constant":
        return constant(float(node.value))
    return make("sitofp", node)


def arithmetic(op: str, left: Node, right: Node) -> Value:
    """One of the four operations; step counts stay integers under three."""
    if left.kind == right.kind == "i" and op != "div":
        return Value(make(op, left, right, kind="i"))
    return Value(make(op, floating(left), floating(right)))
