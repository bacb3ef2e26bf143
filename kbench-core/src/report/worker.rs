//! What is to be known of foreign workers.

use serde::{Deserialize, Serialize};

use crate::foreign::Announcement;

/// A foreign worker of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// What it is called.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What it is made of, in its own words.
    pub about: Option<String>,
    /// How many variants it announced.
    pub variants: usize,
    /// Why it has none.
    pub unavailable: Option<String>,
}

impl WorkerReport {
    /// What an announcement says.
    pub(crate) fn of(announcement: &Announcement) -> Self {
        let Announcement { program, about, variants, unavailable, .. } = announcement;
        WorkerReport {
            name: program.name.clone(),
            command: program.command.clone(),
            about: about.clone(),
            variants: variants.len(),
            unavailable: unavailable.clone(),
        }
    }

    /// What is said of one that was there.
    pub(crate) fn line(&self) -> Option<String> {
        self.summary().map(|summary| format!("worker {summary}"))
    }

    /// Its name, how many variants it has, and what it is made of, if it was there.
    pub(crate) fn summary(&self) -> Option<String> {
        let WorkerReport { name, about, variants, unavailable, .. } = self;
        let about = about.as_ref().map_or_else(String::new, |about| format!(" · {about}"));
        let plural = if *variants == 1 { "" } else { "s" };
        unavailable.is_none().then(|| format!("{name} · {variants} variant{plural}{about}"))
    }

    /// What is said of one that could not be had.
    pub(crate) fn warning(&self) -> Option<String> {
        let why = self.unavailable.as_ref()?;
        Some(format!("a worker is left out, and with it its variants: {why}"))
    }
}
