//! The tiled kernel on a GPU: which tiles, and how many blocks share one.

use kbench::prelude::*;

use super::packed::Shape;
use crate::shared::{COMMON, needs_ampere};

pub(super) const SOURCE: Source =
    Source::new(include_str!("../../cuda/matmul.cu")).named("matmul.cu").headers(COMMON);

/// A shape of tiles that device code was compiled for.
#[derive(Debug, PartialEq, Eq)]
struct Tiling {
    entry: &'static str,
    rows: usize,
    columns: usize,
    /// Steps of depth that come to shared memory together.
    slab: usize,
    /// Slabs in shared memory.
    stages: usize,
    threads: usize,
}

/// From the largest to the smallest, as in the source.
const TILINGS: [Tiling; 4] = [
    tiling("matmul_tiled_64x128", [64, 128, 16, 8, 8, 2]),
    tiling("matmul_tiled_64x64", [64, 64, 16, 8, 4, 3]),
    tiling("matmul_tiled_32x64", [32, 64, 32, 4, 4, 2]),
    tiling("matmul_tiled_32x32", [32, 32, 16, 4, 4, 3]),
];

/// A tiling with the numbers of the source: rows and columns of a tile, slab, rows and columns of a thread, slabs ahead.
const fn tiling(entry: &'static str, numbers: [usize; 6]) -> Tiling {
    let [rows, columns, slab, patch_rows, patch_columns, ahead] = numbers;
    let threads = rows / patch_rows * (columns / patch_columns);
    Tiling { entry, rows, columns, slab, stages: ahead + 1, threads }
}

/// Blocks of the smallest tiles that a multiprocessor should have: where there are fewer, several share a tile.
const SMALL_BLOCKS: usize = 4;
/// Blocks that share a tile at most: they leave their sums in memory, and one of them reads all.
const MOST_SPLITS: usize = 16;
/// Steps of depth that a block should have at least where it shares its tile.
const LEAST_DEPTH: usize = 256;

impl Tiling {
    fn tiles(&self, shape: Shape, batch: usize) -> usize {
        shape.m.div_ceil(self.rows) * shape.n.div_ceil(self.columns) * batch
    }

    /// Bytes of shared memory, as in the source: a slab of a is turned over and padded.
    fn shared_bytes(&self) -> usize {
        self.stages * self.slab * (self.rows + 4 + self.columns) * size_of::<f32>()
    }
}

/// The largest tiles of which there are enough for three quarters of all multiprocessors, and how many steps of depth each
/// block takes.
fn choose(shape: Shape, batch: usize, multiprocessors: usize) -> (&'static Tiling, usize) {
    let is_enough = |tiling: &&Tiling| 4 * tiling.tiles(shape, batch) >= 3 * multiprocessors;
    let smallest = &TILINGS[TILINGS.len() - 1];
    let tiling = TILINGS.iter().find(is_enough).unwrap_or(smallest);
    if tiling != smallest {
        return (tiling, shape.k.next_multiple_of(tiling.slab));
    }
    let splits = SMALL_BLOCKS * multiprocessors / tiling.tiles(shape, batch).max(1);
    let depth = shape.k.div_ceil(splits.clamp(1, MOST_SPLITS)).max(LEAST_DEPTH);
    (tiling, depth.next_multiple_of(tiling.slab))
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
    needs_ampere(gpu)?;
    let (tiling, range) = choose(shape, batch, gpu.info().multiprocessors as usize);
    let tiles = tiling.tiles(shape, batch);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tilings_are_those_of_the_source() {
        let source = include_str!("../../cuda/matmul.cu");
        let lines =
            source.lines().filter_map(|line| line.strip_prefix("MATMUL_TILED(")?.strip_suffix(')'));
        let mut tilings = TILINGS.iter();
        for line in lines {
            let (entry, numbers) = line.split_once(", ").expect("a name and numbers");
            let numbers: Vec<usize> =
                numbers.split(", ").map(|n| n.parse().expect("a number")).collect();
            let [_, numbers @ ..]: [usize; 7] = numbers.try_into().expect("seven numbers");
            let known = tilings.next().expect("a tiling for each entry point");
            assert_eq!(known.entry, entry);
            assert_eq!(*known, tiling(known.entry, numbers));
        }
        assert!(tilings.next().is_none());
    }

    #[test]
    fn tiles_are_as_large_as_the_device_can_be_filled_with() {
        let chosen = |m, n, k| {
            let (tiling, range) = choose(Shape { m, n, k }, 1, 132);
            (tiling.entry, range)
        };
        assert_eq!(chosen(4096, 4096, 4096), ("matmul_tiled_64x128", 4096));
        assert_eq!(chosen(512, 512, 512), ("matmul_tiled_32x64", 512));
        assert_eq!(chosen(16, 16, 16), ("matmul_tiled_32x32", 256));
        assert_eq!(chosen(16, 16, 1 << 16), ("matmul_tiled_32x32", 1 << 12));
    }
}
