# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``dfa.rule``: update rules of one's own, written in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dfa.rules import functions

if TYPE_CHECKING:
    from dfa.rules.classes import RuleOptimizer

__all__ = ["rule"]


class _RuleDecorator:
    """The type of ``dfa.rule``."""

    sqrt = staticmethod(functions.sqrt)
    rsqrt = staticmethod(functions.rsqrt)
    abs = staticmethod(functions.abs)
    sign = staticmethod(functions.sign)
    copysign = staticmethod(functions.copysign)
    minimum = staticmethod(functions.minimum)
    maximum = staticmethod(functions.maximum)
    clip = staticmethod(functions.clip)
    where = staticmethod(functions.where)
    fma = staticmethod(functions.fma)
    exp = staticmethod(functions.exp)
    log = staticmethod(functions.log)
    tanh = staticmethod(functions.tanh)
    pow = staticmethod(functions.pow)
    floor = staticmethod(functions.floor)
    ceil = staticmethod(functions.ceil)
    round = staticmethod(functions.round)

    def __call__(self, function: Callable[..., Any]) -> type[RuleOptimizer]:
        """Makes an optimizer class of a function of scalars.

        The function's parameters are ``grad``, ``param``, then one a state;
        after ``*`` come hyper-parameters with their defaults (``lr`` is a
        must; a tuple of numbers is one hyper-parameter of several values), and
        ``step`` if it wants the number of the update, from 1. It returns the
        new parameter and the new states, in order. States start at zero::

            @dfa.rule
            def SignMomentum(grad, param, average, *, lr=1e-3, beta=0.9):
                average = dfa.rule.fma(1.0 - beta, grad - average, average)
                return param - lr * dfa.rule.sign(average), average

            optimizer = SignMomentum(model.parameters(), lr=1e-4)
            sharded = SignMomentum.Sharded(model.parameters(), lr=1e-4)

        It is run once, on scalars that write down what is done to them. What
        is made of hyper-parameters and the step alone is computed once a
        parameter in f64, everything else once an element in f32, and each
        operation is rounded as it stands. A bool or a str as default is
        static: Python's ``if`` may test it.

        Raises:
            dfa.CompileError: the function depends on a value that is known
                only when it runs, uses what rules have not, or returns
                something else than scalars; with file and line.
        """
        from dfa.rules.classes import make_class
        from dfa.rules.traced import trace_rule

        return make_class(trace_rule(function))


rule = _RuleDecorator()
