# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""e^x and ln x of derived scalars, as f64 operations that are all exact.

No library is called, so every target gives the same bits; the error is a few
units in the last place.
"""

from __future__ import annotations

import math

from dfa.rules.trace import Node, constant, make

# ln 2 in two parts: the first has zeros at its end, so that its product with
# an exponent is exact.
_LN2_HIGH = math.ldexp(math.floor(math.ldexp(math.log(2.0), 32)), -32)
_LN2_LOW = 1.9082149292705877e-10
_BIAS = 1023
_FRACTION = 52
_SMALLEST_NORMAL = 2.0**-1022


def _i(value: int) -> Node:
    return constant(value, "i")


def _compare(predicate: str, left: Node, right: Node) -> Node:
    return make("cmp", left, right, value=predicate, kind="b")


def _two_to(exponent: Node) -> Node:
    """2^exponent, for an exponent of a normal number."""
    biased = make("add", exponent, _i(_BIAS), kind="i")
    return make("bitcast", make("shl", biased, _i(_FRACTION), kind="i"))


def exp64(x: Node) -> Node:
    """e^x: x = k ln 2 + r with |r| <= ln 2 / 2, and a Taylor sum for e^r."""
    is_nan = _compare("une", x, x)
    safe = make("select", is_nan, constant(0.0), x)
    # Beyond these bounds the result is 0 or inf.
    bound = constant(1000.0)
    safe = make("minimum", safe, bound)
    safe = make("maximum", safe, constant(-1000.0))
    k = make("roundeven", make("mul", safe, constant(1.0 / math.log(2.0))))
    minus = make("neg", k)
    r = make("fma", minus, constant(_LN2_HIGH), safe)
    r = make("fma", minus, constant(_LN2_LOW), r)
    total = constant(1.0 / math.factorial(14))
    for degree in range(13, -1, -1):
        total = make("fma", total, r, constant(1.0 / math.factorial(degree)))
    # In two halves, as 2^k itself may not be a normal number.
    whole = make("fptosi", k, kind="i")
    half = make("shr", whole, _i(1), kind="i")
    other = make("sub", whole, half, kind="i")
    total = make("mul", make("mul", total, _two_to(half)), _two_to(other))
    return make("select", is_nan, x, total)


def log64(x: Node) -> Node:
    """Natural logarithm: x = 2^k m, m near 1, and a sum for 2 atanh(s)."""
    tiny = _compare("olt", x, constant(_SMALLEST_NORMAL))
    scaled = make("select", tiny, make("mul", x, constant(2.0**54)), x)
    bits = make("bitcast", scaled, kind="i")
    exponent = make("shr", bits, _i(_FRACTION), kind="i")
    fraction = make("and", bits, _i((1 << _FRACTION) - 1), kind="i")
    one = make("or", fraction, _i(_BIAS << _FRACTION), kind="i")
    m = make("bitcast", one)
    k = make("sub", make("sitofp", exponent), constant(float(_BIAS)))
    k = make("sub", k, make("select", tiny, constant(54.0), constant(0.0)))
    big = _compare("ogt", m, constant(math.sqrt(2.0)))
    m = make("select", big, make("mul", m, constant(0.5)), m)
    k = make("add", k, make("select", big, constant(1.0), constant(0.0)))
    f = make("sub", m, constant(1.0))
    s = make("div", f, make("add", m, constant(1.0)))
    z = make("mul", s, s)
    total = constant(1.0 / 25)
    for odd in range(23, 2, -2):
        total = make("fma", total, z, constant(1.0 / odd))
    # ln m = 2 s + 2 s z total
    twice = make("add", s, s)
    tail = make("mul", make("mul", twice, z), total)
    tail = make("fma", k, constant(_LN2_LOW), tail)
    head = make("fma", k, constant(_LN2_HIGH), twice)
    result = make("add", head, tail)
    infinity = constant(math.inf)
    result = make("select", _compare("oeq", x, infinity), x, result)
    result = make("select", _compare("une", x, x), x, result)
    zero = constant(0.0)
    result = make(
        "select", _compare("olt", x, zero), constant(math.nan), result
    )
    return make("select", _compare("oeq", x, zero), constant(-math.inf), result)
