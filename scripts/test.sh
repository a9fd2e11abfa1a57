#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs, builds, and runs every test that this machine can run: GoogleTest
# through ctest, lit, pytest. All three run even if one fails; their own closing
# lines are printed again at the end. Exit status: 0 if nothing failed.
#
#   DFA_REQUIRE_GPU=1   a machine without a CUDA device is a failure, not a skip
set -euo pipefail
cd "$(dirname "$0")/.."

started=$SECONDS
bash scripts/setup.sh
setup_seconds=$((SECONDS - started))

started=$SECONDS
bash scripts/build.sh
build_seconds=$((SECONDS - started))

# shellcheck disable=SC1091
. build/venv/bin/activate
export DFA_PTXAS="${DFA_PTXAS:-$PWD/build/venv/bin/ptxas}"
export PYTHONPATH="$PWD/build/python${PYTHONPATH:+:$PYTHONPATH}"
jobs=$(nproc)
logs=build/logs
rm -rf "$logs"
mkdir -p "$logs"
status=0

# run NAME COMMAND...: shows the command's output and keeps it in a log.
run() {
  local name=$1
  shift
  echo "== $name: $*"
  "$@" 2>&1 | tee "$logs/$name.log" || { status=1; failed+=("$name"); }
}
failed=()

# There is something for each runner to find, or its name is in `absent`:
# a runner without tests must be seen, and lit and pytest call it an error.
absent=()
started=$SECONDS
if [ -n "$(find test/unit -name '*.cpp' -print -quit)" ]; then
  run ctest ctest --test-dir build --output-on-failure -j "$jobs"
else
  absent+=(ctest)
fi
if [ -n "$(find test -name '*.mlir' -o -name '*.test' | head -1)" ]; then
  run lit lit -sv -j "$jobs" build/test
else
  absent+=(lit)
fi
if [ -n "$(find test -name 'test_*.py' -print -quit)" ]; then
  run pytest python -m pytest -q -n "$jobs" test/python
else
  absent+=(pytest)
fi
test_seconds=$((SECONDS - started))

closing_lines() {
  # With ctest's own list of tests that were skipped or failed.
  [ -e "$logs/ctest.log" ] && sed -n '/^[0-9]*% tests passed/p
    /^The following tests/,$p' "$logs/ctest.log"
  [ -e "$logs/lit.log" ] && grep -E \
    '^(Total Discovered Tests| +(Unsupported|Skipped|Passed|Failed|Unresolved|Expectedly Failed)) *:' \
    "$logs/lit.log"
  [ -e "$logs/pytest.log" ] && tail -1 "$logs/pytest.log"
  return 0
}

echo
echo "== closing lines"
closing_lines
grep -h 'are skipped here' "$logs/lit.log" 2>/dev/null | sed 's/.*note: //' || true
[ ${#absent[@]} = 0 ] || echo "no tests in the tree for: ${absent[*]}"
[ ${#failed[@]} = 0 ] || echo "FAILED: ${failed[*]} (logs in $logs/)"
echo "time: setup ${setup_seconds} s, build ${build_seconds} s," \
  "tests ${test_seconds} s"
exit $status
