//! One variant against another one along one way through the sizes.
//!
//! A crossover is for choosing between variants, so a variant is compared with the one that it would replace: a serial one with
//! the base, a parallel one with the fastest serial one, one on a device with the fastest on the processor. Which that is,
//! the listed sizes tell, by the size below the one from which on the variant wins. Where the command line names a base, it is the opponent.

use super::curve::{Curve, Point};
use super::evidence::{Bracket, Evidence, Origin, Winner, brackets, winners};
use crate::check::{Check, Standing};
use crate::infer::{Comparison, Noises, Observations, compare, compare_among};
use crate::kernel::{KernelEntry, Mode, Threshold, VariantEntry, guard};
use crate::measure::Pass;
use crate::order;
use crate::plan::{Cell, Plan, Row, Size, work_of};

/// One variant against another one along one curve.
pub(super) struct Contest {
    pub(super) kernel: &'static KernelEntry,
    pub(super) own_function: Option<&'static VariantEntry>,
    /// The base of its cells.
    pub(super) base: Row,
    /// What it is compared with.
    pub(super) opponent: Row,
    pub(super) variant: Row,
    pub(super) curve: Curve,
    /// By position.
    pub(super) evidence: Vec<Evidence>,
    /// A size at which one of the two failed: there is no point in going on.
    pub(super) broken: Option<Size>,
    /// Positions of all sizes that were asked for, whatever came of it.
    asked: Vec<(Vec<usize>, f64)>,
}

/// All contests of a plan.
pub(super) fn contests(plan: &Plan) -> Vec<Contest> {
    let of_kernel = |cells: &[Cell]| {
        let kernel = cells[0].kernel;
        let mut contests = Vec::new();
        for sizes in ways(kernel, cells, plan.along.as_deref()) {
            let Some(curve) = Curve::through(&sizes) else { continue };
            let on_curve: Vec<&Cell> = cells.iter().filter(|c| sizes.contains(&c.size)).collect();
            let pairs = pairs(&on_curve);
            contests.extend(pairs.into_iter().map(|(base, variant)| Contest {
                kernel,
                own_function: cells[0].own_function,
                base,
                opponent: base,
                variant,
                curve: curve.clone(),
                evidence: Vec::new(),
                broken: None,
                asked: positions(&curve),
            }));
        }
        contests
    };
    plan.cells.chunk_by(|a, b| std::ptr::eq(a.kernel, b.kernel)).flat_map(of_kernel).collect()
}

fn positions(curve: &Curve) -> Vec<(Vec<usize>, f64)> {
    let position = |point: &Point| (point.size.values.clone(), point.position);
    curve.listed().iter().map(position).collect()
}

/// The sizes of a kernel in the orders in which they are gone through. Labelled shapes are one way, by their work; of a
/// grid there is a way for every combination of the other axes.
pub fn ways(kernel: &KernelEntry, cells: &[Cell], along: Option<&str>) -> Vec<Vec<Size>> {
    // A size without any work is on no way to anywhere.
    let sizes: Vec<&Size> =
        cells.iter().map(|cell| &cell.size).filter(|size| !size.values.contains(&0)).collect();
    let octaves = |axis: usize| {
        let values = || sizes.iter().map(|size| size.values[axis].max(1) as f64);
        (values().fold(1.0, f64::max) / values().fold(f64::INFINITY, f64::min)).log2()
    };
    let moving: Vec<usize> = (0..kernel.axes.len()).filter(|axis| octaves(*axis) > 0.0).collect();
    let named = kernel.axes.iter().position(|axis| Some(*axis) == along);
    if named.is_none() && moving.len() > 1 && sizes.iter().all(|size| size.label.is_some()) {
        return vec![by_work(kernel, &sizes)];
    }
    let longest = moving.into_iter().rev().max_by(|a, b| octaves(*a).total_cmp(&octaves(*b)));
    let Some(axis) = named.or(longest) else { return Vec::new() };
    let mut groups: Vec<(Vec<usize>, Vec<Size>)> = Vec::new();
    for size in sizes {
        let mut held = size.values.clone();
        held.remove(axis);
        match groups.iter_mut().find(|(others, _)| *others == held) {
            Some((_, sizes)) => sizes.push(size.clone()),
            None => groups.push((held, vec![size.clone()])),
        }
    }
    let mut ways: Vec<Vec<Size>> = groups.into_iter().map(|(_, sizes)| sizes).collect();
    for sizes in &mut ways {
        order::sort_by_key(sizes, |size| size.values[axis]);
    }
    ways
}

fn by_work(kernel: &KernelEntry, sizes: &[&Size]) -> Vec<Size> {
    let with_work = |size: &&Size| Some((work_of(kernel, size).ok()?, (*size).clone()));
    let mut sizes: Vec<(f64, Size)> = sizes.iter().filter_map(with_work).collect();
    order::sort_by(&mut sizes, |a, b| {
        a.0.total_cmp(&b.0).then_with(|| a.1.values.cmp(&b.1.values))
    });
    sizes.into_iter().map(|(_, size)| size).collect()
}

/// Bases and the rows that are compared with them. Of a variant with several thread counts the largest is meant, and of
/// one with several modes the first; data that starts and ends on the host is a contest of its own.
fn pairs(cells: &[&Cell]) -> Vec<(Row, Row)> {
    let Some((cell, base)) = cells.iter().find_map(|cell| Some((cell, cell.base?))) else {
        return Vec::new();
    };
    let base = cell.rows[base];
    let mut pairs: Vec<(Row, Row)> = Vec::new();
    for (index, row) in cell.rows.iter().enumerate() {
        let is_contest = cell.is_primary(index) || row.mode == Mode::EndToEnd;
        if std::ptr::eq(row.variant, base.variant) || !is_contest {
            continue;
        }
        let twin = |(_, known): &&mut (Row, Row)| {
            std::ptr::eq(known.variant, row.variant) && known.mode == row.mode
        };
        let base = cell.base_of(index).map_or(base, |base| cell.rows[base]);
        match pairs.iter_mut().find(twin) {
            Some((_, known)) if known.threads < row.threads => *known = *row,
            Some(_) => {}
            None => pairs.push((base, *row)),
        }
    }
    pairs
}

impl Contest {
    /// Finds out which variant this one would replace.
    pub(super) fn choose_opponent(&mut self, first: &Pass) {
        if !self.base.variant.is_base {
            return;
        }
        let cells = first.plan.cells.iter().enumerate();
        let ours = cells.filter(|(_, cell)| std::ptr::eq(cell.kernel, self.kernel));
        let mut sizes: Vec<(f64, usize)> = ours
            .filter_map(|(index, cell)| Some((self.position(&cell.size.values)?, index)))
            .collect();
        order::sort_by(&mut sizes, |a, b| a.0.total_cmp(&b.0));
        let standings = sizes.iter().filter_map(|(_, cell)| self.standing(first, *cell));
        let standings: Vec<(Row, bool)> = standings.collect();
        let last_behind = standings.iter().rposition(|(_, wins)| !wins).unwrap_or(0);
        if let Some((fastest, _)) = standings.get(last_behind) {
            self.opponent = *fastest;
        }
    }

    /// The fastest row that this variant may replace in a cell, and whether the variant takes less time.
    fn standing(&self, first: &Pass, index: usize) -> Option<(Row, bool)> {
        let Pass { plan, checked, measured } = first;
        let cell = &plan.cells[index];
        let base = cell.rows.iter().position(|row| row.is(&self.base))?;
        let observations = Observations::of(&measured.measurement, index);
        let gain = |row: usize| {
            if row == base {
                return Some(0.0);
            }
            let comparison = compare(&observations, base, row, measured.look(index, row))?;
            Some(comparison.test.difference)
        };
        let own = gain(cell.rows.iter().position(|row| row.is(&self.variant))?)?;
        let may_be = |row: &usize| {
            let it = &cell.rows[*row];
            let check = checked.get(index).map(|rows| &rows[*row]);
            let is_right = check.is_none_or(|row| {
                let is_checked = |check: &Check| check.unchecked.is_none();
                let is_admitted = matches!(row.standing, Standing::Admitted);
                is_admitted && row.check.as_ref().is_none_or(is_checked)
            });
            let is_simpler = it.variant.backend < self.variant.variant.backend
                && it.variant.implementation.foreign().is_none();
            *row == base || (cell.is_primary(*row) && is_right && is_simpler)
        };
        let gains = (0..cell.rows.len()).filter(may_be).filter_map(|row| Some((gain(row)?, row)));
        let (most, fastest) = gains.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((cell.rows[fastest], own > most))
    }

    /// Takes over what a pass found about it.
    pub(super) fn learn(&mut self, pass: &Pass, noises: &Noises, origin: Origin) {
        for (index, cell) in pass.plan.cells.iter().enumerate() {
            if !std::ptr::eq(cell.kernel, self.kernel) {
                continue;
            }
            let Some(position) = self.position(&cell.size.values) else { continue };
            let size = cell.size.clone();
            if self.has_failed(pass, index) {
                self.broken.get_or_insert(size);
            } else if self.evidence.iter().all(|known| known.position != position)
                && let Some(comparison) = self.compared(pass, index, noises)
                && let Ok(work) = cell.work()
            {
                self.evidence.push(Evidence { position, size, work, origin, comparison });
            }
        }
        order::sort_by(&mut self.evidence, |a, b| a.position.total_cmp(&b.position));
    }

    /// Learns the listed sizes anew, of which more was measured.
    pub(super) fn learn_again(&mut self, first: &Pass, noises: &Noises) {
        self.evidence.retain(|known| known.origin != Origin::Listed);
        self.learn(first, noises, Origin::Listed);
    }

    /// Whether one of both rows is wrong, or broke, in a cell of a pass.
    fn has_failed(&self, pass: &Pass, index: usize) -> bool {
        let rows = pass.plan.cells[index].rows.iter().enumerate();
        let ours = rows.filter(|(_, row)| row.is(&self.opponent) || row.is(&self.variant));
        let is_wrong = |row: usize| {
            pass.checked.get(index).is_some_and(|c| matches!(c[row].standing, Standing::Wrong(_)))
        };
        ours.into_iter()
            .any(|(row, _)| is_wrong(row) || pass.measured.rows[index][row].failure.is_some())
    }

    /// Both rows compared in a cell of a pass, if they are there.
    fn compared(&self, pass: &Pass, index: usize, noises: &Noises) -> Option<Comparison> {
        let Pass { plan, measured, .. } = pass;
        let position = |wanted: &Row| plan.cells[index].rows.iter().position(|r| r.is(wanted));
        let (base, variant) = (position(&self.opponent)?, position(&self.variant)?);
        let observations = Observations::of(&measured.measurement, index);
        let look = measured.look(index, variant);
        let floor = measured.clock_share(index, [base, variant]);
        let noise = noises.of_row(&self.variant);
        let comparison = compare_among(&observations, (base, variant), look, noise)?;
        Some(Comparison { floor, ..comparison })
    }

    /// Who wins at each size of the evidence.
    pub(super) fn winners(&self) -> Vec<Option<Winner>> {
        winners(&self.evidence)
    }

    /// Where the winner changes.
    pub(super) fn brackets(&self) -> Vec<Bracket> {
        brackets(&self.winners())
    }

    /// What the variant's author claims. It is about what the variant replaces, and about no yardstick; and about data that
    /// is where the variant wants it.
    pub(super) fn claim(&self) -> Option<Threshold> {
        let is_meant = self.base.variant.is_base && self.variant.mode != Mode::EndToEnd;
        self.variant.variant.threshold.filter(|_| is_meant)
    }

    /// Sizes around the claim of the variant's author that are not among the listed ones.
    pub(super) fn around_threshold(&mut self) -> Vec<Size> {
        let Some(threshold) = self.claim().filter(|_| self.broken.is_none()) else {
            return Vec::new();
        };
        let holds = |size: &Size| {
            work_of(self.kernel, size).is_ok_and(|work| threshold.holds(work, &size.values))
        };
        let points = self.curve.around(&holds, &|values| self.is_defined(values));
        self.ask(points)
    }

    /// Sizes that would narrow a bracket.
    pub(super) fn between(&mut self, tolerance: f64) -> Vec<Size> {
        if self.broken.is_some() {
            return Vec::new();
        }
        let is_new = |values: &[usize]| self.is_new(values);
        let points: Vec<Point> = self
            .gaps(tolerance)
            .into_iter()
            .filter_map(|(low, high)| self.curve.between(low, high, &is_new))
            .collect();
        self.ask(points)
    }

    /// Gaps in which one more size would help, as positions.
    pub(super) fn gaps(&self, tolerance: f64) -> Vec<(f64, f64)> {
        self.brackets().into_iter().flat_map(|b| self.gaps_of(b, tolerance)).collect()
    }

    /// The same for one bracket.
    pub(super) fn gaps_of(&self, bracket: Bracket, tolerance: f64) -> Vec<(f64, f64)> {
        let positions: Vec<f64> = self.evidence.iter().map(|known| known.position).collect();
        bracket.gaps(&positions, tolerance)
    }

    /// Whether there is a size to measure in any of some gaps.
    pub(super) fn has_more(&self, gaps: &[(f64, f64)]) -> bool {
        let is_new = |values: &[usize]| self.is_new(values);
        gaps.iter().any(|(low, high)| self.curve.between(*low, *high, &is_new).is_some())
    }

    /// Notes that some points are to be measured; gives those that were not before.
    fn ask(&mut self, points: Vec<Point>) -> Vec<Size> {
        let mut sizes = Vec::new();
        for Point { position, size } in points {
            if self.position(&size.values).is_none() {
                self.asked.push((size.values.clone(), position));
                sizes.push(size);
            }
        }
        sizes
    }

    /// Where a size is that was asked for.
    fn position(&self, values: &[usize]) -> Option<f64> {
        self.asked.iter().find(|(asked, _)| asked == values).map(|(_, position)| *position)
    }

    /// Whether a size can be measured, and was not asked for before.
    fn is_new(&self, values: &[usize]) -> bool {
        self.position(values).is_none() && self.is_defined(values)
    }

    /// Whether the kernel and all rows say that they are defined at a size.
    fn is_defined(&self, values: &[usize]) -> bool {
        let valid = |row: &Row| row.variant.valid.is_none_or(|valid| (valid.holds)(values));
        let all = || valid(&self.base) && valid(&self.opponent) && valid(&self.variant);
        guard(|| self.kernel.definition.valid(values) && all()).unwrap_or(false)
    }
}
