#!/usr/bin/env bash
# Unsafe code under the address sanitizer, which goes where Miri cannot: vector instructions, calls of the system.
#
#   tests/sanitize.sh   the tests of kbench-core, kbench-worker and kernels, and the checks of all kernels; exits with 1 when something is found
#
# On two cores it takes a quarter of an hour to build and three minutes to run.
#
# Sanitizers are an unstable part of the compiler; a stable one takes their flags when it is told to be a nightly one, and their
# runtimes come with it. Its standard library was compiled without them: reads and writes inside of it are not seen, and for
# the same reason there is no `thread` here, which wants all of a program.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address"
# What tests register is leaked, as entries live forever; and they ask for more memory than there is, to be refused.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
# A folder of its own: the flags are for everything, and what is in `target` would be built again.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/sanitize
# Some optimisation: simulations and kernels are slow without.
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_TEST_OPT_LEVEL=1

# Macros are built for the host, without the sanitizer: that takes a target to be named, even if it is the same.
target=x86_64-unknown-linux-gnu
failed=0
for package in kbench-core kbench-worker kernels; do
    # What the processor counts, and what the compiler makes of a function, is another thing with the sanitizer's instructions.
    cargo test --target "$target" --package "$package" --lib -- \
        --skip gauge::perf --skip shared::inlined || failed=1
done
cargo run --target "$target" --example suite -- --test --no-gpu || failed=1
exit "$failed"
