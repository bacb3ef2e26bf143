use crate::kernel::Location;

/// Why a selection cannot be turned into a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A named thing does not exist.
    #[error("no {what} is called `{name}`{}", hint(.nearest, .choices))]
    Unknown {
        /// Kernel, variant, type, label or axis.
        what: &'static str,
        /// As typed.
        name: String,
        /// The closest that exists.
        nearest: Option<String>,
        /// Some of those that exist.
        choices: Vec<String>,
    },
    /// `pow2` beyond the machine's word.
    #[error("{location}: `sizes` of {kernel} has 2^{exponent}, which does not fit in a usize")]
    PowerTooLarge {
        /// The kernel.
        kernel: String,
        /// The exponent.
        exponent: u32,
        /// Where the attribute is.
        location: Location,
    },
}

/// Names in an error at most.
const MOST_CHOICES: usize = 40;

fn hint(nearest: &Option<String>, choices: &[String]) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None if choices.is_empty() => String::new(),
        None => {
            let more = choices.len().saturating_sub(MOST_CHOICES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let first = choices.iter().take(MOST_CHOICES);
            let first: Vec<&str> = first.map(String::as_str).collect();
            format!(
                "; there are: {}{more}; --list-kernels and --list-sizes show them",
                first.join(", ")
            )
        }
    }
}
