#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Configures and builds everything into build/. Extra arguments go to CMake,
# e.g. scripts/build.sh -DDFA_BUILD_COMPILER=OFF. Run scripts/setup.sh before.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$PWD/build/venv/bin/python
if [ ! -x "$python" ]; then
  echo "build: build/venv is missing; run scripts/setup.sh first" >&2
  exit 1
fi

module=OFF
[ -e python/CMakeLists.txt ] && module=ON

cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DDFA_BUILD_PYTHON=$module -DPython3_EXECUTABLE="$python" \
  -DPython_EXECUTABLE="$python" -DDFA_LIT="$PWD/build/venv/bin/lit" \
  "$@" >build/configure.log 2>&1 ||
  { tail -30 build/configure.log >&2; exit 1; }
cmake --build build
