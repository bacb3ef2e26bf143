//! Where the figures are from: a card for every machine, with what makes them doubtful in plain words.

use super::super::sentences::error_rate;
use super::super::{DeviceReport, Report, WorkerReport, units};
use super::text::{cut, escape, name, scaled};
use crate::calendar::date_and_time;
use crate::environment::Environment;

/// The section.
pub(super) fn section(report: &Report) -> String {
    let cards = match report.parts.as_slice() {
        [] => card(&Card {
            title: None,
            environment: &report.environment,
            device: report.device.as_ref(),
            workers: &report.workers,
            warnings: &report.warnings,
        }),
        parts => parts
            .iter()
            .map(|part| {
                let share = part.partition.as_ref().map(|share| format!(", {share}"));
                card(&Card {
                    title: Some(format!(
                        "{}{} · {} · {} rows",
                        part.run,
                        share.unwrap_or_default(),
                        date_and_time(part.started),
                        part.rows
                    )),
                    environment: &part.environment,
                    device: part.device.as_ref(),
                    workers: &[],
                    warnings: &part.warnings,
                })
            })
            .collect(),
    };
    let worker = |line: String| format!("<p>{}</p>", escape(&line));
    let workers = report.workers.iter().filter_map(WorkerReport::line).map(worker);
    let own = match report.parts.is_empty() {
        true => String::new(),
        false => warnings(&report.warnings) + &workers.collect::<String>(),
    };
    format!(
        r#"<section id="machine" class="part"><h2>Machine and build</h2>{own}<div class="cards">{cards}</div>{}</section>"#,
        conduct(report)
    )
}

struct Card<'a> {
    title: Option<String>,
    environment: &'a Environment,
    device: Option<&'a DeviceReport>,
    workers: &'a [WorkerReport],
    warnings: &'a [String],
}

fn card(card: &Card<'_>) -> String {
    let workers = card.workers.iter().map(|worker| ("worker", worker.summary()));
    let facts: Vec<(&str, Option<String>)> =
        processor(card.environment).into_iter().chain(device(card.device)).chain(workers).collect();
    let items: String = facts
        .into_iter()
        .filter_map(|(what, fact)| Some(format!("<div><dt>{what}<dd>{}</div>", name(&fact?))))
        .collect();
    let title = card.title.as_ref().map(|title| format!("<h3>{}</h3>", name(title)));
    format!(
        r#"<div class="card">{}{}<dl>{items}</dl></div>"#,
        title.unwrap_or_default(),
        warnings(card.warnings)
    )
}

fn warnings(warnings: &[String]) -> String {
    let warning = |text: &String| {
        let (what, rest) = text.split_once(": ").unwrap_or(("doubtful", text));
        format!(r#"<p class="warning"><strong>{}:</strong> {}</p>"#, escape(what), escape(rest))
    };
    warnings.iter().map(warning).collect()
}

fn processor(environment: &Environment) -> Vec<(&'static str, Option<String>)> {
    let Environment { cores, cores_physical, caches, .. } = environment;
    let physical = cores_physical.map(|physical| format!(" ({physical} physical)"));
    let cache =
        |(name, bytes): (&str, Option<u64>)| Some(format!("{name} {}", units::bytes(bytes?)));
    let known = [("L1", caches.l1d), ("L2", caches.l2), ("L3", caches.l3)];
    let known: Vec<String> = known.into_iter().filter_map(cache).collect();
    let is_virtual = environment.hypervisor == Some(true);
    let held = [
        is_virtual.then(|| "virtual machine".to_owned()),
        environment.container.map(|container| container.name().to_owned()),
        environment.quota.map(|quota| format!("quota of {quota} cores")),
    ];
    let held: Vec<String> = held.into_iter().flatten().collect();
    let turbo = environment.turbo.map(|on| if on { "turbo on" } else { "turbo off" }.to_owned());
    let clock: Vec<String> = [environment.governor.clone(), turbo].into_iter().flatten().collect();
    let some = |parts: Vec<String>| (!parts.is_empty()).then(|| parts.join(", "));
    let flags = Some(&environment.rustflags).filter(|flags| !flags.is_empty());
    vec![
        ("processor", Some(environment.cpu.clone())),
        ("cores", Some(format!("{cores}{}", physical.unwrap_or_default()))),
        ("caches", some(known)),
        ("memory", environment.memory_bytes.map(units::bytes)),
        ("clock", some(clock)),
        ("load before", environment.load.map(|load| load.to_string())),
        ("runs in", some(held)),
        ("system", environment.os.clone()),
        ("compiler", Some(environment.rustc.split(" (").next().unwrap_or_default().to_owned())),
        ("flags", flags.cloned()),
        ("commit", environment.git_commit.as_ref().map(|hash| cut(hash, 12))),
        ("kbench", Some(environment.kbench.clone())),
    ]
}

fn device(device: Option<&DeviceReport>) -> Vec<(&'static str, Option<String>)> {
    let Some(device) = device else { return Vec::new() };
    let ceilings = device.ceilings.as_ref();
    let rates = |c: &crate::cuda::Ceilings| {
        let rates =
            c.matrix.iter().map(|r| format!("{} {}", r.element, scaled(r.flops_per_s, "FLOP/s")));
        rates.collect::<Vec<_>>().join(", ")
    };
    let memory = |c: &crate::cuda::Ceilings| {
        format!(
            "copies {}, best {}, L2 {}",
            scaled(c.copy_bytes_per_s, "B/s"),
            scaled(c.memory_bytes_per_s, "B/s"),
            scaled(c.l2_bytes_per_s, "B/s")
        )
    };
    vec![
        ("GPU", Some(device.info.summary())),
        ("its memory", ceilings.map(memory)),
        ("its arithmetic", ceilings.map(rates)),
    ]
}

/// How the run went: launches, time, and how busy the machine was.
fn conduct(report: &Report) -> String {
    let seconds = &report.seconds;
    let busy = report.contaminated_share.map(|share| {
        format!(
            "; {} of the blocks were measured while the machine was busy",
            units::percent(share)
        )
    });
    let inside = seconds
        .inside_share
        .map(|share| format!(", {} of it inside kernels", units::percent(share)));
    let rate = error_rate(&report.plan);
    let text = format!(
        "{} launches; checked for {}, measured for {}{}{}. Seed {}. Error rate: {rate}. Differences \
         within ±{} count as equivalent.",
        report.launches,
        units::seconds(seconds.checking),
        units::seconds(seconds.measuring),
        inside.unwrap_or_default(),
        busy.unwrap_or_default(),
        report.seed,
        units::percent(report.plan.margin)
    );
    format!(r#"<p class="read">{}</p>"#, escape(&text))
}
