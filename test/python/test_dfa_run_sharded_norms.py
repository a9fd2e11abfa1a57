# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Norms of single parameters and groups over ranks that own parts of them.
"""LAMB and clipping by group on a mesh, against float64 and one rank."""

import numpy as np
import pytest
from run_step import ADAM, Step, keyed, run, sample

# "long" lies on every rank, "cut" on two, "small" and "none" on one.
SHAPES = {"long": (40000,), "small": (5,), "none": (0,), "cut": (33, 64)}
MESHES = [{"shard": 2}, {"shard": 3}, {"replicate": 2, "shard": 2}]


def gradients(steps):
    inputs = keyed("param", sample(SHAPES, 7))
    for number in range(1, steps + 1):
        for name, grad in sample(SHAPES, 20 + number).items():
            inputs[f"grad.{number}/{name}"] = grad
    return inputs


@pytest.mark.parametrize("mesh", MESHES)
def test_lamb(tmp_path, mesh):
    inputs = gradients(3)
    found = []
    for number, axes in enumerate((None, mesh)):
        place = tmp_path / str(number)
        place.mkdir()
        step = Step(SHAPES, ADAM, "lamb", mesh=axes, bucket_bytes=100000)
        found.append(run(place, step, inputs, "--steps=3", target="cpu"))
    one, many = found
    for name in SHAPES:
        np.testing.assert_allclose(
            many[f"param/{name}"], one[f"param/{name}"], rtol=0, atol=3e-7
        )


@pytest.mark.parametrize("storage", ["master", "remainder"])
def test_lamb_with_masters(tmp_path, storage):
    step = Step(
        SHAPES,
        ADAM,
        "lamb",
        mesh={"shard": 2},
        storage=storage,
        grad="bf16",
        scaler=True,
        clip=1.0,
    )
    options = ("--steps=3", "--distinct-gradients")
    run(tmp_path, step, None, *options, target="cpu")


GROUPED = """
!full = !dfa.flat<@m, @w, full, f32>
!part = !dfa.flat<@m, @w, {part}, f32>
{mesh}
dfa.layout @m{on} {{
  dfa.class @w param = f32 grad = f32 master = none states = [] rule = sgd
  dfa.group 0 {{lr = 0.5, weight_decay = 0.0}}
  dfa.group 1 {{lr = 0.25, weight_decay = 0.0}}
  dfa.group 2 {{lr = 1.0, weight_decay = 0.0}}
  dfa.param "long" : tensor<40000xf32>, class = @w, group = 0
  dfa.param "small" : tensor<5xf32>, class = @w, group = 1
  dfa.param "none" : tensor<0xf32>, class = @w, group = 2
  dfa.param "cut" : tensor<33x64xf32>, class = @w, group = 1
}}
func.func @step(%g: !full {{dfa.role = "grad"}},
                %p: !part {{dfa.role = "param"}},
                %ctl: !dfa.control {{dfa.role = "control"}})
    -> (!full {{dfa.role = "param"}},
        !dfa.control {{dfa.role = "control"}}) {{
  {scatter}
  %a = dfa.norm_partial %s : !part -> !dfa.partial<l2, group>
  %b = dfa.combine %a {over} : !dfa.partial<l2, group>
  %n = dfa.norm_finish %b : !dfa.partial<l2, group> -> !dfa.per<group, f64>
  %w = dfa.norm_partial %s : !part -> !dfa.partial<l2, whole>
  %x = dfa.combine %w {over} : !dfa.partial<l2, whole>
  %all = dfa.norm_finish %x : !dfa.partial<l2, whole> -> f64
  %one = arith.constant 1.0 : f64
  %c = dfa.clip %s with %n to %one : !part, !dfa.per<group, f64>, f64
  %r = dfa.sgd ins(%c : !part) outs(%p : !part) control(%ctl) -> !part
  {gather}
  %k = dfa.write %all, %ctl["norm"] : f64
  %k1 = dfa.step_count %k
  return %o, %k1 : !full, !dfa.control
}}
"""


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_clip_by_group(tmp_path, shards):
    many = shards > 1
    text = GROUPED.format(
        part="shard" if many else "full",
        mesh=f"dfa.mesh @dp(shard = {shards})" if many else "",
        on=" on @dp" if many else "",
        over='over ["shard"]' if many else "",
        scatter='%s = dfa.reduce_scatter sum %g over "shard" : !full -> !part'
        if many
        else "%one32 = arith.constant 1.0 : f32\n"
        "  %s = dfa.unscale %g by %one32 : !full, f32 -> !part",
        gather='%o = dfa.all_gather %r over "shard" : !part -> !full'
        if many
        else "%one33 = arith.constant 1.0 : f32\n"
        "  %o = dfa.unscale %r by %one33 : !part, f32 -> !full",
    )
    inputs = gradients(1)
    found = run(tmp_path, text, inputs, "--steps=1", target="cpu")
    grads = {n: shards * inputs[f"grad.1/{n}"].astype("f8") for n in SHAPES}
    for rate, names in ((0.5, ["long"]), (0.25, ["small", "cut"])):
        norm = np.sqrt(sum(np.sum(grads[n] ** 2) for n in names))
        factor = min(1.0, 1.0 / (norm + 1e-6))
        for name in names:
            want = inputs[f"param/{name}"] - rate * factor * grads[name]
            np.testing.assert_allclose(
                found[f"param/{name}"], want, rtol=0, atol=5e-7
            )
    total = np.sqrt(sum(np.sum(g**2) for g in grads.values()))
    np.testing.assert_allclose(found["control/norm"], total, rtol=1e-12)
