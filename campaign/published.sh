#!/usr/bin/env bash
# The campaign behind the tables of docs/statistics.md: about 80 minutes of small plans in rotation, so that tools and
# conditions are interleaved in time. Usage: campaign/published.sh RESULTS.jsonl [CYCLES]
set -u
cd "$(dirname "$0")/.."
cargo build --release --package campaign --features rivals || exit 1
results=$1
seed=100

run() {
    seed=$((seed + 1))
    target/release/campaign --seed "$seed" --output "$results" "$@"
}

for cycle in $(seq 1 "${2:-10}"); do
    if ((cycle % 2 == 0)); then small=0.5,1 large=2,5 one=chain; else small=-0.5,-1 large=-2,-5 one=sweep; fi
    equal=(--tools kbench --nulls same,launches --effects 0 --load quiet,bursty --budget 2s)
    rivals=(--tools criterion,divan,tango --nulls same --budget 2s)
    run "${equal[@]}" --rounds 8
    run --tools kbench --nulls same --effects=-1,-0.5,0.5,1 --load quiet --budget 2s --rounds 2
    run "${rivals[@]}" --effects 0 --load quiet --rounds 2
    run --tools kbench --nulls same --effects=-1,-0.5,0.5,1 --load bursty --budget 2s --rounds 1
    run "${rivals[@]}" --effects="$small" --load quiet --rounds 1
    run "${equal[@]}" --rounds 9
    run "${rivals[@]}" --effects 0 --load bursty --rounds 1
    run --tools kbench --nulls same --effects="$large" --load quiet --budget 2s --rounds 1
    run --tools kbench --nulls copies --effects 0 --load quiet --budget 2s --rounds 1
    run --tools kbench --nulls same --effects="0,$small" --load quiet --budget 1s,500ms --rounds 2
    run --ten --tools kbench --nulls same --workloads chain --effects 0 --load quiet --budget 1s,500ms --rounds 2
    if ((cycle % 2 == 0)); then
        run --ten --tools kbench --nulls same --workloads chain --effects 0 --load quiet --budget 2s --rounds 1
    fi
    if ((cycle % 4 < 2)); then run "${rivals[@]}" --effects="$large" --workloads "$one" --load quiet --rounds 1; fi
done
target/release/campaign --table "$results"
