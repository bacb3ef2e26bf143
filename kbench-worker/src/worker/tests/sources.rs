//! When the sources of CUDA variants are compiled.

use std::cell::Cell;

use super::super::checker;
use super::super::devices::Workshop;
use super::super::protocol::{
    CellRequest, CheckRequest, CheckedReply, DeviceRequest, PROTOCOL, Place, Reply,
};
use super::super::subject::Names;
use super::super::watchdog::Vigil;
use super::cell;
use crate::check::Coverage;
use crate::kernel::{Caller, Mode};
use crate::registry::Registry;
use crate::registry::fixtures::{cuda_variant_of_double, right, variant_of_double};

/// A workshop whose variants run on the host; every so many calls, the first among them, one asks for a source that was never
/// compiled, and with one of them the device may be lost.
struct Improvised {
    every: u32,
    last: u32,
    is_collecting: Cell<bool>,
    calls: Cell<u32>,
    collected: Cell<usize>,
}

impl Workshop for Improvised {
    fn caller(&mut self, _: Mode) -> Result<Caller, String> {
        Ok(Caller::Outside)
    }

    fn lost(&self) -> Option<String> {
        (self.calls.get() >= self.last).then(|| "it fell off the bus".to_owned())
    }

    fn collect_sources(&self, is_collecting: bool) {
        self.is_collecting.set(is_collecting);
    }

    fn has_put_off(&self) -> bool {
        let asks = self.calls.replace(self.calls.get() + 1).is_multiple_of(self.every);
        let is_put_off = self.is_collecting.get() && asks;
        self.collected.set(self.collected.get() + usize::from(is_put_off));
        is_put_off
    }

    fn compile_collected(&self, tell: &mut dyn FnMut(usize, usize)) {
        let total = self.collected.take();
        tell(total, total);
    }
}

/// What a worker with such a workshop says: the cells whose rows are called and checked, and how many sources are compiled.
fn improvised((every, last): (u32, u32), cells: Vec<CellRequest>, together: bool) -> Vec<String> {
    let cuda = ["fast", "faster"].map(|name| cuda_variant_of_double(name, 2, right));
    let registry = Registry::of(cuda.into_iter().chain([variant_of_double("double", 1, right)]))
        .expect("fine");
    let (protocol, seed, coverage) = (PROTOCOL, 1, Coverage::EverySize);
    let device = DeviceRequest::default();
    let (timeout_seconds, regimes) = (60.0, None);
    let request = CheckRequest {
        protocol,
        seed,
        coverage,
        regimes,
        cells,
        device,
        together,
        timeout_seconds,
    };
    let (is_collecting, calls, collected) = Default::default();
    let mut workshop = Improvised { every, last, is_collecting, calls, collected };
    let mut said = Vec::new();
    let (vigil, names) = (Vigil::new(), Names::of(&registry));
    let outcome = checker::check(&names, &mut workshop, &vigil, &request, &mut |reply| {
        said.push(match reply {
            Reply::Trying(_) | Reply::Called | Reply::Calling(Place { row: None, .. }) => return,
            Reply::Calling(Place { cell, row: Some(row) }) => format!("call {cell}.{row}"),
            Reply::Checked(CheckedReply {
                place: Place { cell, row }, wrong: None, ends, ..
            }) => {
                let end = if ends { ", end" } else { "" };
                format!("right {cell}.{}{end}", row.unwrap_or(9))
            }
            Reply::Compiling { total, .. } => format!("compile {total}"),
            other => format!("{other:?}"),
        });
    });
    assert_eq!(outcome, Ok(()));
    assert!(!workshop.is_collecting.get(), "nothing is put off after the checks");
    said
}

#[test]
fn rows_that_wait_for_a_source_are_checked_when_it_is_compiled() {
    let cells = || vec![cell(16, &["fast", "faster"]), cell(1024, &["fast"])];
    let said = improvised((2, u32::MAX), cells(), true);
    // Of each variant one row is called; the first variant waits for a source.
    let first = ["call 0.0", "call 0.1", "right 0.1", "compile 1"];
    // It waits for another one, which the first one kept hidden.
    let second = ["call 0.0", "compile 1"];
    // The other sizes come when all sources are compiled.
    let third = ["call 0.0", "right 0.0", "call 1.0", "right 1.0"];
    assert_eq!(said, [&first[..], &second, &third].concat());
    let said = improvised((2, u32::MAX), cells(), false);
    let one_by_one = ["call 0.0", "right 0.0", "call 0.1", "right 0.1", "call 1.0", "right 1.0"];
    assert_eq!(said, one_by_one);
}

#[test]
fn a_variant_that_always_asks_for_another_source_is_checked_after_a_few_rounds() {
    let said = improvised((1, u32::MAX), vec![cell(16, &["fast"]), cell(1024, &["fast"])], true);
    let round = ["call 0.0", "compile 1"];
    let last = ["call 0.0", "right 0.0", "call 1.0", "right 1.0"];
    assert_eq!(said, [&round[..], &round, &round, &last].concat());
}

#[test]
fn a_worker_whose_device_is_lost_leaves_the_rest_to_another_one() {
    let cells = vec![cell(16, &["fast", "faster"]), cell(1024, &["fast"])];
    let said = improvised((9, 2), cells, false);
    assert_eq!(said, ["call 0.0", "right 0.0", "call 0.1", "right 0.1, end"]);
}

#[test]
fn host_rows_wait_until_the_sources_of_their_kernel_are_compiled() {
    let cells = vec![cell(16, &["double", "fast"]), cell(1024, &["double", "fast"])];
    let said = improvised((100, u32::MAX), cells, true);
    let sources = ["call 0.1", "compile 1", "call 0.1", "right 0.1"];
    let rest = ["call 0.0", "right 0.0", "call 1.0", "right 1.0", "call 1.1", "right 1.1"];
    assert_eq!(said, [&sources[..], &rest].concat());
}
