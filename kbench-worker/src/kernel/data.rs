//! The data of one cell, shared by all variants that run on it.

use std::any::Any;
use std::hint::black_box;
use std::marker::PhantomData;
use std::ops::Range;

use super::Kernel;
use super::device::Resident;
use crate::value::{
    Draw, Fingerprint, NumbersMut, Operand, Pages, Parts, Plain, PlainBytes, Poison, drawn,
};

/// An input of so many elements that are all the same was made so.
const TELLING_ELEMENTS: usize = 16;

/// What a call produced: one vector for every `&mut` parameter, then the return value's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// Elements as `f64`.
    pub parts: Vec<Vec<f64>>,
    /// By how much these are more than `f64` holds, where their type is wider.
    pub rests: Vec<Vec<f64>>,
    /// Which fields of the return value its parts are.
    pub fields: Vec<String>,
    /// Why the call failed, if it returned an `Err`.
    pub failure: Option<String>,
}

/// A kernel's user code behind an object-safe door.
pub trait Definition: Sync {
    /// The amount of work as the attribute defines it, if it does.
    fn work(&self, size: &[usize]) -> Option<f64>;
    /// Floating-point operations of a call.
    fn flops(&self, size: &[usize]) -> Option<f64>;
    /// Bytes moved by a call as the attribute defines them.
    fn bytes(&self, size: &[usize]) -> Option<f64>;
    /// Whether the kernel is defined at this size.
    fn valid(&self, size: &[usize]) -> bool;
    /// Fresh data from a seed.
    fn data(&self, size: &[usize], seed: u64) -> Box<dyn CellData> {
        self.data_of(Draw::of(seed), size)
    }
    /// The same with other numbers.
    fn data_of(&self, draw: Draw, size: &[usize]) -> Box<dyn CellData>;
}

/// The data of one cell behind an object-safe door.
pub trait CellData {
    /// The size that it was made for.
    fn size(&self) -> &[usize];
    /// For the routine, which knows the type.
    fn as_any(&mut self) -> &mut dyn Any;
    /// Gives the outputs their initial content again.
    fn reset(&mut self);
    /// Fills the outputs with a pattern.
    fn poison(&mut self, poison: Poison);
    /// Whether the outputs were filled with one and nothing else has happened since.
    fn is_poisoned(&self) -> bool;
    /// For every output, the positions that still hold the pattern.
    fn poisoned(&self, poison: Poison) -> Vec<Vec<usize>>;
    /// The outputs' elements.
    fn outputs(&self) -> Vec<Vec<f64>>;
    /// Which field of which output every part is, as `.0.name`.
    fn output_fields(&self) -> Vec<String>;
    /// By how much they are more than `f64` holds, where their type is wider.
    fn output_rests(&self) -> Vec<Vec<f64>>;
    /// Digest of everything that must not change.
    fn reads_fingerprint(&self) -> u64;
    /// Digest of the outputs.
    fn writes_fingerprint(&self) -> u64;
    /// Reads everything once, so that it is in the caches as far as it fits.
    fn read(&self);
    /// Makes later timed calls on the host start with cold caches.
    fn chill(&mut self);
    /// Whether timed calls on the host start with cold caches.
    fn is_cold(&self) -> bool;
    /// What the reference makes of this data.
    fn reference(&self) -> Option<Outputs>;
    /// Number of elements of all operands.
    fn elements(&self) -> usize;
    /// Size of the inputs.
    fn read_bytes(&self) -> usize;
    /// Size of the outputs.
    fn written_bytes(&self) -> usize;
    /// Relative rounding error of every output's element type.
    fn roundoffs(&self) -> Vec<f64>;
    /// Types of outputs that cannot be compared.
    fn uncompared(&self) -> Vec<&'static str>;
    /// Parts of the inputs that hold the same number throughout, and are long enough for that to be no chance.
    fn constant_inputs(&self) -> Vec<usize>;
    /// Shows all numbers that are read, and the initial ones of outputs if asked to, so that they can be changed on the host.
    fn each_input(&mut self, outputs: bool, visit: &mut dyn FnMut(&mut dyn NumbersMut));
    /// Exchanges its inputs with those of other data of the same kernel and size; arrays stay where they are. Gives whether all of
    /// them were exchanged: where they were not, or outputs have other lengths, nothing was. The initial content of outputs is
    /// exchanged as well if asked to.
    fn exchange(&mut self, outputs: bool, other: &mut dyn CellData) -> bool;
    /// Has arrays moved beside guard pages or back: those that are read, and those that are written if asked to.
    fn relocate(&mut self, outputs: bool, pages: &mut Pages);
    /// Where the outputs are.
    fn output_addresses(&self) -> Vec<Range<usize>>;
    /// Whether an output shares memory with another operand.
    fn overlaps(&self) -> bool;
    /// What programs in other languages see of the inputs, and of the outputs as they were made.
    fn export(&self) -> [Vec<Plain<'_>>; 2];
    /// What they see of the outputs as they are.
    fn export_outputs(&self) -> Vec<Plain<'_>>;
    /// Gives the outputs the content that such a program has written; gives whether it fits.
    fn import_outputs(&mut self, parts: &mut dyn Parts) -> bool;
    /// What others keep about this data, until it is given back.
    fn attachments(&mut self) -> &mut Vec<Box<dyn Any>>;
    /// The same data on a device.
    fn resident(&mut self) -> &mut Resident;
}

/// [`Definition`] of a kernel type.
pub struct Erased<K>(PhantomData<fn() -> K>);

impl<K> Erased<K> {
    /// The one value.
    pub const NEW: Self = Erased(PhantomData);
}

impl<K: Kernel> Definition for Erased<K> {
    fn work(&self, size: &[usize]) -> Option<f64> {
        K::work(&K::axes(size))
    }

    fn flops(&self, size: &[usize]) -> Option<f64> {
        K::flops(&K::axes(size))
    }

    fn bytes(&self, size: &[usize]) -> Option<f64> {
        K::bytes(&K::axes(size))
    }

    fn valid(&self, size: &[usize]) -> bool {
        K::valid(&K::axes(size))
    }

    fn data_of(&self, draw: Draw, size: &[usize]) -> Box<dyn CellData> {
        let (reads, writes) = drawn(draw, || K::inputs(&K::axes(size)));
        let initial = writes.clone();
        Box::new(Data::<K> {
            size: size.to_vec(),
            reads,
            writes,
            initial,
            copies: Vec::new(),
            attachments: Vec::new(),
            resident: Resident::default(),
            is_poisoned: false,
            is_cold: false,
        })
    }
}

/// The values of one cell of kernel `K`.
pub(super) struct Data<K: Kernel> {
    size: Vec<usize>,
    pub(super) reads: K::Reads,
    pub(super) writes: K::Writes,
    /// The outputs as `inputs` made them.
    pub(super) initial: K::Writes,
    /// Fresh outputs for kernels that work in place; kept between samples so that they are not allocated anew.
    pub(super) copies: Vec<K::Writes>,
    /// What others keep about it.
    attachments: Vec<Box<dyn Any>>,
    /// The same on a device, once a CUDA variant is called.
    pub(super) resident: Resident,
    is_poisoned: bool,
    /// Whether it is taken out of the caches before every batch of calls.
    pub(super) is_cold: bool,
}

/// In what the outputs on a device differ from those on the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stale {
    /// In nothing that matters.
    #[default]
    No,
    /// The host's have their initial content again.
    Initial,
    /// The host's have some other content.
    Content,
}

/// The data of a kernel as what it is.
pub(super) fn typed<K: Kernel>(data: &mut dyn CellData) -> &mut Data<K> {
    match data.as_any().downcast_mut() {
        Some(data) => data,
        None => unreachable!("a routine was given the data of another kernel"),
    }
}

impl<K: Kernel> CellData for Data<K> {
    fn size(&self) -> &[usize] {
        &self.size
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn reset(&mut self) {
        K::restore(&mut self.writes, &self.initial);
        self.resident.stale = Stale::Initial;
        self.is_poisoned = false;
    }

    fn poison(&mut self, poison: Poison) {
        self.writes.poison(poison);
        self.resident.stale = Stale::Content;
        self.is_poisoned = true;
    }

    fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    fn poisoned(&self, poison: Poison) -> Vec<Vec<usize>> {
        let mut parts = Vec::new();
        self.writes.poisoned(poison, &mut parts);
        parts
    }

    fn outputs(&self) -> Vec<Vec<f64>> {
        let mut parts = Vec::new();
        self.writes.elements(&mut parts);
        parts
    }

    fn output_fields(&self) -> Vec<String> {
        let mut fields = Vec::new();
        self.writes.fields(&mut fields);
        fields
    }

    fn output_rests(&self) -> Vec<Vec<f64>> {
        let mut parts = Vec::new();
        self.writes.rests(&mut parts);
        parts
    }

    fn reads_fingerprint(&self) -> u64 {
        Fingerprint::of(&self.reads).value()
    }

    fn writes_fingerprint(&self) -> u64 {
        Fingerprint::of(&self.writes).value()
    }

    fn read(&self) {
        let mut lines = Fingerprint::touching();
        self.reads.fingerprint(&mut lines);
        self.writes.fingerprint(&mut lines);
        black_box(lines.value());
    }

    fn chill(&mut self) {
        self.is_cold = true;
    }

    fn is_cold(&self) -> bool {
        self.is_cold
    }

    fn reference(&self) -> Option<Outputs> {
        K::reference(&self.reads, &self.initial)
    }

    fn elements(&self) -> usize {
        let mut parts = Vec::new();
        self.reads.elements(&mut parts);
        self.writes.elements(&mut parts);
        parts.iter().map(Vec::len).sum()
    }

    fn read_bytes(&self) -> usize {
        self.reads.bytes()
    }

    fn written_bytes(&self) -> usize {
        self.writes.bytes()
    }

    fn roundoffs(&self) -> Vec<f64> {
        let mut parts = Vec::new();
        self.writes.roundoffs(&mut parts);
        parts
    }

    fn uncompared(&self) -> Vec<&'static str> {
        let mut types = Vec::new();
        self.writes.uncompared(&mut types);
        types
    }

    fn constant_inputs(&self) -> Vec<usize> {
        let mut parts = Vec::new();
        self.reads.elements(&mut parts);
        let is_constant = |part: &[f64]| {
            part.len() >= TELLING_ELEMENTS && part.iter().all(|element| *element == part[0])
        };
        (0..parts.len()).filter(|part| is_constant(&parts[*part])).collect()
    }

    fn each_input(&mut self, outputs: bool, visit: &mut dyn FnMut(&mut dyn NumbersMut)) {
        self.reads.each_numbers(visit);
        if outputs {
            self.initial.each_numbers(visit);
        }
    }

    fn exchange(&mut self, outputs: bool, other: &mut dyn CellData) -> bool {
        let other = typed::<K>(other);
        let lengths = |of: &Self| -> Vec<usize> {
            let mut ranges = Vec::new();
            of.initial.addresses(&mut ranges);
            ranges.iter().map(ExactSizeIterator::len).collect()
        };
        // How much room there is for results may depend on the inputs.
        if lengths(self) != lengths(other) {
            return false;
        }
        let mut exchange = || {
            self.reads.exchange(&mut other.reads)
                && (!outputs || self.initial.exchange(&mut other.initial))
        };
        let is_exchanged = exchange() || {
            exchange();
            false
        };
        if outputs {
            self.reset();
            other.reset();
        }
        is_exchanged
    }

    fn relocate(&mut self, outputs: bool, pages: &mut Pages) {
        pages.are_written(false);
        self.reads.relocate(pages);
        if outputs {
            pages.are_written(true);
            self.writes.relocate(pages);
        }
    }

    fn output_addresses(&self) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        self.writes.addresses(&mut ranges);
        ranges
    }

    fn overlaps(&self) -> bool {
        let (mut reads, writes) = (Vec::new(), self.output_addresses());
        self.reads.addresses(&mut reads);
        any_overlap(&reads, &writes)
    }

    fn export(&self) -> [Vec<Plain<'_>>; 2] {
        let (mut reads, mut initial) = (Vec::new(), Vec::new());
        self.reads.export(&mut reads);
        self.initial.export(&mut initial);
        [reads, initial]
    }

    fn export_outputs(&self) -> Vec<Plain<'_>> {
        let mut parts = Vec::new();
        self.writes.export(&mut parts);
        parts
    }

    fn import_outputs(&mut self, parts: &mut dyn Parts) -> bool {
        self.resident.stale = Stale::Content;
        self.is_poisoned = false;
        self.writes.import(&mut PlainBytes::of(parts))
    }

    fn attachments(&mut self) -> &mut Vec<Box<dyn Any>> {
        &mut self.attachments
    }

    fn resident(&mut self) -> &mut Resident {
        &mut self.resident
    }
}

/// Whether an output shares memory with an input or with another output.
fn any_overlap(reads: &[Range<usize>], writes: &[Range<usize>]) -> bool {
    writes
        .iter()
        .enumerate()
        .any(|(i, write)| reads.iter().chain(&writes[i + 1..]).any(|other| overlap(write, other)))
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
