//! Do three judges agree about times on a device? Puts kbench's beside those of `ncu` and of plain CUDA C++.
//!
//! `device_times --record FOLDER` reads what `campaign/gpu/yardstick.sh FOLDER SUITE` has left there, and prints one line of CSV
//! for each kernel, size and mode; `device_times --table FILE` prints the table of docs/gpu.md from such lines, and how far
//! kbench is from the others at most.

#![forbid(unsafe_code)]

mod agreement;
mod record;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--record", folder] => {
            record::gather(Path::new(folder)).map(|times| record::to_csv(&times))
        }
        ["--table", file] => record::read(Path::new(file)).map(|times| {
            format!("{}\n{}", agreement::table(&times), agreement::departures(&times))
        }),
        _ => Err("usage: device_times --record FOLDER | --table FILE".to_owned()),
    };
    match outcome {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
