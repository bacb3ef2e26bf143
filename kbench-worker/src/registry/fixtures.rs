//! Kernels written by hand, for the tests of all stages. `kbench-core` compiles this file for its tests, too.

use crate::kernel::{
    Backend, Erased, Implementation, InPlace, Kernel, KernelEntry, Location, Outputs, Routine,
    Sizes, Values, VariantEntry, serial,
};
use crate::value::{Oracle, OracleArgument, uniform, zeros};

/// y = 2x, with an f64 reference; what the attribute would write for it.
pub(crate) struct Double;

impl Kernel for Double {
    type Axes = usize;
    type Reads = (Vec<f32>,);
    type Writes = (Vec<f32>,);
    type Arguments<'a> = (&'a Vec<f32>, &'a mut Vec<f32>);
    const ENTRY: &'static KernelEntry = &KernelEntry {
        name: "double",
        element: "f32",
        element_index: 0,
        module: "demo",
        location: Location { file: "demo.rs", line: 1, column: 1 },
        axes: &["n"],
        sizes: Sizes::Grid(&[Values::List(&[16, 1024, 4096])]),
        parameters: &["x", "y"],
        outputs: &["y"],
        in_place: InPlace::No,
        tolerance: None,
        reference: Some("double_f64"),
        regimes: None,
        definition: &Erased::<Self>::NEW,
    };
    fn axes(size: &[usize]) -> usize {
        size[0]
    }
    fn inputs(n: &usize) -> (Self::Reads, Self::Writes) {
        ((uniform(*n),), (zeros(*n),))
    }
    fn arguments<'a>(reads: &'a Self::Reads, writes: &'a mut Self::Writes) -> Self::Arguments<'a> {
        (&reads.0, &mut writes.0)
    }
    fn restore(writes: &mut Self::Writes, initial: &Self::Writes) {
        writes.0.clone_from(&initial.0);
    }
    fn reference(reads: &Self::Reads, writes: &Self::Writes) -> Option<Outputs> {
        fn double_f64(x: &[f64], y: &mut [f64]) {
            x.iter().zip(y).for_each(|(x, y)| *y = 2.0 * x);
        }
        let (mut x, mut y) = (Oracle::new(&reads.0), Oracle::new(&writes.0));
        double_f64(x.lend(), y.lend());
        let mut parts = Vec::new();
        y.elements(&mut parts);
        Some(Outputs { parts, ..Outputs::default() })
    }
}

/// An entry for a function over slices.
pub(crate) fn variant_of_double(
    name: &'static str,
    line: u32,
    routine: fn() -> Box<dyn Routine>,
) -> &'static VariantEntry {
    Box::leak(Box::new(VariantEntry {
        kernel: Double::ENTRY,
        name,
        is_base: line == 1,
        module: "demo",
        function: name,
        code: "0123456789abcdef",
        location: Location { file: "demo.rs", line, column: 1 },
        backend: Backend::Serial,
        threshold: None,
        valid: None,
        expectations: &[],
        ignore: None,
        tolerance: None,
        flops: None,
        bytes: None,
        debug_assertions: false,
        has_fixed_outputs: true,
        is_reentrant: false,
        implementation: Implementation::Host(routine),
    }))
}

/// A variant that says that it is one of CUDA.
pub(crate) fn cuda_variant_of_double(
    name: &'static str,
    line: u32,
    routine: fn() -> Box<dyn Routine>,
) -> &'static VariantEntry {
    Box::leak(Box::new(VariantEntry {
        is_base: false,
        backend: Backend::Cuda,
        implementation: Implementation::Device(routine),
        ..*variant_of_double(name, line, routine)
    }))
}

pub(crate) fn right() -> Box<dyn Routine> {
    serial::<Double, _, _>(|reads, writes| {
        reads.0.iter().zip(&mut writes.0).for_each(|(x, y)| *y = 2.0 * x);
    })
}

/// Wrong by one percent in its last element.
pub(crate) fn wrong() -> Box<dyn Routine> {
    serial::<Double, _, _>(|reads, writes| {
        reads.0.iter().zip(&mut writes.0).for_each(|(x, y)| *y = 2.0 * x);
        if let Some(last) = writes.0.last_mut() {
            *last *= 1.01;
        }
    })
}

/// Leaves its last element unwritten when there are several.
pub(crate) fn unwritten() -> Box<dyn Routine> {
    serial::<Double, _, _>(|reads, writes| {
        let n = writes.0.len();
        let end = if n > 1 { n - 1 } else { n };
        for i in 0..end {
            writes.0[i] = 2.0 * reads.0[i];
        }
    })
}

pub(crate) fn base() -> &'static VariantEntry {
    variant_of_double("double", 1, right)
}
