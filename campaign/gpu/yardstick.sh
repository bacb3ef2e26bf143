#!/usr/bin/env bash
# Device times of the library's CUDA kernels by two judges other than kbench: plain CUDA events (yardstick.jsonl) and the
# profiler ncu (ncu.csv, a line for each launch; what ncu said is in ncu.log). With SUITE, the example of that name, kbench takes
# the same times (*.json), and `device_times --record FOLDER` sets all three side by side.
# Usage: [ARCH=90] [PROCESSES=8] campaign/gpu/yardstick.sh [FOLDER [SUITE]]
#
# Times differ from process to process, not least because data lies elsewhere: there are several of each.
set -euo pipefail
architecture=${ARCH:-90} processes=${PROCESSES:-8}
built=$(dirname "$0")/../../target/gpu
results=${1:-$built} suite=${2:-}
yardstick=$built/yardstick
mkdir -p "$built" "$results"

sources=$(cd "$(dirname "$0")/../../kernels/cuda" && pwd)
# From 9.0 on there are instructions for exactly one architecture, which kbench compiles for.
specific=$([ "$architecture" -ge 90 ] && echo a || true)
nvcc -O3 -gencode="arch=compute_$architecture,code=sm_$architecture" -std=c++17 -lnvrtc \
    -DSOURCES="\"$sources\"" -DARCHITECTURE="\"sm_$architecture$specific\"" -o "$yardstick" \
    "$(dirname "$0")/yardstick.cu"
: > "$results/yardstick.jsonl"
for process in $(seq "$processes"); do
    echo "C++: process $process of $processes" >&2
    "$yardstick" >> "$results/yardstick.jsonl"
done

# The same cases: name of the run, kernel, variant, and flags that give the sizes.
ours() {
    echo "kbench: $1" >&2
    "$suite" --kernel "$2" --variant "$3" --cold --hot --graph --no-search --launches "$processes" --budget 15s \
        --export "json=$results/$1.json" "${@:4}" > "$results/$1.log" 2>&1 ||
        { tail -n 5 "$results/$1.log" >&2; exit 1; }
}
if [ -n "$suite" ]; then
    ours saxpy saxpy saxpy_cuda --axis n=1024,65536,1048576,4194304,16777216
    for kernel in rms_norm softmax; do
        ours "$kernel-small" "$kernel" "${kernel}_cuda" --axis rows=1,16 --axis dim=1024
        ours "$kernel-large" "$kernel" "${kernel}_cuda" --axis rows=64,512,8192 --axis dim=4096
    done
    for side in 64 384 1024; do
        ours "matmul-$side" matmul matmul_cuda_tiled --axis "m=$side" --axis "n=$side" --axis "k=$side"
    done
fi

if ! command -v ncu > /dev/null; then
    echo "ncu is not on the PATH: there are no durations from the profiler" >&2
    exit 1
fi

# Columns are found by their names, since versions of ncu differ in what follows the value.
durations() {
    awk -F '","' -v number="$1" -v kernel="$2" -v size="$3" '
        /^"ID",/ {
            for (i = 1; i <= NF; i++) {
                name = $i
                gsub(/["\r]/, "", name)
                column[name] = i
            }
            next
        }
        /^"/ && column["Metric Value"] {
            unit = $(column["Metric Unit"])
            value = $(column["Metric Value"])
            gsub(/["\r]/, "", unit)
            gsub(/[",\r]/, "", value)
            printf "%s,%s,\"%s\",%d,%s,%s\n", number, kernel, size, launch++, unit, value
        }
        END { exit (launch == 0) }'
}

echo "case,kernel,size,launch,unit,duration" > "$results/ncu.csv"
: > "$results/ncu.log"
failed=0
while IFS=$'\t' read -r index kernel size; do
    echo "ncu: $kernel $size" >&2
    said=$(ncu --clock-control none --cache-control none --metrics gpu__time_duration.sum --print-units base --csv \
        --kernel-name "$kernel" "$yardstick" --once "$index" < /dev/null 2>&1) || true
    printf '%s\n' "$said" >> "$results/ncu.log"
    if ! durations "$index" "$kernel" "$size" <<< "$said" >> "$results/ncu.csv"; then
        echo "ncu gave no duration of $kernel $size:" >&2
        tail -n 3 <<< "$said" >&2
        failed=1
    fi
done < <("$yardstick" --list)
exit "$failed"
