# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Prints a module that nests DEPTH levels deep in one of several ways.
# usage: nest.py KIND DEPTH

import sys

kind, depth = sys.argv[1], int(sys.argv[2])


def holder(attribute):
    return f"func.func private @f() attributes {{a = {attribute}}}"


if kind == "arrays":
    print(holder("[" * depth + "]" * depth))
elif kind == "dictionaries":
    print(holder("{a = " * depth + "1" + "}" * depth))
elif kind == "types":
    print(holder("tuple<" * depth + "i1" + ">" * depth))
elif kind == "regions":
    print("module {\n" * depth + "}\n" * depth)
elif kind == "aliases":
    print("#a0 = [1]")
    for n in range(1, depth):
        print(f"#a{n} = [#a{n - 1}]")
    print(holder(f"#a{depth - 1}"))
elif kind == "signs":
    print(holder("affine_map<(d0) -> (" + "- " * depth + "d0)>"))
elif kind == "sum":
    print(holder("affine_map<(d0) -> (" + "d0 + " * depth + "d0)>"))
elif kind == "none":
    # Brackets that are none, and many that do not nest.
    print("// " + "[" * depth)
    print(holder('"' + r"\"[" * depth + '"'))
    print(f"func.func private @g({', '.join(['() -> ()'] * depth)})")
