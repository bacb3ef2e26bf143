//! What makes figures doubtful, in plain words, and what to do about it.

use super::{Environment, Throttling};

/// With fewer cores, how a parallel variant scales can hardly be seen.
const ENOUGH_CORES: usize = 4;
/// Processors that others keep busy, from which on a machine is called busy.
const BUSY_PROCESSORS: f64 = 0.5;
/// Share of disturbed blocks from which on the whole run is called one of a loaded machine.
const LOADED_SHARE: f64 = 0.30;
/// Share of time taken by the hypervisor that shows in figures.
const STEAL_SHARE: f64 = 0.01;

/// What a run itself saw of how it went; what it does not know gives no warning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conduct {
    /// Some measured code was compiled with debug assertions.
    pub debug_assertions: bool,
    /// Load average before measuring began. It remembers a minute, so it may be what built the program; it counts only
    /// where `others` is unknown.
    pub load_before: Option<f64>,
    /// Processors that others kept busy while measuring ([`Usage::others`](super::Usage::others)).
    pub others: Option<f64>,
    /// Share of time that the hypervisor took while measuring ([`Usage::steal_share`](super::Usage::steal_share)).
    pub steal_share: Option<f64>,
    /// Share of blocks during which the sentinels said that the machine was busy.
    pub contaminated_share: Option<f64>,
    /// How often the processors were held back while measuring.
    pub throttling: Throttling,
}

impl Environment {
    /// What makes measurements by this build on this machine doubtful, the worst first.
    pub fn warnings(&self, conduct: &Conduct) -> Vec<String> {
        let doubts = [
            self.build_doubt(conduct),
            loaded(conduct),
            busy(conduct),
            overheated(conduct),
            stolen(conduct),
            self.quota_doubt(conduct),
            self.cores_doubt(),
            self.frequency_doubt(),
        ];
        doubts.into_iter().flatten().collect()
    }

    fn build_doubt(&self, conduct: &Conduct) -> Option<String> {
        if matches!(self.opt_level.as_str(), "0" | "1") {
            Some(format!(
                "debug build: compiled with opt-level {}, so these times say nothing about optimised code; \
                 use `cargo bench`, `--release`, or set `opt-level = 3` in the profile",
                self.opt_level
            ))
        } else if conduct.debug_assertions {
            Some(
                "debug assertions are on in the measured code: it checks for overflow, and may not be optimised at all; \
                 use `cargo bench`, `--release`, or set `debug-assertions = false` in the profile"
                    .to_owned(),
            )
        } else {
            None
        }
    }

    /// `cores` already respects the quota, so it is compared with what the process sees.
    fn quota_doubt(&self, conduct: &Conduct) -> Option<String> {
        let processors = self.processors.unwrap_or(self.cores);
        let quota = self.quota.filter(|quota| *quota < processors as f64)?;
        let stopped = match conduct.throttling.quota {
            Some(periods) if periods > 0 => {
                format!("was throttled in {periods} periods while measuring")
            }
            _ => "is stopped whenever its threads use more".to_owned(),
        };
        Some(format!(
            "quota: the control group may use the time of {} of {processors} cores, and {stopped}; raise the limit, or \
             measure with no more than `--threads {}`",
            (quota * 100.0).round() / 100.0,
            quota.floor().max(1.0)
        ))
    }

    fn cores_doubt(&self) -> Option<String> {
        match self.cores {
            1 => Some("one core: parallel variants cannot be faster here".to_owned()),
            few if few < ENOUGH_CORES => Some(format!(
                "few cores: {few} say little about how parallel variants scale; measure that on a larger machine"
            )),
            _ => None,
        }
    }

    fn frequency_doubt(&self) -> Option<String> {
        let governor = self.governor.as_deref().filter(|governor| *governor != "performance");
        let governor = governor.map(|governor| format!("governor `{governor}`"));
        let turbo = self.turbo.filter(|on| *on).map(|_| "turbo".to_owned());
        let causes: Vec<String> = [governor, turbo].into_iter().flatten().collect();
        (!causes.is_empty()).then(|| {
            format!(
                "frequency scaling ({}): times depend on temperature and load; ratios are safe, for what is compared runs \
                 side by side; for steady times set the governor to `performance` and turn turbo off",
                causes.join(", ")
            )
        })
    }
}

fn loaded(conduct: &Conduct) -> Option<String> {
    let share = conduct.contaminated_share.filter(|share| *share > LOADED_SHARE)?;
    Some(format!(
        "loaded machine: something else slowed it down during {:.0} % of the measurements; stop other work and run again",
        100.0 * share
    ))
}

fn busy(conduct: &Conduct) -> Option<String> {
    let much = |processors: &f64| *processors > BUSY_PROCESSORS;
    match conduct.others {
        Some(others) => Some(others).filter(much).map(|others| {
            format!(
                "busy machine: other processes used {others:.1} cores on average while measuring; stop them and run again"
            )
        }),
        None => conduct.load_before.filter(much).map(|load| {
            format!(
                "busy machine: the load average was {load:.1} before measuring began; stop other work and run again"
            )
        }),
    }
}

fn overheated(conduct: &Conduct) -> Option<String> {
    let times = conduct.throttling.heat.filter(|times| *times > 0)?;
    Some(format!(
        "throttled: cores were too hot and slowed down {times} times while measuring; cool the machine, or give it pauses"
    ))
}

fn stolen(conduct: &Conduct) -> Option<String> {
    let share = conduct.steal_share.filter(|share| *share > STEAL_SHARE)?;
    Some(format!(
        "stolen time: the hypervisor gave {:.1} % of the processors' time to other machines; run again, or on a host of \
         your own",
        100.0 * share
    ))
}

#[cfg(test)]
mod tests {
    use super::super::root::Fake;
    use super::*;

    /// Eight cores, nothing that varies, an optimised build.
    fn fine() -> Environment {
        Environment {
            processors: Some(8),
            governor: Some("performance".to_owned()),
            turbo: Some(false),
            quota: None,
            opt_level: "3".into(),
            ..Environment::read_below(&Fake::new(&[]).root(), None, 8)
        }
    }

    fn quiet() -> Conduct {
        Conduct {
            debug_assertions: false,
            load_before: Some(0.5),
            others: Some(0.5),
            steal_share: Some(0.01),
            contaminated_share: Some(0.30),
            throttling: Throttling { heat: Some(0), quota: Some(0) },
        }
    }

    /// The first words of each warning.
    fn kinds(environment: &Environment, conduct: &Conduct) -> Vec<String> {
        let warnings = environment.warnings(conduct);
        warnings.iter().map(|text| text.split([':', '(']).next().unwrap().trim().into()).collect()
    }

    #[test]
    fn a_fine_machine_and_one_that_tells_nothing_have_no_warning() {
        assert_eq!(fine().warnings(&quiet()), [""; 0]);
        let silent = Environment { processors: None, governor: None, turbo: None, ..fine() };
        assert_eq!(silent.warnings(&Conduct::default()), [""; 0]);
    }

    #[test]
    fn builds_that_are_not_optimised_are_named_once() {
        let asserting = Conduct { debug_assertions: true, ..quiet() };
        let assertions = "debug assertions are on in the measured code";
        for (level, conduct, expected) in [
            ("0", quiet(), vec!["debug build"]),
            ("1", asserting, vec!["debug build"]),
            ("2", quiet(), vec![]),
            ("s", quiet(), vec![]),
            ("3", asserting, vec![assertions]),
        ] {
            let environment = Environment { opt_level: level.into(), ..fine() };
            assert_eq!(kinds(&environment, &conduct), expected, "opt-level {level}");
        }
    }

    #[test]
    fn few_cores_are_said_in_one_way() {
        for (cores, expected) in [
            (1, vec!["one core"]),
            (2, vec!["few cores"]),
            (3, vec!["few cores"]),
            (4, vec![]),
            (256, vec![]),
        ] {
            assert_eq!(kinds(&Environment { cores, ..fine() }, &quiet()), expected, "{cores}");
        }
    }

    #[test]
    fn a_quota_counts_when_it_is_below_what_the_process_sees() {
        let with = |quota, processors| {
            let environment = Environment { quota: Some(quota), processors, ..fine() };
            environment.warnings(&quiet())
        };
        assert_eq!([with(8.0, Some(8)), with(9.0, None)], [[""; 0]; 2]);
        assert!(with(7.99, None)[0].starts_with("quota: "));
        let text = &with(2.5, Some(8))[0];
        assert!(text.contains("2.5 of 8 cores") && text.contains("`--threads 2`"), "{text}");
        assert!(text.contains("is stopped whenever"), "{text}");
        assert!(with(0.25, Some(8))[0].contains("`--threads 1`"));
        let stopped = Throttling { quota: Some(12), heat: None };
        let environment = Environment { quota: Some(2.0), ..fine() };
        let text = &environment.warnings(&Conduct { throttling: stopped, ..quiet() })[0];
        assert!(text.contains("was throttled in 12 periods"), "{text}");
    }

    #[test]
    fn heat_counts_when_it_slowed_something_down() {
        let throttling = Throttling { heat: Some(3), quota: None };
        let text = &fine().warnings(&Conduct { throttling, ..quiet() })[0];
        assert!(text.starts_with("throttled: ") && text.contains("3 times"), "{text}");
    }

    #[test]
    fn what_moves_the_frequency_is_named() {
        let with = |governor: &str, turbo| {
            let environment = Environment { governor: Some(governor.to_owned()), turbo, ..fine() };
            environment.warnings(&quiet()).join("\n")
        };
        let start = |text: &str| text.split(':').next().unwrap().to_owned();
        assert_eq!(start(&with("powersave", None)), "frequency scaling (governor `powersave`)");
        assert_eq!(start(&with("performance", Some(true))), "frequency scaling (turbo)");
        let both = with("schedutil", Some(true));
        assert_eq!(start(&both), "frequency scaling (governor `schedutil`, turbo)");
        assert!(both.contains("temperature") && both.contains("ratios are safe"));
        assert_eq!(with("performance", None), "");
    }

    #[test]
    fn others_work_is_told_by_what_was_seen_while_measuring() {
        let with = |others, load_before| {
            let conduct = Conduct { others, load_before, ..quiet() };
            fine().warnings(&conduct).join("\n")
        };
        let seen = with(Some(1.337), Some(0.1));
        assert!(seen.starts_with("busy machine: other processes used 1.3 cores"), "{seen}");
        let feared = with(None, Some(2.26));
        assert!(feared.starts_with("busy machine: the load average was 2.3"), "{feared}");
        // What built the program is still in the load average, but does not disturb any more.
        assert_eq!(with(Some(0.1), Some(2.3)), "");
        assert_eq!([with(None, Some(0.5)), with(None, None)], [""; 2]);
    }

    #[test]
    fn stolen_time_and_a_loaded_machine_are_told_above_their_limits() {
        let stolen = Conduct { steal_share: Some(0.021), ..quiet() };
        assert!(fine().warnings(&stolen)[0].contains("stolen time: the hypervisor gave 2.1 %"));
        let loaded = Conduct { contaminated_share: Some(0.31), ..quiet() };
        assert!(fine().warnings(&loaded)[0].contains("loaded machine: something else"));
        assert!(fine().warnings(&loaded)[0].contains("31 %"));
        let unknown = Conduct { steal_share: Some(f64::NAN), ..quiet() };
        assert_eq!(fine().warnings(&unknown), [""; 0]);
    }

    #[test]
    fn the_worst_comes_first() {
        let environment = Environment {
            opt_level: "0".into(),
            cores: 2,
            quota: Some(2.0),
            turbo: Some(true),
            ..fine()
        };
        let conduct = Conduct {
            others: Some(1.0),
            steal_share: Some(0.5),
            contaminated_share: Some(0.5),
            ..quiet()
        };
        let expected = [
            "debug build",
            "loaded machine",
            "busy machine",
            "stolen time",
            "quota",
            "few cores",
            "frequency scaling",
        ];
        assert_eq!(kinds(&environment, &conduct), expected);
    }
}
