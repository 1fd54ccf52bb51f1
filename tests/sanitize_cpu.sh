#!/usr/bin/env bash
# The C++ extension under the compiler's sanitizers: threads in a program of its own, then addresses and undefined
# behaviour under its Python tests. Needs g++ and what the tests need. About a minute.
# Run: tests/sanitize_cpu.sh [python]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c++17 -DPy_LIMITED_API=0x030B0000 -g -O1 -fwrapv -pthread -Wall -Wextra)
pairs=(cpu/align.cpp cpu/back.cpp cpu/grid.cpp cpu/instructions.cpp cpu/many.cpp cpu/kernel_*.cpp)

{
    g++ "${flags[@]}" -fsanitize=thread -Icpu tests/sanitize_cpu.cpp "${pairs[@]}" -o "$work/threads"
    "$work/threads"
} &
threads=$!

cp -r swsearch db cuda tests setup.cfg "$work"
rm -f "$work"/swsearch/_simd*.so
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
g++ "${flags[@]}" -fPIC -shared -fsanitize=address,undefined -fno-sanitize-recover=undefined "-I$include" \
    cpu/*.cpp -o "$work/swsearch/_simd.so"
wait "$threads"
cd "$work"
# the interpreter is not built so, and never frees all it takes
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
    PYTHONPATH=. "$python" -m pytest -q -p no:cacheprovider -m 'not slow' tests/test_native.py
