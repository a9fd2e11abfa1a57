#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A sharded step on two GPUs, 2^30 elements in bf16, and what it is made of: the
# copy rate, reductions and gathers by themselves, then whole steps by size of
# bucket, with and without copy engines. docs/performance.md has the results.
# usage: benchmarks/two_gpus.sh [MIB...]   bucket sizes (default: 128 256 512)
# Needs dfa-layout, dfa-run and dfa-bench-links in PATH or in build/bin, ptxas.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/build/bin:$PATH
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
[ $# -gt 0 ] || set -- 128 256 512

echo "=== collectives alone"
dfa-bench-links --ranks 2 --mib 2048
echo "=== collectives alone, DFA_NCCL_COPY_ENGINES=0"
DFA_NCCL_COPY_ENGINES=0 dfa-bench-links --ranks 2 --mib 2048

python3 - >"$out/list.json" <<'PY'
import json

rows = [
    {"name": f"p{i}", "shape": [1 << 26], "dtype": "bfloat16", "group": 0}
    for i in range(16)
]
print(json.dumps(rows))
PY
for size in "$@"; do
  dfa-layout "$out/list.json" --rule=adamw --storage=master --grad-dtype=bf16 \
    --scaler --clip=1.0 --mesh=shard=2 --bucket-mb="$size" -o "$out/step.mlir"
  for engines in 1 0; do
    echo "=== buckets of $size MiB, DFA_NCCL_COPY_ENGINES=$engines"
    DFA_NCCL_COPY_ENGINES=$engines dfa-run "$out/step.mlir" --target=cuda \
      --steps=1 --replay --time
  done
done
