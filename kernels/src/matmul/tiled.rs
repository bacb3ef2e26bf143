//! The tiled kernel on a GPU: which tiles, and how many blocks share one.

use kbench::prelude::*;

use super::packed::Shape;
use crate::shared::COMMON;

pub(super) const SOURCE: Source =
    Source::new(include_str!("../../cuda/matmul.cu")).named("matmul.cu").headers(COMMON);

/// A shape of tiles that device code was compiled for.
struct Tiling {
    entry: &'static str,
    rows: usize,
    columns: usize,
    /// Steps of depth that are in shared memory together, as in the source.
    slab: usize,
    /// Slabs in shared memory.
    stages: usize,
    threads: usize,
}

/// From the largest to the smallest.
const TILINGS: [Tiling; 4] = [
    Tiling {
        entry: "matmul_tiled_256",
        rows: 128,
        columns: 256,
        slab: 16,
        stages: 4,
        threads: 256,
    },
    Tiling {
        entry: "matmul_tiled_128",
        rows: 128,
        columns: 128,
        slab: 16,
        stages: 4,
        threads: 256,
    },
    Tiling { entry: "matmul_tiled_64", rows: 64, columns: 64, slab: 16, stages: 4, threads: 128 },
    Tiling { entry: "matmul_tiled_32", rows: 32, columns: 32, slab: 16, stages: 4, threads: 64 },
];

/// Blocks that share a tile at most: they leave their sums in memory, and one of them reads all.
const MOST_SPLITS: usize = 16;
/// Steps of depth that a block should have at least.
const LEAST_DEPTH: usize = 64;

impl Tiling {
    fn tiles(&self, shape: Shape, batch: usize) -> usize {
        shape.m.div_ceil(self.rows) * shape.n.div_ceil(self.columns) * batch
    }

    /// Bytes of shared memory, as in the source: rows of a are padded by four floats.
    fn shared_bytes(&self) -> usize {
        4 * self.stages * (self.rows * (self.slab + 4) + self.slab * self.columns)
    }
}

/// The largest tiles of which there are enough for all multiprocessors.
fn choose(shape: Shape, batch: usize, multiprocessors: usize) -> &'static Tiling {
    let is_enough = |tiling: &&Tiling| tiling.tiles(shape, batch) * 4 >= multiprocessors * 3;
    TILINGS.iter().find(is_enough).unwrap_or(&TILINGS[TILINGS.len() - 1])
}

/// c[i] ← a[i]·b[i] for each of a batch of products.
pub(super) fn multiply(
    gpu: &Gpu,
    shape: Shape,
    batch: usize,
    a: &DeviceSlice<f32>,
    b: &DeviceSlice<f32>,
    c: &mut DeviceSlice<f32>,
) -> GpuResult<()> {
    let multiprocessors = gpu.info().multiprocessors as usize;
    let tiling = choose(shape, batch, multiprocessors);
    let tiles = tiling.tiles(shape, batch);
    let wanted = (multiprocessors / tiles).clamp(1, MOST_SPLITS);
    let range = shape.k.div_ceil(wanted).max(LEAST_DEPTH).next_multiple_of(tiling.slab);
    let splits = shape.k.div_ceil(range);
    let shared = if splits > 1 { tiles * splits * tiling.rows * tiling.columns } else { 1 };
    let mut partial = gpu.scratch::<f32>(shared)?;
    let Shape { m, n, k } = shape;
    gpu.kernel(SOURCE, tiling.entry)?
        .grid((n.div_ceil(tiling.columns), m.div_ceil(tiling.rows), batch * splits))
        .block(tiling.threads)
        .shared(tiling.shared_bytes())
        .arg(a)
        .arg(b)
        .arg(c)
        .arg(&mut partial)
        .arg(m)
        .arg(n)
        .arg(k)
        .arg(splits)
        .arg(range)
        .launch()
}
