//! Calls that cannot be made here.

use std::any::Any;
use std::error::Error;

/// The `Err` of a kernel that cannot run on this machine, and that is nobody's fault: its rows are skipped and not failed.
///
/// The text completes "skipped: ...". A kernel that may also fail returns a `Result<_, Box<dyn Error>>`:
///
/// ```
/// # use kbench_worker::value::Declined;
/// fn pages() -> Result<u64, Box<dyn std::error::Error>> {
///     let text = std::fs::read_to_string("/proc/sys/vm/nr_hugepages");
///     let text = text.map_err(|_| Declined("there are no huge pages here".into()))?;
///     Ok(text.trim().parse()?)
/// }
/// # assert!(pages().is_ok() || pages().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Declined(pub String);

impl Declined {
    /// The reason, if an error of whatever type is one of these, in a box or not.
    pub(super) fn reason(error: &dyn Any) -> Option<String> {
        let local =
            |error: &dyn Any| error.downcast_ref::<Box<dyn Error>>()?.downcast_ref().cloned();
        let shared = |error: &dyn Any| {
            error.downcast_ref::<Box<dyn Error + Send + Sync>>()?.downcast_ref().cloned()
        };
        let plain = error.downcast_ref::<Declined>().cloned();
        plain.or_else(|| local(error)).or_else(|| shared(error)).map(|Declined(reason)| reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Operand;

    #[test]
    fn a_result_declines_by_its_type_and_not_by_its_text() {
        let declined = || Declined("no such thing".into());
        let plain: Result<f32, Declined> = Err(declined());
        let boxed: Result<f32, Box<dyn Error>> = Err(declined().into());
        let shared: Result<f32, Box<dyn Error + Send + Sync>> = Err(declined().into());
        for reason in [plain.declined(), boxed.declined(), (1.0f32, shared).declined()] {
            assert_eq!(reason.as_deref(), Some("no such thing"));
        }
        let failed: Result<f32, Box<dyn Error>> = Err("no such thing".into());
        let text: Result<f32, String> = Err("no such thing".into());
        assert_eq!((failed.declined(), text.declined()), (None, None));
        assert_eq!((failed.failure(), text.failure()).0.as_deref(), Some("no such thing"));
        assert_eq!(Ok::<f32, Declined>(1.0).declined(), None);
    }
}
