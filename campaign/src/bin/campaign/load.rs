//! A neighbour that comes and goes: a process that spins in bursts.
//!
//! It is this executable again, with a hidden argument. It ends when its owner does, however that happens: the guard kills
//! it, and when nobody is left to do so, its standard input closes.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use campaign::random::Random;

use crate::CampaignError;

/// The argument that makes this executable a neighbour.
pub(crate) const BURN: &str = "--burn";

/// Mean length of a burst, in seconds.
const MEAN_BURST: f64 = 0.1;

/// Share of the time in bursts.
const SHARE: f64 = 0.3;

/// Mean length of a pause, in seconds.
const MEAN_PAUSE: f64 = MEAN_BURST * (1.0 - SHARE) / SHARE;

/// A running neighbour; it is stopped when this is dropped.
pub(crate) struct Neighbour(Child);

impl Neighbour {
    /// Starts one.
    pub(crate) fn start(seed: u64) -> io::Result<Self> {
        Command::new(std::env::current_exe()?)
            .args([BURN, &seed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map(Neighbour)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Spins in bursts until standard input closes.
pub(crate) fn burn(seed: u64) -> Result<(), CampaignError> {
    let owner = thread::spawn(|| io::stdin().read_to_end(&mut Vec::new()));
    let mut random = Random::new(seed);
    while !owner.is_finished() {
        thread::sleep(Duration::from_secs_f64(random.exponential(MEAN_PAUSE)));
        let burst = Duration::from_secs_f64(random.exponential(MEAN_BURST));
        let start = Instant::now();
        while start.elapsed() < burst {
            std::hint::spin_loop();
        }
    }
    Ok(())
}
