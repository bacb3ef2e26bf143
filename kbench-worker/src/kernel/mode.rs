//! In which state a call finds caches and data.

use serde::{Deserialize, Serialize};

use super::Backend;
use crate::value::CAN_EVICT;

/// How calls of a row are timed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// On a processor, caches as the last call left them.
    #[default]
    Warm,
    /// On a device, calls back to back, caches as the last one left them.
    Hot,
    /// Nothing of the data in the caches: on a device in the second-level one, on a processor in any.
    Cold,
    /// On a device, many calls in one CUDA graph.
    Graph,
    /// On a device, from data on the host to results on the host.
    EndToEnd,
}

impl Mode {
    /// Those of a device, the one that its variants are first judged by in front.
    pub const OF_DEVICE: [Mode; 4] = [Mode::Hot, Mode::Cold, Mode::Graph, Mode::EndToEnd];

    /// The name in reports and in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Warm => "warm",
            Mode::Hot => "hot",
            Mode::Cold => "cold",
            Mode::Graph => "graph",
            Mode::EndToEnd => "end-to-end",
        }
    }

    /// Those in which a variant of a backend is measured, when some were chosen for devices. On a processor it is one: cold
    /// when nothing else was chosen, so that all rows of a comparison find their data alike, and warm where the
    /// caches of a processor cannot be emptied.
    pub fn of(backend: Backend, of_device: &[Mode]) -> Vec<Mode> {
        match backend {
            Backend::Serial | Backend::Parallel if of_device == [Mode::Cold] && CAN_EVICT => {
                vec![Mode::Cold]
            }
            Backend::Serial | Backend::Parallel => vec![Mode::Warm],
            Backend::Cuda => of_device.to_vec(),
        }
    }
}
