# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The named update rules as Python sees them: hyper-parameters and states.

What a rule computes is in docs/rules.md; here is only how to spell it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_MOMENTS = ("lr", "beta1", "beta2", "eps", "weight_decay")


@dataclass(frozen=True)
class Rule:
    """One update rule of the dialect.

    ``op`` is the op's name without its dialect, ``name`` the word of
    ``dfa.class``; ``hyper`` the columns of the group table, in order;
    ``states`` what every parameter keeps. A mode (a unit attribute of the op)
    in ``extra`` adds states.
    """

    name: str
    op: str
    hyper: tuple[str, ...]
    states: tuple[str, ...]
    modes: tuple[str, ...]
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    word: str = ""

    def state_names(self, modes: frozenset[str]) -> tuple[str, ...]:
        """The states of a parameter under these modes, in operand order."""
        names = list(self.states)
        for mode, added in self.extra:
            if mode in modes:
                names.extend(added)
        return tuple(names)

    def attributes(self, modes: frozenset[str]) -> str:
        """The op's attribute dictionary, or nothing.

        A mode that the rule lacks is a ``ValueError``.
        """
        unknown = sorted(modes - set(self.modes))
        if unknown:
            raise ValueError(
                f"rule '{self.name}' expects modes among {list(self.modes)}, "
                f"but got '{unknown[0]}'"
            )
        # A buffer is an operand of the op, not an attribute.
        words = [mode for mode in self.modes if mode in modes]
        words = [word for word in words if word != "momentum"]
        return " {" + ", ".join(words) + "}" if words else ""

    def lines(
        self,
        new: str,
        grad: str,
        outs: Sequence[str],
        type_: str,
        modes: frozenset[str],
    ) -> list[str]:
        """The op that updates ``outs``, as lines of text.

        ``new`` is the name of the results; all values are of ``type_``. The
        control block is ``%ctl``, and ``%skip`` says that nothing is done.
        """
        types = ", ".join([type_] * len(outs))
        count = f":{len(outs)}" if len(outs) > 1 else ""
        word = f" {self.word}" if self.word else ""
        return [
            f"{new}{count} = dfa.{self.op}{word} ins({grad} : {type_}) "
            f"outs({', '.join(outs)} : {types}) control(%ctl) unless %skip"
            f"{self.attributes(modes)} -> {types}"
        ]


_ADAM_MODES = ("amsgrad", "maximize", "no_bias_correction")
_ADAM_EXTRA = (("amsgrad", ("max_exp_avg_sq",)),)

ADAMW = Rule(
    "adamw",
    "adam",
    _MOMENTS,
    ("exp_avg", "exp_avg_sq"),
    _ADAM_MODES,
    _ADAM_EXTRA,
    word="adamw",
)
ADAM = Rule(
    "adam",
    "adam",
    _MOMENTS,
    ("exp_avg", "exp_avg_sq"),
    _ADAM_MODES,
    _ADAM_EXTRA,
    word="adam",
)
LAMB = Rule(
    "lamb",
    "lamb",
    _MOMENTS,
    ("exp_avg", "exp_avg_sq"),
    ("maximize", "no_bias_correction"),
)
LION = Rule(
    "lion",
    "lion",
    ("lr", "beta1", "beta2", "weight_decay"),
    ("exp_avg",),
    ("maximize",),
)
# `momentum` is what this module calls the form with a buffer.
SGD = Rule(
    "sgd",
    "sgd",
    ("lr", "weight_decay", "momentum", "dampening"),
    (),
    ("momentum", "nesterov", "maximize"),
    (("momentum", ("momentum_buffer",)),),
)
