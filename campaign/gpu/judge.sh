#!/usr/bin/env bash
# How often does kbench call equal kernels on a GPU different, and how often does it find one per cent? Ten cells in every run,
# two seconds for each, half of the runs hot and half cold.
# Usage: campaign/gpu/judge.sh SUBJECT FOLDER [RUNS [RUNS OF ONE PER CENT]]     (SUBJECT is target/release/subject_gpu)
set -euo pipefail
subject=$1 results=$2 equal=${3:-22} heavier=${4:-6}
mkdir -p "$results"

run() {
    local mode=$([ $(($2 % 2)) = 0 ] && echo --hot || echo --cold)
    "$subject" --kernel arithmetic,memory --variant "arithmetic,memory,$1" "$mode" --budget 20s --no-search \
        --seed "$3" --export "csv=$results/$1-$2.csv" > "$results/$1-$2.log" 2>&1 ||
        echo "run $2 of $1 failed, see its log" >&2
}

for number in $(seq "$equal"); do run twin "$number" $((1000 + number)); done
for number in $(seq "$heavier"); do run heavier "$number" $((2000 + number)); done

# Two promises: at most 5 % of equals are called different, and at least 95 % of one per cent is found.
# Verdicts by variant: column 2 is the variant, 8 the mode, 18 the verdict; sizes have no comma here.
cat "$results"/twin-*.csv "$results"/heavier-*.csv | awk -F, '
    $18 != "" && $18 != "verdict" {
        print $2, $8 ": " $18
        all[$2]++
        if ($18 ~ /faster$|slower$/) different[$2]++
        if ($18 ~ /slower$/) found[$2]++
    }
    END {
        if (all["twin"] == 0 || 20 * different["twin"] > all["twin"] || 20 * found["heavier"] < 19 * all["heavier"])
            print "a promise is broken"
    }' | sort | uniq -c | tee "$results/verdicts"
! grep -q broken "$results/verdicts"
