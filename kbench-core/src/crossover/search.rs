//! Rounds of measuring sizes that nobody listed.

use super::contest::{Contest, contests};
use super::evidence::{LEVEL, MOST_ROUNDS, Origin, winner};
use super::finding::Crossover;
use crate::infer::{Noises, Observations, Rules, compare};
use crate::measure::{Family, Judge, Look, Measurement, OpenCell, Outlook, Pass, Spread};
use crate::order;
use crate::plan::{Cell, Plan, Row, Size};

/// How a search is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// A bracket that is narrower than this, in octaves, is narrow enough.
    pub tolerance: f64,
}

impl Default for Search {
    fn default() -> Self {
        Search { tolerance: 0.15 }
    }
}

/// Somebody who measures what a search wants to know.
pub trait Prober {
    /// Rows that there is time for in the next round.
    fn room(&self) -> usize;

    /// Checks and measures some cells; none when there is no time. As many `rounds` are still to come, this one counted.
    fn probe(&mut self, cells: Vec<Cell>, rounds: u32, judge: &dyn Judge) -> Option<Pass>;

    /// Goes on with the listed sizes in the time that is left.
    fn go_on(&mut self, first: &mut Pass, judge: &dyn Judge);
}

/// What a search found.
#[derive(Default)]
pub struct Found {
    /// Every variant against what it would replace.
    pub crossovers: Vec<Crossover>,
    /// What was measured for it.
    pub passes: Vec<Pass>,
}

/// Whether there is anything to search for in a plan.
pub fn has_contests(plan: &Plan) -> bool {
    !contests(plan).is_empty()
}

/// Looks for all crossovers of a plan that was measured.
pub fn search(first: &mut Pass, search: Search, rules: Rules, prober: &mut dyn Prober) -> Found {
    let mut contests = contests(&first.plan);
    let noises = Noises::of(&first.plan, &first.measured.measurement);
    contests.iter_mut().for_each(|contest| contest.choose_opponent(first));
    contests.iter_mut().for_each(|contest| contest.learn(first, &noises, Origin::Listed));
    contests.retain(|contest| !contest.evidence.is_empty());
    let mut passes = Vec::new();
    // The sizes around thresholds are planned in advance, like the listed ones; they cost no round.
    for round in 0..=MOST_ROUNDS {
        let cells = wanted(&mut contests, search.tolerance, round == 0, prober.room());
        if cells.is_empty() {
            if round == 0 {
                continue;
            }
            break;
        }
        let rounds = rounds_ahead(&contests, search.tolerance).min(MOST_ROUNDS - round + 1);
        let sides = Sides { rules, contests: &contests };
        let Some(pass) = prober.probe(cells, rounds, &sides) else { break };
        contests.iter_mut().for_each(|contest| contest.learn(&pass, &noises, Origin::Searched));
        passes.push(pass);
    }
    prober.go_on(first, &rules);
    let noises = Noises::of(&first.plan, &first.measured.measurement);
    contests.iter_mut().for_each(|contest| contest.learn_again(first, &noises));
    let crossovers = contests.iter().filter_map(|contest| contest.finding(search.tolerance));
    Found { crossovers: crossovers.collect(), passes }
}

/// The cells of the next round: one for every size, with the rows of the contests that want it. Where there is no room for
/// more rows, the other contests have to wait.
fn wanted(contests: &mut [Contest], tolerance: f64, is_first: bool, room: usize) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for contest in by_priority(contests) {
        if cells.iter().map(|cell| cell.rows.len()).sum::<usize>() >= room {
            break;
        }
        let mut sizes = contest.around_threshold();
        if !is_first {
            sizes.extend(contest.between(tolerance));
        }
        for size in sizes {
            add(&mut cells, contest, size);
        }
    }
    // Kernels follow each other, as in every plan.
    order::sort_by(&mut cells, |a, b| {
        let key = |cell: &Cell| (cell.kernel.location, cell.kernel.element_index);
        key(a).cmp(&key(b)).then_with(|| a.size.values.cmp(&b.size.values))
    });
    cells
}

/// The contests in the order in which they get time: those with a threshold first.
fn by_priority(contests: &mut [Contest]) -> Vec<&mut Contest> {
    let (claimed, others): (Vec<_>, Vec<_>) =
        contests.iter_mut().partition(|contest| contest.claim().is_some());
    [claimed, others].into_iter().flatten().collect()
}

fn add(cells: &mut Vec<Cell>, contest: &Contest, size: Size) {
    let Contest { kernel, own_function, base, opponent, variant, .. } = contest;
    let is_it = |cell: &Cell| std::ptr::eq(cell.kernel, *kernel) && cell.size == size;
    let index = cells.iter().position(is_it).unwrap_or_else(|| {
        let rows: Vec<Row> = vec![*base];
        let (kernel, own_function) = (*kernel, *own_function);
        cells.push(Cell { kernel, own_function, base: Some(0), size, rows });
        cells.len() - 1
    });
    let cell = &mut cells[index];
    for wanted in [base, opponent, variant] {
        if cell.rows.iter().all(|row| !row.is(wanted)) {
            cell.rows.push(*wanted);
        }
    }
    // As in every plan, the base is its first mode.
    let is_base = |row: &Row| Row { mode: base.mode, ..*row }.is(base);
    let bases = cell.rows.iter().enumerate().filter(|(_, row)| is_base(row));
    cell.base = bases.min_by_key(|(_, row)| row.mode).map(|(index, _)| index);
}

/// Rounds that halving still takes, this one counted.
fn rounds_ahead(contests: &[Contest], tolerance: f64) -> u32 {
    let gaps = contests.iter().flat_map(|contest| contest.gaps(tolerance));
    let widest = gaps.map(|(low, high)| high - low).fold(tolerance, f64::max);
    ((widest / tolerance).log2().ceil() as u32).saturating_add(1)
}

/// Stops as soon as it is shown which row of every contest wins.
struct Sides<'a> {
    rules: Rules,
    contests: &'a [Contest],
}

impl Sides<'_> {
    /// The rows of a cell that one of its rows is compared with.
    fn opponents(&self, cell: &Cell, row: usize) -> impl Iterator<Item = usize> {
        let ours = self.contests.iter().filter(move |contest| {
            std::ptr::eq(contest.kernel, cell.kernel) && cell.rows[row].is(&contest.variant)
        });
        ours.filter_map(|contest| cell.rows.iter().position(|row| row.is(&contest.opponent)))
    }
}

impl Judge for Sides<'_> {
    fn outlooks(
        &self,
        measurement: &Measurement,
        cells: &[OpenCell<'_>],
        look: Look,
        _: Family,
    ) -> Vec<Vec<Outlook>> {
        let outlooks = |open: &OpenCell<'_>| {
            let observations = Observations::of(measurement, open.index);
            if open.cell.base.is_none() {
                return vec![Outlook::Settled; open.rows.len()];
            }
            let is_decided = |row: &usize| {
                self.opponents(open.cell, *row).all(|opponent| {
                    let comparison = compare(&observations, opponent, *row, look);
                    comparison.is_some_and(|comparison| winner(&comparison, LEVEL).is_some())
                })
            };
            let outlook =
                |row: &usize| if is_decided(row) { Outlook::Decided } else { Outlook::Open };
            open.rows.iter().map(outlook).collect()
        };
        cells.iter().map(outlooks).collect()
    }

    fn spreads(&self, measurement: &Measurement, cells: &[OpenCell<'_>]) -> Vec<Option<Spread>> {
        self.rules.spreads(measurement, cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{right, variant_of_double};
    use crate::kernel::{Implementation, Threshold, VariantEntry};
    use crate::plan::Selection;
    use crate::registry::Registry;

    #[test]
    fn thresholds_come_first_where_there_is_no_room_for_all() {
        let claiming = |name, line| -> &'static VariantEntry {
            let entry = variant_of_double(name, line, right);
            let threshold = Some(Threshold::Work(100));
            let implementation = Implementation::Host(right);
            Box::leak(Box::new(VariantEntry { threshold, implementation, ..*entry }))
        };
        let base = variant_of_double("double", 1, right);
        let plain = variant_of_double("plain", 2, right);
        let entries = [base, plain, claiming("one", 3), claiming("other", 4)];
        let registry = Registry::of(entries).expect("fine");
        let plan = Plan::new(&registry, &Selection::default(), &[], &[]).expect("a plan");
        let mut all = contests(&plan);
        let names: Vec<_> = by_priority(&mut all).iter().map(|c| c.variant.variant.name).collect();
        assert_eq!(names, ["one", "other", "plain"]);
        let rows = |room| {
            let cells = wanted(&mut contests(&plan), 0.1, true, room);
            cells.iter().map(|cell| cell.rows.len()).max().unwrap_or(0)
        };
        assert_eq!((rows(0), rows(1), rows(usize::MAX)), (0, 2, 3), "the base, and those asked");
    }
}
