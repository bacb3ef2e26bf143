#!/usr/bin/env bash
# Device times of the kernels of timed.cu by two judges other than kbench: plain CUDA events (yardstick.jsonl) and the profiler
# ncu (ncu.csv, a line for each launch; what ncu said is in ncu.log). With SUBJECT, which is target/release/subject_times, kbench
# takes the same times (*.json), and `device_times --record FOLDER` sets all three side by side.
# Usage: [ARCH=90] [PROCESSES=8] [BUDGET=30s] campaign/gpu/yardstick.sh [FOLDER [SUBJECT]]
#
# Times differ from process to process, not least because data lies elsewhere: there are several of each. BUDGET is what kbench may
# take for a kernel at all its sizes.
set -euo pipefail
architecture=${ARCH:-90} processes=${PROCESSES:-8} budget=${BUDGET:-30s}
folder=$(cd "$(dirname "$0")" && pwd)
built=$folder/../../target/gpu
results=${1:-$built} subject=${2:-}
yardstick=$built/yardstick
mkdir -p "$built" "$results"

# From 9.0 on there are instructions for exactly one architecture, which kbench compiles for.
specific=$([ "$architecture" -ge 90 ] && echo a || true)
nvcc -O3 -gencode="arch=compute_$architecture,code=sm_$architecture" -std=c++17 -lnvrtc \
    -DSOURCE="\"$folder/timed.cu\"" -DARCHITECTURE="\"sm_$architecture$specific\"" -o "$yardstick" \
    "$folder/yardstick.cu"
: > "$results/yardstick.jsonl"
for process in $(seq "$processes"); do
    echo "C++: process $process of $processes" >&2
    "$yardstick" >> "$results/yardstick.jsonl"
done

# The same cases, which are the subject's sizes.
if [ -n "$subject" ]; then
    for variant in saxpy_cuda rms_norm_cuda softmax_cuda matmul_cuda_tiled; do
        echo "kbench: $variant" >&2
        "$subject" --variant "$variant" --cold --hot --graph --no-search --launches "$processes" --budget "$budget" \
            --export "json=$results/$variant.json" > "$results/$variant.log" 2>&1 ||
            { tail -n 5 "$results/$variant.log" >&2; exit 1; }
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
