use std::time::Instant;

use super::*;
use crate::kernel::{Kernel, Location, Sizes, Values};
use crate::registry::fixtures::{Double, base, cuda_variant_of_double, right, variant_of_double};

fn registry() -> Registry {
    Registry::of([base(), variant_of_double("fast", 2, right)]).expect("fine")
}

fn names(selection: &Selection) -> Vec<String> {
    let plan = Plan::new(&registry(), selection, &[], &[]).expect("a plan");
    plan.rows().map(|(cell, row)| cell.row_name(row)).collect()
}

#[test]
fn full_names_have_module_kernel_variant_type_and_size() {
    assert_eq!(
        names(&Selection::default())[..2],
        ["demo::double/double/f32/n=16", "demo::double/fast/f32/n=16"]
    );
}

#[test]
fn without_the_own_function_the_first_selected_variant_is_the_base() {
    let variants = [variant_of_double("one", 2, right), variant_of_double("two", 3, right)];
    let registry = Registry::of([base()].into_iter().chain(variants)).expect("fine");
    let base_of = |variants: &[&str], base: Option<&str>| {
        let variants = variants.iter().map(ToString::to_string).collect();
        let selection = Selection { variants, base: base.map(Into::into), ..Selection::default() };
        let plan = Plan::new(&registry, &selection, &[], &[]).expect("a plan");
        let cell = &plan.cells[0];
        (cell.base.map(|base| cell.rows[base].variant.name), plan.has_substitutes)
    };
    assert_eq!(base_of(&[], None), (Some("double"), false));
    assert_eq!(base_of(&["one", "two"], None), (Some("one"), true));
    assert_eq!(base_of(&["two", "one"], None), (Some("two"), true));
    assert_eq!(base_of(&["one"], None), (None, false), "there is nothing to compare");
    assert_eq!(base_of(&["one"], Some("two")), (Some("two"), false));
}

#[test]
fn a_brief_plan_has_one_size_of_every_type_after_the_first() {
    let mut plan = Plan::new(&registry(), &Selection::default(), &[], &[]).expect("a plan");
    let sizes = plan.cells.len();
    assert!(sizes >= 3, "{sizes}");
    let second: &'static KernelEntry = Box::leak(Box::new(KernelEntry {
        element: "f16",
        element_index: 1,
        sizes: Sizes::Labelled(&[]),
        ..*Double::ENTRY
    }));
    let of_second = plan.cells.clone().into_iter().map(|c| Cell { kernel: second, ..c });
    plan.cells.extend(of_second);
    let whole = plan.rows().count();
    plan.shorten();
    let of_type = |element| plan.cells.iter().filter(move |c| c.kernel.element == element);
    assert_eq!((of_type("f32").count(), of_type("f16").count()), (sizes, 1));
    let middle = plan.cells[(sizes - 1) / 2].size.values.clone();
    assert!(of_type("f16").all(|cell| cell.size.values == middle));
    assert_eq!(plan.filtered_out, whole - plan.rows().count());
    assert!(plan.is_brief);
}

#[test]
fn filters_skips_and_exact_follow_libtest() {
    let filters = |filters: &[&str], skip: &[&str], exact| Selection {
        filters: filters.iter().map(ToString::to_string).collect(),
        skip: skip.iter().map(ToString::to_string).collect(),
        exact,
        ..Selection::default()
    };
    assert_eq!(names(&filters(&["n=16", "n=4096"], &["fast"], false)).len(), 2);
    assert_eq!(names(&filters(&["demo::double/fast/f32/n=16"], &[], true)).len(), 1);
    assert_eq!(names(&filters(&["n=16"], &[], true)).len(), 0);
}

#[test]
fn an_axis_override_measures_sizes_that_nobody_listed() {
    let selection = Selection {
        axes: vec!["n=7,9".parse().expect("valid")],
        variants: vec!["fast".into()],
        ..Selection::default()
    };
    assert_eq!(names(&selection), ["demo::double/fast/f32/n=7", "demo::double/fast/f32/n=9"]);
}

#[test]
fn a_label_is_where_an_axis_is_varied_from() {
    let kernel = KernelEntry {
        axes: &["rows", "dim"],
        sizes: Sizes::Labelled(&[("few", &[1, 64]), ("many", &[8, 512]), ("long", &[8, 4096])]),
        ..*Double::ENTRY
    };
    let chosen = |sizes: &[&str], axes: &[&str]| {
        let selection = Selection {
            sizes: sizes.iter().map(|text| text.parse().expect(text)).collect(),
            axes: axes.iter().map(|text| text.parse().expect(text)).collect(),
            ..Selection::default()
        };
        let (sizes, left_out) = selection.sizes(&kernel).expect("sizes");
        let names: Vec<String> = sizes.iter().map(|size| size.name(&["rows", "dim"])).collect();
        (names.join(" "), left_out)
    };
    assert_eq!(chosen(&["many"], &[]), ("rows=8,dim=512".into(), 2));
    assert_eq!(chosen(&["many"], &["rows=2,3"]), ("rows=2,dim=512 rows=3,dim=512".into(), 4));
    // Two shapes become one size.
    assert_eq!(chosen(&["long"], &["dim=32"]), ("rows=8,dim=32".into(), 1));
    assert_eq!(chosen(&[], &["dim=32"]), ("rows=1,dim=32 rows=8,dim=32".into(), 0));
    let squares = chosen(&["rows==dim"], &["rows=2,4", "dim=2,4"]);
    assert_eq!(squares, ("rows=2,dim=2 rows=4,dim=4".into(), 2));
}

#[test]
fn a_module_stands_for_its_kernels() {
    let kernel = |name: &str| Selection { kernels: vec![name.into()], ..Selection::default() };
    assert_eq!(names(&kernel("demo")), names(&Selection::default()));
    assert_eq!(names(&kernel("demo::double")), names(&kernel("double")));
    let error = Plan::new(&registry(), &kernel("dem"), &[], &[]).err().expect("an error");
    assert!(error.to_string().contains("did you mean `demo`?"), "{error}");
}

#[test]
fn an_unknown_name_gets_the_nearest_one() {
    let selection = Selection { kernels: vec!["duoble".into()], ..Selection::default() };
    let error = Plan::new(&registry(), &selection, &[], &[]).err().expect("an error").to_string();
    assert!(error.contains("did you mean `double`?"), "{error}");
}

#[test]
fn both_sides_of_a_condition_are_axes_that_exist() {
    for (condition, unknown) in [("n>=x", "x"), ("x>=n", "x"), ("n=n&&n<rows", "rows")] {
        let sizes = vec![condition.parse().expect(condition)];
        let selection = Selection { sizes, ..Selection::default() };
        let error = Plan::new(&registry(), &selection, &[], &[]).err().expect(condition);
        assert!(error.to_string().contains(&format!("no axis is called `{unknown}`")), "{error}");
    }
}

#[test]
fn a_named_base_is_selected_along_and_compared_with() {
    let selection = Selection {
        base: Some("fast".into()),
        variants: vec!["double".into()],
        ..Selection::default()
    };
    let plan = Plan::new(&registry(), &selection, &[], &[]).expect("a plan");
    let cell = &plan.cells[0];
    assert_eq!(cell.base.map(|i| cell.rows[i].variant.name), Some("fast"));
    assert_eq!(cell.rows.len(), 2);
}

#[test]
fn ten_thousand_variants_are_listed_in_no_time() {
    let entries: Vec<&'static VariantEntry> = (0..10_000u32)
        .map(|i| {
            let name: &'static str = Box::leak(format!("variant{i}").into_boxed_str());
            variant_of_double(name, i + 1, right)
        })
        .collect();
    assert_eq!(entries[1].location, Location { file: "demo.rs", line: 2, column: 1 });
    let start = Instant::now();
    let registry = Registry::of(entries).expect("fine");
    let plan = Plan::new(&registry, &Selection::default(), &[], &[]).expect("a plan");
    let bytes: usize = plan.rows().map(|(cell, row)| cell.row_name(row).len()).sum();
    assert!(bytes > 30_000 * 20);
    // No promise about speed belongs in a test, but a quadratic algorithm would take minutes here.
    assert!(start.elapsed().as_secs() < 3, "{:?}", start.elapsed());
}

#[test]
fn a_row_is_compared_with_the_base_in_its_own_mode() {
    let entries = [
        base(),
        variant_of_double("fast", 2, right),
        cuda_variant_of_double("first", 3, right),
        cuda_variant_of_double("second", 4, right),
    ];
    let registry = Registry::of(entries).expect("fine");
    let modes = Mode::OF_DEVICE;
    let cell_of = |base: Option<&str>| {
        let selection = Selection { base: base.map(Into::into), ..Selection::default() };
        let plan = Plan::new(&registry, &selection, &[], &modes).expect("a plan");
        plan.cells.into_iter().next().expect("a cell")
    };
    let name = |cell: &Cell, row: usize| {
        let Row { variant, mode, .. } = cell.rows[row];
        format!("{} {}", variant.name, mode.name())
    };
    let bases = |cell: &Cell| -> Vec<(String, String)> {
        let rows = 0..cell.rows.len();
        rows.map(|row| (name(cell, row), name(cell, cell.base_of(row).expect("a base")))).collect()
    };
    // The base has one row: everything is compared with it.
    let own = cell_of(None);
    assert_eq!(own.rows.len(), 2 + 2 * modes.len());
    assert!(bases(&own).iter().all(|(_, base)| base == "double warm"));
    // The base is on the device: like is compared with like, and the host with its first mode.
    let device = cell_of(Some("first"));
    let expected = |row: &str| match row {
        "second hot" | "first hot" | "double warm" | "fast warm" => "first hot".to_owned(),
        other => other.replace("second", "first"),
    };
    for (row, base) in bases(&device) {
        assert_eq!(base, expected(&row), "{row}");
    }
    let count = |cell: &Cell, is: fn(&Cell, usize) -> bool| {
        (0..cell.rows.len()).filter(|row| is(cell, *row)).count()
    };
    assert_eq!(count(&device, Cell::is_base), modes.len());
    assert_eq!(count(&device, Cell::is_primary), 4, "one row of every variant is ranked");
}

#[test]
fn a_share_has_all_element_types_of_its_kernels() {
    let entry = |(name, line), (element_index, element)| -> &'static VariantEntry {
        let location = Location { file: "demo.rs", line, column: 1 };
        let sizes = Sizes::Grid(&[Values::List(&[16])]);
        let kernel =
            KernelEntry { name, element, element_index, location, sizes, ..*Double::ENTRY };
        let kernel = Box::leak(Box::new(kernel));
        Box::leak(Box::new(VariantEntry { kernel, name, ..*base() }))
    };
    let types = [(0, "f32"), (1, "f16"), (2, "bf16")];
    let kernels = [("double", 1), ("triple", 2)];
    let entries =
        kernels.into_iter().flat_map(|kernel| types.map(|element| entry(kernel, element)));
    let registry = Registry::of(entries).expect("fine");
    let share = |partition: &str| -> Vec<String> {
        let partition = Some(partition.parse().expect("valid"));
        let selection = Selection { partition, ..Selection::default() };
        let plan = Plan::new(&registry, &selection, &[], &[]).expect("a plan");
        plan.rows().map(|(cell, row)| cell.row_name(row)).collect()
    };
    let all_of =
        |kernel: &str| types.map(|(_, element)| format!("demo::{kernel}/{kernel}/{element}/n=16"));
    assert_eq!(share("slice:1/2"), all_of("double"));
    assert_eq!(share("slice:2/2"), all_of("triple"));
}
