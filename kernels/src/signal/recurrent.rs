//! One step of a recurrent layer: products with two weight matrices, then a few functions of each gate.
//!
//! Gates follow each other as in PyTorch: i, f, g, o in an LSTM, and r, z, n in a GRU. For sixteen hidden units and four
//! rows of a batch at a time, all gates are computed and used up, so that they never go to memory.

#![allow(unsafe_code)] // tasks write units of the same rows

use std::array::from_fn;

use kbench::prelude::*;
use kbench::{DeviceValue, Upload};
use rayon::prelude::*;

use super::parts::Shared;
use super::vector::{LANES, Numbers, Task, Vector, best};
use crate::shared::{COMMON, math};

const SOURCE: Source =
    Source::new(include_str!("../../cuda/recurrent.cu")).named("recurrent.cu").headers(COMMON);

/// Rows of a batch that are computed together: each weight is used for all of them.
const ROWS: usize = 4;
/// Sums per hidden unit: the gates of an LSTM; in a GRU the last gate has two parts, which are not simply added.
const SUMS: usize = 4;

/// The weights of a cell: matrices of gates · hidden rows, and biases of as many numbers.
#[derive(Clone, Debug)]
pub struct Cell {
    hidden: usize,
    input_weights: Vec<f32>,
    hidden_weights: Vec<f32>,
    input_bias: Vec<f32>,
    hidden_bias: Vec<f32>,
}

impl Cell {
    /// From numbers between −1 and 1, made smaller by √hidden as is usual before training.
    pub fn new(hidden: usize, parts: [Vec<f32>; 4]) -> Self {
        let scale = 1.0 / (hidden as f32).sqrt();
        let scaled = parts.map(|part| part.iter().map(|number| number * scale).collect());
        let [input_weights, hidden_weights, input_bias, hidden_bias] = scaled;
        Cell { hidden, input_weights, hidden_weights, input_bias, hidden_bias }
    }

    /// Length of an input.
    fn input(&self) -> usize {
        self.input_weights.len() / self.input_bias.len()
    }
}

impl kbench::Operand for Cell {
    fn bytes(&self) -> usize {
        let weights = self.input_weights.len() + self.hidden_weights.len();
        4 * (weights + self.input_bias.len() + self.hidden_bias.len())
    }
}

/// h′, c′ ← o·tanh(c′), f·c + i·g, where i, f, o = σ and g = tanh of W·x + b + U·h + d
#[kernel_bench(
    sizes = [
        "tiny" => (batch = 1, hidden = 64, input = 64),
        "small" => (batch = 1, hidden = 256, input = 256),
        "medium" => (batch = 16, hidden = 256, input = 256),
        "large" => (batch = 64, hidden = 512, input = 512),
    ],
    inputs = |batch, hidden, input| (
        uniform(batch * input),
        uniform(batch * hidden),
        uniform(batch * hidden),
        Cell::new(hidden, [uniform(4 * hidden * input), uniform(4 * hidden * hidden), uniform(4 * hidden), uniform(4 * hidden)]),
        zeros(batch * hidden),
        zeros(batch * hidden),
    ),
    work = |batch, hidden, input| 4 * batch * hidden * (hidden + input),
    flops = |batch, hidden, input| 8 * batch * hidden * (hidden + input) + 25 * batch * hidden,
    reference = lstm_cell_f64,
    tolerance = 1e-6, // sums of products of numbers below 1/√hidden are about 1, in sixteen parts, and gates flatten their errors
)]
pub fn lstm_cell(
    x: &[f32],
    h: &[f32],
    c: &[f32],
    cell: &Cell,
    h_out: &mut [f32],
    c_out: &mut [f32],
) {
    let step = Step::<Lstm>::new(x, h, c, cell, h_out, c_out);
    (0..step.units.div_ceil(LANES)).for_each(|block| best(Units { step: &step, block }));
}

/// [`lstm_cell`] with hidden units shared among all cores.
#[kernel_bench(of = lstm_cell, parallel, threshold = tuned(1_000_000))]
pub fn lstm_cell_rayon(
    x: &[f32],
    h: &[f32],
    c: &[f32],
    cell: &Cell,
    h_out: &mut [f32],
    c_out: &mut [f32],
) {
    let step = Step::<Lstm>::new(x, h, c, cell, h_out, c_out);
    (0..step.units.div_ceil(LANES))
        .into_par_iter()
        .for_each(|block| best(Units { step: &step, block }));
}

/// h′ ← (1 − z)·n + z·h, where r, z = σ(W·x + b + U·h + d) and n = tanh(W·x + b + r·(U·h + d))
#[kernel_bench(
    sizes = [
        "tiny" => (batch = 1, hidden = 64, input = 64),
        "small" => (batch = 1, hidden = 256, input = 256),
        "medium" => (batch = 16, hidden = 256, input = 256),
        "large" => (batch = 64, hidden = 512, input = 512),
    ],
    inputs = |batch, hidden, input| (
        uniform(batch * input),
        uniform(batch * hidden),
        Cell::new(hidden, [uniform(3 * hidden * input), uniform(3 * hidden * hidden), uniform(3 * hidden), uniform(3 * hidden)]),
        zeros(batch * hidden),
    ),
    work = |batch, hidden, input| 3 * batch * hidden * (hidden + input),
    flops = |batch, hidden, input| 6 * batch * hidden * (hidden + input) + 20 * batch * hidden,
    reference = gru_cell_f64,
    tolerance = 1e-6, // as above
)]
pub fn gru_cell(x: &[f32], h: &[f32], cell: &Cell, h_out: &mut [f32]) {
    let step = Step::<Gru>::new(x, h, &[], cell, h_out, &mut []);
    (0..step.units.div_ceil(LANES)).for_each(|block| best(Units { step: &step, block }));
}

/// [`gru_cell`] with hidden units shared among all cores.
#[kernel_bench(of = gru_cell, parallel, threshold = tuned(1_000_000))]
pub fn gru_cell_rayon(x: &[f32], h: &[f32], cell: &Cell, h_out: &mut [f32]) {
    let step = Step::<Gru>::new(x, h, &[], cell, h_out, &mut []);
    (0..step.units.div_ceil(LANES))
        .into_par_iter()
        .for_each(|block| best(Units { step: &step, block }));
}

/// What distinguishes the two cells.
trait Kind {
    /// Gates.
    const GATES: usize;
    /// The sum that each gate's product with the input is added to.
    const INPUT_SUMS: [usize; SUMS];
    /// The sum that each gate's product with the hidden state is added to.
    const HIDDEN_SUMS: [usize; SUMS];
    /// h′ and c′ from the sums, h and c.
    fn finish(sums: [f32; SUMS], h: f32, c: f32) -> (f32, f32);
}

struct Lstm;

impl Kind for Lstm {
    const GATES: usize = 4;
    const INPUT_SUMS: [usize; SUMS] = [0, 1, 2, 3];
    const HIDDEN_SUMS: [usize; SUMS] = [0, 1, 2, 3];

    #[inline(always)]
    fn finish([i, f, g, o]: [f32; SUMS], _: f32, c: f32) -> (f32, f32) {
        let c = math::sigmoid(f) * c + math::sigmoid(i) * math::tanh(g);
        (math::sigmoid(o) * math::tanh(c), c)
    }
}

struct Gru;

impl Kind for Gru {
    const GATES: usize = 3;
    const INPUT_SUMS: [usize; SUMS] = [0, 1, 2, 0];
    const HIDDEN_SUMS: [usize; SUMS] = [0, 1, 3, 0];

    #[inline(always)]
    fn finish([r, z, n, hidden_n]: [f32; SUMS], h: f32, _: f32) -> (f32, f32) {
        let (r, z) = (math::sigmoid(r), math::sigmoid(z));
        ((1.0 - z) * math::tanh(n + r * hidden_n) + z * h, 0.0)
    }
}

/// A step of a cell, for all rows of a batch.
struct Step<'a, K> {
    x: &'a [f32],
    h: &'a [f32],
    c: &'a [f32],
    cell: &'a Cell,
    units: usize,
    h_out: Shared<'a, f32>,
    c_out: Shared<'a, f32>,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<'a, K> Step<'a, K> {
    fn new(
        x: &'a [f32],
        h: &'a [f32],
        c: &'a [f32],
        cell: &'a Cell,
        h_out: &'a mut [f32],
        c_out: &'a mut [f32],
    ) -> Self {
        let (h_out, c_out) = (Shared::new(h_out), Shared::new(c_out));
        let (units, kind) = (cell.hidden, std::marker::PhantomData);
        Step { x, h, c, cell, units, h_out, c_out, kind }
    }
}

/// A block of sixteen hidden units, or what is left of them, for all rows of a batch.
struct Units<'a, K> {
    step: &'a Step<'a, K>,
    block: usize,
}

impl<K: Kind> Task for Units<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Units { step, block } = self;
        let hidden = step.units;
        let units = block * LANES..(block * LANES + LANES).min(hidden);
        let batch = step.h.len() / hidden;
        for first in (0..batch).step_by(ROWS) {
            let mut sums = [[[0.0; LANES]; ROWS]; SUMS];
            for (lane, unit) in units.clone().enumerate() {
                let found = unit_sums::<V, K>(step, unit, first, batch);
                for (sum, rows) in sums.iter_mut().enumerate() {
                    for (row, numbers) in rows.iter_mut().enumerate() {
                        numbers[lane] = found[ROWS * sum + row];
                    }
                }
            }
            for row in 0..ROWS.min(batch - first) {
                let place = (first + row) * hidden;
                finish_row(
                    step,
                    place + units.start..place + units.end,
                    from_fn(|sum| sums[sum][row]),
                );
            }
        }
    }
}

/// All sums of a unit for four rows of a batch. Rows that do not exist are computed from the last one, and not used.
#[inline(always)]
fn unit_sums<V: Vector, K: Kind>(
    step: &Step<'_, K>,
    unit: usize,
    first: usize,
    batch: usize,
) -> Numbers {
    let Step { x, h, cell, units: hidden, .. } = step;
    let mut sums = [V::splat(0.0); SUMS * ROWS];
    let input = cell.input();
    let mut biases = [0.0; SUMS];
    for gate in 0..K::GATES {
        biases[K::INPUT_SUMS[gate]] += cell.input_bias[gate * hidden + unit];
        biases[K::HIDDEN_SUMS[gate]] += cell.hidden_bias[gate * hidden + unit];
    }
    let row = |row: usize| (first + row).min(batch - 1);
    let xs: [&[f32]; ROWS] = from_fn(|i| &x[row(i) * input..][..input]);
    let hs: [&[f32]; ROWS] = from_fn(|i| &h[row(i) * hidden..][..*hidden]);
    let mut tail = add_products::<V, K>(
        &mut sums,
        K::INPUT_SUMS,
        &cell.input_weights[unit * input..],
        hidden * input,
        xs,
    );
    let hidden_tail = add_products::<V, K>(
        &mut sums,
        K::HIDDEN_SUMS,
        &cell.hidden_weights[unit * hidden..],
        hidden * hidden,
        hs,
    );
    for (place, number) in tail.iter_mut().enumerate() {
        *number += hidden_tail[place] + biases[place / ROWS];
    }
    // Column by column, the numbers of all vectors are added up.
    V::transpose(&mut sums);
    let mut total = V::load(&tail);
    for sum in sums {
        total = total.add(sum);
    }
    total.store(&mut tail);
    tail
}

/// Adds the products of a unit's weights for each gate, which are `apart`, with some vectors; gives those of the numbers
/// that do not fill a vector.
#[inline(always)]
fn add_products<V: Vector, K: Kind>(
    sums: &mut [V; SUMS * ROWS],
    sum_of_gate: [usize; SUMS],
    weights: &[f32],
    apart: usize,
    vectors: [&[f32]; ROWS],
) -> Numbers {
    let length = vectors[0].len();
    let gates: [&[f32]; SUMS] =
        from_fn(|gate| &weights[gate.min(K::GATES - 1) * apart..][..length]);
    let (whole, rest) = (length / LANES, length - length % LANES..length);
    for chunk in 0..whole {
        let vectors: [V; ROWS] = from_fn(|row| V::load(chunk_of(vectors[row], chunk)));
        for gate in 0..K::GATES {
            let weights = V::load(chunk_of(gates[gate], chunk));
            for row in 0..ROWS {
                let sum = &mut sums[ROWS * sum_of_gate[gate] + row];
                *sum = weights.multiply_add(vectors[row], *sum);
            }
        }
    }
    let mut tail = [0.0; LANES];
    for gate in 0..K::GATES {
        for row in 0..ROWS {
            let products = gates[gate][rest.clone()].iter().zip(&vectors[row][rest.clone()]);
            tail[ROWS * sum_of_gate[gate] + row] += products.map(|(a, b)| a * b).sum::<f32>();
        }
    }
    tail
}

#[inline(always)]
fn chunk_of(numbers: &[f32], chunk: usize) -> &Numbers {
    &numbers.as_chunks::<LANES>().0[chunk]
}

/// The functions of the gates, for some units of one row.
#[inline(always)]
fn finish_row<K: Kind>(step: &Step<'_, K>, units: std::ops::Range<usize>, sums: [Numbers; SUMS]) {
    let has_c = !step.c.is_empty();
    let (mut h, mut c) = ([0.0; LANES], [0.0; LANES]);
    let len = units.len();
    h[..len].copy_from_slice(&step.h[units.clone()]);
    if has_c {
        c[..len].copy_from_slice(&step.c[units.clone()]);
    }
    for lane in 0..LANES {
        (h[lane], c[lane]) = K::finish(from_fn(|sum| sums[sum][lane]), h[lane], c[lane]);
    }
    // SAFETY: no other block has these units.
    unsafe { step.h_out.part(units.clone()) }.copy_from_slice(&h[..len]);
    if has_c {
        // SAFETY: no other block has these units.
        unsafe { step.c_out.part(units) }.copy_from_slice(&c[..len]);
    }
}

/// A cell whose weights are on a device.
#[derive(Debug)]
pub struct DeviceCell {
    hidden: usize,
    input_weights: DeviceSlice<f32>,
    hidden_weights: DeviceSlice<f32>,
    input_bias: DeviceSlice<f32>,
    hidden_bias: DeviceSlice<f32>,
}

impl Upload for Cell {
    type Device = DeviceCell;

    fn upload(&self, gpu: &Gpu) -> GpuResult<DeviceCell> {
        Ok(DeviceCell {
            hidden: self.hidden,
            input_weights: self.input_weights.upload(gpu)?,
            hidden_weights: self.hidden_weights.upload(gpu)?,
            input_bias: self.input_bias.upload(gpu)?,
            hidden_bias: self.hidden_bias.upload(gpu)?,
        })
    }

    fn copy_to(&self, device: &mut DeviceCell, gpu: &Gpu) -> GpuResult<()> {
        self.input_weights.copy_to(&mut device.input_weights, gpu)?;
        self.hidden_weights.copy_to(&mut device.hidden_weights, gpu)?;
        self.input_bias.copy_to(&mut device.input_bias, gpu)?;
        self.hidden_bias.copy_to(&mut device.hidden_bias, gpu)
    }

    fn copy_from(&mut self, device: &DeviceCell, gpu: &Gpu) -> GpuResult<()> {
        self.input_weights.copy_from(&device.input_weights, gpu)?;
        self.hidden_weights.copy_from(&device.hidden_weights, gpu)?;
        self.input_bias.copy_from(&device.input_bias, gpu)?;
        self.hidden_bias.copy_from(&device.hidden_bias, gpu)
    }
}

impl DeviceValue for DeviceCell {
    fn duplicate(&self, gpu: &Gpu) -> GpuResult<Self> {
        Ok(DeviceCell {
            hidden: self.hidden,
            input_weights: self.input_weights.duplicate(gpu)?,
            hidden_weights: self.hidden_weights.duplicate(gpu)?,
            input_bias: self.input_bias.duplicate(gpu)?,
            hidden_bias: self.hidden_bias.duplicate(gpu)?,
        })
    }

    fn assign(&mut self, other: &Self, gpu: &Gpu) -> GpuResult<()> {
        self.input_weights.assign(&other.input_weights, gpu)?;
        self.hidden_weights.assign(&other.hidden_weights, gpu)?;
        self.input_bias.assign(&other.input_bias, gpu)?;
        self.hidden_bias.assign(&other.hidden_bias, gpu)
    }

    fn device_bytes(&self) -> usize {
        let weights = self.input_weights.device_bytes() + self.hidden_weights.device_bytes();
        weights + self.input_bias.device_bytes() + self.hidden_bias.device_bytes()
    }
}

/// Up to this batch a warp computes a hidden unit; above, a block computes a tile of units and rows.
const MOST_BY_WARPS: usize = 16;

/// [`lstm_cell`] on a GPU: products and gates in one launch.
#[kernel_bench(of = lstm_cell, cuda)]
pub fn lstm_cell_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    h: &DeviceSlice<f32>,
    c: &DeviceSlice<f32>,
    cell: &DeviceCell,
    h_out: &mut DeviceSlice<f32>,
    c_out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let batch = h.len() / cell.hidden;
    let launch = if batch <= MOST_BY_WARPS {
        let grid = (cell.hidden.div_ceil(8), batch.div_ceil(4));
        gpu.kernel(SOURCE, "lstm_cell_warps")?.grid(grid)
    } else {
        let grid = (cell.hidden.div_ceil(16), batch.div_ceil(64));
        gpu.kernel(SOURCE, "lstm_cell_tiles")?.grid(grid)
    };
    let launch = launch.block(256).arg(x).arg(h).arg(c);
    let launch = launch.arg(&cell.input_weights).arg(&cell.hidden_weights);
    let launch = launch.arg(&cell.input_bias).arg(&cell.hidden_bias).arg(h_out).arg(c_out);
    launch.arg(batch as u32).arg(cell.hidden as u32).arg((x.len() / batch) as u32).launch()
}

/// [`gru_cell`] on a GPU: products and gates in one launch.
#[kernel_bench(of = gru_cell, cuda)]
pub fn gru_cell_cuda(
    gpu: &Gpu,
    x: &DeviceSlice<f32>,
    h: &DeviceSlice<f32>,
    cell: &DeviceCell,
    h_out: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let batch = h.len() / cell.hidden;
    let launch = if batch <= MOST_BY_WARPS {
        let grid = (cell.hidden.div_ceil(8), batch.div_ceil(4));
        gpu.kernel(SOURCE, "gru_cell_warps")?.grid(grid)
    } else {
        let grid = (cell.hidden.div_ceil(16), batch.div_ceil(64));
        gpu.kernel(SOURCE, "gru_cell_tiles")?.grid(grid)
    };
    let launch = launch.block(256).arg(x).arg(h);
    let launch = launch.arg(&cell.input_weights).arg(&cell.hidden_weights);
    let launch = launch.arg(&cell.input_bias).arg(&cell.hidden_bias).arg(h_out);
    launch.arg(batch as u32).arg(cell.hidden as u32).arg((x.len() / batch) as u32).launch()
}

/// W·x + b, for one gate of one unit.
fn gate_f64(weights: &[f32], bias: &[f32], row: usize, x: &[f64]) -> f64 {
    let products =
        weights[row * x.len()..][..x.len()].iter().zip(x).map(|(w, x)| f64::from(*w) * x);
    products.sum::<f64>() + f64::from(bias[row])
}

fn sigmoid_f64(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn lstm_cell_f64(
    x: &[f64],
    h: &[f64],
    c: &[f64],
    cell: &Cell,
    h_out: &mut [f64],
    c_out: &mut [f64],
) {
    let (hidden, input) = (cell.hidden, cell.input());
    for i in 0..h.len() {
        let (row, unit) = (i / hidden, i % hidden);
        let (x, h) = (&x[row * input..][..input], &h[row * hidden..][..hidden]);
        let gate = |gate: usize| {
            gate_f64(&cell.input_weights, &cell.input_bias, gate * hidden + unit, x)
                + gate_f64(&cell.hidden_weights, &cell.hidden_bias, gate * hidden + unit, h)
        };
        c_out[i] = sigmoid_f64(gate(1)) * c[i] + sigmoid_f64(gate(0)) * gate(2).tanh();
        h_out[i] = sigmoid_f64(gate(3)) * c_out[i].tanh();
    }
}

fn gru_cell_f64(x: &[f64], h: &[f64], cell: &Cell, h_out: &mut [f64]) {
    let (hidden, input) = (cell.hidden, cell.input());
    for i in 0..h.len() {
        let (row, unit) = (i / hidden, i % hidden);
        let (x, state) = (&x[row * input..][..input], &h[row * hidden..][..hidden]);
        let from_x =
            |gate: usize| gate_f64(&cell.input_weights, &cell.input_bias, gate * hidden + unit, x);
        let from_h = |gate: usize| {
            gate_f64(&cell.hidden_weights, &cell.hidden_bias, gate * hidden + unit, state)
        };
        let (r, z) = (sigmoid_f64(from_x(0) + from_h(0)), sigmoid_f64(from_x(1) + from_h(1)));
        h_out[i] = (1.0 - z) * (from_x(2) + r * from_h(2)).tanh() + z * h[i];
    }
}
