//! `--partition slice:1/4`: a share of the kernels, for several machines.

use std::fmt;
use std::str::FromStr;

use crate::hash::fnv64;

/// One of several shares. A kernel is never split: its ratios and crossovers must come from one machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partition {
    by: By,
    share: u64,
    of: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// Every n-th kernel.
    Slice,
    /// By the kernel's path, so that adding a kernel moves no other.
    Hash,
}

impl Partition {
    /// Which of all shares it is, from 1 on.
    pub fn share(self) -> u64 {
        self.share
    }

    /// All shares that it is one of.
    pub fn all(self) -> impl Iterator<Item = Partition> {
        (1..=self.of).map(move |share| Partition { share, ..self })
    }

    /// Whether this share holds the kernel at `index` of the registry.
    pub fn contains(self, index: usize, path: &str) -> bool {
        let number = match self.by {
            By::Slice => index as u64,
            By::Hash => fnv64(path.as_bytes()),
        };
        number % self.of == self.share - 1
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            By::Slice => "slice",
            By::Hash => "hash",
        };
        write!(f, "{by}:{}/{}", self.share, self.of)
    }
}

impl FromStr for Partition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (by, numbers) = text.split_once(':')?;
            let by = match by {
                "slice" => By::Slice,
                "hash" => By::Hash,
                _ => return None,
            };
            let (share, of) = numbers.split_once('/')?;
            let partition = Partition { by, share: share.parse().ok()?, of: of.parse().ok()? };
            (1..=partition.of).contains(&partition.share).then_some(partition)
        };
        parse().ok_or_else(|| {
            format!("`{text}` is not a partition; write slice:M/N or hash:M/N with 1 <= M <= N, for example slice:1/4")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::SplitMix;

    #[test]
    fn shares_are_disjoint_and_cover_everything() {
        for by in ["slice", "hash"] {
            let shares: Vec<Partition> =
                (1..=3).map(|m| format!("{by}:{m}/3").parse().expect("valid")).collect();
            for index in 0..50 {
                let path = format!("crate::kernel{index}");
                let holders = shares.iter().filter(|s| s.contains(index, &path)).count();
                assert_eq!(holders, 1, "{by} {index}");
            }
        }
    }

    #[test]
    fn a_share_is_read_as_it_is_shown() {
        let mut random = SplitMix(1);
        for _ in 0..1000 {
            let of = 1 + random.below(u64::MAX);
            let share = 1 + random.below(of);
            let by = if random.below(2) == 0 { By::Slice } else { By::Hash };
            let partition = Partition { by, share, of };
            assert_eq!(partition.to_string().parse(), Ok(partition), "{partition}");
            partition.contains(7, "crate::kernel");
        }
    }

    #[test]
    fn impossible_shares_are_refused() {
        for text in ["slice:0/4", "slice:5/4", "slice:1/0", "4/4", "slice:1", "part:1/2", ""] {
            assert!(text.parse::<Partition>().is_err(), "{text}");
        }
    }
}
