use super::super::Repetition;
use super::super::noise::Noise;
use super::super::test::Test;
use super::*;
use crate::value::SplitMix;

/// A comparison whose log-ratios of ten segments have the given centre and spread.
fn comparison(ratio: f64, spread: f64) -> Comparison {
    let steps = [-1.5, -0.5, 0.5, 1.5, -1.0, 1.0, 0.0, 0.2, -0.2, 0.0];
    let segments: Vec<f64> = steps.iter().map(|step| ratio.ln() + step * spread).collect();
    of(&segments)
}

/// The comparison of some log-ratios, as those of one launch.
fn of(log_ratios: &[f64]) -> Comparison {
    let repetition = |&value: &f64| Repetition { value, variance: None, count: 1 };
    let differences: Vec<_> = log_ratios.iter().map(repetition).collect();
    let test = Test::paired(&differences).expect("enough");
    let (low, high) = test.interval(0.95);
    Comparison {
        speedup: test.difference.exp(),
        low: low.exp(),
        high: high.exp(),
        test,
        welch: None,
        hedges_g: None,
        spread: 0.0,
        scope: Scope::Segments,
        share: 1.0,
        floor: 0.0,
    }
}

fn of_launches(comparison: Comparison) -> Comparison {
    Comparison { scope: Scope::Launches, ..comparison }
}

/// A comparison of which a difference, an error and nine degrees of freedom are known.
fn known(difference: f64, error: f64) -> Comparison {
    let (t, df) = (difference / error, 9.0);
    let p = super::super::student_two_sided(t, df);
    of_launches(Comparison { test: Test { difference, error, t, df, p }, ..comparison(1.0, 0.01) })
}

fn grounds(judged: &Judged) -> Grounds {
    judged.grounds.expect("judged among others")
}

fn words(comparisons: &[Comparison], rules: Rules) -> Vec<String> {
    judge(comparisons, rules).iter().map(|judged| judged.verdict.to_string()).collect()
}

fn word(ratio: f64, spread: f64) -> String {
    words(&[comparison(ratio, spread)], Rules::default()).concat()
}

#[test]
fn the_five_words_mean_what_they_say() {
    assert_eq!(word(2.0, 0.01), "provisional faster");
    assert_eq!(word(0.7, 0.01), "provisional slower");
    assert_eq!(word(1.0, 0.002), "provisional equivalent");
    assert_eq!(word(1.0, 0.05), "provisional equal within 5 %");
    assert_eq!(word(1.01, 0.2), "provisional inconclusive");
    assert_eq!(words(&[of_launches(comparison(2.0, 0.01))], Rules::default()), ["faster"]);
}

#[test]
fn words_are_read_with_their_reservations_and_no_others() {
    for judgement in Judgement::ALL {
        for reservation in ["", "provisional ", "advisory "] {
            let text = format!("{reservation}{}", judgement.word());
            assert_eq!(Judgement::of(&text), Some(judgement), "{text}");
        }
    }
    assert_eq!([Judgement::of("unfaster"), Judgement::of("")], [None, None]);
}

/// With nine degrees of freedom the 90 % interval is 1.833113 standard errors to either side, and the margin is
/// ln 1.01 = 0.009950.
#[test]
fn equivalence_begins_where_the_interval_fits_into_the_margin() {
    let of =
        |difference: f64, error: f64| is_equivalent(&known(difference, error), Rules::default());
    assert!(of(0.0, 0.00542) && !of(0.0, 0.00544));
    assert!(of(0.005, 0.0026) && !of(0.005, 0.0028), "both ends count");
    assert!(of(-0.005, 0.0026) && !of(-0.005, 0.0028));
}

/// ln 1.02 = 0.019803 and ln 1.05 = 0.048790; the error is 0.001, so that 1.8 of it is 0.0018.
#[test]
fn a_certain_difference_within_the_margin_is_equivalent_in_a_suite_and_named_among_a_few() {
    let differences = [0.017, 0.0185, -0.017, -0.019, 0.3];
    let all: Vec<Comparison> = differences.map(|difference| known(difference, 0.001)).to_vec();
    let few = words(&all, Rules::default().among(all.len()));
    assert_eq!(few, ["faster", "faster", "slower", "slower", "faster"]);
    let suite = words(&all, Rules::default().among(10));
    assert_eq!(suite, ["equivalent", "faster", "equivalent", "slower", "faster"]);
    let asked = words(&all, Rules { margin: Some(0.05), ..Rules::default() }.among(all.len()));
    assert_eq!(asked, ["equivalent", "equivalent", "equivalent", "equivalent", "faster"]);
    assert_eq!(Rules::default().among(9).margin(), 0.01);
    assert_eq!(Rules::default().among(10).margin(), 0.02);
}

#[test]
fn what_is_not_different_says_how_different_it_can_be() {
    let all = [known(0.0, 0.005), known(0.02, 0.012), known(0.02, 0.05), known(0.5, 0.01)];
    let rules = Rules::default().among(10);
    assert_eq!(words(&all, rules), ["equivalent", "equal within 5 %", "inconclusive", "faster"]);
    for (judged, comparison) in judge(&all, rules).iter().zip(all) {
        let test = comparison.test;
        let furthest = test.difference.abs() + 1.833_112_932_7 * test.error;
        assert!((grounds(judged).at_most - furthest.exp_m1()).abs() < 1e-7, "{judged:?}");
    }
}

#[test]
fn what_the_clock_may_have_caused_is_no_difference() {
    let tiny = comparison(1.0001, 1e-7);
    let judged = |floor| judge(&[Comparison { floor, ..tiny }], Rules::default())[0];
    assert_eq!(judged(0.0).verdict.judgement, Judgement::Faster);
    let by_clock = judged(2e-4);
    assert_eq!(by_clock.verdict.judgement, Judgement::Equivalent);
    assert!(grounds(&by_clock).low < 1.0 && grounds(&by_clock).high > 1.0, "{by_clock:?}");
    // A clock that takes a tenth of a sample cannot show that two rows are alike within 5 %.
    assert_eq!(judged(0.1).verdict.judgement, Judgement::Inconclusive);
}

#[test]
fn many_comparisons_raise_the_bar() {
    let weak = comparison(0.98, 0.02);
    assert!(weak.test.p < 0.05, "{}", weak.test.p);
    // Without any other difference, both methods ask as much.
    for error_rate in [ErrorRate::Discovery, ErrorRate::Family] {
        let rules = Rules { error_rate, ..Rules::default() };
        let mut crowd = vec![comparison(1.0, 0.02); 50];
        crowd[0] = weak;
        let alone = judge(&[weak], rules)[0].verdict.judgement;
        let among = judge(&crowd, rules)[0].verdict.judgement;
        assert_eq!((alone, among), (Judgement::Slower, Judgement::Near), "{error_rate:?}");
    }
}

/// Among certain differences a weak one is likely to be one, too, and that is all that a discovery rate asks.
#[test]
fn many_differences_lower_the_bar_of_discoveries_and_not_that_of_the_family() {
    let mut crowd = vec![comparison(2.0, 0.02); 50];
    crowd[0] = comparison(0.98, 0.02);
    let judged = |error_rate| judge(&crowd, Rules { error_rate, ..Rules::default() })[0];
    assert_eq!(judged(ErrorRate::Discovery).verdict.judgement, Judgement::Slower);
    crowd.extend(vec![comparison(1.0, 0.02); 50]);
    let judged = |error_rate| judge(&crowd, Rules { error_rate, ..Rules::default() })[0];
    assert_eq!(judged(ErrorRate::Discovery).verdict.judgement, Judgement::Slower);
    assert_eq!(judged(ErrorRate::Family).verdict.judgement, Judgement::Near);
}

#[test]
fn an_early_look_raises_the_bar() {
    let weak = comparison(0.98, 0.02);
    let early = Comparison { share: 0.02, ..weak };
    let judged = judge(&[weak, early], Rules { significance: 0.2, ..Rules::default() });
    assert!(grounds(&judged[0]).p_adjusted < grounds(&judged[1]).p_adjusted);
    assert!(grounds(&judged[0]).confidence < grounds(&judged[1]).confidence);
    assert_eq!(judged[0].verdict.judgement, Judgement::Slower);
}

#[test]
fn what_could_have_been_seen_grows_with_the_number_of_comparisons() {
    let found = comparison(1.0, 0.02);
    let alone = grounds(&judge(&[found], Rules::default())[0]).detectable;
    let crowd = grounds(&judge(&[found; 50], Rules::default())[0]).detectable;
    assert!(0.0 < alone && alone < crowd && crowd < 3.0 * alone, "{alone} {crowd}");
}

#[test]
fn no_verdict_of_one_launch_stands_among_those_of_several() {
    let (one, several) = (comparison(2.0, 0.01), of_launches(comparison(2.0, 0.01)));
    let mixed = judge(&[one, several, one], Rules::default());
    let said: Vec<String> = mixed.iter().map(|judged| judged.verdict.to_string()).collect();
    assert_eq!(said, ["provisional inconclusive", "faster", "provisional inconclusive"]);
    assert!(mixed[0].grounds.is_none() && mixed[1].grounds.is_some());
    // They are no part of the family either.
    let alone = grounds(&judge(&[several], Rules::default())[0]);
    assert_eq!(grounds(&mixed[1]).p_adjusted, alone.p_adjusted);
    assert_eq!([family_size(&[one, several, one]), family_size(&[one, one])], [1, 2]);
    assert_eq!(words(&[one, one], Rules::default()), ["provisional faster"; 2]);
}

/// One comparison of a simulated suite, with its true log-ratio.
struct Simulated {
    truth: f64,
    comparison: Comparison,
}

/// A suite of 80 comparisons, six launches each, whose noise differs by a factor of ten: of `equal` of ten nothing is
/// there, of the others 0.1 to 30 %.
fn suite(draw: &mut SplitMix, equal: usize) -> Vec<Simulated> {
    let normal = |draw: &mut SplitMix| (0..12).map(|_| draw.unit()).sum::<f64>() - 6.0;
    let mut all = Vec::new();
    for number in 0..80 {
        let noise = 0.003 * 10_f64.powf(draw.unit());
        let size = 0.001 * 300_f64.powf(draw.unit());
        let side = if draw.unit() < 0.5 { -1.0 } else { 1.0 };
        let truth = if number % 10 < equal { 0.0 } else { side * size };
        let launches: Vec<f64> = (0..6).map(|_| truth + noise * normal(draw)).collect();
        // Some were stopped at an early look.
        let share = if draw.unit() < 0.2 { 0.1 } else { 1.0 };
        let comparison = Comparison { share, ..of_launches(of(&launches)) };
        all.push(Simulated { truth, comparison });
    }
    all
}

/// What came out of simulated suites.
#[derive(Debug, Default)]
struct Tally {
    suites: f64,
    /// Sum over suites of the share of false ones among the differences named.
    false_shares: f64,
    /// Suites with a false difference.
    with_false: f64,
    named: f64,
    true_named: f64,
    named_covered: f64,
    all: f64,
    covered: f64,
}

impl Tally {
    fn add(&mut self, suite: &[Simulated], rules: Rules) {
        let comparisons: Vec<Comparison> = suite.iter().map(|known| known.comparison).collect();
        let (mut named, mut wrong) = (0.0, 0.0);
        for (known, judged) in suite.iter().zip(judge(&comparisons, rules)) {
            let Grounds { low, high, p_adjusted, .. } = grounds(&judged);
            let (excludes, truth) = (low > 1.0 || high < 1.0, known.truth.exp());
            let judgement = judged.verdict.judgement;
            let is_named = judgement.is_different();
            // The interval and the adjusted p say what the verdict says.
            assert_eq!(is_named, p_adjusted <= rules.significance, "{known:?} {judged:?}");
            let is_within = judgement == Judgement::Equivalent && rules.margin.is_some();
            assert!(excludes == is_named || excludes && is_within, "{known:?} {judged:?}");
            let is_right = match judgement {
                Judgement::Faster => known.truth > 0.0 && low > 1.0,
                Judgement::Slower => known.truth < 0.0 && high < 1.0,
                _ => true,
            };
            let is_covered = low <= truth && truth <= high;
            self.all += 1.0;
            self.covered += f64::from(is_covered);
            named += f64::from(is_named);
            wrong += f64::from(!is_right);
            self.named_covered += f64::from(is_named && is_covered);
            self.true_named += f64::from(is_named && is_right);
        }
        self.suites += 1.0;
        self.named += named;
        self.false_shares += wrong / f64::max(named, 1.0);
        self.with_false += f64::from(wrong > 0.0);
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.truth, self.comparison.test)
    }
}

/// 200 suites of each kind.
fn simulated(equal: usize, rules: Rules) -> Tally {
    let mut draw = SplitMix(28);
    let mut tally = Tally::default();
    for _ in 0..200 {
        tally.add(&suite(&mut draw, equal), rules);
    }
    tally
}

#[test]
fn of_the_differences_that_a_suite_names_at_most_one_in_twenty_is_false() {
    for equal in [3, 6, 9] {
        // With a margin and without one.
        for comparisons in [9, 80] {
            let found = simulated(equal, Rules::default().among(comparisons));
            let rate = found.false_shares / found.suites;
            assert!(rate <= 0.05, "{equal} {comparisons}: {rate} {found:?}");
            let holds = found.named_covered / found.named;
            assert!(holds >= 0.95, "{equal} {comparisons}: {holds} {found:?}");
            assert!(found.covered / found.all >= 0.95, "{equal} {comparisons}: {found:?}");
        }
    }
}

#[test]
fn with_the_rate_of_a_family_one_report_in_twenty_has_a_false_difference() {
    let rules = Rules { error_rate: ErrorRate::Family, ..Rules::default() };
    let mut found_by_family = 0.0;
    for equal in [3, 6, 9] {
        let found = simulated(equal, rules);
        assert!(found.with_false / found.suites <= 0.05, "{equal}: {found:?}");
        assert!(found.covered / found.all >= 0.95, "{equal}: {found:?}");
        found_by_family += found.true_named;
    }
    // Which is why it is not the default.
    let by_discovery: f64 =
        [3, 6, 9].map(|equal| simulated(equal, Rules::default()).true_named).iter().sum();
    assert!(by_discovery > 1.2 * found_by_family, "{by_discovery} {found_by_family}");
}

/// A suite of 20 bases with four rows each, five launches. Rows of a base share its noise; cells differ in theirs by a factor
/// of ten, and every eighth time is up to 30 % slower. How launches disagree is learnt from all comparisons.
///
/// Gives the comparisons as they are judged with what was learnt, and each by itself.
fn suite_of_shared_noise(draw: &mut SplitMix, equal: usize) -> [Vec<Simulated>; 2] {
    let normal = |draw: &mut SplitMix| (0..12).map(|_| draw.unit()).sum::<f64>() - 6.0;
    let mut all: Vec<(f64, Vec<f64>)> = Vec::new();
    for _ in 0..20 {
        let scale = 0.002 * 10_f64.powf(draw.unit());
        let mut times = || -> Vec<f64> {
            let time = |draw: &mut SplitMix| {
                let hit = if draw.unit() < 0.125 { 0.3 * draw.unit() } else { 0.0 };
                scale * normal(draw) + hit
            };
            (0..5).map(|_| time(draw)).collect()
        };
        let [base, rows @ ..] = [(); 5].map(|()| times());
        for row in rows {
            let difference = [0.02, 0.05, 0.2][draw.below(3) as usize];
            let side = if draw.unit() < 0.5 { -1.0 } else { 1.0 };
            let truth = if (draw.below(10) as usize) < equal { 0.0 } else { side * difference };
            all.push((truth, base.iter().zip(&row).map(|(a, b)| truth + a - b).collect()));
        }
    }
    let launches: Vec<&[f64]> = all.iter().map(|(_, launches)| launches.as_slice()).collect();
    let noise = Noise::of(&launches).expect("enough comparisons");
    let by_itself = |(truth, launches): &(f64, Vec<f64>)| {
        let comparison = of_launches(of(launches));
        Simulated { truth: *truth, comparison }
    };
    let by_noise = |known: &(f64, Vec<f64>)| {
        let Simulated { truth, comparison } = by_itself(known);
        Simulated { truth, comparison: Comparison { test: noise.test(&known.1), ..comparison } }
    };
    [all.iter().map(by_noise).collect(), all.iter().map(by_itself).collect()]
}

#[test]
#[ignore = "slow: noise is learnt anew for each of 60 suites"]
fn suites_whose_rows_share_the_noise_of_their_base_keep_the_rate() {
    let rules = Rules::default().among(80);
    for equal in [3, 6, 9] {
        let (mut draw, mut found) = (SplitMix(28), Tally::default());
        let mut by_mean = Tally::default();
        for _ in 0..20 {
            let [by_noise, by_itself] = suite_of_shared_noise(&mut draw, equal);
            found.add(&by_noise, rules);
            by_mean.add(&by_itself, rules);
        }
        let rate = found.false_shares / found.suites;
        assert!(rate <= 0.05, "{equal}: {rate} {found:?}");
        assert!(found.covered / found.all >= 0.95, "{equal}: {found:?}");
        assert!(found.true_named > 1.5 * by_mean.true_named, "{equal}: {found:?} {by_mean:?}");
    }
}
