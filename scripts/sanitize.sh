#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds and tests with sanitizers, in build-asan/ and build-tsan/:
#   asan   address and undefined behaviour, everything of ours, MLIR threading
#          off (the distribution's libMLIR is not instrumented); then a mutation
#          fuzz of the examples
#   tsan   data races, runtime/ only, for the same reason
# usage: scripts/sanitize.sh [asan] [tsan]     both by default; takes a while
set -euo pipefail
cd "$(dirname "$0")/.."

modes=("$@")
[ ${#modes[@]} = 0 ] && modes=(asan tsan)
[ -x build/venv/bin/lit ] || bash scripts/setup.sh
# shellcheck disable=SC1091
. build/venv/bin/activate
export DFA_PTXAS="${DFA_PTXAS:-$PWD/build/venv/bin/ptxas}"
jobs=$(nproc)
status=0
failed=()

run() {
  echo "== $*"
  "$@" || { status=1; failed+=("$*"); }
}

build() {
  local folder=$1
  shift
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" \
    -DPython3_EXECUTABLE="$PWD/build/venv/bin/python" \
    -DDFA_LIT="$PWD/build/venv/bin/lit" "$@" >/dev/null
  cmake --build "$folder"
}

for mode in "${modes[@]}"; do
  case $mode in
  asan)
    build build-asan -DDFA_SANITIZE=address,undefined
    export UBSAN_OPTIONS=print_stacktrace=1
    # LLVM's arenas poison what they have not handed out. Here only our half of
    # that code is instrumented: libMLIR allocates without taking the poison off.
    export ASAN_OPTIONS="allow_user_poisoning=0"
    run ctest --test-dir build-asan --output-on-failure -j "$jobs"
    if [ -n "$(find test -name '*.mlir' -o -name '*.test' | head -1)" ]; then
      run lit -sv -j "$jobs" build-asan/test
    fi
    if [ -x build-asan/bin/dfa-opt ]; then
      run python3 scripts/fuzz.py --opt build-asan/bin/dfa-opt \
        --count "${DFA_FUZZ_COUNT:-5000}"
    fi
    ;;
  tsan)
    build build-tsan -DDFA_SANITIZE=thread -DDFA_BUILD_COMPILER=OFF
    export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1"
    TSAN_OPTIONS+=" suppressions=$PWD/scripts/tsan-suppressions.txt"
    run ctest --test-dir build-tsan --output-on-failure -j "$jobs"
    ;;
  *)
    echo "sanitize: expected asan or tsan, found '$mode'" >&2
    exit 2
    ;;
  esac
done

if [ $status = 0 ]; then
  echo "sanitize: ${modes[*]}: clean"
else
  printf 'sanitize: FAILED: %s\n' "${failed[@]}"
fi
exit $status
