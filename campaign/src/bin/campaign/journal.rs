//! The campaign itself: experiment after experiment, each written down at once.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use campaign::random::Random;

use crate::CampaignError;
use crate::experiment::{Choice, Experiment, Load};
use crate::load::Neighbour;
use crate::plan::Plan;
use crate::record::{Record, Records};
use crate::surroundings::{Reading, load_average};
use crate::tool::{self, Answer, Verdict, Workshop};

/// Runs a plan.
pub(crate) fn measure(plan: &Plan) -> Result<(), CampaignError> {
    let workshop = Workshop::open(&plan.tools)?;
    let mut records = Records::append_to(&plan.output)?;
    let mut random = Random::new(plan.seed);
    for round in 1..=plan.rounds {
        let experiments = plan.round(&mut random);
        for (index, experiment) in experiments.iter().enumerate() {
            eprint!(
                "round {round}/{}, {}/{}: {}",
                plan.rounds,
                index + 1,
                experiments.len(),
                name(experiment)
            );
            for record in run(experiment, round, &mut random, &workshop)? {
                records.write(&record)?;
                eprint!("{}", outcome(&record));
            }
            eprintln!();
        }
    }
    Ok(())
}

/// Runs one experiment beside its neighbour; one record for each of its cells.
fn run(
    experiment: &Experiment,
    round: u32,
    random: &mut Random,
    workshop: &Workshop,
) -> Result<Vec<Record>, CampaignError> {
    // Tools read seeds as they like; 32 bits suit them all.
    let seed = random.bits() >> 32;
    let (loadavg, started) = (load_average(), since_1970());
    let before = Reading::now();
    let neighbour = match experiment.load {
        Load::Quiet => None,
        Load::Bursty => Some(Neighbour::start(random.bits()).map_err(CampaignError::Load)?),
    };
    let start = Instant::now();
    let answers = tool::compare(experiment, seed, workshop);
    let wall = start.elapsed().as_secs_f64() / experiment.cells as f64;
    drop(neighbour);
    let others = before.others_since();
    let answer = |cell: usize| -> Result<Answer, String> {
        answers.as_ref().map(|answers| answers[cell]).map_err(ToString::to_string)
    };
    let record = |(cell, truth): (usize, f64)| {
        let unanswered = Record {
            started,
            round,
            seed,
            experiment: *experiment,
            loadavg,
            foreign: others.map(|others| others.foreign),
            stolen: others.map(|others| others.stolen),
            wall,
            truth,
            estimate: None,
            low: None,
            high: None,
            verdict: Verdict::Error,
            error: None,
        };
        unanswered.answered(answer(cell))
    };
    let truths = experiment.pairs().into_iter().map(|pair| pair.truth());
    Ok(truths.enumerate().map(record).collect())
}

fn since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn name(experiment: &Experiment) -> String {
    format!(
        "{} {} {} {} {} {} s",
        experiment.tool.name(),
        experiment.workload.name(),
        experiment.null.name(),
        experiment.effect,
        experiment.load.name(),
        experiment.budget.as_secs_f64()
    )
}

fn outcome(record: &Record) -> String {
    match (&record.error, record.estimate) {
        (Some(error), _) => format!("\n    error: {error}"),
        (None, estimate) => format!(
            "\n    {:?}, {:+.3} % (truth {:+.3} %), {:.2} s",
            record.verdict,
            100.0 * estimate.unwrap_or(f64::NAN),
            100.0 * record.truth,
            record.wall
        ),
    }
}
