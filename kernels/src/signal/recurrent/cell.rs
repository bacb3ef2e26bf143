//! The weights of recurrent cells.

use crate::signal::vector::{LANES, Line};

/// The weights of a cell: matrices of gates · hidden rows, and biases of as many numbers.
#[derive(Clone, Debug)]
pub struct Cell {
    pub(super) hidden: usize,
    pub(super) input_weights: Vec<f32>,
    pub(super) hidden_weights: Vec<f32>,
    pub(super) input_bias: Vec<f32>,
    pub(super) hidden_bias: Vec<f32>,
    /// For each block of sixteen units, number of the input, and gate: the weights of the units.
    pub(super) input_blocks: Vec<Line>,
    pub(super) hidden_blocks: Vec<Line>,
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
    pub(super) fn input(&self) -> usize {
        self.input_weights.len() / self.input_bias.len()
    }
}

/// The weights of sixteen units become neighbours; units that do not exist have zeros.
fn blocks(weights: &[f32], hidden: usize, gates: usize) -> Vec<Line> {
    let length = weights.len() / (gates * hidden);
    let mut blocks = vec![Line::ZERO; hidden.div_ceil(LANES) * length * gates];
    for (row, weights) in weights.chunks_exact(length).enumerate() {
        let (gate, unit) = (row / hidden, row % hidden);
        let block = &mut blocks[unit / LANES * length * gates..];
        for (to, weight) in block.iter_mut().skip(gate).step_by(gates).zip(weights) {
            to.0[unit % LANES] = *weight;
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
