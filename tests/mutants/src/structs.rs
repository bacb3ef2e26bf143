//! Structs as operands, on the processor and on a device.

use kbench::prelude::*;

use crate::SOURCE;

/// A matrix of which few elements are stored, row by row.
#[derive(Clone, Operand)]
#[operand(upload)]
struct Sparse {
    starts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f32>,
    rows: u32,
}

/// A particle of some mass.
#[derive(Clone, Copy, Operand)]
#[operand(element)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    /// Its kind, behind which there is room that holds nothing.
    kind: u8,
    mass: f32,
}

/// Elements of a row.
const IN_ROW: usize = 4;

/// A square matrix with four elements in every row.
fn sparse(rows: usize) -> Sparse {
    Sparse {
        starts: (0..=rows).map(|row| (IN_ROW * row) as u32).collect(),
        columns: integers(IN_ROW * rows, 0..rows.max(1) as i64),
        values: uniform(IN_ROW * rows),
        rows: rows as u32,
    }
}

/// y ← A x
#[kernel_bench(sizes = [256, 4096], inputs = |n| (sparse(n), uniform(n), zeros(n)))]
fn sparse_product(a: &Sparse, x: &[f32], y: &mut [f32]) {
    for (row, y) in y.iter_mut().enumerate().take(a.rows as usize) {
        let elements = a.starts[row] as usize..a.starts[row + 1] as usize;
        *y = elements.map(|i| a.values[i] * x[a.columns[i] as usize]).sum();
    }
}

fn particles(n: usize) -> Vec<Particle> {
    let (positions, kinds) = (uniform::<Vec<f32>>(3 * n), integers::<u8>(n, 0..4));
    let masses = range::<Vec<f32>>(n, 0.5..2.0);
    let position = |i: usize| [positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]];
    (0..n).map(|i| Particle { position: position(i), kind: kinds[i], mass: masses[i] }).collect()
}

/// Moves particles by a force; those of kind 0 stay where they are.
#[kernel_bench(sizes = [256, 4096], in_place, inputs = |n| (uniform(3), particles(n)))]
fn push(force: &[f32], particles: &mut [Particle]) {
    for particle in particles.iter_mut().filter(|particle| particle.kind != 0) {
        for (x, force) in particle.position.iter_mut().zip(force) {
            *x += force / particle.mass;
        }
    }
}

mod right {
    use super::*;

    /// One thread a row.
    #[kernel_bench(of = sparse_product, cuda)]
    fn sparse_rows(
        gpu: &Gpu,
        a: &(DeviceSlice<u32>, DeviceSlice<u32>, DeviceSlice<f32>, u32),
        x: &DeviceSlice<f32>,
        y: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        let (starts, columns, values, rows) = a;
        let kernel = gpu.kernel(SOURCE, "sparse_rows")?.over(*rows as usize, 128);
        kernel.arg(starts).arg(columns).arg(values).arg(x).arg(y).arg(*rows).launch()
    }

    /// One thread a particle.
    #[kernel_bench(of = push, cuda)]
    fn push_each(
        gpu: &Gpu,
        force: &DeviceSlice<f32>,
        particles: &mut DeviceSlice<Particle>,
    ) -> GpuResult<()> {
        let n = particles.len();
        let kernel = gpu.kernel(SOURCE, "push_each")?.over(n, 128);
        kernel.arg(force).arg(particles).arg(n as u32).launch()
    }

    /// By the inverse of the mass.
    #[kernel_bench(of = push)]
    fn push_by_inverse(force: &[f32], particles: &mut [Particle]) {
        for particle in particles {
            let step = if particle.kind == 0 { 0.0 } else { 1.0 / particle.mass };
            (0..3).for_each(|i| particle.position[i] += force[i] * step);
        }
    }
}

mod wrong {
    use super::*;

    /// Takes the kind for the mass.
    #[kernel_bench(of = push)]
    fn push_by_kind(force: &[f32], particles: &mut [Particle]) {
        for particle in particles.iter_mut().filter(|particle| particle.kind != 0) {
            let mass = f32::from(particle.kind);
            (0..3).for_each(|i| particle.position[i] += force[i] / mass);
        }
    }

    /// Goes on to the element after the last of a row.
    #[kernel_bench(of = sparse_product, cuda)]
    fn sparse_rows_too_long(
        gpu: &Gpu,
        a: &(DeviceSlice<u32>, DeviceSlice<u32>, DeviceSlice<f32>, u32),
        x: &DeviceSlice<f32>,
        y: &mut DeviceSlice<f32>,
    ) -> GpuResult<()> {
        let (starts, columns, values, rows) = a;
        let kernel = gpu.kernel(SOURCE, "sparse_rows_too_long")?.over(*rows as usize, 128);
        kernel.arg(starts).arg(columns).arg(values).arg(x).arg(y).arg(*rows).launch()
    }
}
