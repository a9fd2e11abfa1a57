#!/usr/bin/env bash
# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what building and testing need, on Debian 12 and Ubuntu 24.04:
# packages from apt, Python tools into build/venv, and ptxas from PyPI where no
# CUDA toolkit is found. Asks nothing, and does nothing that is done already.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools g++ cmake
  ninja-build ccache libgtest-dev libgmock-dev libgloo-dev nlohmann-json3-dev
  zlib1g-dev libzstd-dev python3-venv python3-dev git ca-certificates xz-utils)
torch=torch==2.13.0
torch_index=https://download.pytorch.org/whl/cpu
venv=build/venv

say() { echo "setup: $*"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "needs root or sudo to run: $*"
    exit 1
  fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
    -o Acquire::Retries=3 "$@"
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null |
      grep -qx installed || echo "$package"
  done
}

# Ubuntu 24.04 has an older MLIR; the LLVM project's archive has 22.
add_llvm_archive() {
  local codename
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  say "adding apt.llvm.org for $codename"
  apt_get install -y --no-install-recommends ca-certificates wget gnupg >/dev/null
  wget -qO- https://apt.llvm.org/llvm-snapshot.gpg.key |
    as_root tee /usr/share/keyrings/apt-llvm-org.asc >/dev/null
  echo "deb [signed-by=/usr/share/keyrings/apt-llvm-org.asc]" \
    "https://apt.llvm.org/$codename/ llvm-toolchain-$codename-22 main" |
    as_root tee /etc/apt/sources.list.d/apt-llvm-org-22.list >/dev/null
  apt_get update
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} = 0 ]; then
    say "apt packages are installed"
    return
  fi
  if ! command -v apt-get >/dev/null; then
    say "this is not a Debian or Ubuntu machine; please install the likes of:"
    say "  ${missing[*]}"
    exit 1
  fi
  say "installing from apt: ${missing[*]}"
  apt_get update
  if ! apt-cache show libmlir-22-dev >/dev/null 2>&1; then
    add_llvm_archive
  fi
  apt_get install -y --no-install-recommends "${missing[@]}" >/dev/null
}

pip_install() {
  "$venv/bin/python" -m pip install -qq --disable-pip-version-check "$@"
}

# The CPU build of torch comes from PyTorch's own index where that answers; a
# local version such as 2.13.0+cpu then wins over PyPI's CUDA build.
install_torch() {
  local options=()
  if "$venv/bin/python" -c 'import sys, importlib.metadata as m
sys.exit(m.version("torch").split("+")[0] != sys.argv[1])' \
    "${torch#*==}" 2>/dev/null; then
    return
  fi
  if [ -z "${PIP_FIND_LINKS:-}" ] && "$venv/bin/python" -c '
import sys, urllib.request
urllib.request.urlopen(sys.argv[1] + "/torch/", timeout=5).read(1)' \
    "$torch_index" 2>/dev/null; then
    options=(--extra-index-url "$torch_index")
  fi
  say "installing $torch ${options[*]}"
  pip_install "$torch" "${options[@]}"
}

install_python() {
  local stamp=$venv/.requirements
  if [ ! -x "$venv/bin/python" ]; then
    say "making $venv with $(python3 --version)"
    # pyenv and the like put another python3 first in PATH; the development
    # headers come with the one that is found here.
    python3 -m venv "$venv"
  fi
  install_torch
  if cmp -s scripts/requirements.txt "$stamp"; then
    say "Python packages are installed"
    return
  fi
  say "installing from PyPI: $(grep -v '^#' scripts/requirements.txt |
    tr '\n' ' ')"
  pip_install -r scripts/requirements.txt
  cp scripts/requirements.txt "$stamp"
}

find_ptxas() {
  local candidate
  for candidate in "${DFA_PTXAS:-}" "${CUDA_HOME:+$CUDA_HOME/bin/ptxas}" \
    "$(command -v ptxas || true)" /usr/local/cuda/bin/ptxas; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then
      echo "$candidate"
      return
    fi
  done
}

# ptxas lands in the virtual environment's bin/, thus in PATH for whoever
# activates it.
install_ptxas() {
  local ptxas
  if [ -x "$venv/bin/ptxas" ]; then
    say "ptxas is $(readlink -f "$venv/bin/ptxas")"
    return
  fi
  ptxas=$(find_ptxas)
  if [ -z "$ptxas" ]; then
    say "no CUDA toolkit found; installing ptxas from PyPI (nvidia-cuda-nvcc)"
    # Pinned: register budgets in test/Target are those of this assembler.
    pip_install 'nvidia-cuda-nvcc==13.0.88'
    ptxas=$(echo "$PWD/$venv"/lib/python3*/site-packages/nvidia/cu13/bin/ptxas)
    [ -x "$ptxas" ] || { say "nvidia-cuda-nvcc has no ptxas"; exit 1; }
  fi
  ln -sf "$ptxas" "$venv/bin/ptxas"
  say "ptxas is $ptxas"
}

install_packages
install_python
install_ptxas
say "done"
