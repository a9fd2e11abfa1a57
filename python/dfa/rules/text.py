# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traced scalars as text: the two regions of ``dfa.update``."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from dfa.rules.trace import ELEMENT, Node

#: Ops of floats by the node's name; others have rules of their own below.
_FLOAT = {
    "add": "arith.addf",
    "sub": "arith.subf",
    "mul": "arith.mulf",
    "div": "arith.divf",
    "neg": "arith.negf",
    "minimum": "arith.minimumf",
    "maximum": "arith.maximumf",
    "sqrt": "math.sqrt",
    "abs": "math.absf",
    "floor": "math.floor",
    "ceil": "math.ceil",
    "roundeven": "math.roundeven",
    "copysign": "math.copysign",
    "fma": "math.fma",
    "exp": "math.exp",
    "log": "math.log",
    "tanh": "math.tanh",
}
_INTEGER = {
    "add": "arith.addi",
    "sub": "arith.subi",
    "mul": "arith.muli",
    "shl": "arith.shli",
    "shr": "arith.shrsi",
    "and": "arith.andi",
    "or": "arith.ori",
}
_CONDITION = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}


def number(value: float, width: int) -> str:
    """A float literal of f32 or f64."""
    if math.isfinite(value):
        text = repr(float(value))
        mantissa, mark, exponent = text.partition("e")
        if "." not in mantissa:
            mantissa += ".0"
        return mantissa + mark + exponent
    code, digits = ("<d", 16) if width == 64 else ("<f", 8)
    bits = int.from_bytes(struct.pack(code, value), "little")
    return f"0x{bits:0{digits}X}"


class _Region:
    """Lines of one region; a node is written once."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.type = f"f{width}"
        self.lines: list[str] = []
        self.known: dict[tuple[Node, str], str] = {}

    def line(self, text: str) -> str:
        name = f"%x{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        return name

    def _type(self, node: Node) -> str:
        return {"f": self.type, "i": "i64", "b": "i1"}[node.kind]

    def value(self, node: Node) -> str:
        """The name of a node's value."""
        key = (node, node.kind)
        name = self.known.get(key)
        if name is None:
            name = self.known[key] = self.line(self._text(node))
        return name

    def _text(self, node: Node) -> str:
        type_ = self._type(node)
        if node.op == "constant":
            return f"arith.constant {self._literal(node)}"
        values = [self.value(operand) for operand in node.operands]
        listed = ", ".join(values)
        if node.op == "cmp":
            of = self._type(node.operands[0])
            return f"arith.cmpf {node.value}, {listed} : {of}"
        if node.op == "select":
            return f"arith.select {listed} : {type_}"
        if node.op == "powi":
            return f"dfa.powi {listed} : f64"
        if node.op in ("sitofp", "fptosi", "bitcast"):
            of = self._type(node.operands[0])
            return f"arith.{node.op} {listed} : {of} to {type_}"
        table = {"f": _FLOAT, "i": _INTEGER, "b": _CONDITION}[node.kind]
        return f"{table[node.op]} {listed} : {type_}"

    def _literal(self, node: Node) -> str:
        if node.kind == "b":
            return "true" if node.value else "false"
        if node.kind == "i":
            return f"{node.value} : i64"
        return f"{number(node.value, self.width)} : {self.type}"


class _Apply(_Region):
    """The region of elements; derived scalars are its arguments."""

    def __init__(self) -> None:
        super().__init__(32)
        self.derived: list[Node] = []

    def value(self, node: Node) -> str:
        if node.level == ELEMENT or node.op == "constant":
            return super().value(node)
        key = (node, node.kind)
        name = self.known.get(key)
        if name is not None:
            return name
        if node not in self.derived:
            self.derived.append(node)
        name = f"%d{self.derived.index(node)}"
        if node.kind == "b":  # it travels as 0 or 1
            zero = self.line("arith.constant 0.0 : f32")
            name = self.line(f"arith.cmpf une, {name}, {zero} : f32")
        self.known[key] = name
        return name


def regions(
    inputs: Sequence[Node],
    step: Node,
    hyper: Sequence[Node],
    results: Sequence[Node],
) -> tuple[list[str], list[str]]:
    """The lines of ``hyper [...] derive {...} apply {...}``, and their columns.

    Args:
        inputs: arguments of ``apply``: gradient, parameter, states.
        step: the argument that counts steps.
        hyper: the arguments that are hyper-parameters.
        results: what ``apply`` yields.
    """
    apply = _Apply()
    for index, node in enumerate(inputs):
        apply.known[node, node.kind] = f"%e{index}"
    values = [apply.value(node) for node in results]
    derive = _Region(64)
    derive.known[step, step.kind] = "%step"
    used = _arguments(apply.derived)
    columns = [node for node in hyper if node in used]
    for index, node in enumerate(columns):
        derive.known[node, node.kind] = f"%h{index}"
    narrow = []
    for node in apply.derived:
        name = derive.value(node)
        if node.kind == "b":
            one = derive.line("arith.constant 1.0 : f64")
            zero = derive.line("arith.constant 0.0 : f64")
            name = derive.line(f"arith.select {name}, {one}, {zero} : f64")
        narrow.append(derive.line(f"arith.truncf {name} : f64 to f32"))
    names = [node.value for node in columns]
    heads = ["%step: i64", *(f"%h{i}: f64" for i in range(len(columns)))]
    elements = [f"%e{i}: f32" for i in range(len(inputs))]
    elements += [f"%d{i}: f32" for i in range(len(narrow))]
    listed = ", ".join(f'"{name}"' for name in names)
    lines = [
        f"  hyper [{listed}] derive {{",
        f"  ^bb0({', '.join(heads)}):",
        *derive.lines,
        f"    dfa.yield{_yields(narrow)}",
        "  } apply {",
        f"  ^bb0({', '.join(elements)}):",
        *apply.lines,
        f"    dfa.yield{_yields(values)}",
    ]
    return lines, names


def _arguments(nodes: Sequence[Node]) -> set[Node]:
    seen: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(node.operands)
    return {node for node in seen if node.op == "argument"}


def _yields(names: Sequence[str]) -> str:
    if not names:
        return ""
    return f" {', '.join(names)} : {', '.join(['f32'] * len(names))}"
