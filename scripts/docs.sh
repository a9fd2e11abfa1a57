#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Makes docs/reference/: from the .td files, with mlir-tblgen, one page for the
# dialect and one for each Passes.td; from the docstrings of python/dfa one page
# for the package. With --check it writes nothing and fails if a page in the tree
# differs.
set -euo pipefail
cd "$(dirname "$0")/.."

mlir=${MLIR_PREFIX:-/usr/lib/llvm-22}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=$work/pages
mkdir "$made"

page() {
  local generator=$1 source=$2 output=$made/$3
  shift 3
  {
    echo "<!-- Made by scripts/docs.sh from $source; edit that file. -->"
    echo
    "$mlir/bin/mlir-tblgen" "$generator" "$@" -I dialects -I include \
      -I "$mlir/include" "$source"
  } | sed 's/[[:space:]]*$//' >"$output"
}

if [ -e dialects/dfa/IR/DfaOps.td ]; then
  page -gen-dialect-doc dialects/dfa/IR/DfaOps.td dialect.md -dialect=dfa
fi
while IFS= read -r source; do
  # include/dfa/Conversion/KernelsToGPU/Passes.td: passes-Conversion-KernelsToGPU.md
  name=$(dirname "${source#include/dfa/}" | tr / -)
  page -gen-pass-doc "$source" "passes-$name.md"
done < <(find include/dfa -name Passes.td | sort)

python3 scripts/python_reference.py >"$made/python.md"

if [ "${1:-}" = --check ]; then
  mkdir -p docs/reference
  if ! diff -ru docs/reference "$made" >"$work/difference"; then
    head -20 "$work/difference"
    echo "docs/reference is stale: run scripts/docs.sh"
    exit 1
  fi
else
  mkdir -p docs/reference
  rm -f docs/reference/*.md
  cp "$made"/*.md docs/reference/ 2>/dev/null || true
fi
