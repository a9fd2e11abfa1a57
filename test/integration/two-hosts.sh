#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Two network namespaces stand in for two machines: each has an address and a
# loopback of its own, and a cable between them. Four ranks of dfa-run, two on
# each, join as torchrun would start them. Needs root; exits with 77 and says
# why where namespaces are not permitted.
#
# usage: two-hosts.sh DFA-RUN STEP.mlir   (a step for four ranks)
set -euo pipefail

if [[ $# -ne 2 ]]; then
  echo "usage: $0 DFA-RUN STEP.mlir" >&2
  exit 2
fi
program=$1
step=$2
id=$$
one=dfa-one-$id
two=dfa-two-$id
net=10.213.$((id % 256))
work=$(mktemp -d)

clean() {
  set +e
  # Only what runs in our namespaces.
  for host in "$one" "$two"; do
    for pid in $(ip netns pids "$host" 2>/dev/null); do
      kill -KILL "$pid" 2>/dev/null
    done
    ip netns del "$host" 2>/dev/null
  done
  rm -rf "$work"
}
trap clean EXIT

skip() {
  echo "SKIPPED: two network namespaces: $1" >&2
  exit 77
}

command -v ip >/dev/null || skip "no 'ip' command (package iproute2)"
reason=$(ip netns add "$one" 2>&1) || skip "$reason"
reason=$(ip netns add "$two" 2>&1) || skip "$reason"
reason=$(ip link add "d1-$id" netns "$one" type veth \
  peer name "d2-$id" netns "$two" 2>&1) || skip "$reason"
ip -n "$one" addr add "$net.1/24" dev "d1-$id"
ip -n "$two" addr add "$net.2/24" dev "d2-$id"
for host in "$one" "$two"; do ip -n "$host" link set lo up; done
ip -n "$one" link set "d1-$id" up
ip -n "$two" link set "d2-$id" up
# The cable is there when a packet goes through.
for _ in $(seq 50); do
  ip netns exec "$two" bash -c "exec 3<>/dev/udp/$net.1/9" 2>/dev/null && break
  sleep 0.1
done

port=29600
# start NAME OPTIONS...: four ranks, their output in $work/NAME.RANK.{out,err}
start() {
  local name=$1
  shift
  port=$((port + 2))
  pids=()
  for rank in 0 1 2 3; do
    local host=$one
    [[ $rank -ge 2 ]] && host=$two
    ip netns exec "$host" env -u DFA_STORE -u DFA_STORE_FD \
      RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$((rank % 2)) LOCAL_WORLD_SIZE=2 \
      MASTER_ADDR="$net.1" MASTER_PORT=$port DFA_TIMEOUT_S=10 \
      "$program" "$step" "$@" \
      >"$work/$name.$rank.out" 2>"$work/$name.$rank.err" &
    pids+=($!)
  done
}

fail() {
  echo "FAILED: $1" >&2
  head -c 4000 "$work"/*.err >&2
  exit 1
}

# finish CODE RANKS...: all of these ranks exit with the code.
finish() {
  local wanted=$1 code
  shift
  for rank in "$@"; do
    code=0
    wait "${pids[$rank]}" || code=$?
    [[ $code -eq $wanted ]] || fail "rank $rank exited with $code, not $wanted"
  done
}

# says NAME RANK TEXT: the rank printed it.
says() {
  grep -qE -- "$3" "$work/$1.$2.out" "$work/$1.$2.err" ||
    fail "rank $2 does not say '$3'"
}

start results --verify
finish 0 0 1 2 3
says results 0 '^verify passed: '
[[ ! -s $work/results.3.out ]] || fail "rank 3 prints results"
echo "steps: $(grep '^verify' "$work/results.0.out")"

start check --check
finish 0 0 1 2 3
says check 0 "^gloo on $net\.1 \(d1-$id, route to tcp://"
says check 0 "^gloo on $net\.2 \(d2-$id, route to tcp://"
echo "check: both hosts bind to their end of the cable"

# A process of the other host dies in the middle of its steps.
start death --steps=100000000
sleep 2
kill -KILL "$(ip netns pids "$two" | while read -r pid; do
  tr '\0' '\n' <"/proc/$pid/environ" | grep -qx RANK=3 && echo "$pid"
done)"
begin=$SECONDS
finish 4 0 1 2
for rank in 0 1 2; do
  says death "$rank" 'collective [0-9]+, [a-z_]+ of (bucket [0-9]+|the control exchange): rank 3 died'
done
echo "death: three survivors name rank 3 within $((SECONDS - begin + 1)) s"

# Somebody pulls the cable: both sides give up within the timeout.
start cable --steps=100000000
sleep 2
ip -n "$two" link set "d2-$id" down
begin=$SECONDS
finish 4 0 1 2 3
for rank in 0 1; do
  says cable "$rank" 'collective [0-9]+, [a-z_]+ of (bucket [0-9]+|the control exchange): rank [23] (died|has not)'
done
for rank in 2 3; do
  says cable "$rank" 'collective [0-9]+, [a-z_]+ of (bucket [0-9]+|the control exchange): rank [01] (died|has not)'
done
# The timeout, and what an answer of the store may take.
[[ $((SECONDS - begin)) -le 15 ]] || fail "took $((SECONDS - begin)) s"
echo "cable: all four ranks name one beyond it within $((SECONDS - begin + 1)) s"
