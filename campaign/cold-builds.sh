#!/usr/bin/env bash
# How long a bench takes to build from nothing: one function, one bench target, `cargo bench --no-run`, with kbench and with
# the tools that it is compared with, one after the other in one run.
#
#   campaign/cold-builds.sh [ROUNDS]        default: 3 rounds
#
# Prints a table of medians: seconds of wall time, seconds of processor time, crates that were compiled. Sources of crates are
# fetched first and are not part of it. Nothing else should run meanwhile.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
rounds=${1:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Names of the crates, in the order of the table; `kbench-fast` is kbench with the lines that docs/build-times.md advises.
tools=(divan tango criterion kbench-fast kbench)

dependency() {
    case $1 in
        kbench*) echo "kbench = { path = \"$root\" }" ;;
        criterion) echo 'criterion = "=0.8.2"' ;;
        divan) echo 'divan = "=0.1.21"' ;;
        tango) echo 'tango-bench = "=0.9.0"' ;;
    esac
}

bench() {
    case $1 in
        kbench*) cat <<'RUST' ;;
use kbench::prelude::*;

#[kernel_bench(sizes = [1024], inputs = |n| uniform(n))]
pub fn sum(x: &[f32]) -> f32 {
    minimal::sum(x)
}

kbench::main!();
RUST
        criterion) cat <<'RUST' ;;
use criterion::{Criterion, criterion_group, criterion_main};

fn sum(criterion: &mut Criterion) {
    let x = vec![1.0; 1024];
    criterion.bench_function("sum", |bencher| bencher.iter(|| minimal::sum(std::hint::black_box(&x))));
}

criterion_group!(benches, sum);
criterion_main!(benches);
RUST
        divan) cat <<'RUST' ;;
fn main() {
    divan::main();
}

#[divan::bench]
fn sum(bencher: divan::Bencher) {
    let x = vec![1.0; 1024];
    bencher.bench_local(|| minimal::sum(divan::black_box(&x)));
}
RUST
        tango) cat <<'RUST' ;;
use tango_bench::{IntoBenchmarks, benchmark_fn, tango_benchmarks, tango_main};

fn sum() -> impl IntoBenchmarks {
    [benchmark_fn("sum", |bencher| {
        let x = vec![1.0; 1024];
        bencher.iter(move || minimal::sum(&x))
    })]
}

tango_benchmarks!(sum());
tango_main!();
RUST
    esac
}

for tool in "${tools[@]}"; do
    mkdir -p "$work/$tool/src" "$work/$tool/benches"
    cat >"$work/$tool/Cargo.toml" <<TOML
[workspace]

[package]
name = "minimal"
version = "0.0.0"
edition = "2024"

[dev-dependencies]
$(dependency "$tool")

[[bench]]
name = "sum"
harness = false
TOML
    if [ "$tool" = kbench-fast ]; then
        printf '\n[profile.bench.package.kbench-core]\nopt-level = 0\n' >>"$work/$tool/Cargo.toml"
    fi
    echo 'pub fn sum(x: &[f32]) -> f32 { x.iter().sum() }' >"$work/$tool/src/lib.rs"
    bench "$tool" >"$work/$tool/benches/sum.rs"
    (cd "$work/$tool" && cargo fetch --quiet)
done

TIMEFORMAT='%R %U'
for ((round = 0; round < rounds; round++)); do
    for ((i = 0; i < ${#tools[@]}; i++)); do
        # Each round begins with another tool.
        tool=${tools[$(((i + round) % ${#tools[@]}))]}
        rm -rf "$work/$tool/target"
        { time (cd "$work/$tool" && cargo bench --offline --no-run >/dev/null 2>"$work/$tool/log"); } 2>"$work/time" ||
            { cat "$work/$tool/log" && exit 1; }
        echo "$(cat "$work/time") $(grep -c '^ *Compiling' "$work/$tool/log")" >>"$work/$tool/times"
        echo "round $((round + 1)): $tool $(tail -n 1 "$work/$tool/times")" >&2
    done
done

median() { # FILE COLUMN
    sort -n -k "$2" "$1" | awk -v column="$2" '{ value[NR] = $column } END { print value[int((NR + 1) / 2)] }'
}
echo "| tool | wall time | processor time | crates |"
echo "|---|---|---|---|"
for tool in "${tools[@]}"; do
    times=$work/$tool/times
    printf '| %s | %.0f s | %.0f s | %d |\n' "$tool" "$(median "$times" 1)" "$(median "$times" 2)" "$(median "$times" 3)"
done
