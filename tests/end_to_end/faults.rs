//! Kernels that misbehave: each costs one variant at one size, and the message says what happened, where, and what to do.

use std::collections::BTreeMap;

use serde_json::Value;

use super::support::{self, Finished, checks};

/// Rows by variant and size.
type Rows = BTreeMap<(String, String), Value>;

fn bench(arguments: &[&str]) -> Finished {
    bench_with(arguments, &[])
}

fn bench_with(arguments: &[&str], variables: &[(&str, &str)]) -> Finished {
    let common = ["--format", "json", "--no-search"];
    let mut command = support::bench("faults", &[&common[..], arguments].concat());
    Finished::of(command.envs(variables.iter().copied()))
}

fn rows(run: &Finished) -> Rows {
    let lines = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let rows = lines.filter(|line| line["reason"] == "row");
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    rows.map(|row| ((text(&row, "variant"), text(&row, "size")), row)).collect()
}

fn status<'a>(rows: &'a Rows, variant: &str, size: &str) -> &'a str {
    let row = rows.get(&(variant.to_owned(), size.to_owned()));
    row.and_then(|row| row["status"].as_str()).unwrap_or("there is no such row")
}

/// What must be said of a variant that is called at 5000 elements.
const AT_5000: [(&str, &[&str]); 13] = [
    ("panics", &["panicked at benches/faults.rs:", "the size 5000 is beyond me"]),
    ("aborts", &["ended its process: SIGABRT (signal 6)"]),
    ("exits", &["ended its process: it called `exit(7)`"]),
    (
        "segfaults",
        &["ended its process: SIGSEGV (signal 11), it touched memory that is not its own"],
    ),
    ("overflows_stack", &["ended its process: SIG", "its last words: ", "overflowed its stack"]),
    (
        "panics_in_c",
        &["SIGABRT", "its last words: panicked at benches/faults.rs:", "no way to unwind"],
    ),
    ("hangs", &["did not return within 2", "does it hang, or wait for a thread? (--timeout"]),
    ("spins", &["did not return within 2"]),
    ("deadlocks_pool", &["did not return within 2", "wait for a thread?"]),
    (
        "takes_all_memory",
        &["a process may take", "memory allocation of 70368744177664 bytes failed"],
    ),
    ("overruns", &["ended its process: SIG"]),
    ("is_nan", &["`y`[0] is NaN where"]),
    ("changes_input", &["it changes an input that is not an output"]),
];

#[test]
fn every_fault_costs_one_variant_at_one_size_and_says_what_happened() {
    let sleep = (86_400 + std::process::id()).to_string();
    let mut variants: Vec<&str> = AT_5000.iter().map(|(variant, _)| *variant).collect();
    variants.extend(["twice", "added", "prints", "guesses", "leaves_threads", "leaves_process"]);
    let chosen = variants.join(",");
    let flags = ["--kernel", "twice", "--variant", &chosen, "--timeout", "2s", "--budget", "6s"];
    let run = bench_with(&flags, &[("DOWNSTREAM_SLEEP", &sleep)]);
    run.assert_code(100);
    let rows = rows(&run);
    assert_eq!(rows.len(), 2 * variants.len());
    for (variant, words) in AT_5000 {
        assert_eq!(status(&rows, variant, "n=64"), "ok", "{variant}");
        let status = status(&rows, variant, "n=5000");
        assert!(
            status.starts_with("failed: ") && status.contains("(at n=5000"),
            "{variant}: {status}"
        );
        words.iter().for_each(|part| assert!(status.contains(part), "{variant}: {status}"));
    }
    for size in ["n=64", "n=5000"] {
        for healthy in ["twice", "added", "prints", "leaves_process"] {
            assert_eq!(status(&rows, healthy, size), "ok", "{healthy} at {size}");
        }
        let guesses = status(&rows, "guesses", size);
        assert!(guesses.contains("two calls on the same input differ"), "{guesses}");
        let threads = status(&rows, "leaves_threads", size);
        assert!(
            threads.contains("thread(s) running after") && threads.contains("in a pool"),
            "{threads}"
        );
    }
    run.assert_stderr("kernels may print");
    run.assert_stderr("a process sleeps: true");
    assert_eq!(processes_that_sleep(&sleep), 0, "what a kernel starts ends with its process");
}

/// Processes that were started to sleep for so many seconds.
fn processes_that_sleep(seconds: &str) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let command = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let wanted = format!("sleep\0{seconds}\0").into_bytes();
    processes.filter_map(command).filter(|command| *command == wanted).count()
}

/// What goes wrong long after the check, while somebody else is measured beside it.
#[test]
fn faults_that_come_late_are_found_out_and_cost_one_row() {
    for (variant, words) in [
        ("late_segfault", "ended its process: SIGSEGV"),
        ("late_exit", "ended its process: it called `exit(0)`"),
        ("late_hang", "did not return within"),
        ("leaks", "leaks memory: its calls have taken"),
    ] {
        let chosen = format!("twice,{variant}");
        let flags = ["--variant", &chosen, "--timeout", "2s", "--budget", "6s", "--launches", "3"];
        let run = bench(&[&["--kernel", "twice"], &flags[..]].concat());
        run.assert_code(100);
        let rows = rows(&run);
        let found = status(&rows, variant, "n=5000");
        assert!(found.starts_with("failed: ") && found.contains(words), "{variant}: {found}");
        for (healthy, size) in [("twice", "n=64"), ("twice", "n=5000"), (variant, "n=64")] {
            assert_eq!(status(&rows, healthy, size), "ok", "{healthy} at {size} beside {variant}");
        }
    }
}

#[test]
fn errors_data_that_is_too_large_and_kernels_that_do_nothing_are_told() {
    let flags = ["--kernel", "refuses,too_large,nothing", "--quick", "--budget", "2s"];
    let run = bench(&flags);
    run.assert_code(100);
    let rows = rows(&run);
    let refuses = status(&rows, "refuses", "n=50");
    assert!(refuses.contains("returned an error: 50 is too much"), "{refuses}");
    assert_eq!(status(&rows, "refuses", "n=16"), "ok");
    let too_large = status(&rows, "too_large", "n=17592186044416");
    for part in ["the kernel's `inputs` or reference ended its process", "bytes failed"] {
        assert!(too_large.contains(part), "{too_large}");
    }
    assert_eq!(status(&rows, "too_large", "n=16"), "ok");
    let nothing = &rows[&("nothing".to_owned(), "n=16".to_owned())];
    assert!(nothing["remarks"].to_string().contains("takes no time"), "{nothing}");
}

#[test]
fn checks_survive_the_same_faults() {
    let variants = "twice,aborts,exits,segfaults,hangs";
    let flags = ["--variant", variants, "--timeout", "2s", "--kernel", "twice"];
    let run = Finished::of(&mut checks("faults", &flags));
    run.assert_code(100);
    run.assert_stdout("test faults::twice/twice/f32/n=5000 ... ok");
    run.assert_stdout("test faults::twice/segfaults/f32/n=64 ... ok");
    for variant in ["aborts", "exits", "segfaults", "hangs"] {
        run.assert_stdout(&format!("test faults::twice/{variant}/f32/n=5000 ... FAILED"));
    }
    run.assert_stdout("test result: FAILED. 6 passed; 4 failed; 0 ignored");
}
