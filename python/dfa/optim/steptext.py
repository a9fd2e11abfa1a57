# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes optimizer steps as text of the dfa dialect (levels A and B).

A step in Python has three calls that a user may make apart: reduce, norm and
update. Each is a program of its own; what passes between them is one factor
and one flag in the control block of the update. No tensor is seen here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dfa.optim.rules import Rule

#: Element types of formats.
_ELEMENT = {"f64": "f64", "f32": "f32", "f16": "f16", "bf16": "bf16"}
#: Dummy sizes of mesh axes: programs depend on which axes there are only.
_AXIS_SIZE = 2
_LAYOUT = "model"


@dataclass(frozen=True)
class ClassSpec:
    """What changes the code of a class of parameters.

    ``param`` and ``grad`` are formats of what the framework sees, ``master``
    is ``"none"``, ``"f32"`` or ``"remainder"``, ``states`` lists the formats
    of the rule's states in its order.
    """

    rule: Rule
    param: str
    grad: str
    master: str
    states: tuple[str, ...]
    modes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuses combinations that have no meaning (``ValueError``)."""
        for what, word in (("param", self.param), ("grad", self.grad)):
            if word not in _ELEMENT:
                raise ValueError(
                    f"expects {what} format among {sorted(_ELEMENT)}, but "
                    f"got '{word}'"
                )
        if self.master not in ("none", "f32", "remainder"):
            raise ValueError(
                "expects master format 'none', 'f32' or 'remainder', but got "
                f"'{self.master}'"
            )
        if self.master == "remainder" and self.param != "bf16":
            raise ValueError(
                "remainders expect bf16 parameters, but got "
                f"'{self.param}' parameters"
            )
        names = self.rule.state_names(self.modes)
        if len(names) != len(self.states):
            raise ValueError(
                f"rule '{self.rule.name}' expects {len(names)} state formats, "
                f"but got {len(self.states)}"
            )

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states, in the rule's order."""
        return self.rule.state_names(self.modes)

    @property
    def arrays(self) -> tuple[tuple[str, str], ...]:
        """Role and storage format of every array the update touches."""
        rows = [("grad", self.grad)]
        if self.master == "f32":
            rows.append(("master", "f32"))
        rows.append(("param", self.param))
        if self.master == "remainder":
            rows.append(("remainder", "remainder"))
        rows.extend(zip(self.state_names, self.states, strict=True))
        return tuple(rows)


def class_name(index: int) -> str:
    """The symbol of class ``index`` in every text this module writes."""
    return f"c{index}"


def _flat(index: int, part: str, element: str) -> str:
    return f"!dfa.flat<@{_LAYOUT}, @{class_name(index)}, {part}, {element}>"


def _role(name: str) -> str:
    return f'{{dfa.role = "{name}"}}'


class _Body:
    """Collects arguments, lines and results of the step function."""

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self.lines: list[str] = []
        self.values: list[str] = []
        self.types: list[str] = []
        self._next = 0

    def argument(self, name: str, type_: str, role: str) -> str:
        self.arguments.append(f"%{name}: {type_} {_role(role)}")
        return f"%{name}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def name(self) -> str:
        self._next += 1
        return f"%v{self._next}"

    def result(self, value: str, type_: str, role: str) -> None:
        self.values.append(value)
        self.types.append(f"{type_} {_role(role)}")

    def text(self) -> str:
        plain = ", ".join(type_.split(" {dfa.role")[0] for type_ in self.types)
        return "\n".join(
            [
                f"func.func @step({', '.join(self.arguments)})",
                f"    -> ({', '.join(self.types)}) {{",
                *self.lines,
                f"  return {', '.join(self.values)} : {plain}",
                "}",
            ]
        )


def _layout(classes: Sequence[ClassSpec], axes: Sequence[str]) -> str:
    lines = []
    on = ""
    if axes:
        sizes = ", ".join(f"{axis} = {_AXIS_SIZE}" for axis in axes)
        lines.append(f"dfa.mesh @dp({sizes})")
        on = " on @dp"
    lines.append(f"dfa.layout @{_LAYOUT}{on} {{")
    for index, spec in enumerate(classes):
        states = ", ".join(
            f"{name} : {fmt}"
            for name, fmt in zip(spec.state_names, spec.states, strict=True)
        )
        lines.append(
            f"  dfa.class @{class_name(index)} param = {spec.param} "
            f"grad = {spec.grad} master = {spec.master}"
        )
        lines.append(f"    states = [{states}] rule = {spec.rule.name}")
        # One parameter stands for all: kernels know no sizes.
        lines.append(
            f'  dfa.param "p{index}" : tensor<1x{_ELEMENT[spec.param]}>, '
            f"class = @{class_name(index)}, group = 0"
        )
    lines.append("}")
    return "\n".join(lines)


def _control(body: _Body) -> str:
    return body.argument("ctl", "!dfa.control", "control")


def norm_step(
    classes: Sequence[ClassSpec],
    axes: Sequence[str] = (),
    *,
    kind: str = "l2",
    order: float | None = None,
    reduce: bool = False,
) -> str:
    """The text of the program that takes the norm of the gradients.

    It leaves the norm of the stored values (no factor applied) in the field
    ``norm``, and whether any of them is inf or nan in ``found_inf``.

    Args:
        classes: the classes; their ``grad`` is the only array that is read.
        axes: mesh axes, slowest first, out of ``replicate`` and ``shard``.
        kind: ``l1``, ``l2``, ``lp`` or ``inf``.
        order: the p of an ``lp`` norm.
        reduce: whether gradients are unreduced full buckets: then they are
            reduce-scattered over ``shard`` and all-reduced over ``replicate``
            first (entry ``reduce``).

    Raises:
        ValueError: ``kind`` is unknown or ``order`` does not go with it.
    """
    if kind not in ("l1", "l2", "lp", "inf"):
        raise ValueError(f"expects norm l1, l2, lp or inf, but got '{kind}'")
    if (kind == "lp") != (order is not None):
        raise ValueError("an order goes with an lp norm, and only with one")
    p = "" if order is None else f", {float(order)!r}"
    norm = f"!dfa.partial<{kind}, whole{p}>"
    flag = "!dfa.partial<flag, whole>"
    body = _Body()
    part = "shard" if "shard" in axes else "full"
    norms, flags = [], []
    for index, spec in enumerate(classes):
        local = _flat(index, part, spec.grad)
        whole = _flat(index, "full", spec.grad)
        value = body.argument(f"g{index}", whole if reduce else local, "grad")
        if reduce and "shard" in axes:
            after = body.name()
            body.line(
                f'{after} = dfa.reduce_scatter sum {value} over "shard" : '
                f"{whole} -> {local}"
            )
            value = after
        if reduce and "replicate" in axes:
            after = body.name()
            body.line(
                f'{after} = dfa.all_reduce sum {value} over "replicate" : '
                f"{local}"
            )
            value = after
        norms.append(body.name())
        body.line(f"{norms[-1]} = dfa.norm_partial {value} : {local} -> {norm}")
        flags.append(body.name())
        body.line(f"{flags[-1]} = dfa.non_finite {value} : {local} -> {flag}")
    control = _control(body)
    over = ' over ["shard"]' if "shard" in axes else ""
    total, any_ = body.name(), body.name()
    body.line(f"{total} = dfa.combine {', '.join(norms)}{over} : {norm}")
    body.line(f"{any_} = dfa.combine {', '.join(flags)}{over} : {flag}")
    root, found, first, second = (body.name() for _ in range(4))
    body.line(f"{root} = dfa.norm_finish {total} : {norm} -> f64")
    body.line(f"{found} = dfa.flag_finish {any_} : {flag} -> i1")
    body.line(f'{first} = dfa.write {root}, {control}["norm"] : f64')
    body.line(f'{second} = dfa.write {found}, {first}["found_inf"] : i1')
    body.result(second, "!dfa.control", "control")
    return _layout(classes, axes) + "\n" + body.text() + "\n"


def _exact(body: _Body, index: int, spec: ClassSpec, part: str) -> str:
    """The f32 value that the rule updates."""
    wide = _flat(index, part, "f32")
    stored = _flat(index, part, spec.param)
    if spec.master == "f32":
        return body.argument(f"w{index}", wide, "master")
    value = body.argument(f"p{index}", stored, "param")
    if spec.master == "remainder":
        low = _flat(index, part, "i16")
        rest = body.argument(f"r{index}", low, "remainder")
        after = body.name()
        body.line(
            f"{after} = dfa.decode remainder {value}, {rest} : {stored}, "
            f"{low} -> {wide}"
        )
        return after
    return _decode(body, value, index, part, spec.param)


def _decode(body: _Body, value: str, index: int, part: str, fmt: str) -> str:
    if fmt == "f32":
        return value
    after = body.name()
    body.line(
        f"{after} = dfa.decode {fmt} {value} : {_flat(index, part, fmt)} -> "
        f"{_flat(index, part, 'f32')}"
    )
    return after


def _encode(body: _Body, value: str, index: int, part: str, fmt: str) -> str:
    if fmt == "f32":
        return value
    after = body.name()
    body.line(
        f"{after} = dfa.encode {fmt} {value} : {_flat(index, part, 'f32')} -> "
        f"{_flat(index, part, fmt)}"
    )
    return after


def _store_param(
    body: _Body,
    value: str,
    index: int,
    spec: ClassSpec,
    part: str,
    gather: bool,
) -> None:
    """Returns master, parameter and remainder, gathered where sharded."""
    wide = _flat(index, part, "f32")
    stored = _flat(index, part, spec.param)
    if spec.master == "f32":
        body.result(value, wide, "master")
    if spec.master == "remainder":
        low = _flat(index, part, "i16")
        pair = body.name()
        body.line(
            f"{pair}:2 = dfa.encode remainder {value} : {wide} -> {stored}, "
            f"{low}"
        )
        own = f"{pair}#0"
        body.result(f"{pair}#1", low, "remainder")
    else:
        own = _encode(body, value, index, part, spec.param)
    if part == "shard" and gather:
        whole = _flat(index, "full", spec.param)
        full = body.name()
        body.line(
            f'{full} = dfa.all_gather {own} over "shard" : {stored} -> {whole}'
        )
        body.result(full, whole, "param")
        return
    body.result(own, stored, "param")


def update_step(
    classes: Sequence[ClassSpec],
    axes: Sequence[str] = (),
    *,
    gather: bool = True,
    check: bool = False,
) -> str:
    """The text of the program that updates the parameters.

    Gradients are multiplied by the control field ``factor``; a set
    ``found_inf`` changes nothing but the count of skipped steps. With the axis
    ``shard`` every rank updates its part, and parameters are gathered, unless
    ``gather`` is False. With ``check`` the step itself finds out whether a
    gradient is inf or nan, on one rank, and sets ``found_inf``.
    """
    body = _Body()
    part = "shard" if "shard" in axes else "full"
    inputs = []
    for index, spec in enumerate(classes):
        grad = body.argument(f"g{index}", _flat(index, part, spec.grad), "grad")
        outs = [_exact(body, index, spec, part)]
        for name, fmt in zip(spec.state_names, spec.states, strict=True):
            state = body.argument(
                f"{name}{index}", _flat(index, part, fmt), name
            )
            outs.append(_decode(body, state, index, part, fmt))
        inputs.append((grad, outs))
    control = _control(body)
    body.line(f'%factor = dfa.read {control}["factor"] : f32')
    counter = control
    if check:
        counter = _emit_check(body, [grad for grad, _ in inputs], classes)
    else:
        body.line(f'%found = dfa.read {control}["found_inf"] : i32')
        body.line("%zero = arith.constant 0 : i32")
        body.line("%skip = arith.cmpi ne, %found, %zero : i32")
    for index, spec in enumerate(classes):
        _emit_rule(body, index, spec, part, gather, *inputs[index])
    body.line(f"%counted = dfa.step_count {counter} unless %skip")
    body.result("%counted", "!dfa.control", "control")
    return _layout(classes, axes) + "\n" + body.text() + "\n"


def _emit_check(
    body: _Body, grads: Sequence[str], classes: Sequence[ClassSpec]
) -> str:
    """Makes ``%skip`` of whole gradients; the control value that says it."""
    flag = "!dfa.partial<flag, whole>"
    flags = []
    for index, (grad, spec) in enumerate(zip(grads, classes, strict=True)):
        flags.append(body.name())
        body.line(
            f"{flags[-1]} = dfa.non_finite {grad} : "
            f"{_flat(index, 'full', spec.grad)} -> {flag}"
        )
    total = body.name()
    body.line(f"{total} = dfa.combine {', '.join(flags)} : {flag}")
    body.line(f"%skip = dfa.flag_finish {total} : {flag} -> i1")
    body.line('%told = dfa.write %skip, %ctl["found_inf"] : i1')
    return "%told"


def _emit_rule(
    body: _Body,
    index: int,
    spec: ClassSpec,
    part: str,
    gather: bool,
    grad: str,
    outs: Sequence[str],
) -> None:
    wide = _flat(index, part, "f32")
    scaled, new = body.name(), body.name()
    body.line(
        f"{scaled} = dfa.unscale {grad} by %factor : "
        f"{_flat(index, part, spec.grad)}, f32 -> {wide}"
    )
    for line in spec.rule.lines(new, scaled, outs, wide, spec.modes):
        body.line(line)
    many = len(outs) > 1
    values = [f"{new}#{i}" for i in range(len(outs))] if many else [new]
    _store_param(body, values[0], index, spec, part, gather)
    states = zip(spec.state_names, spec.states, values[1:], strict=True)
    for name, fmt, value in states:
        stored = _encode(body, value, index, part, fmt)
        body.result(stored, _flat(index, part, fmt), name)
