//! Which rows a command line selects.

use std::env;
use std::str::FromStr;

use super::arguments::Arguments;
use super::values::one_of;
use crate::kernel::Backend;
use crate::plan::{AxisOverride, Ignored, Partition, Selection, SizeFilter};

/// What flags and filters select.
pub(super) fn selection(arguments: &Arguments) -> Result<Selection, String> {
    let ignored = match (arguments.is_on("ignored"), arguments.is_on("include-ignored")) {
        (_, true) => Ignored::Include,
        (true, false) => Ignored::Only,
        (false, false) => Ignored::Exclude,
    };
    let backends = Backend::ALL.map(|backend| (backend.name(), backend));
    let backends = arguments.each_of_list("backend", |name| one_of("backend", backends, name))?;
    Ok(Selection {
        filters: arguments.filters.clone(),
        skip: arguments.all("skip").to_vec(),
        exact: arguments.is_on("exact"),
        ignored,
        kernels: arguments.list("kernel"),
        variants: arguments.list("variant"),
        backends,
        types: arguments.list("type"),
        sizes: arguments.each("size", size_filters)?.into_iter().flatten().collect(),
        axes: arguments.each("axis", AxisOverride::from_str)?,
        partition: arguments
            .last("partition", |text| partition(text, |name| env::var(name).ok()))?,
        base: arguments.all("base").last().cloned(),
        along: arguments.all("along").last().cloned(),
    })
}

/// `slice:1/4`, or `slice:auto` for the share that a scheduler has for this job.
fn partition(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Partition, String> {
    let Some(by) = text.strip_suffix(":auto") else { return text.parse() };
    let number = |name: &str| variable(name).and_then(|value| value.trim().parse::<u64>().ok());
    let slurm = || {
        let first = number("SLURM_ARRAY_TASK_MIN").unwrap_or(0);
        let step = number("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
        let share = (number("SLURM_ARRAY_TASK_ID")?.checked_sub(first)? / step).checked_add(1)?;
        Some((share, number("SLURM_ARRAY_TASK_COUNT")?))
    };
    let gitlab = || Some((number("CI_NODE_INDEX")?, number("CI_NODE_TOTAL")?));
    match slurm().or_else(gitlab) {
        Some((share, of)) => format!("{by}:{share}/{of}").parse(),
        None => Err(format!(
            "`{text}` asks for the share of a job, but neither SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT nor \
             CI_NODE_INDEX and CI_NODE_TOTAL are set; write for example {by}:1/4"
        )),
    }
}

/// Labels may be a list; a condition stands alone.
fn size_filters(text: &str) -> Result<Vec<SizeFilter>, String> {
    if text.contains(['<', '>', '=']) {
        return Ok(vec![text.parse()?]);
    }
    text.split(',').map(SizeFilter::from_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_says_which_share_a_job_has() {
        let with = |variables: &[(&str, &str)], text: &str| {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            partition(text, variable).map(|partition| partition.to_string())
        };
        let slurm = [
            ("SLURM_ARRAY_TASK_ID", "7"),
            ("SLURM_ARRAY_TASK_MIN", "5"),
            ("SLURM_ARRAY_TASK_COUNT", "4"),
        ];
        assert_eq!(with(&slurm, "slice:auto").as_deref(), Ok("slice:3/4"));
        let spread = [slurm[0], slurm[1], slurm[2], ("SLURM_ARRAY_TASK_STEP", "2")];
        assert_eq!(with(&spread, "slice:auto").as_deref(), Ok("slice:2/4"));
        let gitlab = [("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "3")];
        assert_eq!(with(&gitlab, "hash:auto").as_deref(), Ok("hash:2/3"));
        assert!(with(&[], "slice:auto").is_err_and(|error| error.contains("write for example")));
        assert_eq!(with(&[], "slice:1/4").as_deref(), Ok("slice:1/4"));
    }
}
