//! What the attribute registers, from the outside: entries of the registry, data, results.

#[path = "attribute/kernels.rs"]
#[allow(missing_docs)] // Kernels of tests.
pub mod kernels;
#[path = "attribute/elsewhere.rs"]
#[allow(missing_docs)] // Kernels of tests.
pub mod somewhere;

use kbench::check::Gate;
use kbench::kernel::{
    Backend, Bound, Caller, Fault, Implementation, InPlace, Metric, Outputs, Returned, Sizes,
    Threshold, TuningSource, Values, VariantEntry,
};

/// The entry of a variant, by the names of kernel, element type and variant.
fn entry(kernel: &str, element: &str, variant: &str) -> &'static VariantEntry {
    let mut found = kbench::__private::inventory::iter::<VariantEntry>
        .into_iter()
        .filter(|entry| (entry.kernel.name, entry.kernel.element) == (kernel, element))
        .filter(|entry| entry.name == variant);
    let entry =
        found.next().unwrap_or_else(|| panic!("{kernel}/{variant}/{element} is registered"));
    assert!(found.next().is_none(), "{kernel}/{variant}/{element} is registered once");
    entry
}

/// One call on fresh data: the outputs, what was returned, and what the reference says.
fn call(entry: &VariantEntry, size: &[usize]) -> (Vec<Vec<f64>>, Returned, Option<Outputs>) {
    let Implementation::Host(routine) = entry.implementation else {
        panic!("{} runs on the host", entry.name)
    };
    let mut data = entry.kernel.definition.data(size, 7);
    let reference = data.reference();
    let returned = routine().call(&mut *data, &Caller::Outside);
    (data.outputs(), returned.expect("no fault"), reference)
}

#[test]
fn a_kernel_says_what_it_is() {
    let kernel = entry("saxpy", "f32", "saxpy").kernel;
    assert_eq!(kernel.path(), "attribute::kernels::saxpy");
    assert!(kernel.location.file.ends_with("tests/attribute/kernels.rs"), "{}", kernel.location);
    assert_eq!((kernel.axes, kernel.outputs), (&["n"][..], &["y"][..]));
    assert_eq!(kernel.in_place, InPlace::Reuse);
    assert!(matches!(kernel.sizes, Sizes::Grid([Values::List([16, 64])])));
    assert!(kernel.tolerance.is_none() && kernel.reference.is_none());
}

#[test]
fn a_variant_says_which_function_it_is_and_when_that_changes() {
    let rayon = entry("saxpy", "f32", "saxpy_rayon");
    assert_eq!(rayon.function, "saxpy_rayon");
    assert!(rayon.code.len() == 16 && rayon.code.bytes().all(|b| b.is_ascii_hexdigit()));
    assert_ne!(rayon.code, entry("saxpy", "f32", "saxpy").code);
}

#[test]
fn a_tuned_threshold_is_its_default_until_it_is_measured() {
    let Some(threshold @ Threshold::Tuned(tuned)) = entry("saxpy", "f32", "saxpy_tuned").threshold
    else {
        panic!("a tuned threshold")
    };
    assert_eq!((tuned.work, tuned.default), (128, 128));
    assert_eq!(tuned.folder, env!("CARGO_MANIFEST_DIR"));
    assert!(matches!(tuned.source, TuningSource::NoFile | TuningSource::NoEntry), "{tuned:?}");
    assert!(threshold.holds(tuned.work as f64, &[1]));
}

#[test]
fn a_variant_says_how_it_differs() {
    let base = entry("saxpy", "f32", "saxpy");
    assert!(base.is_base && base.threshold.is_none() && base.ignore.is_none());
    assert_eq!(base.backend, Backend::Serial);

    let rayon = entry("saxpy", "f32", "saxpy_rayon");
    assert!(!rayon.is_base && std::ptr::eq(rayon.kernel, base.kernel));
    assert_eq!((rayon.backend, rayon.tolerance), (Backend::Parallel, Some(1e-3)));
    assert_eq!(rayon.ignore, Some("only on Sundays"));
    assert!(matches!(rayon.threshold, Some(Threshold::Work(65_536))));
    assert_eq!(rayon.flops.map(|flops| flops(&[8])), Some(16.0));

    let cuda = entry("saxpy", "f32", "saxpy_cuda");
    assert_eq!((cuda.backend, cuda.ignore), (Backend::Cuda, Some("")));
    assert!(matches!(cuda.implementation, Implementation::Device(_)));
}

#[test]
fn a_threshold_may_be_a_condition() {
    let Some(Threshold::When(condition)) = entry("saxpy", "f32", "saxpy_cuda").threshold else {
        panic!("a condition")
    };
    assert_eq!(condition.text, "n >= 1 << 20");
    assert!((condition.holds)(&[1 << 20]) && !(condition.holds)(&[(1 << 20) - 1]));
}

#[test]
fn expectations_keep_their_text_and_mean_it() {
    let [speedup, ceiling, time] = entry("saxpy", "f32", "saxpy_rayon").expectations else {
        panic!("three expectations")
    };
    assert_eq!(
        (speedup.metric, speedup.bound, speedup.value),
        (Metric::Speedup, Bound::AtLeast, 2.0)
    );
    assert_eq!(speedup.text, "speedup >= 2.0");
    assert_eq!((time.metric, time.bound, time.value), (Metric::Time, Bound::AtMost, 0.0015));
    assert_eq!(time.text, "time < 1.5ms");
    let at = ceiling.at.expect("a condition");
    assert_eq!(at.text, "n >= LIMIT && n.is_power_of_two()");
    assert!((at.holds)(&[64]) && !(at.holds)(&[65]) && !(at.holds)(&[32]));
}

#[test]
fn a_call_writes_the_outputs() {
    for name in ["saxpy", "saxpy_rayon"] {
        let entry = entry("saxpy", "f32", name);
        let before = entry.kernel.definition.data(&[16], 7).outputs();
        let (after, _, _) = call(entry, &[16]);
        assert_eq!(before, [vec![1.0; 16]]);
        assert_ne!(before, after);
    }
}

#[test]
fn a_generic_kernel_is_one_for_every_type() {
    for (index, element) in ["f32", "f64"].into_iter().enumerate() {
        let kernel = entry("scale", element, "scale").kernel;
        assert_eq!((kernel.element_index, kernel.axes), (index, &["rows", "dim"][..]));
        assert_eq!((kernel.tolerance, kernel.reference), (Some(1e-5), Some("scale_reference")));
        let Sizes::Grid([Values::List([1, 16]), Values::PowersOfTwo { from: 3, to: 5 }]) =
            kernel.sizes
        else {
            panic!("the grid of the attribute")
        };
        let definition = kernel.definition;
        assert_eq!(definition.work(&[3, 4]), Some(12.0));
        assert_eq!(definition.flops(&[3, 4]), Some(4.5));
        assert_eq!(definition.bytes(&[3, 4]), Some(96.0));
        assert!(definition.valid(&[3, 4]) && !definition.valid(&[4, 3]));
    }
}

#[test]
fn types_of_a_variant_go_to_the_kernel_and_constants_into_its_name() {
    for (element, variant) in [("f32", "tiled<4>"), ("f64", "tiled<8>"), ("f64", "wide")] {
        let (outputs, _, reference) = call(entry("scale", element, variant), &[2, 8]);
        let reference = reference.expect("a reference");
        assert_eq!((outputs.len(), outputs[0].len()), (1, 16));
        let largest = outputs[0].iter().zip(&reference.parts[0]).map(|(a, b)| (a - b).abs());
        assert!(largest.fold(0.0, f64::max) < 1e-6, "{variant} of {element}");
    }
}

#[test]
fn axes_are_found_in_macros_and_a_formula_needs_none() {
    let wide = entry("scale", "f64", "wide");
    let valid = wide.valid.expect("a condition");
    assert_eq!([[2, 8], [16, 4], [3, 8]].map(|size| (valid.holds)(&size)), [true, false, false]);
    assert_eq!(wide.bytes.map(|bytes| bytes(&[2, 8])), Some(0.0));
}

#[test]
fn eight_bit_floats_pass_the_gate() {
    for element in ["F8E4M3", "F8E5M2"] {
        let entry = entry("scale_bytes", element, "scale_bytes");
        let check = Gate::new(entry.kernel, None, 7).check_awkward(entry, &mut |_| {});
        assert!(check.outcome.is_ok(), "{element}: {:?}", check.outcome);
        assert_eq!(check.remarks, [], "{element}");
        // Rounded once: neither exact nor by more than half a unit in the last place.
        let norm = check.errors.expect("compared").norm;
        assert!(norm > 0.0 && norm < 0.125, "{element}: {norm}");
    }
}

#[test]
fn constants_alone_are_the_element() {
    let kernel = entry("lanes", "4", "lanes").kernel;
    assert_eq!((kernel.axes, kernel.outputs), (&["length"][..], &["return value"][..]));
    assert!(matches!(kernel.sizes, Sizes::Labelled([("one", [1]), ("page", [4096])])));
    assert_eq!(call(entry("lanes", "2", "lanes"), &[8]).1.parts.len(), 1);
}

#[test]
fn labelled_shapes_have_their_values_in_the_order_of_the_axes() {
    let kernel = entry("shapes", "f32", "shapes").kernel;
    assert_eq!((kernel.axes, kernel.in_place), (&["rows", "dim"][..], InPlace::Fresh));
    assert!(matches!(kernel.sizes, Sizes::Labelled([("flat", [1, 8]), ("tall", [8, 1])])));
}

#[test]
fn an_error_is_the_failure_of_the_call() {
    let entry = entry("fallible", "i32", "fallible");
    assert_eq!(entry.kernel.outputs, ["return value"]);
    assert_eq!(call(entry, &[3]).1.parts, [vec![3.0, 3.0]]);
    assert_eq!(call(entry, &[5]).1.failure.as_deref(), Some("5 is too much"));
}

#[test]
fn awkward_items_can_be_called() {
    assert_eq!(call(entry("copy", "f32", "copy"), &[4]).0[0].len(), 4);
    assert_eq!(call(entry("add", "f32", "add"), &[4]).1.parts, [vec![5.0]]);
    let patterns = entry("patterns", "f32", "patterns");
    assert_eq!(patterns.kernel.outputs, ["argument 3", "return value"]);
    assert_eq!(call(patterns, &[4]).1.parts, [vec![7.0]]);
    let (_, returned, reference) = call(entry("trace", "f32", "trace"), &[2]);
    assert_eq!(returned.parts, reference.expect("a reference").parts);
    let nothing = entry("nothing", "-", "nothing");
    assert!(nothing.kernel.outputs.is_empty());
    assert!(call(nothing, &[1]).0.is_empty());
    let distant = entry("distant", "f32", "distant");
    assert_eq!(distant.module, "attribute::somewhere");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_function_that_is_compiled_for_another_processor_is_skipped() {
    let entry = entry("add", "f32", "add_rarely");
    let mut data = entry.kernel.definition.data(&[4], 7);
    let called = entry.implementation.routine().call(&mut *data, &Caller::Outside);
    let declined = Fault::Declined("this processor has no widekl".to_owned());
    match std::arch::is_x86_feature_detected!("widekl") {
        true => assert_eq!(called.expect("no fault").parts, [vec![5.0]]),
        false => assert_eq!(called.expect_err("no such instructions"), declined),
    }
}

#[test]
fn outputs_are_moved_where_they_own_nothing_and_right_either_way() {
    for (element, is_fixed) in [("f32", true), ("Vec<f32>", false)] {
        let entry = entry("reversed", element, "reversed");
        assert_eq!(entry.has_fixed_outputs, is_fixed, "{element}");
        let check = Gate::new(entry.kernel, Some(entry), 7).check_awkward(entry, &mut |_| {});
        assert!(check.outcome.is_ok(), "{element}: {:?}", check.outcome);
    }
}

#[test]
fn macros_may_write_attributes() {
    let variant = entry("head", "f64", "head_variant");
    assert_eq!(variant.kernel.axes, ["rows", "depth"]);
    assert!(matches!(
        variant.kernel.sizes,
        Sizes::Grid([Values::List([8, 64]), Values::List([2])])
    ));
    let Some(Threshold::When(condition)) = variant.threshold else { panic!("a condition") };
    assert_eq!(condition.text, "rows >= 4 && depth > 1");
    assert!((condition.holds)(&[4, 2]) && !(condition.holds)(&[4, 1]));
    assert_eq!(variant.flops.map(|flops| flops(&[4, 2])), Some(4.0));
    assert_eq!(call(variant, &[3, 2]).0[0].len(), 3);
}
