#!/usr/bin/env bash
# The C++ kernels against the plain recurrence (search.cpp), as each compiler that is here makes them: for this
# machine, and for 64-bit Arm, run by an emulator. A minute and a half for all of it; says what is left out.
# Needs g++; takes clang++, aarch64-linux-gnu-g++ and qemu-aarch64 (Debian: clang, g++-aarch64-linux-gnu, qemu-user).
# Run: tests/cpu/cross.sh [share of the random cases in percent]
set -euo pipefail
cd "$(dirname "$0")/../.."
share=${1:-100}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t sources < <(printf '%s\n' cpu/*/*.cpp | grep -v /module/)
# those of setup.py; a warning is an error here
flags=(-std=c++17 -O3 -fwrapv -ffp-contract=off -fvisibility=hidden -pthread -Wall -Wextra -Werror -Icpu)

check() {  # compiler, and what runs its program
    local compiler=$1
    shift
    command -v "$compiler" > /dev/null || { echo "left out: $compiler is not here"; return; }
    "$compiler" "${flags[@]}" tests/cpu/search.cpp "${sources[@]}" -o "$work/search"
    if [ $# -gt 0 ] && ! command -v "$1" > /dev/null; then
        echo "left out: $compiler compiles everything, but $1 is not here to run it"
        return
    fi
    echo "$compiler:"
    "$@" "$work/search" "$share"
}

check g++
check clang++
check aarch64-linux-gnu-g++ qemu-aarch64 -L /usr/aarch64-linux-gnu
