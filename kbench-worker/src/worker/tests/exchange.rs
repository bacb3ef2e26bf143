//! Rows that were timed, and are then called on other inputs.

use std::collections::HashMap;

use super::*;

/// An input, by its address and its content, and what came out of it.
type Kept = (usize, Vec<f32>, Vec<f32>);

thread_local! {
    /// The last input.
    static KEPT: RefCell<Kept> = const { RefCell::new((0, Vec::new(), Vec::new())) };
}

/// Far slower than a copy.
fn slow_double(x: f32) -> f32 {
    (0..200).fold(x, |y, i| std::hint::black_box(y + (i % 2) as f32 - 0.5)) + x
}

/// Knows its last input, and gives the last answer for it.
fn keeping(is_known: fn(&Kept, &[f32]) -> bool) -> Box<dyn Routine> {
    serial::<Double, _, _>(move |reads, writes| {
        KEPT.with_borrow_mut(|kept| {
            if !is_known(kept, &reads.0) {
                let answer = reads.0.iter().copied().map(slow_double).collect();
                *kept = (reads.0.as_ptr().addr(), reads.0.clone(), answer);
            }
            writes.0.copy_from_slice(&kept.2);
        });
    })
}

fn by_address() -> Box<dyn Routine> {
    keeping(|kept, x| kept.0 == x.as_ptr().addr() && kept.1.len() == x.len())
}

fn by_content() -> Box<dyn Routine> {
    keeping(|kept, x| kept.1 == x)
}

/// Knows all inputs that it has ever seen.
fn all_by_content() -> Box<dyn Routine> {
    thread_local! {
        static ALL: RefCell<HashMap<Vec<u32>, Vec<f32>>> = RefCell::default();
    }
    serial::<Double, _, _>(|reads, writes| {
        let key = reads.0.iter().map(|x| x.to_bits()).collect();
        ALL.with_borrow_mut(|all| {
            let answer = || reads.0.iter().copied().map(slow_double).collect();
            writes.0.copy_from_slice(all.entry(key).or_insert_with(answer));
        });
    })
}

fn slow() -> Box<dyn Routine> {
    keeping(|_, _| false)
}

/// What is said against rows after they were timed, for as long as that may take.
fn failures(variants: &[&'static VariantEntry], seconds: f64) -> Vec<(Option<usize>, String)> {
    let registry = Registry::of(variants.iter().copied()).expect("fine");
    let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
    let mut worker = Worker::new(&registry);
    prepared(&mut worker, vec![cell(40_000, &names)]);
    let replies = answers(&mut worker, &Request::Recheck(Review::on_other_inputs(seconds)));
    assert!(matches!(replies.last(), Some(Reply::Done(_))));
    let failed = |reply| match reply {
        Reply::Failed(FailedRow { row, failure, .. }) => Some((row, failure)),
        _ => None,
    };
    replies.into_iter().filter_map(failed).collect()
}

#[test]
fn one_that_knows_its_inputs_by_their_address_is_named() {
    let variants =
        [variant_of_double("double", 1, right), variant_of_double("kept", 2, by_address)];
    let [(row, failure)] = &failures(&variants, 60.0)[..] else { panic!("one fails") };
    assert_eq!(*row, Some(1));
    let said = "right before timing but not after it: its result for other inputs is not what";
    assert!(failure.starts_with(said), "{failure}");
    // It is alone, and what should come out is its own answer in other memory.
    let alone = failures(&[variant_of_double("kept", 1, by_address)], 60.0);
    assert_eq!(alone.len(), 1, "{alone:?}");
}

#[test]
fn one_that_does_no_work_on_inputs_that_it_has_seen_is_named() {
    for routine in [by_content, all_by_content] {
        let variants =
            [variant_of_double("double", 1, right), variant_of_double("kept", 2, routine)];
        let [(row, failure)] = &failures(&variants, 60.0)[..] else { panic!("one fails") };
        assert_eq!(*row, Some(1));
        assert!(failure.contains("it keeps answers"), "{failure}");
    }
}

#[test]
fn right_rows_are_called_as_long_as_there_is_time_and_nothing_is_said() {
    let variants = [variant_of_double("double", 1, right), variant_of_double("slow", 2, slow)];
    assert_eq!(failures(&variants, 60.0), []);
    let variants = [variant_of_double("kept", 1, by_address)];
    assert_eq!(failures(&variants, 0.0), []);
}
