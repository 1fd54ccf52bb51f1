#!/usr/bin/env bash
# Everything that only a GPU can prove, on a machine without network, in calls of a few minutes; a short table last.
#
#   tests   the tests that are marked gpu, with each package that reaches CUDA's driver (PACKAGES)
#   drivers revisions.py: PyCUDA and cuda-bindings in turn; ONLY and RUNS; what their imports take, and a kernel cache
#   speed   gpu.py, with CUDASW++4.0 if DATA/cudasw has its align and makedb, and pairs_gpu.py into OUT
#   evalues evalues.py: what E-values from shuffled copies cost, 20 and 1,000 queries
#   jobs    jobs.py: whole jobs beside what their kernels need
#   profiles  gpu_variants.py and parity.py kernels: profiles beside sequences, and whether everything is exact
#   variants  gpu_variants.py: what each kernel reaches with the lengths of DATA's database
#   parity  parity.py gpu: all scores and outputs of the twenty queries are those of the CPU engine
#   iterations  jobs.py: 1,000 queries in three iterations; and whether GPU and CPU find the same, to the byte
#   many    jobs.py, 1,000 queries, of an older revision, OLD, and of this one in turn, three times each
#   revisions  revisions.py: whole commands of an older revision, OLD, and of this one in turn; ENGINE, ONLY and RUNS
#   turns   gpu.py with an older revision, OLD, and with this one in turn, TURNS times each; ONLY are its parts
#   server  server.py: the server's latency over loopback, and 100 clients at once; three minutes. gpu_wheels/ must have the
#           extra server
#   devices commands.py places: what a GPU opened twice costs, and several gain; about seven minutes, or parts of it by ONLY
#
# Needs: gpu_wheels/ (see gpu_machine.sh); for the others, DATA with Swiss-Prot as sprot.fasta, queries20.fasta and the genomes
# of pairs_gpu.py; OLD has swsearch/, cuda/ and db/ of the older revision, with its extension compiled in place.
# Run, from the project's root: benchmarks/speed/gpu_session.sh PART OUT [DATA [OLD]]. Two minutes each.
set -uo pipefail
part=${1:?a part, see above} out=$(realpath "${2:?a folder for results}") data=$(realpath "${3:-.}") old=${4:-}
# shellcheck source=benchmarks/speed/gpu_machine.sh
source benchmarks/speed/gpu_machine.sh || exit 1
export SWSEARCH_CACHE=${SWSEARCH_CACHE:-$(mktemp -d)}
mkdir -p "$out"

database() {
    [ -f "$data/sp.h5" ] || python3 -m swsearch db build "$data/sprot.fasta" -o "$data/sp.h5" || exit 1
}

unpacked() {
    [ -f "$data/sprot.fasta" ] || python3 -c "import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], 'wb'))" "$data"/sprot.fasta{.xz,} || exit 1
}

case $part in
tests)
    for package in ${PACKAGES:-pycuda cuda-bindings}; do
        SWSEARCH_CUDA_DRIVER=$package python3 -m pytest -q -p no:cacheprovider -p no:benchmark -n 0 -m gpu --durations=8 \
            tests/gpu 2>&1 | tee "$out/gpu_tests_$package.txt" | tail -n "${LINES_SHOWN:-25}"
    done
    python3 -m pytest -q -p no:cacheprovider -p no:benchmark -n 0 tests/gpu/test_cuda_bindings.py tests/gpu/test_device.py
    ;;
drivers)
    unpacked
    python3 - << 'PYTHON' | tee "$out/imports.txt"
import statistics, subprocess, sys
for module in ("pycuda.driver", "cuda.bindings.driver", "cuda.core"):
    code = f"import time, numpy; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False) for _ in range(8)]
    times = [float(each.stdout) for each in runs[1:] if each.stdout]
    print(f"import {module}: {statistics.median(times):.3f} s" if times else f"import {module}: {runs[0].stderr[-200:]}")
PYTHON
    for package in pycuda cuda-bindings; do
        SWSEARCH_CUDA_DRIVER=$package python3 -m swsearch doctor
    done | grep -E "^(gpu package|compiler|gpu|self-test) " | tee "$out/doctor.txt"
    python3 -m benchmarks.speed.revisions "$PWD" "$PWD" "$data/sprot.fasta" --engine gpu --drivers pycuda,cuda-bindings \
        --runs "${RUNS:-5}" --only "${ONLY:-quer}" --many "${MANY:-1000}" --out "$out/drivers.txt"
    du -sb "$SWSEARCH_CACHE"/kernels && find "$SWSEARCH_CACHE"/kernels -name '*.cubin' | wc -l
    ;;
speed)
    database
    theirs=()
    if [ -x "$data/cudasw/align" ]; then
        "$data/cudasw/makedb" "$data/sprot.fasta" "$data/cudasw/sp" > "$out/cudasw.log" 2>&1
        theirs=(--cudasw "$data/cudasw/align" "$data/cudasw/sp")
    fi
    python3 -m benchmarks.speed.gpu "$data/sp.h5" "$data/queries20.fasta" "${theirs[@]}" --out "$out/gpu.txt" \
        > "$out/gpu.log" 2>&1
    python3 -m benchmarks.speed.pairs_gpu "$data" --out "$out/pairs_gpu.txt" > "$out/pairs.log" 2>&1
    tail -n 45 "$out/gpu.txt"
    tail -n 22 "$out/pairs_gpu.txt"
    ;;
evalues)
    unpacked
    database
    databases=("$data/sp.h5")
    if [ -f "$data/db20k.fasta" ]; then
        python3 -m swsearch db build "$data/db20k.fasta" -o "$data/db20k.h5" && databases+=("$data/db20k.h5")
    fi
    python3 -m benchmarks.speed.commands evalues "$data/queries20.fasta" "${databases[@]}" --engine gpu \
        --max-hits 10,500 --out "$out/evalues_gpu.txt"
    python3 - "$data" <<'PYTHON'
import sys
from pathlib import Path
from benchmarks.support.common import read, write
data = Path(sys.argv[1])
records = read(data / "sprot.fasta")
write(data / "queries1000.fasta", records[:: len(records) // 1000][:1000])
PYTHON
    python3 -m benchmarks.speed.commands evalues "$data/queries1000.fasta" "$data/sp.h5" --engine gpu --runs 1 \
        --out "$out/evalues_gpu_1000.txt"
    ;;
jobs)
    database
    python3 -m benchmarks.speed.commands jobs --engine gpu "$data/sprot.fasta" "$data/sp.h5" "$data/queries20.fasta" --runs "${RUNS:-2}" \
        --out "$out/jobs_gpu.txt"
    ;;
profiles)
    python3 -m benchmarks.speed.gpu_variants --only profiles --out "$out/gpu_profiles.txt" > "$out/profiles.log" 2>&1
    python3 -m benchmarks.agreement.parity kernels --out "$out/profile_parity.txt" >> "$out/profiles.log" 2>&1
    tail -n 18 "$out/gpu_profiles.txt"
    tail -n 66 "$out/profile_parity.txt"
    ;;
variants)
    database
    python3 -c "import sys, numpy, swsearch; numpy.save(sys.argv[2], swsearch.Database.open(sys.argv[1]).lengths)" \
        "$data/sp.h5" "$data/lengths.npy" || exit 1
    python3 -m benchmarks.speed.gpu_variants --lengths "$data/lengths.npy" --out "$out/gpu_variants.txt" \
        2> "$out/variants.log" || tail -n 20 "$out/variants.log"
    ;;
parity)
    database
    python3 -m benchmarks.agreement.parity gpu --database "$data/sp.h5" --queries "$data/queries20.fasta" --out "$out/gpu_parity.txt"
    ;;
many)
    database
    here=$PWD site=${PYTHONPATH%%:*}
    for turn in ${TURNS:-1 2 3}; do
        for side in old new; do
            folder=$here
            if [ $side = old ]; then folder=$old; fi
            PYTHONSAFEPATH=1 PYTHONPATH=$site:$folder:$here python3 -m benchmarks.speed.commands jobs --engine gpu \
                "$data/sprot.fasta" "$data/sp.h5" "$data/queries20.fasta" --runs 1 --only "queries, defaults" \
                --only "queries, published, best" --out "$out/many-$side-$turn.txt" > /dev/null 2>> "$out/many.log"
            echo "$side $turn"
            tail -n 2 "$out/many-$side-$turn.txt"
        done
    done
    ;;
iterations)
    database
    python3 -m benchmarks.speed.commands jobs --engine gpu "$data/sprot.fasta" "$data/sp.h5" "$data/queries20.fasta" --runs "${RUNS:-1}" \
        --only "iterations" --only "queries, defaults" --only "queries, published, best" --out "$out/iterations_gpu.txt"
    head -c 20000000 "$data/sprot.fasta" | sed '$d' > "$data/part.fasta"
    for engine in gpu cpu; do  # the same bytes
        for asked in "--statistics fitted" "--statistics published" "--max-alignments 3" "--preset sensitive"; do
            # shellcheck disable=SC2086  # options are several words
            python3 -m swsearch search "$data/queries20.fasta" "$data/part.fasta" --iterations 3 --engine $engine $asked \
                --allow-dna --quiet -o "$out/$engine-${asked//[^a-z3]/}.tsv" || exit 1
        done
    done
    (cd "$out" && for one in gpu-*.tsv; do cmp "$one" "cpu-${one#gpu-}" && echo "$one: the same bytes, $(wc -l < "$one") lines"; done)
    rm -f "$out"/[gc]pu-*.tsv
    ;;
revisions)
    unpacked
    python3 -m benchmarks.speed.revisions "$old" "$PWD" "$data/sprot.fasta" --engine "${ENGINE:-gpu}" \
        --runs "${RUNS:-3}" --only "${ONLY:-}" --many "${MANY:-1000}" --out "$out/revisions_${ENGINE:-gpu}.txt"
    ;;
turns)
    database
    site=${PYTHONPATH%%:*}
    for turn in ${TURNS:-1 2 3}; do
        for side in old new; do
            folder=$PWD
            if [ $side = old ]; then folder=$old; fi
            PYTHONSAFEPATH=1 PYTHONPATH=$site:$folder:$PWD python3 -m benchmarks.speed.gpu "$data/sp.h5" \
                "$data/queries20.fasta" --runs "${RUNS:-3}" --only "${ONLY:-singles,batch,jobs,streamed}" \
                --out "$out/turn-$side-$turn.txt" > /dev/null 2>> "$out/turns.log"
        done
    done
    python3 -m benchmarks.speed.gpu --turns "$out"
    tail -n 5 "$out/turns.log"
    ;;
server)
    database
    python3 -m benchmarks.speed.server "$data/sp.h5" --engine gpu \
        --out "$out/server_gpu.txt" > "$out/server.log" 2>&1
    tail -n 45 "$out/server_gpu.txt" || tail -n 20 "$out/server.log"
    ;;
devices)
    database
    # shellcheck disable=SC2086  # ONLY is empty, or several words
    python3 -m benchmarks.speed.commands places --engine gpu "$data/sprot.fasta" "$data/sp.h5" "$data/queries20.fasta" \
        --devices "${DEVICES:-0,0}" --runs "${RUNS:-3}" ${ONLY:+--only $ONLY} --out "$out/devices.txt" 2> "$out/devices.log"
    ;;
esac
