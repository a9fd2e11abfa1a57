#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The main job, from nothing: installs, builds, writes the mixed-precision AdamW
# step of ResNet-50's parameters, shows what the compiler makes of it, runs three
# steps, and compares with a float64 reference. Runs on the GPU too if one is
# there. Last, two ranks train a small UNet through the Python package, beside
# DDP and torch.optim.AdamW. Files are left in build/demo/.
set -euo pipefail
cd "$(dirname "$0")/.."

bash scripts/setup.sh
bash scripts/build.sh

# shellcheck disable=SC1091
. build/venv/bin/activate
export DFA_PTXAS="${DFA_PTXAS:-$PWD/build/venv/bin/ptxas}"
PATH=$PWD/build/bin:$PATH
export PYTHONPATH=$PWD/build/python
out=build/demo
mkdir -p "$out"

show() {
  echo
  echo "\$ $*"
  "$@"
}

show dfa-layout --model=resnet50 --rule=adamw --storage=master \
  --grad-dtype=bf16 --scaler --clip=1.0 --memory-format=channels_last \
  -o "$out/step.mlir"
echo "  $(grep -c 'dfa.param' "$out/step.mlir") parameters"

show dfa-opt "$out/step.mlir" --dfa-report=format=text
show dfa-opt "$out/step.mlir" --dfa-to-kernels -o "$out/kernels.mlir"
show dfa-run "$out/step.mlir" --target=cpu --steps=3 --seed=0 --verify --time

if python3 - <<'PY'
import ctypes, sys
try:
    driver = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit(1)
count = ctypes.c_int()
ok = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
sys.exit(not (ok and count.value))
PY
then
  show dfa-run "$out/step.mlir" --target=cuda --steps=3 --seed=0 --verify --time
else
  echo
  echo "No CUDA device here: the GPU part of the demo was left out."
fi

show python examples/training/unet_denoiser.py \
  --picture "$out/unet_denoiser.svg"

cat <<TXT

What to read next
  $out/step.mlir       the step as dfa-layout wrote it: parameters, then values
  $out/kernels.mlir    the same step as fused kernels and a command list
  dfa-opt $out/step.mlir --dfa-to-kernels --mlir-print-ir-after-all
                            every stage between the two
  $out/unet_denoiser.svg  loss curves of the training
  docs/index.md             the documentation; examples/ has more steps
Tools are in build/bin; '. build/venv/bin/activate' puts ptxas into PATH.
TXT
