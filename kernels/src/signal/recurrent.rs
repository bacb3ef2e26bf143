//! One step of a recurrent layer: products with two weight matrices, then a few functions of each gate.
//!
//! Gates follow each other as in PyTorch: i, f, g, o in an LSTM, and r, z, n in a GRU. For sixteen hidden units and a
//! few rows of a batch at a time, all gates are computed and used up, so that they never go to memory. The weights of sixteen
//! units lie together, which a cell sees to when it is made.

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

/// Rows of a batch that are computed together where there are registers for it: each weight is used for all of them.
const ROWS: usize = 6;
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
    /// For each block of sixteen units, number of the input, and gate: the weights of the units.
    input_blocks: Vec<Numbers>,
    hidden_blocks: Vec<Numbers>,
}

impl Cell {
    /// From numbers between −1 and 1, made smaller by √hidden as is usual before training.
    pub fn new(hidden: usize, parts: [Vec<f32>; 4]) -> Self {
        let scale = 1.0 / (hidden as f32).sqrt();
        let scaled = parts.map(|part| part.iter().map(|number| number * scale).collect());
        let [input_weights, hidden_weights, input_bias, hidden_bias]: [Vec<f32>; 4] = scaled;
        let gates = input_bias.len() / hidden;
        let (input_blocks, hidden_blocks) =
            (blocks(&input_weights, hidden, gates), blocks(&hidden_weights, hidden, gates));
        Cell {
            hidden,
            input_weights,
            hidden_weights,
            input_bias,
            hidden_bias,
            input_blocks,
            hidden_blocks,
        }
    }

    /// Length of an input.
    fn input(&self) -> usize {
        self.input_weights.len() / self.input_bias.len()
    }
}

/// The weights of sixteen units become neighbours; units that do not exist have zeros.
fn blocks(weights: &[f32], hidden: usize, gates: usize) -> Vec<Numbers> {
    let length = weights.len() / (gates * hidden);
    let mut blocks = vec![[0.0; LANES]; hidden.div_ceil(LANES) * length * gates];
    for (row, weights) in weights.chunks_exact(length).enumerate() {
        let (gate, unit) = (row / hidden, row % hidden);
        let block = &mut blocks[unit / LANES * length * gates..];
        for (to, weight) in block.iter_mut().skip(gate).step_by(gates).zip(weights) {
            to[unit % LANES] = *weight;
        }
    }
    blocks
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
    tolerance = 2e-6, // sums are about 1, their errors grow with the root of their length, and gates flatten them
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
    tolerance = 2e-6, // as above
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
        let batch = self.step.h.len() / self.step.units;
        let mut row = 0;
        while row < batch {
            row += match batch - row {
                ROWS.. if V::MANY => self.rows::<V, ROWS>(row),
                2.. if V::MANY => self.rows::<V, 2>(row),
                _ => self.rows::<V, 1>(row),
            };
        }
    }
}

impl<K: Kind> Units<'_, K> {
    /// The units for some rows from `first` on, and how many those are.
    #[inline(always)]
    fn rows<V: Vector, const R: usize>(&self, first: usize) -> usize {
        let Units { step, block } = self;
        let (cell, hidden, input) = (step.cell, step.units, step.cell.input());
        let mut sums = [[V::splat(0.0); R]; SUMS];
        add_products::<V, K, R>(
            &mut sums,
            K::INPUT_SUMS,
            &cell.input_blocks,
            *block,
            &step.x[first * input..],
            input,
        );
        add_products::<V, K, R>(
            &mut sums,
            K::HIDDEN_SUMS,
            &cell.hidden_blocks,
            *block,
            &step.h[first * hidden..],
            hidden,
        );
        let units = block * LANES..(block * LANES + LANES).min(hidden);
        let mut biases = [[0.0; LANES]; SUMS];
        for gate in 0..K::GATES {
            for (lane, unit) in units.clone().enumerate() {
                biases[K::INPUT_SUMS[gate]][lane] += cell.input_bias[gate * hidden + unit];
                biases[K::HIDDEN_SUMS[gate]][lane] += cell.hidden_bias[gate * hidden + unit];
            }
        }
        for row in 0..R {
            let mut gates = biases;
            for (gate, sums) in gates.iter_mut().zip(&sums) {
                V::load(gate).add(sums[row]).store(gate);
            }
            let place = (first + row) * hidden;
            finish_row(step, place + units.start..place + units.end, gates);
        }
        R
    }
}

/// Adds the products of a block's weights with the first rows of `vectors` to the sums of the gates.
#[inline(always)]
fn add_products<V: Vector, K: Kind, const R: usize>(
    sums: &mut [[V; R]; SUMS],
    sum_of_gate: [usize; SUMS],
    blocks: &[Numbers],
    block: usize,
    vectors: &[f32],
    length: usize,
) {
    let mut rows: [&[f32]; R] = [&[]; R];
    for (row, vector) in rows.iter_mut().zip(vectors.chunks_exact(length)) {
        *row = vector;
    }
    let weights = &blocks[block * length * K::GATES..][..length * K::GATES];
    for (k, weights) in weights.chunks_exact(K::GATES).enumerate() {
        for row in 0..R {
            let number = V::splat(rows[row][k]);
            for gate in 0..K::GATES {
                let sum = &mut sums[sum_of_gate[gate]][row];
                *sum = V::load(&weights[gate]).multiply_add(number, *sum);
            }
        }
    }
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
    let units = cell.hidden.div_ceil(8);
    let launch = if batch <= MOST_BY_WARPS {
        gpu.kernel(SOURCE, "lstm_cell_warps")?.grid((units, batch.div_ceil(4))).block(256)
    } else {
        gpu.kernel(SOURCE, "lstm_cell_tiles")?.grid((units, batch.div_ceil(64))).block(512)
    };
    let launch = launch.arg(x).arg(h).arg(c);
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
    let units = cell.hidden.div_ceil(8);
    let launch = if batch <= MOST_BY_WARPS {
        gpu.kernel(SOURCE, "gru_cell_warps")?.grid((units, batch.div_ceil(4))).block(256)
    } else {
        gpu.kernel(SOURCE, "gru_cell_tiles")?.grid((units, batch.div_ceil(64))).block(512)
    };
    let launch = launch.arg(x).arg(h);
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
