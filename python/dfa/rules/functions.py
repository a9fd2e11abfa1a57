# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions a rule may call; they are also attributes of ``dfa.rule``.

On elements they are ops of f32. On derived scalars exp, log and pow are
written out in exact f64 operations, so that all targets give the same bits.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

from dfa.rules.series import exp64, log64
from dfa.rules.trace import (
    ELEMENT,
    Node,
    Value,
    constant,
    fail,
    floating,
    make,
    node_of,
)

#: Largest integer power that is written as multiplications.
_MAX_POWER = 64
#: Exponents that are multiples of 1 / _ROOTS are roots and powers.
_ROOTS = 8


def _float(value: Any) -> Node:
    return floating(node_of(value))


def _unary(op: str, value: Any) -> Value:
    return Value(make(op, _float(value)))


def sqrt(x: Any) -> Value:
    """The square root, rounded correctly."""
    return _unary("sqrt", x)


def rsqrt(x: Any) -> Value:
    """1 / sqrt(x): two operations."""
    return Value(make("div", constant(1.0), sqrt(x).node))


def abs(x: Any) -> Value:
    """The absolute value."""
    return _unary("abs", x)


def floor(x: Any) -> Value:
    """The largest integer that is not greater."""
    return _unary("floor", x)


def ceil(x: Any) -> Value:
    """The smallest integer that is not less."""
    return _unary("ceil", x)


def round(x: Any) -> Value:
    """The nearest integer, ties to even."""
    return _unary("roundeven", x)


def sign(x: Any) -> Value:
    """-1, 0 or 1; of nan it is nan."""
    node = _float(x)
    zero = constant(0.0)
    positive = make("cmp", zero, node, value="olt", kind="b")
    negative = make("cmp", node, zero, value="olt", kind="b")
    # x * 0 is 0 for 0, and nan for nan.
    rest = make("mul", node, zero)
    below = make("select", negative, constant(-1.0), rest)
    return Value(make("select", positive, constant(1.0), below))


def copysign(x: Any, y: Any) -> Value:
    """The size of x with the sign of y."""
    return Value(make("copysign", _float(x), _float(y)))


def minimum(x: Any, y: Any) -> Value:
    """The smaller one; nan if one is."""
    return Value(make("minimum", _float(x), _float(y)))


def maximum(x: Any, y: Any) -> Value:
    """The greater one; nan if one is."""
    return Value(make("maximum", _float(x), _float(y)))


def clip(x: Any, low: Any, high: Any) -> Value:
    """``minimum(maximum(x, low), high)``."""
    return minimum(maximum(x, low), high)


def where(condition: Any, yes: Any, no: Any) -> Value:
    """``yes`` where the condition holds, else ``no``; both are computed."""
    node = node_of(condition)
    if node.kind != "b":
        fail("'where' expects a condition, such as a comparison")
    return Value(make("select", node, _float(yes), _float(no)))


def fma(a: Any, b: Any, c: Any) -> Value:
    """``a * b + c``, rounded once."""
    return Value(make("fma", _float(a), _float(b), _float(c)))


def exp(x: Any) -> Value:
    """e^x; of elements, results that are subnormal may be rounded to normal."""
    node = _float(x)
    return Value(make("exp", node) if node.level == ELEMENT else exp64(node))


def log(x: Any) -> Value:
    """The natural logarithm; of 0 it is -inf, below 0 nan."""
    node = _float(x)
    if node.level != ELEMENT:
        return Value(log64(node))
    # The op takes subnormals for the smallest normal number.
    x = Value(node)
    tiny = (x > 0.0) & (x < 2.0**-126)
    whole = Value(make("log", where(tiny, x * 2.0**24, x).node))
    return whole - where(tiny, 24.0 * math.log(2.0), 0.0)


def tanh(x: Any) -> Value:
    """The hyperbolic tangent."""
    node = _float(x)
    if node.level == ELEMENT:
        return Value(make("tanh", node))
    # Beyond 20 it is 1 in f64.
    twice = exp(clip(Value(node), -20.0, 20.0) * 2.0)
    return (twice - 1.0) / (twice + 1.0)


def _power(base: Node, count: int) -> Node:
    """An integer power, by squaring."""
    result: Node | None = None
    while count:
        if count & 1:
            result = base if result is None else make("mul", result, base)
        count >>= 1
        if count:
            base = make("mul", base, base)
    return constant(1.0) if result is None else result


def pow(base: Any, exponent: Any) -> Value:
    """``base ** exponent``.

    An integer power of a derived scalar, as of ``beta ** step``, multiplies
    repeatedly in f64. Constant multiples of 1/8 are multiplications and square
    roots. Anything else is ``exp(exponent * log(base))``, for bases above 0.
    """
    x, y = _float(base), node_of(exponent)
    if y.kind == "b":
        fail("expects a number as exponent, but got a condition")
    if y.kind == "i" and y.op != "constant":
        if x.level == ELEMENT:
            fail(
                "expects a derived base with the step count as exponent, but "
                "got an element"
            )
        return Value(make("powi", x, y))
    if y.op == "constant":
        scaled = builtins.abs(float(y.value)) * _ROOTS
        if scaled == math.floor(scaled) and scaled <= _MAX_POWER * _ROOTS:
            whole, part = divmod(int(scaled), _ROOTS)
            result = _power(x, whole)
            bit, root = _ROOTS // 2, x
            while part:
                root = make("sqrt", root)
                if part & bit:
                    none = result.op == "constant"
                    result = root if none else make("mul", result, root)
                    part -= bit
                bit //= 2
            if y.value < 0:
                result = make("div", constant(1.0), result)
            return Value(result)
    y = floating(y)
    return exp(Value(make("mul", y, log(Value(x)).node)))
