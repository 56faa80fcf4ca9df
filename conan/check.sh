#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the real Conan client on the recipe, in a throwaway environment, offline apart from installing the client.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if command -v conan >/dev/null 2>&1 && conan --version 2>/dev/null | grep -q 'Conan version 2'; then
  conan=conan
else
  python3 -m venv "$work/venv" || {
    echo 'conan check: python3 cannot make a virtual environment (python3-venv is missing)' >&2; exit 1; }
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check 'conan>=2.9,<3' || { echo 'conan check: pip cannot install conan' >&2; exit 1; }
  conan=$work/venv/bin/conan
fi

export CONAN_HOME=$work/home
"$conan" profile detect
# the test package is copied, since Conan would write its build folder beside it
mkdir "$work/source"
cp -r . "$work/source/conan"
cp -r ../include ../cmake ../CMakeLists.txt ../LICENSE "$work/source"
create() { "$conan" create "$work/source/conan" --no-remote -s compiler.cppstd=20 -pr:a default -pr:a "$PWD/profiles/system" "$@"; }
create

# with the options of all backends that this machine has
options=()
backends=
add() { options+=(-o "&:with_$1=True"); backends+="${backends:+, }$1"; }
command -v mpicxx >/dev/null && add mpi
[ -e /usr/include/dnnl.hpp ] && add onednn
cuda=${CUDA_HOME:-/usr/local/cuda}
nccl=$(find /usr/include "$cuda/include" -maxdepth 1 -name nccl.h 2>/dev/null | head -1)
[ -e "$cuda/include/cublasLt.h" ] && [ -n "$nccl" ] && CUDAToolkit_ROOT=$cuda && export CUDAToolkit_ROOT && add cuda
[ ${#options[@]} -eq 0 ] || create "${options[@]}"
if create -o '&:with_cudnn=True' >"$work/cudnn.log" 2>&1; then
  echo "conan check: with_cudnn was accepted without with_cuda" >&2
  exit 1
fi
grep -q 'with_cudnn is given without with_cuda' "$work/cudnn.log"

version=$(sed -n 's/^#define SHARDWISE_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' ../include/shardwise/support/config.hpp | paste -sd.)

# a C++17 consumer must be refused with a sentence
if "$conan" install --no-remote --requires "shardwise/$version" -s compiler.cppstd=17 -pr:a default -pr:a "$PWD/profiles/system" \
  >"$work/refused.log" 2>&1; then
  echo "conan check: C++17 was accepted" >&2
  exit 1
fi
grep -q 'Current cppstd (17) is lower than the required C++ standard (20)' "$work/refused.log"
echo "conan check: created and tested, plainly and with the options of ${backends:-no backend, of which none is here}; C++17 refused"
