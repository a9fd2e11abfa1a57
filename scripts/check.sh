#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Everything that is checked without running code: formatting, Python lint, the
# tree's own rules (scripts/lint.py), and generated docs that are stale. Changes
# nothing; `scripts/check.sh --fix` formats and writes the docs anew.
set -euo pipefail
cd "$(dirname "$0")/.."

fix=0
[ "${1:-}" = --fix ] && fix=1
[ -x build/venv/bin/clang-format ] || bash scripts/setup.sh
PATH=$PWD/build/venv/bin:$PATH
status=0

step() {
  local name=$1
  shift
  if "$@"; then
    echo "check: $name: fine"
  else
    echo "check: $name: FAILED"
    status=1
  fi
}

format_cpp() {
  local files
  mapfile -t files < <(git ls-files '*.cpp' '*.h' '*.c')
  [ ${#files[@]} = 0 ] && return
  clang-format --version | grep -q 'version 22\.' ||
    { echo "expected clang-format 22, found $(clang-format --version)"; return 1; }
  if [ $fix = 1 ]; then
    clang-format -i "${files[@]}"
  else
    local bad=0 file
    for file in "${files[@]}"; do
      clang-format "$file" | cmp -s - "$file" ||
        { echo "$file: not formatted (scripts/check.sh --fix)"; bad=1; }
    done
    return $bad
  fi
}

format_python() {
  if [ $fix = 1 ]; then
    ruff check -q --fix . && ruff format -q .
  else
    ruff check -q . && ruff format -q --check .
  fi
}

shell_syntax() {
  local file
  for file in scripts/*.sh .ci/run; do
    bash -n "$file" || return 1
  done
}

docs() {
  if [ $fix = 1 ]; then
    bash scripts/docs.sh
  else
    bash scripts/docs.sh --check
  fi
}

step "clang-format" format_cpp
step "ruff" format_python
step "shell syntax" shell_syntax
step "tree rules" python3 scripts/lint.py
step "generated docs" docs
exit $status
