//! What a worker of ours and a foreign one say to each other: one JSON object per line.

use std::path::Path;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::AnnouncedVariant;
use crate::kernel::{InPlace, Mode};

/// What a foreign worker is asked for; the last answer to each is any but `about` and `variant`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub(super) enum Ask<'a> {
    /// Be ready, for this device.
    Begin { protocol: u32, ordinal: usize, off: bool },
    /// Say what there is.
    Announce,
    /// Take the device code that calls are timed with.
    Equip { instruments: &'a str },
    /// Look at some data from now on.
    Hold(HeldData<'a>),
    /// Call a variant once.
    Call(Target<'a>),
    /// Time calls of a variant.
    Sample(SampleAsked<'a>),
    /// Write the outputs of the last sample where they belong.
    Fetch(FetchAsked<'a>),
    /// Forget some data.
    Release { data: u64 },
}

impl Ask<'_> {
    /// What it is called.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Ask::Begin { .. } => "begin",
            Ask::Announce => "announce",
            Ask::Equip { .. } => "equip",
            Ask::Hold(_) => "hold",
            Ask::Call(_) => "call",
            Ask::Sample(_) => "sample",
            Ask::Fetch(_) => "fetch",
            Ask::Release { .. } => "release",
        }
    }
}

/// Data of one cell, in a file.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HeldData<'a> {
    /// Its number.
    pub(super) data: u64,
    /// `module::path::kernel`.
    pub(super) kernel: String,
    /// Element type.
    #[serde(rename = "type")]
    pub(super) element: &'a str,
    /// Names and values of the axes.
    pub(super) axes: Vec<(&'a str, usize)>,
    /// Whether outputs are also inputs: `no`, `fresh` (every call needs the initial content) or `reuse`.
    pub(super) in_place: &'static str,
    /// The file.
    pub(super) file: &'a Path,
    /// What is in it, in the order of the kernel's parameters: those that are read, then those that are written.
    pub(super) operands: Vec<HeldOperand<'a>>,
}

/// The word for it.
pub(super) fn in_place(in_place: InPlace) -> &'static str {
    match in_place {
        InPlace::No => "no",
        InPlace::Fresh => "fresh",
        InPlace::Reuse => "reuse",
    }
}

/// One operand in a file.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HeldOperand<'a> {
    pub(super) name: &'a str,
    #[serde(rename = "type")]
    pub(super) element: &'static str,
    /// How many numbers; none for a number by itself.
    pub(super) length: Option<usize>,
    /// Where it begins in the file.
    pub(super) offset: u64,
    pub(super) written: bool,
}

/// A variant and the data that it is called on.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Target<'a> {
    pub(super) data: u64,
    /// The kernel, as it was announced.
    pub(super) of: &'a str,
    pub(super) variant: &'a str,
    pub(super) threads: Option<usize>,
}

/// How many calls are timed, and how.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct SampleAsked<'a> {
    #[serde(flatten)]
    pub(super) target: Target<'a>,
    pub(super) mode: Mode,
    /// Calls under one reading of the clock.
    pub(super) per_batch: u64,
    /// How often.
    pub(super) batches: u64,
    /// Whether outputs are to have the content first that they have in the file.
    pub(super) poisoned: bool,
}

/// What is wanted of the last sample.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct FetchAsked<'a> {
    #[serde(flatten)]
    pub(super) target: Target<'a>,
    /// Whether it is to be told if inputs are not as they were.
    pub(super) inputs: bool,
}

/// What a foreign worker answers.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// What it is made of.
    About { text: String },
    /// One of its variants.
    Variant(AnnouncedVariant),
    /// A call came back.
    Called(CalledOnce),
    /// Calls were timed.
    Sampled(SampledCalls),
    /// What was asked for is done.
    Done(Finish),
    /// It went wrong.
    Failed {
        failure: String,
        /// Whether the worker is of no use any more.
        ends: bool,
    },
    /// It cannot be done here, and that is nobody's fault.
    Declined { reason: String },
}

impl Answer {
    /// Whether nothing follows.
    pub(super) fn is_last(&self) -> bool {
        !matches!(self, Answer::About { .. } | Answer::Variant(_))
    }

    /// What it is called.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Answer::About { .. } => "about",
            Answer::Variant(_) => "variant",
            Answer::Called(_) => "called",
            Answer::Sampled(_) => "sampled",
            Answer::Done(_) => "done",
            Answer::Failed { .. } => "failed",
            Answer::Declined { .. } => "declined",
        }
    }
}

/// What is to be known of something that is done.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Finish {
    /// Whether the process can be forked from now on.
    #[serde(default)]
    pub(super) forks: bool,
    /// Whether the calls of the last sample changed something that they should only read.
    #[serde(default)]
    pub(super) changed_input: bool,
}

/// What one call did besides writing its outputs.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct CalledOnce {
    /// What it returned, in the file.
    #[serde(default)]
    pub(super) returned: Vec<ReturnedPart>,
    /// Whether it changed something that it should only read.
    #[serde(default)]
    pub(super) changed_input: bool,
}

/// A part of what a call returned.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ReturnedPart {
    #[serde(rename = "type")]
    pub(super) element: String,
    /// Where it begins in the file.
    pub(super) offset: u64,
    /// How many bytes it has.
    pub(super) bytes: u64,
}

/// The time of a sample.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct SampledCalls {
    /// Of all calls.
    #[serde(deserialize_with = "time")]
    pub(super) nanoseconds: f64,
    /// Of one call on a device, by the host's clock.
    #[serde(default)]
    pub(super) host: Option<f64>,
    /// Whether launching was over before the calls began.
    #[serde(default)]
    pub(super) gated: bool,
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match f64::deserialize(deserializer)? {
        time if (0.0..1e18).contains(&time) => Ok(time),
        time => Err(D::Error::custom(format!("a time of {time} ns"))),
    }
}
