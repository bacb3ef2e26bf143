//! The checks fail every wrong variant, and pass every right one.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Variants with data races, which show when threads meet: in one of some runs.
const RACES: &[&str] = &[
    "first_above/any_above",
    "histogram/racing_bins",
    "relative/shared_scratch",
    "sum/racing_tasks",
];

/// Variants that are wrong in regimes that have to be requested.
const REQUESTED: &[(&str, &str)] = &[("largest_or_nan/loses_nan", "nan")];

/// Names the program on a machine with a GPU, where the tests of the device are made, too.
const ON_DEVICE: &str = "KBENCH_MUTANTS";

/// Runs of the checks of a race.
const MOST_RUNS: usize = 20;

/// Variants that must fail at one size at least, each with a part of the reason.
const WRONG: &[(&str, &str)] = &[
    ("tanh/overflowing_quotient", "regime `shifted`"),
    ("sigmoid/overflowing_exponential", "regime `large`"),
    ("softplus/overflowing_logarithm", "regime `large`"),
    ("softplus/linear_above_five", ""),
    ("gelu/rounded_constant", "relative error"),
    ("gelu_exact/quick_formula", "relative error"),
    ("exp/without_range_reduction", "regime `reversed`"),
    ("exp/exponent_wraps", "regime `large`"),
    ("relu/relu_without_tail_cuda", ""),
    ("hypot/overflowing_squares", "regime `huge`"),
    ("lengths/overflowing_lengths", "regime `huge`"),
    ("inverse_root/one_newton_step", "relative error"),
    ("limit/exchanged_limits", "regime `reversed`"),
    ("complex_product/wrong_sign", "relative error"),
    ("half_product/loses_a_split", "relative error"),
    ("half_product/sums_in_f16", "relative error"),
    ("half_product/even_number_of_products", "relative error"),
    ("distance/wrapping_difference", "is expected"),
    ("distance/wrapping_difference_cuda", ""),
    ("magnitude/wrapping_magnitude", "regime `ties`"),
    ("byte_magnitude/wrapping_byte_magnitude", ""),
    ("average/wrapping_average", "is expected"),
    ("quantise/without_limits", "regime `reversed`"),
    ("quantise/cut_off", "is expected"),
    ("quantise/without_limits_cuda", ""),
    ("square_root/root_in_f64", ""),
    ("wide_product/kept_as_f64", "[0] is "),
    ("leading_zeros/one_bit_at_least", "regime `zeros`"),
    ("ones/counts_first", "regime `zeros`"),
    ("floor_division/truncated_division", "is expected"),
    ("product/full_tiles_alone", "relative error"),
    ("product/later_panels_without_last_rows", "relative error"),
    ("product/transposed_operand", "relative error"),
    ("product/stride_of_squares", "relative error"),
    ("line/every_thousandth_call", "after many calls"),
    ("line/known_on_device", "after other inputs"),
    ("line/returns_when_filled", "after other inputs"),
    ("line/returns_when_ends_are_right", "after other inputs"),
    ("line/known_by_address", "after other inputs"),
    ("line/known_by_first_element", "after other inputs"),
    ("line/known_by_middle_element", "after other inputs"),
    ("line/known_as_equal", "after other inputs"),
    ("line/shares_begin_beyond_the_end", "out of range for slice"),
    ("line/added_to_output", "never written"),
    #[cfg(target_arch = "x86_64")]
    ("line/flushed_from_now_on", "floating-point mode"),
    ("line/without_tail", "never written"),
    ("line/two_shares", ""),
    ("line/reads_past_the_end", "at the end of a page"),
    ("line/reads_before_the_start", "at the start of a page"),
    ("line/writes_past_the_end", "at the end of a page"),
    ("line/vectors_without_tail", ""),
    ("line/without_last_block", ""),
    ("relative/first_largest_for_ever", "relative error"),
    ("relative/stale_scratch", "relative error"),
    ("rms_norm/epsilon_outside", ""),
    ("rms_norm/overflowing_mean_square", "regime `huge`"),
    ("layer_norm/sample_variance", "relative error"),
    ("layer_norm/cancelling_variance", "regime `"),
    ("sum/without_tail", "relative error"),
    ("sum/even_length", "relative error"),
    ("sum/without_rest_of_one", "relative error"),
    ("sum/many_without_tail", "relative error"),
    ("sum/two_threads", ""),
    ("sum/without_head", "relative error"),
    ("total/not_cleared", "never written"),
    ("total/total_not_cleared", ""),
    ("total/full_blocks", ""),
    ("dot/sum_in_f16", "relative error"),
    ("largest/starts_at_zero", "relative error"),
    ("largest/starts_at_min_positive", "relative error"),
    ("largest/starts_at_minus_a_million", "regime `huge`"),
    ("smallest/starts_at_one", "regime `shifted`"),
    ("first_largest/takes_last_tie", "regime `constant`"),
    ("first_largest/index_from_zero", ""),
    ("first_largest/lanes_joined_by_number", "regime `ties`"),
    ("first_largest/takes_last_block", "regime `constant`"),
    ("first_largest/block_any_largest", ""),
    ("variance/one_pass_variance", "regime `shifted`"),
    ("variance/one_pass_variance_cuda", ""),
    ("summary/counts_zeros", "`return value.positive`[0] is 1 where 0 is expected"),
    ("running_sums/exclusive_in_second_block", "is expected"),
    ("sort/distinct_numbers", "regime `ties`"),
    ("stable_order/unstable_order", "regime `ties`"),
    ("stable_order/right_before_left", "regime `constant`"),
    ("add_at/begins_at_zero", "regime `filled`"),
    ("sort/looks_sorted", "regime `sorted`"),
    ("half_sum/sums_of_halves", "relative error"),
    ("sum/without_tail_of_some_lengths", "n=4097"),
    ("line/wrong_tail_of_two", "n=22"),
    ("histogram/loses_last_bin", "is expected"),
    ("histogram/counters_of_16_bits", "regime `constant`"),
    ("sums_by_key/equal_neighbours", "relative error"),
    ("lower_bound/any_of_equal", "regime `zeros`"),
    ("lower_bound/upper_bound", "regime `zeros`"),
    ("gather/without_last_index", "relative error"),
    ("softmax/without_maximum", "regime `lowered`"),
    ("softmax/maximum_from_zero", "regime `lowered`"),
    ("softmax/maximum_of_all_rows", "regime `large`"),
    ("softmax/warp_without_maximum", ""),
    ("log_sum_exp/sum_without_maximum", "regime `lowered`"),
    ("log_sum_exp/chunks_not_rescaled", "relative error"),
    ("blur/chunks_without_halo", "relative error"),
    ("laplacian/last_column_runs_on", "relative error"),
    ("convolution/without_reversal", "relative error"),
    ("push/push_by_kind", "`particles.position`"),
    ("sparse_product/sparse_rows_too_long", ""),
];

/// Variants that must pass at every size, as bases must.
const RIGHT: &[&str] = &[
    "tanh/limited_expm1",
    "tanh/negative_expm1",
    "sigmoid/by_tanh",
    "softplus/linear_above_twenty",
    "wave/wave_of_the_rest",
    "steep/steep_by_squares",
    "bump/fused_bump",
    "gelu/gelu_by_power_of_two",
    "gelu_exact/gelu_by_rational_erf",
    "exp/reduced_polynomial",
    "relu/relu_in_chunks",
    "relu/relu_by_mask",
    "hypot/scaled",
    "hypot/in_f64",
    "lengths/scaled_lengths",
    "inverse_root/four_newton_steps",
    "limit/limited_by_branches",
    "polynomial/estrin",
    "complex_product/three_products",
    "half_product/split_sums",
    "half_product/pairs_of_products",
    "distance/larger_minus_smaller",
    "distance/grid_stride",
    "magnitude/by_sign_mask",
    "average/common_bits",
    "quantise/by_bias",
    "quantise/by_saturation",
    "quantise/quantise_limited",
    "square_root/rounded_and_corrected",
    "wide_product/in_halves",
    "leading_zeros/by_halves",
    "ones/by_table",
    "reversed_bits/by_reversed_bytes",
    "reversed_bits/by_exchanges",
    "floor_division/truncated_and_corrected",
    "product/in_tiles",
    "product/transposed_copy",
    "product/fused_rows",
    "product/strassen",
    "line/odd_chunks",
    "line/aligned_vectors",
    "line/from_the_end",
    "line/vectors_with_tail",
    #[cfg(target_arch = "x86_64")]
    "line/flushed_meanwhile",
    "relative/kept_scratch",
    "transpose/in_blocks",
    "rms_norm/fused",
    "rms_norm/relative_to_largest",
    "layer_norm/welford",
    "layer_norm/relative_to_first",
    "sum/kahan",
    "sum/neumaier",
    "sum/pairwise",
    "sum/eight_lanes",
    "sum/reversed",
    "sum/sorted_by_size",
    "sum/any_order",
    "sum/compare_and_swap",
    "total/atomic_total",
    "half_sum/eight_half_lanes",
    "dot/fused",
    "dot/dot_reversed",
    "largest/by_ordered_bits",
    "extremes/three_comparisons",
    "first_largest/in_blocks",
    "first_largest/joined_by_index",
    "first_largest/lanes_joined_by_index",
    "first_largest/block_first_largest",
    "first_above/early_exit",
    "first_above/parallel_exit",
    "variance/welford_variance",
    "variance/shifted_variance",
    "summary/one_pass",
    "running_sums/up_and_down",
    "running_sums/two_levels",
    "sort/radix_sort",
    "sort/merged_runs",
    "sort/parallel_sort",
    "sort_bytes/counting_sort",
    "stable_order/order_by_digits",
    "stable_order/order_by_merging",
    "add_at/added_at_last",
    "histogram/bins_of_tasks",
    "histogram/four_tables",
    "histogram/atomic_bins",
    "sums_by_key/four_tables_of_sums",
    "lower_bound/branchless",
    "lower_bound/galloping",
    "gather/four_at_once",
    "scatter/by_inverse",
    "softmax/online",
    "softmax/two_passes_in_f64",
    "softmax/thread_local_scratch",
    "softmax/scoped_threads",
    "softmax/warp_shuffles",
    "log_sum_exp/streaming",
    "log_sum_exp/joined_chunks",
    "blur/chunks_with_halo",
    "blur/moving_window",
    "laplacian/parallel_rows",
    "laplacian/with_border",
    "convolution/tap_by_tap",
    "largest_or_nan/by_total_order",
    "push/push_each",
    "push/push_by_inverse",
    "sparse_product/sparse_rows",
];

/// A size that took too long was not looked at.
const NOT_LOOKED_AT: &str = "not checked at this size";

/// Statuses of the rows of a variant, and whether it is a base.
#[derive(Default)]
struct Variant {
    is_base: bool,
    statuses: Vec<String>,
    /// Under which circumstances it was checked.
    circumstances: String,
}

impl Variant {
    /// What the checks say against it, once.
    fn failures(&self) -> BTreeSet<&str> {
        self.statuses.iter().filter_map(|status| status.strip_prefix("failed: ")).collect()
    }

    /// Whether it needs a device, and there is none.
    fn needs_device(&self) -> bool {
        self.statuses.iter().all(|status| status.starts_with("skipped: ") && !is_slow(status))
    }

    /// Statuses other than that it is right.
    fn doubts(&self) -> BTreeSet<&str> {
        let doubts = self.statuses.iter().filter(|status| *status != "ok" && !is_slow(status));
        doubts.map(String::as_str).collect()
    }
}

fn is_slow(status: &str) -> bool {
    status.contains(NOT_LOOKED_AT)
}

/// All variants by `kernel/variant`, as a run of the checks with some flags found them.
fn checked(name: &str, flags: &[&str]) -> BTreeMap<String, Variant> {
    let path = std::env::temp_dir().join(format!("kbench-{}-{name}.json", std::process::id()));
    // A machine with a GPU has the program, and none of the folders in which it was built.
    let built = std::env::var_os(ON_DEVICE);
    let mut command = match &built {
        Some(program) => Command::new(program),
        None => Command::new(env!("CARGO_BIN_EXE_kbench-mutants")),
    };
    command.arg("--test").args(flags).arg("--export").arg(format!("json={}", path.display()));
    if built.is_none() {
        command.arg("--no-gpu");
    }
    let output = command.output().expect("a program that starts");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("no document: {error}\n{}", String::from_utf8_lossy(&output.stderr))
    });
    let _ = std::fs::remove_file(&path);
    let document: Value = serde_json::from_str(&text).expect("a document");
    let mut variants: BTreeMap<String, Variant> = BTreeMap::new();
    for row in document["rows"].as_array().expect("rows") {
        let text = |field: &str| row[field].as_str().unwrap_or_else(|| panic!("{field}: {row}"));
        let kernel = text("kernel").rsplit("::").next().expect("a name");
        let variant = variants.entry(format!("{kernel}/{}", text("variant"))).or_default();
        variant.is_base = row["is_base"] == true;
        variant.statuses.push(text("status").to_owned());
        variant.circumstances = row["checked"].as_str().unwrap_or_default().to_owned();
    }
    variants
}

#[test]
fn every_wrong_variant_fails_and_every_right_one_passes() {
    let variants = checked("mutants", &[]);
    let mut offenders = Vec::new();
    let mut say = |name: &str, what: String| offenders.push(format!("{name}: {what}"));
    for (name, part) in WRONG {
        match variants.get(*name) {
            None => say(name, "is no variant".to_owned()),
            Some(variant) if variant.needs_device() => {}
            Some(variant) => {
                let failures = variant.failures();
                if failures.is_empty() {
                    say(name, format!("is wrong, and passes: {:?}", variant.statuses));
                } else if !failures.iter().any(|failure| failure.contains(part)) {
                    say(name, format!("fails without `{part}`: {failures:?}"));
                }
            }
        }
    }
    let bases =
        variants.iter().filter(|(_, variant)| variant.is_base).map(|(name, _)| name.as_str());
    for name in RIGHT.iter().copied().chain(bases) {
        match variants.get(name) {
            None => say(name, "is no variant".to_owned()),
            Some(variant) if variant.needs_device() => {}
            Some(variant) if variant.statuses.iter().all(|status| is_slow(status)) => {
                say(name, "was not checked at any size".to_owned());
            }
            Some(variant) => {
                let doubts = variant.doubts();
                if !doubts.is_empty() {
                    say(name, format!("is right: {doubts:?}"));
                }
            }
        }
    }
    for (name, variant) in &variants {
        let is_race = RACES.contains(&name.as_str());
        let is_requested = REQUESTED.iter().any(|(requested, _)| requested == name);
        let is_wrong = is_race || is_requested || WRONG.iter().any(|(wrong, _)| wrong == name);
        let places = [is_wrong, RIGHT.contains(&name.as_str()), variant.is_base];
        if places.iter().filter(|is_there| **is_there).count() != 1 {
            say(name, "must be in one of the two tables, or a base".to_owned());
        }
    }
    assert!(WRONG.len() >= 44 && RIGHT.len() >= 42, "{} and {}", WRONG.len(), RIGHT.len());
    assert!(offenders.is_empty(), "{} offenders:\n{}", offenders.len(), offenders.join("\n"));
}

#[test]
fn regimes_that_inputs_refuse_are_told() {
    let found = checked("complement", &["--kernel", "complement"]);
    let circumstances = &found["complement/complement"].circumstances;
    let told = "not reversed shifted lowered large huge, where `inputs` or the reference fails";
    assert!(circumstances.contains(told), "{circumstances}");
    assert!(circumstances.contains("regimes constant zeros"), "{circumstances}");
}

#[test]
fn regimes_on_request_find_what_the_others_do_not() {
    for (name, regime) in REQUESTED {
        let (kernel, _) = name.split_once('/').expect("kernel/variant");
        let found =
            checked(&format!("{kernel}-{regime}"), &["--kernel", kernel, "--regimes", regime]);
        let failures = found[*name].failures();
        let is_named = |failure: &&str| failure.contains(&format!("regime `{regime}`"));
        assert!(failures.iter().any(is_named), "{name}: {failures:?}");
        let others = found.iter().filter(|(other, _)| other != name);
        for (other, variant) in others {
            assert!(variant.doubts().is_empty(), "{other}: {:?}", variant.doubts());
        }
    }
}

#[test]
fn races_are_found_in_one_of_some_runs() {
    for race in RACES {
        let (kernel, variant) = race.split_once('/').expect("kernel/variant");
        let flags = ["--kernel", kernel, "--variant", variant];
        let is_found = |run| {
            checked(&format!("{kernel}-{run}"), &flags)[*race].failures().iter().any(|_| true)
        };
        assert!((0..MOST_RUNS).any(is_found), "{race} passes in {MOST_RUNS} runs");
    }
}
