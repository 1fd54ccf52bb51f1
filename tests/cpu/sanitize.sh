#!/usr/bin/env bash
# The C++ extension under the compiler's sanitizers: threads in programs of their own, then addresses and undefined
# behaviour in one of these and under Python tests. Needs g++ and what the tests need. Some ten minutes on two cores.
# Run: tests/cpu/sanitize.sh [python]
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
flags=(-std=c++17 -DPy_LIMITED_API=0x030B0000 -g1 -O1 -fwrapv -pthread -fPIC -Wall -Wextra -Icpu "-I$include")
mapfile -t sources < <(printf '%s\n' cpu/*/*.cpp | grep -v /module/)

compile() {  # folder, sanitizers, sources
    local folder=$1 sanitizers=$2
    shift 2
    mkdir -p "$folder"
    printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} sh -c '"$@" -o "$0/$(basename {} .cpp).o"' "$folder" \
        g++ "${flags[@]}" "$sanitizers" -fno-sanitize-recover=undefined -c {}
}

compile "$work/thread" -fsanitize=thread "${sources[@]}"
compile "$work/thread/main" -fsanitize=thread tests/cpu/sanitize.cpp tests/cpu/search.cpp
for program in sanitize search; do
    g++ -fsanitize=thread "$work/thread/main/$program.o" "$work"/thread/*.o -o "$work/$program"
done
"$work/sanitize"
"$work/search" 5 scalar random  # the other cases take minutes here

both=-fsanitize=address,undefined
compile "$work/address" $both "${sources[@]}"
compile "$work/address/main" $both tests/cpu/search.cpp
compile "$work/address/module" $both cpu/module/*.cpp
g++ $both "$work/address/main/search.o" "$work"/address/*.o -o "$work/search"
"$work/search" 5

cp -r swsearch db cuda tests setup.cfg "$work"
rm -f "$work"/swsearch/engines/cpu/_simd*.so
g++ -shared $both "$work"/address/*.o "$work"/address/module/*.o -o "$work/swsearch/engines/cpu/_simd.so"
cd "$work"
# the interpreter is not built so, and never frees all it takes
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
    PYTHONPATH=. "$python" -m pytest -q -p no:cacheprovider --exhaustive -m 'not exhaustive' \
    tests/engines/cpu/test_tracing.py tests/engines/cpu/test_columns.py \
    tests/engines/cpu/test_bounds.py tests/engines/cpu/test_shifts.py \
    tests/engines/test_engines.py tests/pipeline/test_additional_hsps.py tests/pipeline/test_shuffling.py tests/db/test_ranges.py \
    tests/profiles/test_observations.py tests/pipeline/test_inclusion.py tests/profiles/test_stacking.py \
    tests/report/test_numbers.py tests/db/test_fasta.py \
    -k 'as_python_formats_them or plain_python or wrong_columns or first_word or test_bounds or test_inclusion or test_stacking or test_observations or test_ranges or test_shifts or test_shuffled or test_tracing or test_columns or any_number or letter or refused or progress or checks or they_are_the_references'
