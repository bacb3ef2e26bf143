//! One step of a recurrent layer: products with two weight matrices, then a few functions of each gate.
//!
//! Gates follow each other as in PyTorch: i, f, g, o in an LSTM, and r, z, n in a GRU. For sixteen hidden units and a
//! few rows of a batch at a time, all gates are computed and used up, so that they never go to memory. The weights of sixteen
//! units lie together, which a cell sees to when it is made.

#![allow(unsafe_code)] // tasks write units of the same rows

use std::array::from_fn;
use std::marker::PhantomData;
use std::ops::Range;

use kbench::prelude::*;
use rayon::prelude::*;

pub use self::cell::Cell;
use super::parts::Shared;
use super::vector::{LANES, Line, Numbers, Task, Vector, best};
use crate::shared::math;
use crate::shared::scratch::{Shelf, with_array};

mod cell;
pub mod device;

/// Rows of a batch that are computed together where there are registers for it: each weight is used for all of them.
const ROWS: usize = 6;
/// Numbers of a sum at a time: their weights stay in the first-level cache while all rows of a batch use them.
const DEPTH: usize = 64;
/// Sums per hidden unit: the gates of an LSTM; in a GRU the last gate has two parts, which are not simply added.
const SUMS: usize = 4;

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
    (0..step.blocks()).for_each(|block| step.compute(block));
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
    (0..step.blocks()).into_par_iter().for_each(|block| step.compute(block));
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
    (0..step.blocks()).for_each(|block| step.compute(block));
}

/// [`gru_cell`] with hidden units shared among all cores.
#[kernel_bench(of = gru_cell, parallel, threshold = tuned(1_000_000))]
pub fn gru_cell_rayon(x: &[f32], h: &[f32], cell: &Cell, h_out: &mut [f32]) {
    let step = Step::<Gru>::new(x, h, &[], cell, h_out, &mut []);
    (0..step.blocks()).into_par_iter().for_each(|block| step.compute(block));
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

thread_local! {
    /// The sums of a block of units for every row of a batch.
    static GATES: Shelf<Gates> = const { Shelf::new() };
}

/// The sums of sixteen hidden units.
type Gates = [Line; SUMS];

/// A step of a cell, for all rows of a batch.
struct Step<'a, K> {
    x: &'a [f32],
    h: &'a [f32],
    c: &'a [f32],
    cell: &'a Cell,
    h_out: Shared<'a, f32>,
    c_out: Shared<'a, f32>,
    kind: PhantomData<fn() -> K>,
}

impl<'a, K: Kind> Step<'a, K> {
    fn new(
        x: &'a [f32],
        h: &'a [f32],
        c: &'a [f32],
        cell: &'a Cell,
        h_out: &'a mut [f32],
        c_out: &'a mut [f32],
    ) -> Self {
        let (h_out, c_out) = (Shared::new(h_out), Shared::new(c_out));
        Step { x, h, c, cell, h_out, c_out, kind: PhantomData }
    }

    /// Blocks of sixteen hidden units.
    fn blocks(&self) -> usize {
        self.cell.hidden.div_ceil(LANES)
    }

    /// Computes a block of units for all rows.
    fn compute(&self, block: usize) {
        let batch = self.h.len() / self.cell.hidden;
        with_array(&GATES, batch, [Line::ZERO; SUMS], |gates| {
            gates.fill(self.biases(block));
            best(Units { step: self, block, gates });
        });
    }

    /// What the sums of a block begin with.
    fn biases(&self, block: usize) -> Gates {
        let Cell { hidden, input_bias, hidden_bias, .. } = self.cell;
        let mut gates = [Line::ZERO; SUMS];
        for gate in 0..K::GATES {
            for (lane, unit) in (block * LANES..*hidden).take(LANES).enumerate() {
                gates[K::INPUT_SUMS[gate]].0[lane] += input_bias[gate * hidden + unit];
                gates[K::HIDDEN_SUMS[gate]].0[lane] += hidden_bias[gate * hidden + unit];
            }
        }
        gates
    }
}

/// A block of sixteen hidden units, or what is left of them, for all rows of a batch.
struct Units<'a, K> {
    step: &'a Step<'a, K>,
    block: usize,
    gates: &'a mut [Gates],
}

impl<K: Kind> Task for Units<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Units { step, block, gates } = self;
        let (cell, hidden, input) = (step.cell, step.cell.hidden, step.cell.input());
        let input_weights = &cell.input_blocks[block * input * K::GATES..][..input * K::GATES];
        let hidden_weights = &cell.hidden_blocks[block * hidden * K::GATES..][..hidden * K::GATES];
        add_products::<V, K>(gates, K::INPUT_SUMS, input_weights, step.x, input);
        add_products::<V, K>(gates, K::HIDDEN_SUMS, hidden_weights, step.h, hidden);
        let units = block * LANES..(block * LANES + LANES).min(hidden);
        for (row, gates) in gates.iter().enumerate() {
            finish_row(step, row * hidden + units.start..row * hidden + units.end, gates);
        }
    }
}

/// Adds the products of a block's weights with all rows of a batch, which have so many numbers, to the sums of the gates.
#[inline(always)]
fn add_products<V: Vector, K: Kind>(
    gates: &mut [Gates],
    sum_of_gate: [usize; SUMS],
    weights: &[Line],
    rows: &[f32],
    length: usize,
) {
    for (depth, weights) in weights.chunks(DEPTH * K::GATES).enumerate() {
        let mut row = 0;
        while row < gates.len() {
            let place = row * length + depth * DEPTH;
            let (gates, rows) = (&mut gates[row..], &rows[place..]);
            row += match gates.len() {
                ROWS.. if V::MANY => {
                    few_rows::<V, K, ROWS>(gates, sum_of_gate, weights, rows, length)
                }
                2.. if V::MANY => few_rows::<V, K, 2>(gates, sum_of_gate, weights, rows, length),
                _ => few_rows::<V, K, 1>(gates, sum_of_gate, weights, rows, length),
            };
        }
    }
}

/// The same for the first rows only, with their sums in registers; gives how many those are.
#[inline(always)]
fn few_rows<V: Vector, K: Kind, const R: usize>(
    gates: &mut [Gates],
    sum_of_gate: [usize; SUMS],
    weights: &[Line],
    rows: &[f32],
    apart: usize,
) -> usize {
    let depth = weights.len() / K::GATES;
    let mut numbers: [&[f32]; R] = [&[]; R];
    let mut sums = [[V::splat(0.0); R]; SUMS];
    for row in 0..R {
        numbers[row] = &rows[row * apart..][..depth];
        for &sum in &sum_of_gate[..K::GATES] {
            sums[sum][row] = V::load(&gates[row][sum].0);
        }
    }
    for (k, weights) in weights.chunks_exact(K::GATES).enumerate() {
        for row in 0..R {
            let number = V::splat(numbers[row][k]);
            for gate in 0..K::GATES {
                let sum = &mut sums[sum_of_gate[gate]][row];
                *sum = V::load(&weights[gate].0).multiply_add(number, *sum);
            }
        }
    }
    for row in 0..R {
        for &sum in &sum_of_gate[..K::GATES] {
            sums[sum][row].store(&mut gates[row][sum].0);
        }
    }
    R
}

/// The functions of the gates, for some units of one row.
#[inline(always)]
fn finish_row<K: Kind>(step: &Step<'_, K>, units: Range<usize>, sums: &Gates) {
    let has_c = !step.c.is_empty();
    let (mut h, mut c): (Numbers, Numbers) = ([0.0; LANES], [0.0; LANES]);
    let len = units.len();
    h[..len].copy_from_slice(&step.h[units.clone()]);
    if has_c {
        c[..len].copy_from_slice(&step.c[units.clone()]);
    }
    for lane in 0..LANES {
        (h[lane], c[lane]) = K::finish(from_fn(|sum| sums[sum].0[lane]), h[lane], c[lane]);
    }
    // SAFETY: no other block has these units.
    unsafe { step.h_out.part(units.clone()) }.copy_from_slice(&h[..len]);
    if has_c {
        // SAFETY: no other block has these units.
        unsafe { step.c_out.part(units) }.copy_from_slice(&c[..len]);
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::vector::Portable;

    #[test]
    fn every_machine_computes_the_same() {
        let (batch, hidden, input) = (9, 21, 70);
        let numbers =
            |n: usize| (0..n).map(|i| ((i * 29) % 31) as f32 / 15.5 - 1.0).collect::<Vec<f32>>();
        let weights =
            [numbers(4 * hidden * input), numbers(4 * hidden * hidden), numbers(84), numbers(84)];
        let cell = Cell::new(hidden, weights);
        let (x, h, c) = (numbers(batch * input), numbers(batch * hidden), numbers(batch * hidden));
        let [mut h_ours, mut c_ours, mut h_plain, mut c_plain] =
            [(); 4].map(|()| vec![0.0; batch * hidden]);
        lstm_cell(&x, &h, &c, &cell, &mut h_ours, &mut c_ours);
        let step = Step::<Lstm>::new(&x, &h, &c, &cell, &mut h_plain, &mut c_plain);
        for block in 0..step.blocks() {
            let mut gates = vec![step.biases(block); batch];
            Units { step: &step, block, gates: &mut gates }.run::<Portable>();
        }
        let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(close(&h_ours, &h_plain) && close(&c_ours, &c_plain));
    }
}
