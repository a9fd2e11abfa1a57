# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# expect-exit.py CODE COMMAND...: succeeds if the command exits with CODE. lit's
# own shell only knows zero and non-zero.
import subprocess
import sys

expected = int(sys.argv[1])
found = subprocess.run(sys.argv[2:]).returncode
if found != expected:
    sys.exit(f"expected exit code {expected}, but got {found}")
