//! Launching products c ← a·bᵗ in the matrix units of a GPU, with the tiles of `cuda/matmul_tensor.cuh`.

use kbench::cuda::Launch;
use kbench::prelude::*;

use crate::shared::needs_hopper;

/// Bytes that a row of an operand has in a stage: STAGE_BYTES there.
const STAGE_BYTES: usize = 128;
/// Bytes of a copy: CHUNK_BYTES there.
const CHUNK_BYTES: usize = 16;
/// Threads that multiply, and threads that copy for them.
pub(super) const MULTIPLIERS: usize = 256;
pub(super) const COPIERS: usize = 128;

/// Rows and columns of c that a block computes, and how many stages of its operands are in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) stages: usize,
    /// How long a block takes, compared with those of other tiles.
    pub(super) time: usize,
}

const WIDE: Tile = Tile { rows: 128, columns: 256, stages: 4, time: 20 };
pub(super) const TALL: Tile = Tile { rows: 256, columns: 128, stages: 4, time: 20 };
pub(super) const SQUARE: Tile = Tile { rows: 128, columns: 128, stages: 4, time: 13 };
const SLIM: Tile = Tile { rows: 128, columns: 64, stages: 4, time: 10 };
pub(super) const BUFFERS: Tile = Tile { stages: 2, ..SQUARE };

/// Rows, columns and bytes of a row of the operands.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) row_bytes: usize,
}

impl Tile {
    fn blocks(self, product: Product) -> usize {
        product.m.div_ceil(self.rows) * product.n.div_ceil(self.columns)
    }

    /// Shared memory of the stages and their two barriers each.
    fn shared(self) -> usize {
        self.stages * ((self.rows + self.columns) * STAGE_BYTES + 16)
    }

    /// How long all blocks take: every multiprocessor has one at a time.
    fn time(self, product: Product, multiprocessors: usize) -> usize {
        self.blocks(product).div_ceil(multiprocessors.max(1)) * self.time
    }

    /// Tiles of c for all blocks, each of so many threads; `more` is shared memory beside the stages.
    pub(super) fn cover<'g>(
        self,
        kernel: Launch<'g>,
        product: Product,
        threads: usize,
        more: usize,
    ) -> Launch<'g> {
        kernel.grid(self.blocks(product)).block(threads).shared(self.shared() + more)
    }
}

impl Product {
    /// Whether there is device code for it: it is for Hopper, and copies 16 bytes at a time.
    pub(super) fn suits(self, gpu: &Gpu) -> bool {
        needs_hopper(gpu).is_ok() && self.row_bytes.is_multiple_of(CHUNK_BYTES)
    }

    /// The device code whose tiles take the least time: large ones, unless there are too few for all multiprocessors.
    pub(super) fn best_of<const N: usize>(
        self,
        gpu: &Gpu,
        choices: [(Tile, &'static str); N],
    ) -> (Tile, &'static str) {
        let multiprocessors = gpu.info().multiprocessors as usize;
        self.fastest(multiprocessors, choices)
    }

    fn fastest<const N: usize>(
        self,
        multiprocessors: usize,
        choices: [(Tile, &'static str); N],
    ) -> (Tile, &'static str) {
        let time = |(tile, _): (Tile, &'static str)| tile.time(self, multiprocessors);
        choices.into_iter().fold(
            choices[0],
            |best, next| {
                if time(next) < time(best) { next } else { best }
            },
        )
    }

    /// The launch of a kernel that takes any device and any size.
    pub(super) fn plain<'g>(
        self,
        gpu: &'g Gpu,
        source: Source,
        name: &'static str,
    ) -> GpuResult<Launch<'g>> {
        const TILE: usize = 64;
        let grid = (self.n.div_ceil(TILE), self.m.div_ceil(TILE));
        Ok(gpu.kernel(source, name)?.grid(grid).block(256))
    }
}

/// Entry points of one product, which take the same arguments.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    pub(super) wide: &'static str,
    pub(super) square: &'static str,
    pub(super) slim: &'static str,
    pub(super) plain: &'static str,
}

impl Entries {
    /// The launch that suits device and size, without its arguments.
    pub(super) fn launch<'g>(
        self,
        gpu: &'g Gpu,
        source: Source,
        product: Product,
    ) -> GpuResult<Launch<'g>> {
        if !product.suits(gpu) {
            return product.plain(gpu, source, self.plain);
        }
        let choices = [(WIDE, self.wide), (SQUARE, self.square), (SLIM, self.slim)];
        let (tile, name) = product.best_of(gpu, choices);
        Ok(tile.cover(gpu.kernel(source, name)?, product, MULTIPLIERS + COPIERS, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_those_of_the_source() {
        let tensor = include_str!("../../cuda/matmul_tensor.cuh");
        let fp8 = include_str!("../../cuda/matmul_fp8.cu");
        let tiles = [("Wide", WIDE), ("Square", SQUARE), ("Slim", SLIM), ("Tall", TALL)];
        for (name, Tile { rows, columns, stages, .. }) in
            tiles.into_iter().chain([("Buffers", BUFFERS)])
        {
            let text = format!("using {name} = Tile<{}, {columns}, {stages}>;", rows / 128);
            assert!(tensor.contains(&text) || fp8.contains(&text), "{text}");
        }
    }

    #[test]
    fn tiles_are_small_where_large_ones_would_leave_multiprocessors_idle() {
        let choices = [(WIDE, "wide"), (SQUARE, "square"), (SLIM, "slim")];
        let best = |n: usize| Product { m: n, n, row_bytes: n }.fastest(132, choices).1;
        assert_eq!(
            [512, 1024, 1536, 2048, 4096].map(best),
            ["slim", "slim", "wide", "wide", "wide"]
        );
    }
}
