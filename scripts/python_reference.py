#!/usr/bin/env python3
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints docs/reference/python.md: the package's public names, from its source.

Nothing is imported, so neither torch nor a build is needed. What `dfa.__all__`
lists is followed to its definition; methods of base classes in the package are
listed with those of the class, but not again under an adapter.
"""

import ast
import functools
import inspect
import pathlib

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "python"
#: Modules beside the names of `dfa` itself.
MODULES = ("dfa.lightning", "dfa.nemo")


@functools.cache
def parse(module):
    path = PACKAGE / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text())


def imports(module):
    """Names that a module takes from the package: name to (module, name)."""
    found = {}
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "dfa"
        ):
            for alias in node.names:
                found[alias.asname or alias.name] = (node.module, alias.name)
    return found


def find(module, name):
    """The definition of a name, and the module that it stands in."""
    for node in parse(module).body:
        if getattr(node, "name", None) == name:
            return module, node
        # A function that a decorator object stands for: rule = Rule()
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in node.targets
        ):
            return module, node
    if name in imports(module):
        return find(*imports(module)[name])
    return None


def parameters(arguments):
    """Each parameter as it is written, `/` and `*` included."""
    plain = [*arguments.posonlyargs, *arguments.args]
    missing = len(plain) - len(arguments.defaults)
    defaults = [*[None] * missing, *arguments.defaults]
    out = [written(*pair) for pair in zip(plain, defaults, strict=True)]
    if arguments.posonlyargs:
        out.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        out.append("*" + written(arguments.vararg))
    elif arguments.kwonlyargs:
        out.append("*")
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    out += [written(*pair) for pair in pairs]
    if arguments.kwarg:
        out.append("**" + written(arguments.kwarg))
    return [text for text in out if text not in ("self", "cls")]


def written(argument, default=None):
    text = argument.arg
    if argument.annotation:
        text += f": {ast.unparse(argument.annotation)}"
    if default is None:
        return text
    equals = " = " if argument.annotation else "="
    return text + equals + ast.unparse(default)


def signature(node):
    arguments = parameters(node.args)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{node.name}({', '.join(arguments)}){result}"
    if len(line) <= 80:
        return line
    inner = "".join(f"    {argument},\n" for argument in arguments)
    return f"{node.name}(\n{inner}){result}"


def methods(module, node, inherited=True):
    """Public methods of a class and of its bases in the package, by name."""
    found = {}
    for base in node.bases if inherited else ():
        place = find(module, base.id) if isinstance(base, ast.Name) else None
        if place and isinstance(place[1], ast.ClassDef):
            found.update(methods(*place))
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
            found[part.name] = part
    return found


def is_property(node):
    return any(
        getattr(d, "id", getattr(d, "attr", "")) in ("property", "setter")
        for d in node.decorator_list
    )


def docstring(node):
    text = ast.get_docstring(node) or ""
    return inspect.cleandoc(text)


def block(text):
    return f"```text\n{text}\n```\n" if text else ""


def describe(module, node, name, inherited=True):
    print(f"## `{name}`\n")
    if isinstance(node, ast.FunctionDef):
        print(f"```python\n{signature(node)}\n```\n")
        print(block(docstring(node)))
        return
    if not isinstance(node, ast.ClassDef):
        return
    inits = [p for p in node.body if getattr(p, "name", "") == "__init__"]
    if inits:
        inits[0].name = node.name
        print(f"```python\n{signature(inits[0])}\n```\n")
    print(block(docstring(node)))
    found = methods(module, node, inherited)
    for _, method in sorted(found.items()):
        if not docstring(method):
            continue
        head = method.name if is_property(method) else signature(method)
        print(f"### `{name.split('.')[-1]}.{method.name}`\n")
        print(f"```python\n{head}\n```\n")
        print(block(docstring(method)))


def public_names():
    names = {}
    for node in parse("dfa").body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            names = dict.fromkeys(ast.literal_eval(node.value), "dfa")
    return {n: m for n, m in names.items() if not n.startswith("__")}


def main():
    print("<!-- Made by scripts/docs.sh from python/dfa; edit it there. -->\n")
    print("# The Python package\n")
    print(docstring(parse("dfa")), "\n")
    for name, module in public_names().items():
        place = find(module, name)
        if place is None:
            raise SystemExit(f"dfa.{name}: no definition found")
        describe(*place, f"dfa.{name}")
    for module in MODULES:
        print(f"# `{module}`\n")
        print(block(docstring(parse(module))))
        for node in parse(module).body:
            if isinstance(
                node, ast.ClassDef | ast.FunctionDef
            ) and not node.name.startswith("_"):
                describe(module, node, f"{module}.{node.name}", inherited=False)


if __name__ == "__main__":
    main()
