//! Times of one kernel at one size in one mode, by all who took them.

use std::fs;
use std::path::Path;

use serde_json::Value;

const HEADER: &str =
    "kernel,size,mode,kbench_us,kbench_calls,cpp_us,cpp_calls,cpp_empty_pair_us,ncu_us";

/// Microseconds of one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Times {
    /// The entry point of the device code.
    pub(crate) kernel: String,
    /// The size as kbench writes it: `rows=1,dim=1024`.
    pub(crate) size: String,
    /// `cold`, `hot` or `graph`.
    pub(crate) mode: String,
    pub(crate) kbench_us: Option<f64>,
    /// Calls between two events.
    pub(crate) kbench_calls: Option<u64>,
    /// Plain CUDA C++ with events; those around a single call are part of the time.
    pub(crate) cpp_us: Option<f64>,
    pub(crate) cpp_calls: Option<u64>,
    /// Events around nothing, in the same program.
    pub(crate) cpp_empty_pair_us: Option<f64>,
    /// The profiler, which knows cold calls only.
    pub(crate) ncu_us: Option<f64>,
}

/// What the program in C++, the profiler and kbench left in a folder.
pub(crate) fn gather(folder: &Path) -> Result<Vec<Times>, String> {
    let mut times: Vec<Times> =
        text(&folder.join("yardstick.jsonl"))?.lines().map(of_cpp).collect::<Result<_, _>>()?;
    times.retain(|known| known.kernel != "empty");
    add_ncu(&mut times, &text(&folder.join("ncu.csv"))?)?;
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "json") {
            let document = text(&path)?;
            let document = serde_json::from_str(&document)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            add_kbench(&mut times, &document);
        }
    }
    Ok(times)
}

/// The lines of a file that [`to_csv`] made.
pub(crate) fn read(path: &Path) -> Result<Vec<Times>, String> {
    from_csv(&text(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn to_csv(times: &[Times]) -> String {
    let mut csv = format!("{HEADER}\n");
    for known in times {
        let us = |value: Option<f64>| value.map_or_else(String::new, |us| format!("{us:.4}"));
        let calls = |value: Option<u64>| value.map_or_else(String::new, |n| n.to_string());
        let fields = [
            known.kernel.clone(),
            format!("\"{}\"", known.size),
            known.mode.clone(),
            us(known.kbench_us),
            calls(known.kbench_calls),
            us(known.cpp_us),
            calls(known.cpp_calls),
            us(known.cpp_empty_pair_us),
            us(known.ncu_us),
        ];
        csv += &(fields.join(",") + "\n");
    }
    csv
}

fn from_csv(csv: &str) -> Result<Vec<Times>, String> {
    let mut lines = csv.lines();
    let header = lines.next().unwrap_or_default();
    if header != HEADER {
        return Err(format!("its first line should be `{HEADER}`"));
    }
    lines.map(|line| of_line(line).ok_or_else(|| format!("not understood: {line}"))).collect()
}

fn of_line(line: &str) -> Option<Times> {
    let fields = fields(line);
    let [kernel, size, mode, numbers @ ..] = fields.as_slice() else { return None };
    let [kbench_us, kbench_calls, cpp_us, cpp_calls, empty_pair, ncu_us] = numbers else {
        return None;
    };
    Some(Times {
        kernel: kernel.clone(),
        size: size.clone(),
        mode: mode.clone(),
        kbench_us: number(kbench_us)?,
        kbench_calls: number(kbench_calls)?,
        cpp_us: number(cpp_us)?,
        cpp_calls: number(cpp_calls)?,
        cpp_empty_pair_us: number(empty_pair)?,
        ncu_us: number(ncu_us)?,
    })
}

/// A number, or nothing; nothing at all when it is neither.
fn number<T: std::str::FromStr>(field: &str) -> Option<Option<T>> {
    if field.is_empty() { Some(None) } else { field.parse().ok().map(Some) }
}

/// The fields of a line, of which some are in quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("there is always one").push(letter),
        }
    }
    fields
}

fn of_cpp(line: &str) -> Result<Times, String> {
    let known: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
    let word = |name: &str| known[name].as_str().unwrap_or_default().to_owned();
    Ok(Times {
        kernel: word("kernel"),
        size: word("size"),
        mode: word("mode"),
        cpp_us: known["microseconds"].as_f64(),
        cpp_calls: known["calls"].as_u64(),
        cpp_empty_pair_us: known["empty_pair_microseconds"].as_f64(),
        ..Times::default()
    })
}

/// Adds the medians of the profiler's launches.
fn add_ncu(times: &mut [Times], csv: &str) -> Result<(), String> {
    for known in times.iter_mut().filter(|known| known.mode == "cold") {
        let mut durations = Vec::new();
        for line in csv.lines().skip(1) {
            let fields = fields(line);
            let [_, kernel, size, _, unit, duration] = fields.as_slice() else {
                return Err(format!("ncu.csv: not understood: {line}"));
            };
            if *kernel == known.kernel && *size == known.size {
                let nanoseconds: f64 =
                    duration.parse().map_err(|_| format!("ncu.csv: no number: {line}"))?;
                if unit != "ns" && unit != "nsecond" {
                    return Err(format!("ncu.csv: durations are expected in ns: {line}"));
                }
                durations.push(nanoseconds / 1e3);
            }
        }
        durations.sort_by(f64::total_cmp);
        known.ncu_us = durations.get(durations.len() / 2).copied();
    }
    Ok(())
}

/// Adds the rows of a run document that launch exactly one of the kernels.
fn add_kbench(times: &mut [Times], document: &Value) {
    let nothing = Vec::new();
    for row in document["rows"].as_array().unwrap_or(&nothing) {
        let [kernel] = row["device_kernels"].as_array().unwrap_or(&nothing).as_slice() else {
            continue;
        };
        for known in times.iter_mut() {
            if kernel["name"] == known.kernel.as_str()
                && row["size"] == known.size.as_str()
                && row["mode"] == known.mode.as_str()
            {
                known.kbench_us = row["time_ns"].as_f64().map(|nanoseconds| nanoseconds / 1e3);
                known.kbench_calls = row["calls"].as_u64();
            }
        }
    }
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPP: &str = r#"{"kernel":"softmax","size":"rows=1,dim=8","mode":"cold","microseconds":4.5,"empty_pair_microseconds":1.28,"calls":1,"samples":200}"#;

    #[test]
    fn three_judges_meet_in_one_line() {
        let mut times = vec![of_cpp(CPP).expect("a line")];
        let ncu = "case,kernel,size,launch,unit,duration\n\
                   3,softmax,\"rows=1,dim=8\",0,ns,3100\n\
                   3,softmax,\"rows=1,dim=8\",1,ns,2900\n\
                   3,softmax,\"rows=1,dim=8\",2,ns,3000\n\
                   4,softmax,\"rows=2,dim=8\",0,ns,9000\n";
        add_ncu(&mut times, ncu).expect("durations");
        let row = |size: &str, time: f64| {
            serde_json::json!({"device_kernels": [{"name": "softmax"}], "size": size, "mode": "cold",
                "time_ns": time, "calls": 8})
        };
        let document =
            serde_json::json!({"rows": [row("rows=1,dim=8", 3050.0), row("rows=4,dim=8", 1.0)]});
        add_kbench(&mut times, &document);
        let csv = to_csv(&times);
        let line = "softmax,\"rows=1,dim=8\",cold,3.0500,8,4.5000,1,1.2800,3.0000";
        assert_eq!(csv.lines().nth(1), Some(line));
        assert_eq!(from_csv(&csv), Ok(times));
    }

    #[test]
    fn what_is_not_understood_is_told() {
        assert!(from_csv("kernel,size\n").is_err_and(|error| error.contains(HEADER)));
        let short = format!("{HEADER}\nsaxpy,n=1,cold\n");
        assert!(from_csv(&short).is_err_and(|error| error.contains("saxpy,n=1,cold")));
        let mut times = vec![of_cpp(CPP).expect("a line")];
        let minutes = "case,kernel,size,launch,unit,duration\n3,softmax,\"rows=1,dim=8\",0,min,3\n";
        assert!(add_ncu(&mut times, minutes).is_err());
    }
}
