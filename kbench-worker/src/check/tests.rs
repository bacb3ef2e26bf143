//! What the gate promises of data and of inputs.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::kernel::{
    Caller, Calls, Erased, Implementation, InPlace, Kernel, KernelEntry, Mode, Routine, Sizes,
    Values, VariantEntry, serial,
};
use crate::plan::Size;
use crate::registry::fixtures::{Double, base, right, variant_of_double};
use crate::value::{Fingerprint, Operand, Regime, uniform, with_seed};

thread_local! {
    /// The inputs that were seen, as bits, by their length.
    static SEEN: RefCell<BTreeMap<usize, BTreeSet<Vec<u32>>>> = RefCell::default();
    /// Calls of [`late`].
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn every_awkward_size_is_checked_with_the_data_of_two_seeds() {
    fn seeing() -> Box<dyn Routine> {
        serial::<Double, _, _>(|reads, writes| {
            let bits = reads.0.iter().map(|x| x.to_bits()).collect();
            SEEN.with_borrow_mut(|seen| seen.entry(reads.0.len()).or_default().insert(bits));
            reads.0.iter().zip(&mut writes.0).for_each(|(x, y)| *y = 2.0 * x);
        })
    }
    let mut gate = Gate::new(Double::ENTRY, Some(base()), 1);
    let check = gate.check_awkward(variant_of_double("seeing", 2, seeing), &mut |_| {});
    assert!(check.outcome.is_ok(), "{:?}", check.outcome);
    let seen = SEEN.take();
    for size in awkward_sizes(Double::ENTRY, None) {
        let of_seed = |seed| {
            with_seed(seed, || uniform::<Vec<f32>>(size.values[0])).into_iter().map(f32::to_bits)
        };
        let inputs = &seen[&size.values[0]];
        assert!([1, 2].into_iter().all(|seed| inputs.contains(&of_seed(seed).collect::<Vec<_>>())));
    }
    // One small size and the largest ones see regimes, and both sets mixed.
    let more = seen.iter().filter(|(_, inputs)| inputs.len() > 2).map(|(length, _)| *length);
    assert_eq!(more.collect::<Vec<_>>(), [22, 2049, 4095]);
    let covered = check.coverage;
    assert_eq!((covered.sizes, covered.regimes.len()), (7, Regime::AUTOMATIC.len() - 2));
    assert!(!covered.regimes.contains(&Regime::Ends), "numbers without bounds have no ends");
    assert!(!covered.regimes.contains(&Regime::Filled), "no input is made of zeros");
    assert!(covered.repeated && covered.guarded);
}

/// An input that can be changed through a shared reference.
struct Loose(Cell<u64>);

impl Operand for Loose {
    fn fingerprint(&self, fingerprint: &mut Fingerprint) {
        fingerprint.add(self.0.get());
    }
}

/// A kernel that has such an input and no output.
struct Silent;

impl Kernel for Silent {
    type Axes = ();
    type Reads = Loose;
    type Writes = ();
    type Arguments<'a> = &'a Loose;
    const ENTRY: &'static KernelEntry = &KernelEntry {
        name: "silent",
        sizes: Sizes::Grid(&[Values::List(&[16])]),
        parameters: &["x"],
        outputs: &[],
        reference: None,
        regimes: None,
        definition: &Erased::<Self>::NEW,
        ..*Double::ENTRY
    };
    fn axes(_: &[usize]) {}
    fn inputs((): &()) -> (Loose, ()) {
        (Loose(Cell::new(0)), ())
    }
    fn arguments<'a>(reads: &'a Loose, (): &'a mut ()) -> &'a Loose {
        reads
    }
    fn restore((): &mut (), (): &()) {}
}

/// Changes its input from the third call on: a check has two.
fn late() -> Box<dyn Routine> {
    serial::<Silent, _, _>(|reads, ()| {
        CALLS.set(CALLS.get() + 1);
        if CALLS.get() > 2 {
            reads.0.set(reads.0.get() + 1);
        }
    })
}

#[test]
fn a_variant_repeats_its_outputs_or_does_not() {
    let (variant, size) = (base(), Size::of([16]));
    let gate = Gate::new(variant.kernel, None, 1);
    let routine = variant.implementation.routine();
    let mut data = variant.kernel.definition.data(&size.values, 1);
    let mut timed = Timed {
        routine: routine.as_ref(),
        data: data.as_mut(),
        caller: &Caller::Outside,
        calls: Calls::once(10),
        returns: false,
    };
    let reads = timed.data.reads_fingerprint();
    let repeated = gate.repeat(&mut timed, reads).unwrap_or_else(|reason| panic!("{reason}"));
    let outputs = repeated.outputs;
    assert!(gate.repeats(&mut timed, outputs).is_ok_and(|is_same| is_same));
    assert!(gate.repeats(&mut timed, !outputs).is_ok_and(|is_same| !is_same));
}

/// Where a call copies everything there and back, the sample by itself is to show what the check saw.
#[test]
fn a_variant_elsewhere_that_returns_nothing_is_known_by_its_sample_alone() {
    let (variant, size) = (base(), Size::of([16]));
    let mut gate = Gate::new(variant.kernel, None, 1);
    let check = gate.check_size(variant, &size, &mut |_| {});
    assert!(check.digest.is_some(), "{:?}", check.outcome);
    let routine = variant.implementation.routine();
    let mut data = variant.kernel.definition.data(&size.values, 1);
    for caller in [Caller::Outside, Caller::Foreign(Mode::Warm, None)] {
        let (data, caller) = (data.as_mut(), &caller);
        let calls = Calls::once(10);
        let mut timed = Timed { routine: routine.as_ref(), data, caller, calls, returns: false };
        let reads = timed.data.reads_fingerprint();
        let repeated = gate.repeat(&mut timed, reads).unwrap_or_else(|reason| panic!("{reason}"));
        assert_eq!(Some(repeated.digest), check.digest);
    }
}

#[test]
fn an_input_that_is_changed_only_while_calls_are_timed_is_found_afterwards() {
    let implementation = Implementation::Host(late);
    let variant = VariantEntry { kernel: Silent::ENTRY, implementation, ..*base() };
    let (size, mut gate) = (Size::of([16]), Gate::new(Silent::ENTRY, None, 1));
    let check = gate.check_size(&variant, &size, &mut |_| {});
    assert!(check.outcome.is_ok(), "{:?}", check.outcome);
    let (routine, mut data) = (late(), Silent::ENTRY.definition.data(&size.values, 1));
    let mut timed = Timed {
        routine: routine.as_ref(),
        data: data.as_mut(),
        caller: &Caller::Outside,
        calls: Calls::once(10),
        returns: false,
    };
    let reads = timed.data.reads_fingerprint();
    let found = gate.repeat(&mut timed, reads).err().expect("an input is changed").to_string();
    assert_eq!(
        found,
        "right before timing but not after it: it changes an input that is not an output"
    );
}

/// A kernel that may make its rows change places.
struct Rows;

impl Kernel for Rows {
    type Axes = usize;
    type Reads = ();
    type Writes = (Vec<Vec<f32>>,);
    type Arguments<'a> = &'a mut Vec<Vec<f32>>;
    const ENTRY: &'static KernelEntry = &KernelEntry {
        name: "rows",
        sizes: Sizes::Grid(&[Values::List(&[16])]),
        parameters: &["rows"],
        outputs: &["rows"],
        in_place: InPlace::Fresh,
        reference: None,
        definition: &Erased::<Self>::NEW,
        ..*Double::ENTRY
    };
    fn axes(size: &[usize]) -> usize {
        size[0]
    }
    fn inputs(n: &usize) -> ((), Self::Writes) {
        ((), ((0..*n).map(|row| uniform(row + 1)).collect(),))
    }
    fn arguments<'a>((): &'a (), writes: &'a mut Self::Writes) -> Self::Arguments<'a> {
        &mut writes.0
    }
    fn restore(writes: &mut Self::Writes, initial: &Self::Writes) {
        writes.0.clone_from(&initial.0);
    }
}

/// Even where an entry says that they cannot be exchanged.
#[test]
fn outputs_that_own_memory_may_be_exchanged_and_replaced() {
    let reversed = || serial::<Rows, _, _>(|(), writes| writes.0.reverse());
    let replaced = || {
        serial::<Rows, _, _>(|(), writes| {
            writes.0.reverse();
            writes.0.iter_mut().for_each(|row| *row = row.clone());
        })
    };
    let variant = |name, routine| VariantEntry {
        kernel: Rows::ENTRY,
        ..*variant_of_double(name, 2, routine)
    };
    let own = Box::leak(Box::new(variant("reversed", reversed)));
    let mut gate = Gate::new(Rows::ENTRY, Some(own), 1);
    let check = gate.check_awkward(&variant("replaced", replaced), &mut |_| {});
    assert!(check.outcome.is_ok(), "{:?}", check.outcome);
}

thread_local! {
    /// Whether the input of a call lay at the end of a page.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// An output whose code panics after such a call.
#[derive(Clone)]
struct Touchy;

impl Operand for Touchy {
    fn fingerprint(&self, _: &mut Fingerprint) {
        assert!(!IS_GUARDED.take(), "touchy");
    }
}

/// A kernel that has one.
struct Touching;

impl Kernel for Touching {
    type Axes = usize;
    type Reads = (Vec<u8>,);
    type Writes = (Touchy,);
    type Arguments<'a> = (&'a Vec<u8>, &'a mut Touchy);
    const ENTRY: &'static KernelEntry = &KernelEntry {
        name: "touching",
        sizes: Sizes::Grid(&[Values::List(&[16])]),
        reference: None,
        definition: &Erased::<Self>::NEW,
        ..*Double::ENTRY
    };
    fn axes(size: &[usize]) -> usize {
        size[0]
    }
    fn inputs(n: &usize) -> (Self::Reads, Self::Writes) {
        ((uniform(*n),), (Touchy,))
    }
    fn arguments<'a>(reads: &'a Self::Reads, writes: &'a mut Self::Writes) -> Self::Arguments<'a> {
        (&reads.0, &mut writes.0)
    }
    fn restore(_: &mut Self::Writes, _: &Self::Writes) {}
}

#[test]
fn data_beside_guard_pages_is_moved_back_when_code_of_its_types_panics() {
    let touching = || {
        serial::<Touching, _, _>(|reads, _| {
            let end = reads.0.as_ptr_range().end as usize;
            IS_GUARDED.set(end.is_multiple_of(4096) && reads.0.len() < 100);
        })
    };
    let variant =
        VariantEntry { kernel: Touching::ENTRY, ..*variant_of_double("touching", 1, touching) };
    let own = &*Box::leak(Box::new(variant));
    let check =
        || Gate::new(Touching::ENTRY, Some(own), 1).check_awkward(own, &mut |_| {}).outcome.is_ok();
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
    let text = panic.expect_err("it panics beside a guard page");
    assert_eq!(text.downcast_ref(), Some(&"touchy"));
}

/// A check of a right variant in some regimes, with a tolerance.
fn check_of_right(regimes: Option<Vec<Regime>>, tolerance: Option<f64>) -> Check {
    let variant = VariantEntry { tolerance, ..*variant_of_double("right", 2, right) };
    let mut gate = Gate::new(Double::ENTRY, Some(base()), 1).in_regimes(regimes);
    gate.check_awkward(&variant, &mut |_| {})
}

#[test]
fn a_check_that_notices_too_few_mistakes_fails() {
    let check = check_of_right(None, Some(0.005));
    let mutations = check.mutations.expect("tried");
    assert!(check.outcome.is_ok() && mutations.score() > 0.95, "{mutations:?}");
    let wrong = check_of_right(None, Some(0.5)).outcome.expect_err("too loose").to_string();
    assert!(wrong.starts_with("the check is too loose: of "), "{wrong}");
}

#[test]
fn regimes_can_be_chosen_and_then_nothing_else_is_tried() {
    let covered = check_of_right(Some(vec![Regime::Large, Regime::Ends]), None).coverage;
    assert_eq!(covered, Covered { sizes: 7, regimes: vec![Regime::Large], ..Covered::default() });
    assert_eq!(check_of_right(Some(Vec::new()), None).coverage.regimes, []);
}

#[test]
fn a_failure_in_a_regime_names_it_and_the_smallest_size() {
    fn squares() -> Box<dyn Routine> {
        serial::<Double, _, _>(|reads, writes| {
            reads
                .0
                .iter()
                .zip(&mut writes.0)
                .for_each(|(x, y)| *y = (4.0 * x * x).sqrt().copysign(*x));
        })
    }
    let mut gate = Gate::new(Double::ENTRY, Some(base()), 1);
    let check = gate.check_awkward(variant_of_double("squares", 2, squares), &mut |_| {});
    let wrong = check.outcome.expect_err("it overflows");
    assert_eq!(wrong.circumstance, Circumstance::Regime(Regime::Huge));
    assert_eq!(wrong.size, "n=1");
}
