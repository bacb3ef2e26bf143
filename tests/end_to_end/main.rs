//! The crate under `tests/downstream`, which is nobody's member, driven as its author would.

mod cargo;
mod crossovers;
mod devices;
mod faults;
mod foreign;
mod interrupts;
mod launches;
mod library;
mod limits;
mod production;
mod results;
mod support;
mod surroundings;
mod tuning;
