#!/usr/bin/env bash
# How often the gate is right: builds the bench `gate` of tests/downstream as it is and slower by some per cent, keeps the
# first as a baseline, and runs both against it.
#
#   campaign/gate.sh [RUNS] [PER CENT] [LIMIT] [BUDGET]        default: 20 runs, 3 per cent, --gate 2%, 12s
#
# Prints one line for every run, then the verdicts on each row, and at the end how many slow builds were caught, and how
# many unchanged ones passed. Only `planted` is slower in the slow build: `slower` or `faster` of any other row is wrong
# there, unless the rows of two builds really differ, as code that was laid out anew may.
set -euo pipefail
cd "$(dirname "$0")/../tests/downstream"
runs=${1:-20} planted=${2:-3} limit=${3:-2%} budget=${4:-12s}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export KBENCH_HOME=$work/store
unset GITHUB_STEP_SUMMARY

build() { # NAME PER CENT
    local program
    program=$(PLANTED=$2 cargo bench --bench gate --no-run --message-format=json 2>/dev/null |
        sed -n 's/.*"executable":"\([^"]*gate-[^"]*\)".*/\1/p' | tail -1)
    # Runs are kept by the name of their program.
    mkdir "$work/$1" && cp "$program" "$work/$1/gate"
}
build same 0
build slow "$planted"

"$work/same/gate" --bench --budget 4s --save-baseline main >/dev/null 2>&1
declare -A failed=([same]=0 [slow]=0)
for ((run = 1; run <= runs; run++)); do
    for build in same slow; do
        code=0
        "$work/$build/gate" --bench --baseline main --gate "$limit" --budget "$budget" \
            --export csv="$work/run.csv" >/dev/null 2>"$work/errors" || code=$?
        case $code in
            0) ;;
            102) failed[$build]=$((failed[$build] + 1)) ;;
            *) cat "$work/errors" && exit "$code" ;;
        esac
        python3 - "$work/run.csv" "$run" "$build" "$code" "$work/verdicts" <<'PYTHON'
import csv, sys
path, run, build, code, verdicts = sys.argv[1:]
told = []
for row in csv.DictReader(open(path)):
    verdict = row["change_verdict"] or "not compared"
    print(build, row["variant"], verdict, file=open(verdicts, "a"))
    if row["change_low"]:
        low, value, high = (100 * float(row[c]) for c in ("change_low", "change", "change_high"))
        verdict = f"{value:+.2f} % [{low:+.2f}, {high:+.2f}] {verdict}"
    told.append(f"{row['variant']} {verdict}")
print(f"{run:>3} {build} exit {code}: " + "; ".join(told))
PYTHON
    done
done
sort "$work/verdicts" | uniq -c
echo "slower by $planted %, --gate $limit: ${failed[slow]} of $runs caught"
echo "unchanged: $((runs - failed[same])) of $runs passed"
