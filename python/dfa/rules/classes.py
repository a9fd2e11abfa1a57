# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizer classes of traced rules, on one device and sharded."""

from __future__ import annotations

import inspect
from typing import Any

from dfa.optim.distributed.adam import DistributedFusedAdam
from dfa.optim.fused import FusedOptimizer, number
from dfa.optim.rules import Rule
from dfa.rules.traced import TracedRule

#: Arguments of the sharded class that are Adam's own, or defaults of groups.
_NOT_SHARDED = frozenset(
    {
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "bias_correction",
        "adam_w_mode",
        "amsgrad",
        "maximize",
    }
)


def _row(rule: TracedRule, group: dict[str, Any]) -> tuple[Any, ...]:
    """The group's hyper-parameters, in the order of the columns."""
    row: list[Any] = []
    for name, default in rule.signature.hyper.items():
        value = group.get(name, default)
        if not isinstance(default, tuple):
            row.append(number(value, name))
            continue
        if len(value) != len(default):
            raise ValueError(
                f"expects {len(default)} values of {name}, but got {len(value)}"
            )
        row += [number(item, f"{name}[{i}]") for i, item in enumerate(value)]
    return tuple(row)


def _check(rule: TracedRule, defaults: dict[str, Any]) -> None:
    """Refuses values of another kind than the rule's defaults."""
    for name, default in rule.signature.hyper.items():
        value = defaults[name]
        if isinstance(default, tuple) != isinstance(value, (tuple, list)):
            raise ValueError(f"invalid {name}: {value!r}")
    _row(rule, defaults)


class RuleOptimizer(FusedOptimizer):
    """The base of optimizers made by ``dfa.rule``, on one device.

    Keyword arguments are the rule's hyper-parameters, then those of
    :class:`dfa.optim.FusedOptimizer`, and ``capturable``: keep ``lr`` in a
    tensor on the parameters' device. A static hyper-parameter (a bool or a
    word) may differ between groups; a change compiles the step anew.

    Raises:
        ValueError: a hyper-parameter is not finite, or a parameter cannot be
            updated.
        dfa.CompileError: a static value leads the rule to what it cannot do.
    """

    rule: TracedRule
    #: The same rule with sharded states.
    Sharded: type[ShardedRuleOptimizer]

    def __init__(self, params: Any, *args: Any, **options: Any) -> None:
        """Checks the arguments; states are made with the first step."""
        bound = type(self).__signature__.bind(params, *args, **options)
        bound.apply_defaults()
        values = dict(bound.arguments)
        values.pop("params")
        common = {
            name: values.pop(name)
            for name in ("storage", "state_dtype", "on_nonfinite")
        }
        _check(self.rule, values)
        self.rule.trace(self.rule.modes_of(values))
        super().__init__(params, values, **common)

    def _modes(self, group: dict[str, Any]) -> frozenset[str]:
        return self.rule.modes_of(group)

    def _hyper(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return _row(self.rule, group)


class ShardedRuleOptimizer(DistributedFusedAdam):
    """The base of sharded optimizers made by ``dfa.rule``.

    Keyword arguments are the rule's hyper-parameters, then those of
    :class:`dfa.DistributedFusedAdam` that are not Adam's: groups, dtypes,
    storage, overlap. Checkpoints are of the same format, with the rule's
    states.

    Raises:
        ValueError: a dtype or a hyper-parameter is out of range.
        RuntimeError: options exclude each other, or groups do not fit.
    """

    rule: TracedRule

    def __init__(self, params: Any, *args: Any, **options: Any) -> None:
        """Plans buckets; a collective of all ranks."""
        bound = type(self).__signature__.bind(params, *args, **options)
        bound.apply_defaults()
        values = dict(bound.arguments)
        values.pop("params")
        names = self.rule.signature.defaults
        self._rule_defaults = {name: values.pop(name) for name in names}
        _check(self.rule, self._rule_defaults)
        self.rule.trace(self.rule.modes_of(self._rule_defaults))
        super().__init__(params, **values)

    def _defaults(self, adam: dict[str, Any]) -> dict[str, Any]:
        del adam
        return self._rule_defaults

    def _rule(self, group: dict[str, Any]) -> Rule:
        del group
        return self.rule

    def _modes(self, group: dict[str, Any]) -> frozenset[str]:
        return self.rule.modes_of(group)

    def _hyper(self, group: dict[str, Any]) -> tuple[Any, ...]:
        return _row(self.rule, group)


def _signature(
    rule: TracedRule, common: list[inspect.Parameter]
) -> inspect.Signature:
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter("params", either),
            *(
                inspect.Parameter(name, either, default=value)
                for name, value in rule.signature.defaults.items()
            ),
            *common,
        ]
    )


def _plain_options() -> list[inspect.Parameter]:
    only = inspect.Parameter.KEYWORD_ONLY
    options = {
        "storage": "param",
        "state_dtype": None,
        "on_nonfinite": "skip",
        "capturable": False,
    }
    return [
        inspect.Parameter(name, only, default=value)
        for name, value in options.items()
    ]


def _sharded_options() -> list[inspect.Parameter]:
    items = inspect.signature(DistributedFusedAdam.__init__).parameters
    return [
        item.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, item in items.items()
        if name not in ("self", "params") and name not in _NOT_SHARDED
    ]


def make_class(rule: TracedRule) -> type[RuleOptimizer]:
    """The optimizer class of a rule; ``.Sharded`` is its sharded sister."""
    function = rule.function
    common = {"rule": rule, "__module__": function.__module__}
    sharded = type(
        "Sharded",
        (ShardedRuleOptimizer,),
        {
            **common,
            "__doc__": function.__doc__,
            "__qualname__": f"{function.__qualname__}.Sharded",
            "__signature__": _signature(rule, _sharded_options()),
        },
    )
    return type(
        function.__name__,
        (RuleOptimizer,),
        {
            **common,
            "__doc__": function.__doc__,
            "__qualname__": function.__qualname__,
            "__signature__": _signature(rule, _plain_options()),
            "Sharded": sharded,
        },
    )
