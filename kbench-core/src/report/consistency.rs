//! Every sentence of a report follows from the verdicts of its table: reports with verdicts of all kinds, drawn at random, are
//! read as a person would read them.

use super::row::tests::row;
use super::*;
use crate::crossover::tests::found;
use crate::crossover::{EvidenceReport, Origin, Outcome, Place, Winner, changes, outcome};
use crate::infer::{Judgement, Rank, Side, best, ranks};
use crate::value::SplitMix;

/// Sizes of a kernel, and variants beside the base.
const SIZES: [usize; 4] = [16, 64, 256, 1024];
const VARIANTS: [&str; 2] = ["rayon", "simd"];

fn pick<T: Copy>(draw: &mut SplitMix, of: &[T]) -> T {
    of[(draw.unit() * of.len() as f64) as usize % of.len()]
}

/// The rows of one size: a base, and variants of some verdicts.
fn cell(draw: &mut SplitMix, n: usize) -> Vec<RowReport> {
    let base = RowReport { is_base: true, time_ns: Some(100.0), ..row("base", n) };
    let mut rows = vec![base];
    for variant in VARIANTS {
        let judgement = pick(draw, &Judgement::ALL);
        let speedup = match judgement {
            Judgement::Faster => 1.03 + draw.unit(),
            Judgement::Slower => 0.3 + 0.65 * draw.unit(),
            Judgement::Equivalent => 0.99 + 0.02 * draw.unit(),
            Judgement::Near => 0.97 + 0.06 * draw.unit(),
            Judgement::Inconclusive => 0.5 + 1.5 * draw.unit(),
        };
        let mut one = RowReport { time_ns: Some(100.0 / speedup), ..row(variant, n) };
        one.comparison.speedup = Some(speedup);
        one.comparison.verdict = Some(judgement.word().to_owned());
        rows.push(one);
    }
    let side = |row: &RowReport| row.judgement().map_or(Side::Base, Side::Judged);
    let sides: Vec<Side> = rows.iter().map(side).collect();
    let time = |at: usize| rows[at].time_ns.unwrap_or(f64::INFINITY);
    let best = best(&sides, &time).expect("rows");
    let shown: Vec<bool> = (0..rows.len()).map(|_| draw.unit() < 0.5).collect();
    let found = ranks(&sides, best, &|at| shown[at]);
    let shares: Vec<f64> = (0..rows.len()).map(|at| (time(best) / time(at)).min(1.0)).collect();
    for ((row, rank), share) in rows.iter_mut().zip(found).zip(shares) {
        (row.rank, row.best_share) = (Some(rank), Some(share));
    }
    rows
}

/// What a search says of a variant: winners of its own, by an error rate of its own.
fn search(draw: &mut SplitMix, variant: &str) -> Crossover {
    let winners: Vec<Option<Winner>> = SIZES
        .iter()
        .map(|_| pick(draw, &[None, Some(Winner::Variant), Some(Winner::Base)]))
        .collect();
    let place = |n: usize| Place { size: format!("n={n}"), work: n as f64 };
    let evidence = |(n, winner): (&usize, &Option<Winner>)| EvidenceReport {
        place: place(*n),
        origin: Origin::Listed,
        speedup: 1.0,
        speedup_low: 0.5,
        speedup_high: 2.0,
        p: 0.001,
        winner: *winner,
    };
    let evidence: Vec<EvidenceReport> = SIZES.iter().zip(&winners).map(evidence).collect();
    let crossings = changes(&winners).into_iter().filter_map(|(below, above)| {
        let crossing = |winner| {
            let (below, above) = (SIZES[below] as u64, SIZES[above] as u64);
            crate::crossover::tests::crossing(below, above, winner)
        };
        winners[above].map(crossing)
    });
    let (from, to) = (place(SIZES[0]), place(SIZES[SIZES.len() - 1]));
    let found = found(outcome(&winners), crossings.collect());
    Crossover {
        kernel: "crate::kernel".into(),
        variant: variant.into(),
        base: "base".into(),
        threads: 1,
        from,
        to,
        evidence,
        ..found
    }
}

/// The table as a person reads it.
struct Table<'a>(&'a [RowReport]);

impl Table<'_> {
    fn row(&self, variant: &str, n: usize) -> &RowReport {
        let size = format!("n={n}");
        let mut rows = self.0.iter();
        rows.find(|row| row.variant == variant && row.size == size).expect("a row")
    }

    fn judgement(&self, variant: &str, n: usize) -> Option<Judgement> {
        self.row(variant, n).judgement()
    }

    /// Whether nothing is shown to be faster than a variant, which is the base or one that is not shown to be slower.
    fn may_be_taken(&self, variant: &str, n: usize) -> bool {
        let beats = |other: &&&str| self.judgement(other, n) == Some(Judgement::Faster);
        match variant {
            "base" => VARIANTS.iter().all(|other| !beats(&other)),
            // Where something is faster than the base, so is what is taken.
            _ if VARIANTS.iter().any(|other| beats(&other)) => {
                self.judgement(variant, n) == Some(Judgement::Faster)
            }
            _ => self.judgement(variant, n) != Some(Judgement::Slower),
        }
    }

    /// Whether the verdicts show that one wins at a size.
    fn wins(&self, winner: &str, loser: &str, n: usize) -> bool {
        match (winner, loser) {
            ("base", variant) => self.judgement(variant, n) == Some(Judgement::Slower),
            (variant, _) => self.judgement(variant, n) == Some(Judgement::Faster),
        }
    }
}

fn number(size: &str) -> usize {
    size.trim_start_matches("n=").trim_end_matches(',').parse().expect("a size")
}

/// Whether what to take follows from the table.
fn follows(advice: &str, table: &Table<'_>) -> bool {
    let count = |variant: &str, judgement| {
        SIZES.iter().filter(|n| table.judgement(variant, **n) == Some(judgement)).count()
    };
    if advice.ends_with("nothing is shown to be faster") {
        return VARIANTS.iter().all(|variant| count(variant, Judgement::Faster) == 0);
    }
    if let Some((_, rest)) = advice.split_once("the best of every size (") {
        let (parts, _) = rest.split_once(')').expect("a list");
        let mut from = 0;
        return parts.split(", ").all(|part| {
            let words: Vec<&str> = part.split(' ').collect();
            let (first, last) = match words[1..] {
                [] => (0, usize::MAX),
                ["up", "to", last] => (0, number(last)),
                ["from", first, "to", last] => (number(first), number(last)),
                ["from", first, "on"] => (number(first), usize::MAX),
                ["at", size] => (number(size), number(size)),
                _ => panic!("{part}"),
            };
            let is_next = first >= from;
            from = first;
            let here = SIZES.iter().filter(|n| first <= **n && **n <= last);
            is_next && here.clone().count() > 0 && { here }
                .all(|n| table.may_be_taken(words[0], *n))
        });
    }
    let variant =
        VARIANTS.iter().find(|variant| advice.contains(&format!("{variant} at every size")));
    let variant = variant.unwrap_or_else(|| panic!("{advice}"));
    let faster = count(variant, Judgement::Faster);
    let is_told = match advice.split_once(", shown at ") {
        Some((_, shown)) => shown == format!("{faster} of {} sizes", SIZES.len()),
        None => faster == SIZES.len() || advice.ends_with("which is negligible"),
    };
    count(variant, Judgement::Slower) == 0 && faster > 0 && is_told
}

/// Whether a sentence about winners and sizes follows from the table.
fn is_shown(sentence: &str, variant: &str, table: &Table<'_>) -> bool {
    let (claim, besides) = sentence.split_once("; at ").unwrap_or((sentence, ""));
    let is_excepted = |n: usize| {
        let excepted = |size: &str| besides.contains(size);
        let range = besides.split_once(" sizes, ").and_then(|(_, range)| range.split_once(" to "));
        let within = range.is_some_and(|(first, last)| {
            let last = last.split(',').next().unwrap_or_default();
            number(first) <= n && n <= number(last)
        });
        within || excepted(&format!("n={n} ")) || excepted(&format!("n={n},"))
    };
    let all = |winner: &str, loser: &str, is_meant: &dyn Fn(usize) -> bool| {
        let meant = SIZES.iter().filter(|n| is_meant(**n) && !is_excepted(**n));
        meant.clone().all(|n| table.wins(winner, loser, *n))
    };
    let other = |name: &str| if name == "base" { variant } else { "base" };
    let words: Vec<&str> = claim.split(' ').collect();
    match words.as_slice() {
        [winner, "beats", loser, "at", "every", ..] => all(winner, loser, &|_| true),
        [winner, "beats", loser, "at", "1", ..]
        | [winner, "beats", loser, "at", "2", ..]
        | [winner, "beats", loser, "at", "3", ..] => {
            let won = SIZES.iter().filter(|n| table.wins(winner, loser, **n)).count();
            words[4] == won.to_string()
        }
        [winner, "beats", loser, "at", size, ..] => {
            let n = number(size.trim_end_matches(';'));
            table.wins(winner, loser, n)
        }
        [winner, "wins", "from", above, "on,", loser, "up", "to", below, ..] => {
            all(winner, loser, &|n| n >= number(above))
                && all(loser, winner, &|n| n <= number(below))
        }
        ["the", "winner", "changes", ..] => {
            let (_, parts) = claim.split_once(": ").expect("a list");
            parts.split(", ").all(|part| {
                let words: Vec<&str> = part.split(' ').collect();
                let (first, last) = match words[1..] {
                    ["wins", "up", "to", last] => (0, number(last)),
                    ["from", first, "to", last] => (number(first), number(last)),
                    ["from", first, "on"] => (number(first), usize::MAX),
                    _ => panic!("{part}"),
                };
                all(words[0], other(words[0]), &|n| first <= n && n <= last)
            })
        }
        ["no", "winner", ..] => true,
        _ => panic!("{sentence}"),
    }
}

/// How often each variant wins, counted in the table.
fn counted(table: &Table<'_>) -> String {
    let part = |variant: &str| {
        let with =
            |rank| SIZES.iter().filter(|n| table.row(variant, **n).rank == Some(rank)).count();
        let shared = match with(Rank::Shared) {
            0 => String::new(),
            shared => format!(" and shares {shared}"),
        };
        format!("{variant} wins {}{shared}", with(Rank::Alone))
    };
    format!("{} {} {}", part("base"), part(VARIANTS[0]), part(VARIANTS[1]))
}

#[test]
fn every_sentence_follows_from_the_table() {
    let mut draw = SplitMix(28);
    let mut kinds = [0; 4];
    for _ in 0..2000 {
        let rows: Vec<RowReport> = SIZES.iter().flat_map(|n| cell(&mut draw, *n)).collect();
        let crossovers = VARIANTS.map(|variant| search(&mut draw, variant));
        let reports = kernel_reports(&rows, &[], &crossovers, &[], &[]);
        let table = Table(&rows);
        let verdicts: Vec<String> = rows
            .iter()
            .map(|row| format!("{} {} {:?} {:?}", row.variant, row.size, row.judgement(), row.rank))
            .collect();
        let advice = reports[0].recommendation.as_deref().expect("a choice");
        assert!(follows(advice, &table), "{advice}\n{}", verdicts.join("\n"));
        kinds[0] += usize::from(advice.contains("nothing is shown"));
        kinds[1] += usize::from(advice.contains("the best of every size"));
        kinds[2] += usize::from(advice.contains(" at every size"));
        kinds[3] += usize::from(advice.contains(", shown at "));
        let [first, second, wins] = &reports[0].findings[..] else { panic!("{reports:?}") };
        for (sentence, variant) in [first, second].into_iter().zip(VARIANTS) {
            assert!(is_shown(sentence, variant, &table), "{sentence}\n{}", verdicts.join("\n"));
        }
        let bare: Vec<&str> = wins.split([':', ';']).skip(1).collect();
        let bare: Vec<&str> =
            bare.iter().map(|part| part.split(',').next().unwrap_or("")).collect();
        assert_eq!(bare.join("").trim(), counted(&table), "{wins}\n{}", verdicts.join("\n"));
    }
    assert!(kinds.iter().all(|count| *count > 20), "{kinds:?}");
}

#[test]
fn the_outcome_of_a_search_is_told_as_far_as_the_table_shows_it() {
    let mut draw = SplitMix(3);
    let mut rows: Vec<RowReport> = SIZES.iter().flat_map(|n| cell(&mut draw, *n)).collect();
    for row in rows.iter_mut().filter(|row| !row.is_base) {
        row.comparison.verdict = Some("faster".into());
    }
    let mut known = search(&mut draw, "rayon");
    known.evidence.iter_mut().for_each(|known| known.winner = Some(Winner::Variant));
    (known.outcome, known.crossings) = (Outcome::AlwaysFaster, Vec::new());
    let said = |rows: &[RowReport]| {
        kernel_reports(rows, &[], std::slice::from_ref(&known), &[], &[])[0].findings[0].clone()
    };
    assert_eq!(said(&rows), "rayon beats base at every size from n=16 to n=1024: no crossover");
    rows[1].comparison.verdict = Some("equivalent".into());
    let expected = "rayon beats base at 3 of 4 sizes, n=64 to n=1024; elsewhere no winner is shown: no crossover";
    assert_eq!(said(&rows), expected);
}
