#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Times whole steps on this machine's GPU: each line's copy rate, kernel times and
# floor come from the same run. docs/performance.md explains the columns.
# usage: benchmarks/steps.sh [NAME...]   names: small resnet50 sd2_unet remainder
#                                        half_2p30 float_2p30 (default: all)
# Needs dfa-layout and dfa-run in PATH or in build/bin, and ptxas.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
target=${DFA_TARGET:-cuda}
mixed=(--rule=adamw --storage=master --grad-dtype=bf16 --scaler --clip=1.0)
plain=(--rule=adamw --storage=fp32 --scaler --clip=1.0)

# tensors COUNT ELEMENTS DTYPE: a parameter list of equal tensors
tensors() {
  python3 - "$@" <<'PY'
import json, sys
count, elements, dtype = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rows = [
    {"name": f"p{i}", "shape": [elements], "dtype": dtype, "group": 0}
    for i in range(count)
]
json.dump(rows, sys.stdout)
PY
}

make() {
  case "$1" in
  small)
    tensors 10000 64 float32 >"$out/list.json"
    dfa-layout "$out/list.json" "${plain[@]}" -o "$out/step.mlir" ;;
  resnet50)
    dfa-layout --model=resnet50 "${mixed[@]}" --memory-format=channels_last \
      -o "$out/step.mlir" ;;
  sd2_unet)
    dfa-layout --model=sd2_unet "${mixed[@]}" --memory-format=channels_last \
      -o "$out/step.mlir" ;;
  remainder)
    dfa-layout --model=sd2_unet --rule=adamw --storage=remainder \
      --grad-dtype=bf16 --scaler --clip=1.0 --memory-format=channels_last \
      -o "$out/step.mlir" ;;
  half_2p30)
    tensors 16 67108864 bfloat16 >"$out/list.json"
    dfa-layout "$out/list.json" "${mixed[@]}" -o "$out/step.mlir" ;;
  float_2p30)
    tensors 16 67108864 float32 >"$out/list.json"
    dfa-layout "$out/list.json" "${plain[@]}" -o "$out/step.mlir" ;;
  *)
    echo "unknown benchmark '$1'" >&2
    exit 2 ;;
  esac
}

[ $# -gt 0 ] || set -- small resnet50 sd2_unet remainder half_2p30 float_2p30
for name in "$@"; do
  make "$name"
  echo "=== $name"
  dfa-run "$out/step.mlir" --target="$target" --steps=1 --replay --time \
    2>"$out/progress" || { cat "$out/progress"; exit 1; }
done
