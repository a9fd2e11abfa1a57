# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Step files for tests of dfa-run, and running them. Written apart from
# dfa-layout, so that a mistake of one is not the other's too.
"""Makes step files and runs dfa-run on them."""

import json
import os
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DFA_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "bin" / "dfa-run"

STATES = {
    "adam": ["exp_avg", "exp_avg_sq"],
    "adamw": ["exp_avg", "exp_avg_sq"],
    "sgd": ["momentum_buffer"],
    "lion": ["exp_avg"],
    "adagrad": ["sum"],
    "rmsprop": ["square_avg"],
    "lamb": ["exp_avg", "exp_avg_sq"],
}
OPS = {
    "adam": "dfa.adam adam",
    "adamw": "dfa.adam adamw",
    **{r: f"dfa.{r}" for r in ("sgd", "lion", "adagrad", "rmsprop", "lamb")},
}


class Step:
    """One class of parameters and its step; `text` is the file."""

    def __init__(
        self,
        shapes,
        hyper,
        rule="adamw",
        *,
        states=None,
        flags=(),
        storage="fp32",
        grad="f32",
        state_format="f32",
        scaler=False,
        clip=None,
        control=None,
        skip=True,
        mesh=None,
        bucket_bytes=None,
        groups=None,
        orders=None,
        accumulate=None,
        forget=True,
        presence=False,
    ):
        self.shapes = shapes
        self.states = STATES[rule] if states is None else list(states)
        self.mesh = mesh or {}
        master, param = {
            "fp32": ("none", "f32"),
            "master": ("f32", "bf16"),
            "half": ("f32", "f16"),
            "remainder": ("remainder", "bf16"),
            "bf16": ("none", "bf16"),
        }[storage]
        self.master, self.param, self.grad = master, param, grad
        part = "shard" if "shard" in self.mesh else "full"

        def flat(element, which=part):
            return f"!dfa.flat<@m, @w, {which}, {element}>"

        f32 = flat("f32")
        arguments = [("%g", flat(grad, "full"), "grad")]
        body = []
        wide = "%p"
        if master == "f32":
            arguments.append(("%p", f32, "master"))
        else:
            arguments.append(("%p", flat(param), "param"))
        if storage == "remainder":
            arguments.append(("%r", flat("i16"), "remainder"))
            body.append(
                f"%pw = dfa.decode remainder %p, %r : {flat('bf16')}, "
                f"{flat('i16')} -> {f32}"
            )
            wide = "%pw"
        if storage == "bf16":
            body.append(f"%pw = dfa.decode bf16 %p : {flat('bf16')} -> {f32}")
            wide = "%pw"
        outs = [wide]
        for number, state in enumerate(self.states):
            arguments.append((f"%s{number}", flat(state_format), state))
            outs.append(f"%s{number}")
            if state_format != "f32":
                outs[-1] = f"%sw{number}"
                body.append(
                    f"%sw{number} = dfa.decode {state_format} %s{number} : "
                    f"{flat(state_format)} -> {f32}"
                )
        arguments.append(("%ctl", "!dfa.control", "control"))

        value, kind = "%g", flat(grad, "full")
        if accumulate:
            # Gradients arrive as `grad` and are added up in another format.
            bucket = flat(accumulate, "full")
            arguments.append(("%bk", bucket, "main_grad"))
            body.append(f"%acc = dfa.accumulate %g into %bk : {kind}, {bucket}")
            value, kind, grad = "%acc", bucket, accumulate
        if "shard" in self.mesh:
            body.append(
                f'%rs = dfa.reduce_scatter sum {value} over "shard" : '
                f"{kind} -> {flat(grad)}"
            )
            value, kind = "%rs", flat(grad)
        if "replicate" in self.mesh:
            body.append(
                f'%ar = dfa.all_reduce sum {value} over "replicate" : {kind}'
            )
            value = "%ar"
        if scaler or self.mesh:
            body.append("%f = dfa.grad_factor %ctl : f64")
            body.append(
                f"%u = dfa.unscale {value} by %f : {kind}, f64 -> {f32}"
            )
            value = "%u"
        elif grad != "f32":
            body.append(f"%u = dfa.decode {grad} {value} : {kind} -> {f32}")
            value = "%u"

        def combined(name, partial):
            over = ' over ["shard"]' if "shard" in self.mesh else ""
            body.append(f"{name}c = dfa.combine {name}{over} : {partial}")
            return f"{name}c"

        l2, flag = "!dfa.partial<l2, whole>", "!dfa.partial<flag, whole>"
        body.append(f"%a = dfa.norm_partial {value} : {f32} -> {l2}")
        body.append(f"%n = dfa.norm_finish {combined('%a', l2)} : {l2} -> f64")
        unless = ""
        if skip:
            body.append(f"%b = dfa.non_finite {value} : {f32} -> {flag}")
            body.append(
                f"%inf = dfa.flag_finish {combined('%b', flag)} : {flag} -> i1"
            )
            unless = " unless %inf"
        control = dict(control or {})
        if clip is not None:
            control["max_norm"] = float(clip)
            body.append('%max = dfa.read %ctl["max_norm"] : f64')
            body.append(
                f"%c = dfa.clip {value} with %n to %max : {f32}, f64, f64"
            )
            value = "%c"
        types = ", ".join([f32] * len(outs))
        attributes = f" {{{', '.join(flags)}}}" if flags else ""
        body.append(
            f"%x:{len(outs)} = {OPS[rule]} ins({value} : {f32}) "
            f"outs({', '.join(outs)} : {types}) control(%ctl){unless}"
            f"{attributes} -> {types}"
        )
        results = []
        if master == "f32":
            results.append(("%x#0", f32, "master"))
            body.append(
                f"%o = dfa.encode {param} %x#0 : {f32} -> {flat(param)}"
            )
            results.append(("%o", flat(param), "param"))
        elif storage == "remainder":
            body.append(
                f"%o, %lo = dfa.encode remainder %x#0 : {f32} -> "
                f"{flat('bf16')}, {flat('i16')}"
            )
            results.append(("%o", flat("bf16"), "param"))
            results.append(("%lo", flat("i16"), "remainder"))
        elif storage == "bf16":
            body.append(f"%o = dfa.encode bf16 %x#0 : {f32} -> {flat('bf16')}")
            results.append(("%o", flat("bf16"), "param"))
        else:
            results.append(("%x#0", f32, "param"))
        if "shard" in self.mesh:
            where = [r[2] for r in results].index("param")
            name, kind, _ = results[where]
            full = flat(param, "full")
            body.append(
                f'%all = dfa.all_gather {name} over "shard" : {kind} -> {full}'
            )
            results[where] = ("%all", full, "param")
        for number, state in enumerate(self.states):
            name = f"%x#{number + 1}"
            if state_format != "f32":
                body.append(
                    f"%e{number} = dfa.encode {state_format} {name} : {f32} "
                    f"-> {flat(state_format)}"
                )
                name = f"%e{number}"
            results.append((name, flat(state_format), state))
        body.append('%k0 = dfa.write %n, %ctl["norm"] : f64')
        last = "%k0"
        if scaler:
            body.append(f"%k1 = dfa.scaler_update {last}, %inf")
            last = "%k1"
        body.append(f"%k2 = dfa.step_count {last}{unless}")
        if forget:
            body.append("%k3 = dfa.zero_grad generation %k2")
            last = "%k3"
        else:
            last = "%k2"
        results.append((last, "!dfa.control", "control"))
        if accumulate:
            results.append(("%acc", flat(accumulate, "full"), "main_grad"))

        lines = []
        on = ""
        if self.mesh:
            axes = ", ".join(f"{k} = {v}" for k, v in self.mesh.items())
            lines.append(f"dfa.mesh @dp({axes})")
            on = " on @dp"
        if bucket_bytes:
            on += f" bucket_bytes = {bucket_bytes}"
        lines.append(f"dfa.layout @m{on} {{")
        listed = ", ".join(f"{s} : {state_format}" for s in self.states)
        lines.append(
            f"  dfa.class @w param = {param} grad = {self.grad} "
            f"master = {master} states = [{listed}] rule = {rule}"
        )
        for index, values in enumerate(hyper if groups else [hyper]):
            pairs = ", ".join(f"{k} = {v:.17e}" for k, v in values.items())
            lines.append(f"  dfa.group {index} {{{pairs}}}")
        for name, shape in shapes.items():
            dims = "".join(f"{d}x" for d in shape)
            order = ""
            if orders and name in orders:
                order = f", order = {list(orders[name])}"
            group = groups[name] if groups else 0
            lines.append(
                f'  dfa.param "{name}" : tensor<{dims}{param}>{order}, '
                f"class = @w, group = {group}"
            )
        lines.append("}")
        takes = ", ".join(
            f'{n}: {t} {{dfa.role = "{r}"}}' for n, t, r in arguments
        )
        gives = ", ".join(f'{t} {{dfa.role = "{r}"}}' for _, t, r in results)
        fields = []
        if presence:
            axes = ", ".join(f'"{axis}"' for axis in self.mesh)
            fields.append(f"dfa.presence = [{axes}]")
        if control:
            pairs = ", ".join(
                f"{k} = {v} : i32" if isinstance(v, int) else f"{k} = {v:.17e}"
                for k, v in control.items()
            )
            fields.append(f"dfa.control = {{{pairs}}}")
        more = f" attributes {{{', '.join(fields)}}}" if fields else ""
        lines.append(f"func.func @step({takes}) -> ({gives}){more} {{")
        lines += [f"  {line}" for line in body]
        names = ", ".join(n for n, _, _ in results)
        kinds = ", ".join(t for _, t, _ in results)
        lines.append(f"  return {names} : {kinds}")
        lines.append("}")
        self.text = "\n".join(lines) + "\n"


class Outcome:
    """What dfa-run wrote: arrays by key, and its JSON."""

    def __init__(self, done, arrays):
        self.code, self.stderr, self.stdout = (
            done.returncode,
            done.stderr,
            done.stdout,
        )
        self.arrays = arrays
        self.report = None
        if done.stdout.startswith("{"):
            self.report = json.loads(done.stdout)

    def __getitem__(self, key):
        return self.arrays[key]

    def bf16(self, key):
        """A bf16 array as f32."""
        bits = self.arrays[key + ":bf16"].astype(np.uint32) << 16
        return bits.view(np.float32)


def run(directory, step, inputs=None, *options, target="reference", code=0):
    """Runs a step (a Step or the text of a file) on arrays."""
    assert PROGRAM.exists(), f"{PROGRAM} is not built"
    path = directory / "step.mlir"
    path.write_text(getattr(step, "text", step))
    words = [PROGRAM, path, f"--target={target}", "--json"]
    out = directory / "out.npz"
    out.unlink(missing_ok=True)
    words.append(f"--outputs={out}")
    if inputs is not None:
        np.savez(directory / "in.npz", **inputs)
        words.append(f"--inputs={directory / 'in.npz'}")
    words += map(str, options)
    if target != "reference":
        words.append("--verify")
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr + done.stdout
    arrays = dict(np.load(out)) if out.exists() else {}
    return Outcome(done, arrays)


ADAM = {
    "lr": 1e-2,
    "beta1": 0.9,
    "beta2": 0.99,
    "eps": 1e-8,
    "weight_decay": 0.1,
}


def sample(shapes, seed, scale=1.0):
    """f32 arrays: what dfa-run stores, and exact in float64."""
    rng = np.random.default_rng(seed)
    return {
        name: (scale * rng.standard_normal(shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def keyed(kind, arrays):
    return {f"{kind}/{name}": array for name, array in arrays.items()}
