# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Reads a module with a gpu.binary and fails if a kernel takes more registers
# than its budget, spills, or is missing.
"""Usage: check_budget.py KERNELS MOST_REGISTERS [NAME=REGISTERS]... < module"""

import re
import sys

kernels, budget = int(sys.argv[1]), int(sys.argv[2])
own = {}
for entry in sys.argv[3:]:
    name, registers = entry.split("=")
    own[name] = int(registers)
found = re.findall(
    r"(\w+) = \{registers = (\d+) : i64, spill_bytes = (\d+) : i64\}",
    sys.stdin.read(),
)
for name, registers, spilled in found:
    print(f"{name}: {registers} registers, {spilled} bytes spilled")
over = [
    name
    for name, registers, spilled in found
    if not 0 < int(registers) <= own.get(name, budget) or int(spilled) > 0
]
if over:
    sys.exit(f"over the budget, or spilled: {', '.join(over)}")
if len(found) != kernels:
    sys.exit(f"expects {kernels} kernels, but got {len(found)}")
