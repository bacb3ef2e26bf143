//! What needs the types of a CUDA variant's arguments.
//!
//! Everything else about calling and timing it works through [`Variant`] and is compiled once, not once per variant.

use super::super::data::{Data, typed};
use super::super::{CellData, InPlace, Kernel};
use super::DeviceCall;
use super::resident::{lenders, lenders_with};
use crate::cuda::{DeviceArguments, Gpu, GpuResult};
use crate::value::Operand;

/// One CUDA variant, with the data of its kernel.
pub(super) trait Variant {
    /// Whether outputs are also read.
    fn in_place(&self) -> InPlace;

    /// Names of the parameters.
    fn parameters(&self) -> &'static [&'static str];

    /// One call, on the given copy of the outputs.
    fn call(&self, gpu: &Gpu, data: &mut dyn CellData, copy: Option<usize>) -> Box<dyn Operand>;

    /// Makes the device form of every argument, outputs with their initial content.
    fn upload(&self, gpu: &Gpu, data: &mut dyn CellData) -> GpuResult<()>;

    /// Copies everything to the device, outputs with the content that they have on the host.
    fn copy_all(&self, gpu: &Gpu, data: &mut dyn CellData) -> GpuResult<()>;

    /// Copies what a call reads to the device, outputs that are also read with their initial content.
    fn copy_inputs(&self, gpu: &Gpu, data: &mut dyn CellData) -> GpuResult<()>;

    /// Copies the outputs to the host, from the given copy of them.
    fn fetch(&self, gpu: &Gpu, data: &mut dyn CellData, copy: Option<usize>) -> GpuResult<()>;

    /// Whether everything that the kernel only reads is on the device as it is on the host, bit by bit.
    fn kept(&self, gpu: &Gpu, data: &mut dyn CellData) -> GpuResult<bool>;
}

/// A CUDA variant of kernel `K`.
pub(super) struct VariantOf<K: Kernel>(pub(super) DeviceCall<K>)
where
    for<'a> K::Arguments<'a>: DeviceArguments<'a>;

impl<K: Kernel> Variant for VariantOf<K>
where
    for<'a> K::Arguments<'a>: DeviceArguments<'a>,
{
    fn in_place(&self) -> InPlace {
        K::ENTRY.in_place
    }

    fn parameters(&self) -> &'static [&'static str] {
        K::ENTRY.parameters
    }

    fn call(&self, gpu: &Gpu, data: &mut dyn CellData, copy: Option<usize>) -> Box<dyn Operand> {
        let lent = <K::Arguments<'_> as DeviceArguments<'_>>::lend(&mut lenders_with(
            data.resident(),
            copy,
        ));
        (self.0)(gpu, lent)
    }

    fn upload(&self, gpu: &Gpu, data: &mut dyn CellData) -> GpuResult<()> {
        let Data { reads, initial, resident, .. } = typed::<K>(data);
        K::arguments(reads, initial).upload(gpu, &mut resident.slots)
    }

    fn copy_all(&self, gpu: &Gpu, data: &mut dyn CellData) -> GpuResult<()> {
        let Data { reads, writes, resident, .. } = typed::<K>(data);
        K::arguments(reads, writes).copy_to(gpu, true, &mut lenders(resident))
    }

    fn copy_inputs(&self, gpu: &Gpu, data: &mut dyn CellData) -> GpuResult<()> {
        let Data { reads, initial, resident, .. } = typed::<K>(data);
        let in_place = K::ENTRY.in_place != InPlace::No;
        K::arguments(reads, initial).copy_to(gpu, in_place, &mut lenders(resident))
    }

    fn fetch(&self, gpu: &Gpu, data: &mut dyn CellData, copy: Option<usize>) -> GpuResult<()> {
        let Data { reads, writes, resident, .. } = typed::<K>(data);
        K::arguments(reads, writes).copy_from(gpu, &mut lenders_with(resident, copy))
    }

    fn kept(&self, gpu: &Gpu, data: &mut dyn CellData) -> GpuResult<bool> {
        let Data { reads, writes, resident, .. } = typed::<K>(data);
        K::arguments(reads, writes).kept(gpu, &mut lenders(resident))
    }
}
