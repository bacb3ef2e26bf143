//! What holds the clocks of a GPU back.
//!
//! It stands apart from the reader of the driver's library, because documents with these reasons are also read where there
//! is no driver.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why the clocks of a GPU are not higher: a set of reasons, as NVML numbers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThrottleReasons(u64);

const IDLE: u64 = 0x1;
const APPLICATION_CLOCKS: u64 = 0x2;
const POWER_CAP: u64 = 0x4;
const HARDWARE_SLOWDOWN: u64 = 0x8;
const SYNC_BOOST: u64 = 0x10;
const SOFTWARE_THERMAL: u64 = 0x20;
const HARDWARE_THERMAL: u64 = 0x40;
const POWER_BRAKE: u64 = 0x80;
const DISPLAY_CLOCKS: u64 = 0x100;

/// In words, the worst first.
const WORDS: [(u64, &str); 9] = [
    (HARDWARE_THERMAL, "thermal slowdown of the hardware"),
    (POWER_BRAKE, "power brake"),
    (HARDWARE_SLOWDOWN, "slowdown of the hardware"),
    (SOFTWARE_THERMAL, "thermal slowdown by the driver"),
    (POWER_CAP, "power cap"),
    (SYNC_BOOST, "clocks of a group of GPUs"),
    (APPLICATION_CLOCKS, "clocks that were set"),
    (DISPLAY_CLOCKS, "clocks of the display"),
    (IDLE, "idle"),
];

impl ThrottleReasons {
    /// The reasons with this number.
    pub const fn from_bits(bits: u64) -> Self {
        ThrottleReasons(bits)
    }

    /// The number of these reasons.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Nothing runs.
    pub const fn is_idle(self) -> bool {
        self.has(IDLE)
    }

    /// Someone set the clocks (`nvidia-smi --lock-gpu-clocks`, `--applications-clocks`).
    pub const fn has_application_clocks(self) -> bool {
        self.has(APPLICATION_CLOCKS)
    }

    /// The board would draw more than it may. Usual under heavy load.
    pub const fn is_power_capped(self) -> bool {
        self.has(POWER_CAP)
    }

    /// The hardware runs at half its clocks or less, for its heat, a power brake, or a peak of power.
    pub const fn is_hardware_slowdown(self) -> bool {
        self.has(HARDWARE_SLOWDOWN)
    }

    /// It goes with the slowest of its group.
    pub const fn is_sync_boost(self) -> bool {
        self.has(SYNC_BOOST)
    }

    /// The driver lowers the clocks, because chip or memory are too hot.
    pub const fn is_software_thermal(self) -> bool {
        self.has(SOFTWARE_THERMAL)
    }

    /// The hardware runs at half its clocks or less, because it is too hot.
    pub const fn is_hardware_thermal(self) -> bool {
        self.has(HARDWARE_THERMAL)
    }

    /// The hardware runs at half its clocks or less, because the power supply asks for it.
    pub const fn is_power_brake(self) -> bool {
        self.has(POWER_BRAKE)
    }

    /// A display sets the clocks.
    pub const fn has_display_clocks(self) -> bool {
        self.has(DISPLAY_CLOCKS)
    }

    /// Whether times taken meanwhile say more about the machine's state than about the code: it is too hot, or braked.
    ///
    /// A power cap is not among them: it is how a GPU runs under full load.
    pub const fn harms(self) -> bool {
        self.has(HARDWARE_SLOWDOWN | SOFTWARE_THERMAL | HARDWARE_THERMAL | POWER_BRAKE)
    }

    /// Those of both: what happened at any of several moments.
    pub const fn union(self, other: Self) -> Self {
        ThrottleReasons(self.0 | other.0)
    }

    const fn has(self, any_of: u64) -> bool {
        self.0 & any_of != 0
    }
}

impl fmt::Display for ThrottleReasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = WORDS.iter().filter(|(bit, _)| self.has(*bit));
        let mut words: Vec<String> = known.map(|(_, words)| (*words).to_owned()).collect();
        let unknown = WORDS.iter().fold(self.0, |rest, (bit, _)| rest & !bit);
        if unknown != 0 {
            words.push(format!("unknown reason {unknown:#x}"));
        }
        f.write_str(&if words.is_empty() { "none".to_owned() } else { words.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_in_words_the_worst_first() {
        let words = |bits| ThrottleReasons::from_bits(bits).to_string();
        assert_eq!(words(0x44), "thermal slowdown of the hardware, power cap");
        assert_eq!([words(0), words(0x1)], ["none", "idle"]);
        assert_eq!(words(0x402), "clocks that were set, unknown reason 0x400");
    }

    #[test]
    fn heat_and_brakes_harm_and_a_power_cap_does_not() {
        let harmful = [0x8, 0x20, 0x40, 0x80];
        for bit in (0..64).map(|shift| 1u64 << shift) {
            assert_eq!(ThrottleReasons::from_bits(bit).harms(), harmful.contains(&bit), "{bit:#x}");
        }
    }

    #[test]
    fn every_reason_has_its_question() {
        type Question = fn(ThrottleReasons) -> bool;
        let questions: [(u64, Question); 9] = [
            (0x1, ThrottleReasons::is_idle),
            (0x2, ThrottleReasons::has_application_clocks),
            (0x4, ThrottleReasons::is_power_capped),
            (0x8, ThrottleReasons::is_hardware_slowdown),
            (0x10, ThrottleReasons::is_sync_boost),
            (0x20, ThrottleReasons::is_software_thermal),
            (0x40, ThrottleReasons::is_hardware_thermal),
            (0x80, ThrottleReasons::is_power_brake),
            (0x100, ThrottleReasons::has_display_clocks),
        ];
        for (bit, question) in questions {
            assert!(question(ThrottleReasons::from_bits(bit)), "{bit:#x}");
            assert!(!question(ThrottleReasons::from_bits(!bit)), "{bit:#x}");
        }
    }

    #[test]
    fn reasons_are_a_number_in_documents() {
        let reasons = ThrottleReasons::from_bits(0x4).union(ThrottleReasons::from_bits(0x40));
        assert_eq!(serde_json::to_string(&reasons).expect("JSON"), "68");
        assert_eq!(serde_json::from_str::<ThrottleReasons>("68").expect("reasons"), reasons);
    }
}
