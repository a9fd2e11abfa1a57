# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every step that Python can write is one that the compiler takes."""

from __future__ import annotations

import itertools

import pytest
from dfa import passes
from dfa.optim.rules import ADAM, ADAMW, LAMB, LION, SGD
from dfa.optim.steptext import ClassSpec, norm_step, update_step

RULES = [
    (ADAMW, ()),
    (ADAMW, ("amsgrad", "maximize")),
    (ADAM, ("no_bias_correction",)),
    (LION, ("maximize",)),
    (SGD, ()),
    (SGD, ("momentum", "nesterov")),
    (LAMB, ()),
]
FORMATS = [
    ("f32", "f32", "none"),
    ("f32", "bf16", "none"),
    ("f64", "f64", "f32"),
    ("bf16", "bf16", "f32"),
    ("bf16", "bf16", "none"),
    ("bf16", "bf16", "remainder"),
    ("f16", "f32", "f32"),
]
AXES = [(), ("shard",), ("replicate", "shard")]


def make(rule, modes, formats, state="f32"):
    modes = frozenset(modes)
    states = (state,) * len(rule.state_names(modes))
    return ClassSpec(rule, *formats, states, modes)


def kernels(text: str) -> str:
    return passes(text, "builtin.module(dfa-to-kernels)")


@pytest.mark.parametrize("axes", AXES, ids="-".join)
def test_updates(axes: tuple[str, ...]) -> None:
    for (rule, modes), formats, state in itertools.product(
        RULES, FORMATS, ("f32", "bf16")
    ):
        if rule is LAMB and (axes or state != "f32"):
            continue  # its norms of parameters are of one rank, and two-pass
        spec = make(rule, modes, formats, state)
        ir = kernels(update_step([spec], axes))
        # One pass over the elements, whatever the formats.
        count = 2 if rule is LAMB else 1
        assert ir.count("dfa.launch_elements") == count, spec
        assert ("all_gather" in ir) == bool(axes), spec


@pytest.mark.parametrize("axes", AXES, ids="-".join)
@pytest.mark.parametrize("reduce", [False, True])
@pytest.mark.parametrize("kind", ["l1", "l2", "lp", "inf"])
def test_norms(axes: tuple[str, ...], reduce: bool, kind: str) -> None:
    specs = [make(ADAMW, (), formats) for formats in FORMATS]
    order = 3.0 if kind == "lp" else None
    text = norm_step(specs, axes, kind=kind, order=order, reduce=reduce)
    ir = kernels(text)
    assert ir.count("reduce_scatter over") == (
        len(specs) if reduce and axes else 0
    )
    assert ir.count("all_reduce over") == (
        len(specs) if reduce and len(axes) == 2 else 0
    )
    # Norms add over shards, never over replicas.
    assert 'all_gather over "replicate"' not in ir


def test_several_classes_share_one_control_kernel() -> None:
    specs = [make(ADAMW, (), formats) for formats in FORMATS]
    ir = kernels(update_step(specs))
    assert ir.count("dfa.launch_control @control") == 1
    assert ir.count("dfa.launch_elements") == len(specs)


def test_text_does_not_depend_on_the_model() -> None:
    spec = make(ADAMW, (), FORMATS[0])
    assert update_step([spec]) == update_step([spec])
    assert update_step([spec]).count("dfa.param") == 1


@pytest.mark.parametrize(
    ("formats", "message"),
    [
        (("i8", "f32", "none"), "param format"),
        (("f32", "i8", "none"), "grad format"),
        (("f32", "f32", "f16"), "master format"),
        (("f16", "f16", "remainder"), "bf16"),
    ],
)
def test_bad_formats(formats: tuple[str, str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(ADAMW, (), formats)


def test_bad_modes_and_norms() -> None:
    with pytest.raises(ValueError, match="nesterov"):
        update_step([make(LION, ("nesterov",), FORMATS[0])])
    with pytest.raises(ValueError, match="state formats"):
        ClassSpec(ADAMW, "f32", "f32", "none", ("f32",))
    spec = make(ADAMW, (), FORMATS[0])
    with pytest.raises(ValueError, match="l3"):
        norm_step([spec], kind="l3")
    with pytest.raises(ValueError, match="order"):
        norm_step([spec], kind="lp")
