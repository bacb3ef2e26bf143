//! Times of one kernel at one size in one mode, by all who took them.

use std::fs;
use std::path::Path;

use serde_json::Value;

const HEADER: &str = "kernel,size,mode,kbench_us,kbench_least_us,kbench_most_us,kbench_calls,cpp_us,cpp_least_us,cpp_most_us,cpp_calls,cpp_empty_pair_us,ncu_us";

/// Times of one call, in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Times {
    /// The entry point of the device code.
    pub(crate) kernel: String,
    /// The size as kbench writes it: `rows=1,dim=1024`.
    pub(crate) size: String,
    /// `cold`, `hot` or `graph`.
    pub(crate) mode: String,
    pub(crate) kbench: Option<Taken>,
    /// Plain CUDA C++ with events; those around a single call are part of the time.
    pub(crate) cpp: Option<Taken>,
    /// Events around nothing, in the same program.
    pub(crate) cpp_empty_pair_us: Option<f64>,
    /// The profiler, which knows cold calls only.
    pub(crate) ncu_us: Option<f64>,
}

/// What several processes say of the same call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Taken {
    /// Microseconds over all processes.
    pub(crate) us: f64,
    /// Microseconds of the fastest process.
    pub(crate) least: f64,
    /// Microseconds of the slowest process.
    pub(crate) most: f64,
    /// Calls between two events.
    pub(crate) calls: u64,
}

impl Taken {
    /// The geometric mean of what every process says, which is what kbench takes.
    fn over(processes: &[f64], calls: u64) -> Option<Self> {
        let logarithms = processes.iter().map(|us| us.ln()).sum::<f64>();
        (!processes.is_empty()).then(|| Taken {
            us: (logarithms / processes.len() as f64).exp(),
            least: processes.iter().copied().fold(f64::INFINITY, f64::min),
            most: processes.iter().copied().fold(0.0, f64::max),
            calls,
        })
    }
}

/// What the program in C++, the profiler and kbench left in a folder.
pub(crate) fn gather(folder: &Path) -> Result<Vec<Times>, String> {
    let mut times = of_cpp(&text(&folder.join("yardstick.jsonl"))?)?;
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
    let us = |value: Option<f64>| value.map_or_else(String::new, |us| format!("{us:.4}"));
    let taken = |by: &Option<Taken>| match by {
        Some(Taken { us, least, most, calls }) => format!("{us:.4},{least:.4},{most:.4},{calls}"),
        None => ",,,".to_owned(),
    };
    let mut csv = format!("{HEADER}\n");
    for Times { kernel, size, mode, kbench, cpp, cpp_empty_pair_us, ncu_us } in times {
        let (kbench, cpp) = (taken(kbench), taken(cpp));
        let (pair, ncu) = (us(*cpp_empty_pair_us), us(*ncu_us));
        csv += &format!("{kernel},\"{size}\",{mode},{kbench},{cpp},{pair},{ncu}\n");
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
    let [k_us, k_least, k_most, k_calls, c_us, c_least, c_most, c_calls, pair, ncu] = numbers
    else {
        return None;
    };
    Some(Times {
        kernel: kernel.clone(),
        size: size.clone(),
        mode: mode.clone(),
        kbench: taken([k_us, k_least, k_most, k_calls])?,
        cpp: taken([c_us, c_least, c_most, c_calls])?,
        cpp_empty_pair_us: number(pair)?,
        ncu_us: number(ncu)?,
    })
}

/// Four numbers, or nothing; nothing at all when they are neither.
fn taken([us, least, most, calls]: [&String; 4]) -> Option<Option<Taken>> {
    if [us, least, most, calls].iter().all(|field| field.is_empty()) {
        return Some(None);
    }
    let [us, least, most] = [number(us)??, number(least)??, number(most)??];
    Some(Some(Taken { us, least, most, calls: number(calls)?? }))
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

/// The lines of all processes, of which each has one for the same kernel, size and mode.
fn of_cpp(lines: &str) -> Result<Vec<Times>, String> {
    let mut times: Vec<Times> = Vec::new();
    let mut processes: Vec<Vec<f64>> = Vec::new();
    for line in lines.lines() {
        let not_understood = || format!("yardstick.jsonl: not understood: {line}");
        let known: Value = serde_json::from_str(line).map_err(|_| not_understood())?;
        let [kernel, size, mode] =
            ["kernel", "size", "mode"].map(|name| known[name].as_str().unwrap_or_default());
        let us = known["microseconds"].as_f64().ok_or_else(not_understood)?;
        let same =
            times.iter().position(|t| t.kernel == kernel && t.size == size && t.mode == mode);
        let place = same.unwrap_or_else(|| {
            let [kernel, size, mode] = [kernel, size, mode].map(str::to_owned);
            let cpp_empty_pair_us = known["empty_pair_microseconds"].as_f64();
            times.push(Times { kernel, size, mode, cpp_empty_pair_us, ..Times::default() });
            processes.push(Vec::new());
            times.len() - 1
        });
        processes[place].push(us);
        times[place].cpp = Taken::over(&processes[place], known["calls"].as_u64().unwrap_or(0));
    }
    Ok(times)
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
        known.ncu_us = median(durations);
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
                known.kbench = of_row(row);
            }
        }
    }
}

/// The time of a row, with the medians of its fastest and its slowest process.
fn of_row(row: &Value) -> Option<Taken> {
    let launches = row["samples"].as_array()?.iter().map(|launch| {
        let blocks = launch.as_array().into_iter().flatten();
        let times = blocks.flat_map(|block| block.as_array().into_iter().flatten());
        median(times.filter_map(Value::as_f64).map(|nanoseconds| nanoseconds / 1e3).collect())
    });
    let launches: Vec<f64> = launches.flatten().collect();
    let over = Taken::over(&launches, row["calls"].as_u64()?)?;
    Some(Taken { us: row["time_ns"].as_f64()? / 1e3, ..over })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
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
        let slower = CPP.replace("4.5", "18.0");
        let mut times = of_cpp(&format!("{CPP}\n{slower}\n")).expect("two lines");
        let ncu = "case,kernel,size,launch,unit,duration\n\
                   3,softmax,\"rows=1,dim=8\",0,ns,3100\n\
                   3,softmax,\"rows=1,dim=8\",1,ns,2900\n\
                   3,softmax,\"rows=1,dim=8\",2,ns,3000\n\
                   4,softmax,\"rows=2,dim=8\",0,ns,9000\n";
        add_ncu(&mut times, ncu).expect("durations");
        let row = |size: &str, time: f64| {
            serde_json::json!({"device_kernels": [{"name": "softmax"}], "size": size, "mode": "cold",
                "time_ns": time, "calls": 8, "samples": [[[3000.0, 3010.0], [3020.0]], [[3090.0]]]})
        };
        let document =
            serde_json::json!({"rows": [row("rows=1,dim=8", 3050.0), row("rows=4,dim=8", 1.0)]});
        add_kbench(&mut times, &document);
        let csv = to_csv(&times);
        let line = "softmax,\"rows=1,dim=8\",cold,3.0500,3.0100,3.0900,8,9.0000,4.5000,18.0000,1,1.2800,3.0000";
        assert_eq!(csv.lines().nth(1), Some(line));
        assert_eq!(from_csv(&csv).map(|read| to_csv(&read)), Ok(csv));
    }

    #[test]
    fn what_is_not_understood_is_told() {
        assert!(from_csv("kernel,size\n").is_err_and(|error| error.contains(HEADER)));
        for wrong in ["saxpy,n=1,cold", "saxpy,n=1,cold,1.0,,,,,,,,,", "saxpy,n=1,cold,,,,,,,,,,x"]
        {
            let csv = format!("{HEADER}\n{wrong}\n");
            assert!(from_csv(&csv).is_err_and(|error| error.contains(wrong)), "{wrong}");
        }
        assert!(of_cpp("no json").is_err_and(|error| error.contains("no json")));
        let mut times = of_cpp(CPP).expect("a line");
        let minutes = "case,kernel,size,launch,unit,duration\n3,softmax,\"rows=1,dim=8\",0,min,3\n";
        assert!(add_ncu(&mut times, minutes).is_err());
    }
}
