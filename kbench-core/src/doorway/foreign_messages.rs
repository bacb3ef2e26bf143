//! What foreign workers answer.

use std::time::Duration;

use super::worker_messages::VARIANTS;
use crate::foreign::{Announcement, ForeignProgram, announced};
use crate::plan::{Plan, Selection};
use crate::registry::Registry;
use crate::report::{ListFormat, list, list_kernels};
use crate::visible::is_obeyed;

/// Bytes as lines of a foreign worker: what it announces is put beside the variants of a kernel, and listed.
pub fn foreign_messages(bytes: &[u8]) {
    let program = ForeignProgram::new("script", vec!["script".to_owned()]);
    for variant in announced(bytes) {
        let mut registry = Registry::of(*VARIANTS).expect("two variants");
        let variants = vec![variant];
        let announcement = Announcement {
            program: program.clone(),
            about: None,
            variants,
            unavailable: None,
            server: None,
        };
        match registry.enlist(&[announcement], (0, true), Duration::ZERO) {
            Ok(()) => {
                let plan = Plan::new(&registry, &Selection::default(), &[], &[]).expect("a plan");
                for shown in [list_kernels(&plan), list(&plan, ListFormat::Terse)] {
                    let obeyed = shown.chars().find(|c| is_obeyed(*c) && *c != '\n');
                    assert_eq!(obeyed, None, "a terminal would obey it");
                }
            }
            Err(error) => assert!(error.to_string().contains("`script` announces"), "{error}"),
        }
    }
}
