//! Do three judges agree about times on a device? Puts kbench's beside those of `ncu` and of plain CUDA C++.
//!
//! `device_times --record FOLDER` reads what `campaign/gpu/yardstick.sh FOLDER SUBJECT` has left there, and prints one line of
//! CSV for each kernel, size and mode; `device_times --table FILE` prints the table of docs/gpu.md from such lines, how far
//! kbench is from the others at most, and how far processes are from each other.

#![forbid(unsafe_code)]

mod agreement;
mod record;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = match words.as_slice() {
        ["--record", folder] => record::to_csv(&record::gather(Path::new(folder))?),
        ["--table", file] => {
            let times = record::read(Path::new(file))?;
            let (table, departures) = (agreement::table(&times), agreement::departures(&times));
            format!("{table}\n{departures}{}", agreement::spreads(&times))
        }
        _ => return Err("usage: device_times --record FOLDER | --table FILE".to_owned()),
    };
    let written = std::io::stdout().lock().write_all(text.as_bytes());
    written.map_err(|error| error.to_string())
}
