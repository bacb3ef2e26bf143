#!/usr/bin/env bash
# The complete GPU test suite on a machine that has no Rust.
#
#   tests/gpu.sh build [FOLDER]   where there is Rust: builds all executables into FOLDER (default target/gpu-tests)
#   FOLDER/gpu.sh run             where there is a GPU: runs them; exits with 1 when a test fails
#   FOLDER/gpu.sh sanitize [FLAG...]
#                                 there as well: checks the kernel library under memcheck and racecheck of compute-sanitizer,
#                                 or what flags of the suite select (--kernel loss); exits with 1 when one of them finds something
#
# FOLDER is all that has to be carried from one to the other; a copy of this script is in it.
set -euo pipefail

build() {
    cd "$(dirname "$0")/.."
    mkdir -p "$1"
    cargo build --release --example suite
    cargo build --release --package campaign --bin subject_gpu --bin subject_times
    local built=${CARGO_TARGET_DIR:-target}/release
    cargo build --release --package kbench-mutants
    cp "$built/examples/suite" "$built"/subject_{gpu,times} "$built/kbench-mutants" tests/gpu.sh "$1"
    local tests
    tests=$(cargo test --release --no-run --message-format json \
        --package kbench-worker --features kbench-worker/cuda --test device \
        --package kernels --features kernels/cuda --test on_device \
        --package campaign --test gpu \
        --package kbench-mutants --test caught | sed -n '/"kind":\["test"\]/s/.*"executable":"\([^"]*\)".*/\1/p')
    for executable in $tests; do
        local name=${executable##*/}
        cp "$executable" "$1/test-${name%-*}"
    done
    # The library in other languages.
    mkdir -p "$1/kernels"
    cp -r python "$1"
    cp -r kernels/python "$1/kernels"
    strip "$1"/suite "$1"/subject_{gpu,times} "$1"/kbench-mutants "$1"/test-*
    du -sh "$1"
}

run() {
    local failed=0
    # The kernel library, checked on the device; where there is none, everything else would be skipped as well.
    ./suite --test --backend cuda | tee suite.log || failed=1
    if ! grep -q '^test result: .* [1-9][0-9]* passed' suite.log; then
        echo "no CUDA variant could run: this is for a machine with a GPU" >&2
        exit 1
    fi
    ./subject_times --test --backend cuda || failed=1
    export KBENCH_MUTANTS=$PWD/kbench-mutants
    for test in ./test-*; do
        # One device is one device: tests that time something on it must not share it.
        "$test" --test-threads 1 || failed=1
    done
    for worker in torch triton jax; do
        if ! python3 -c "import $worker" 2> /dev/null; then
            echo "skipped: python3 has no $worker"
            continue
        fi
        ./suite --test --backend cuda --worker "$worker=python3 kernels/python/${worker}_variants.py" \
            --variant "$worker" || failed=1
    done
    exit "$failed"
}

sanitize() {
    if ! command -v compute-sanitizer > /dev/null; then
        echo "compute-sanitizer is not on the PATH: it comes with the CUDA toolkit, in /usr/local/cuda/bin" >&2
        exit 1
    fi
    local failed=0
    for tool in memcheck racecheck; do
        check_with "$tool" "$@" && continue
        # Under racecheck a kernel whose warps wait for each other takes 15 ms in one process and minutes in another. What was
        # given up gets three more tries, alone; any other failure remains one, and so does a kernel that hangs under memcheck
        # or in `run`.
        local slow
        slow=$([[ $tool == racecheck ]] && given_up "$tool.log") || { failed=1 && continue; }
        for try in 1 2 3; do
            echo "$tool was too slow for $slow: try $try of 3"
            check_with "$tool" --variant "$slow" && continue 2
            slow=$(given_up "$tool.log") || break
        done
        failed=1
    done
    exit "$failed"
}

# Checks what flags select with one tool of compute-sanitizer, and says what it found; fails when that is anything.
check_with() {
    local tool=$1 failed=0 summaries
    shift
    echo "$tool"
    # A call of the driver may fail and be answered for; what counts is what kernels do.
    compute-sanitizer --tool "$tool" --target-processes all --report-api-errors no --error-exitcode 9 \
        ./suite --test --backend cuda --size small "$@" > "$tool.log" 2>&1 || failed=1
    grep '^test result: .* [1-9][0-9]* passed' "$tool.log" || failed=1
    # Every process has a summary of its own, and its exit code may be lost on the way.
    summaries=$(grep -E '(ERROR|RACECHECK) SUMMARY:' "$tool.log") || failed=1
    sort <<< "$summaries" | uniq --count
    if grep -qvE 'SUMMARY: 0 ' <<< "$summaries"; then
        failed=1
    fi
    return "$failed"
}

# The variants in a log that did not come back in time, separated by commas; fails when it has another failure, or none.
given_up() {
    local failed slow
    failed=$(sed -n 's/^test result: .* \([0-9]*\) failed;.*/\1/p' "$1")
    slow=$(grep -c '^failed: does not come back' "$1")
    if [[ $slow == 0 || $slow != "$failed" ]] || grep 'SUMMARY:' "$1" | grep -qv 'SUMMARY: 0 '; then
        return 1
    fi
    grep -B 1 '^failed: does not come back' "$1" | sed -n 's|^---- [^/]*/\([^/]*\)/.*|\1|p' | sort -u | paste -sd ,
}

case "${1:-}" in
    build) build "${2:-target/gpu-tests}" ;;
    run) cd "${2:-$(dirname "$0")}" && run ;;
    sanitize) shift && cd "$(dirname "$0")" && sanitize "$@" ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
