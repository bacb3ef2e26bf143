//! Foreign workers that are shell scripts: standard input is the channel, in both directions.

use std::io::{PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::*;
use crate::check::Gate;
use crate::kernel::{
    Backend, Caller, Calls, Fault, Foreign, Implementation, Kernel, Mode, Routine, VariantEntry,
};
use crate::registry::Registry;
use crate::registry::fixtures::{Double, base, right, variant_of_double};
use crate::system::descriptors::receive;
use crate::worker::{PROTOCOL, Reply, Request, Worker};

fn program(script: &str) -> ForeignProgram {
    let command = ["sh", "-c", script].map(String::from).to_vec();
    ForeignProgram::new("script", command)
}

fn worker(script: &str) -> &'static ForeignWorker {
    Box::leak(Box::new(ForeignWorker::new(program(script), (0, false), Duration::from_secs(20))))
}

/// Answers every request by what stands for its kind; `copies` doubles what is in the file, as the kernel does.
fn script(answers: &[(&str, &str)]) -> String {
    let answer = |(kind, answer): &(&str, &str)| format!("*'\"{kind}\"'*) {answer} ;;\n");
    let answers: String = answers.iter().map(answer).collect();
    format!(
        "say() {{ printf '%s\\n' \"$1\" >&0; }}\n\
         while read -r line; do case $line in\n{answers}*) say '{{\"reply\":\"done\"}}' ;;\nesac; done"
    )
}

fn routine(script: &str) -> Box<dyn Routine> {
    let worker = worker(script);
    let (of, name, queue) = ("double".into(), "script".into(), None);
    let backend = Backend::Serial;
    let kernel = Double::ENTRY;
    Box::leak(Box::new(ForeignVariant { worker, kernel, of, name, backend, queue })).routine()
}

fn call(script: &str) -> Result<(), Fault> {
    let mut data = Double::ENTRY.definition.data(&[4], 1);
    let caller = Caller::Foreign(Mode::Warm, None);
    routine(script).call(data.as_mut(), &caller).map(|_| ())
}

fn fault(answer: &str) -> (String, bool) {
    match call(&script(&[("call", answer)])).expect_err(answer) {
        Fault::Foreign { text, ends } => (text, ends),
        other => (other.to_string(), false),
    }
}

#[test]
fn a_worker_announces_what_it_implements() {
    let answers = [(
        "announce",
        r#"say '{"reply":"about","text":"sh"}'; say '{"reply":"variant","of":"double","name":"x","backend":"serial"}'; say '{"reply":"done"}'"#,
    )];
    let announced = worker(&script(&answers)).announcement();
    assert_eq!((announced.about.as_deref(), announced.unavailable), (Some("sh"), None));
    assert_eq!(announced.variants.len(), 1);
    assert_eq!(
        (announced.variants[0].of.as_str(), announced.variants[0].types.as_ref()),
        ("double", None)
    );
}

#[test]
fn a_worker_that_cannot_be_had_says_why() {
    let why = |script: &str| worker(script).announcement().unavailable.expect(script);
    let text = why("echo no such library >&2; exit 3");
    assert!(
        text.contains("`script` ended: it called `exit(3)`") && text.contains("no such library"),
        "{text}"
    );
    let text = why(&script(&[("begin", "say '{\"reply\":\"failed\",\"failure\":\"too old\"}'")]));
    assert!(text.contains("failed to begin: too old"), "{text}");
    let text = why(&script(&[("announce", "say hello")]));
    assert!(
        text.contains("answered `hello` to `announce`, which is no answer of the protocol"),
        "{text}"
    );
    let backend = r#"say '{"reply":"variant","of":"double","name":"x","backend":"gpu"}'"#;
    let text = why(&script(&[("announce", backend)]));
    assert!(text.contains("unknown variant `gpu`"), "{text}");
    let program = ForeignProgram::new("gone", vec!["/no/such/program".into()]);
    let gone = ForeignWorker::new(program, (0, false), Duration::from_secs(1));
    let text = gone.announcement().unavailable.expect("there is none");
    assert!(text.contains("cannot be started: `/no/such/program`"), "{text}");
    let slow = ForeignWorker::new(program_that_sleeps(), (0, false), Duration::from_millis(300));
    let text = slow.announcement().unavailable.expect("it does not begin");
    assert!(text.contains("was not ready within") && text.contains("--timeout"), "{text}");
}

/// Answers that never come to an end, whole lines as well as parts of one.
#[test]
fn a_worker_that_never_stops_talking_is_ended() {
    let variant = r#"{"reply":"variant","of":"double","name":"x","backend":"serial"}"#;
    let about = r#"{"reply":"about","text":"x"}"#;
    let why = |answer: &str, patience: Duration| {
        let program = program(&script(&[("announce", answer)]));
        let worker = ForeignWorker::new(program, (0, false), patience);
        let announced = worker.announcement();
        assert!(announced.variants.is_empty());
        announced.unavailable.expect("it does not end")
    };
    let long = Duration::from_secs(600);
    let flood = why(&format!("yes '{variant}' >&0"), long);
    assert!(flood.contains("answered more than 10000 lines"), "{flood}");
    let wide = format!(r#"{{"reply":"about","text":"{}"}}"#, "x".repeat(20_000));
    let flood = why(&format!("yes '{wide}' >&0"), long);
    assert!(flood.contains("or 16 MiB to `announce`"), "{flood}");
    let short = Duration::from_millis(500);
    let slow = why(&format!("while :; do say '{about}'; sleep 0.05; done"), short);
    assert!(slow.contains("was not ready within"), "{slow}");
    let drop_by_drop = why("while :; do printf x >&0; sleep 0.05; done", short);
    assert!(drop_by_drop.contains("was not ready within"), "{drop_by_drop}");
}

#[test]
fn what_only_announces_is_no_answer_to_a_call() {
    for answer in [
        r#"{"reply":"about","text":"x"}"#,
        r#"{"reply":"variant","of":"double","name":"x","backend":"serial"}"#,
    ] {
        let (text, ends) = fault(&format!("yes '{answer}' >&0"));
        assert!(ends && text.contains("to `call`, which is no answer of the protocol"), "{text}");
    }
}

fn program_that_sleeps() -> ForeignProgram {
    program("exec sleep 600")
}

#[test]
fn what_goes_wrong_in_a_call_costs_a_row_or_the_process() {
    let (text, ends) = fault(r#"say '{"reply":"failed","failure":"raised ValueError: no"}'"#);
    assert_eq!((text.as_str(), ends), ("raised ValueError: no", false));
    let (text, ends) = fault(r#"say '{"reply":"failed","failure":"lost","ends":true}'"#);
    assert_eq!((text.as_str(), ends), ("lost", true));
    let (text, ends) = fault("kill -SEGV $$");
    assert!(ends && text.contains("SIGSEGV"), "{text}");
    let (text, ends) = fault("say 'no json'");
    assert!(ends && text.contains("which is no answer of the protocol"), "{text}");
    let (text, ends) = fault(r#"say '{"reply":"done"}'"#);
    assert!(ends && text.contains("answered `done` to `call`"), "{text}");
    let (text, _) =
        fault(r#"say '{"reply":"called","returned":[{"type":"f32","offset":0,"bytes":99999}]}'"#);
    assert!(text.contains("it is not in the file"), "{text}");
    let (text, _) =
        fault(r#"say '{"reply":"called","returned":[{"type":"f99","offset":0,"bytes":4}]}'"#);
    assert!(text.contains("numbers of type `f99`"), "{text}");
    let declined = call(&script(&[("call", r#"say '{"reply":"declined","reason":"too small"}'"#)]));
    assert_eq!(declined, Err(Fault::Declined("too small".into())));
}

#[test]
fn a_time_that_is_none_is_no_answer() {
    for (answer, reason) in [
        (r#"{"reply":"sampled","nanoseconds":-5}"#, "a time of -5 ns"),
        (r#"{"reply":"sampled","nanoseconds":NaN}"#, "which is no answer"),
        (r#"{"reply":"sampled"}"#, "missing field `nanoseconds`"),
        (r#"{"reply":"sampled","nanoseconds":1e15}"#, "says that calls took 1000000.000 s"),
    ] {
        let mut data = Double::ENTRY.definition.data(&[4], 1);
        let caller = Caller::Foreign(Mode::Warm, None);
        let routine = routine(&script(&[("sample", &format!("say '{answer}'"))]));
        let error = routine.sample(data.as_mut(), Calls::once(1), &caller).expect_err(reason);
        assert!(error.ends() && error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn times_outputs_and_data_go_back_and_forth() {
    // The file is named in the request; the second operand, one page behind the first, is what is written: four numbers.
    let hold =
        r#"file=${line#*'"file":"'}; file=${file%%'"'*}; exec 3<>"$file"; say '{"reply":"done"}'"#;
    let write = r#"dd bs=4096 skip=0 count=1 <&3 2>/dev/null >/dev/null; printf '\0\0\200\077\0\0\0\100\0\0\100\100\0\0\200\100' >&3; say '{"reply":"called"}'"#;
    let sample = r#"say '{"reply":"sampled","nanoseconds":1500.0}'"#;
    let routine = routine(&script(&[("hold", hold), ("call", write), ("sample", sample)]));
    let mut data = Double::ENTRY.definition.data(&[4], 1);
    let caller = Caller::Foreign(Mode::Warm, None);
    let returned = routine.call(data.as_mut(), &caller).expect("it comes back");
    assert_eq!(data.outputs(), [[1.0, 2.0, 3.0, 4.0]]);
    assert!(returned.parts.is_empty() && !returned.changed_input);
    let sampled = routine.sample(data.as_mut(), Calls::once(3), &caller).expect("a time");
    assert_eq!((sampled.time, sampled.device), (Duration::from_nanos(1500), None));
}

#[test]
fn a_worker_that_died_is_started_again_and_given_its_data() {
    let folder = std::env::temp_dir().join(format!("kbench-foreign-{}", std::process::id()));
    let flag = folder.display();
    // Dies in its first call, and is well in its second life.
    let call =
        format!("[ -e {flag} ] || {{ : > {flag}; exit 1; }}; say '{{\"reply\":\"called\"}}'");
    let routine = routine(&script(&[("call", &call)]));
    let mut data = Double::ENTRY.definition.data(&[4], 1);
    let caller = Caller::Foreign(Mode::Warm, None);
    let first = routine.call(data.as_mut(), &caller).expect_err("it dies");
    assert!(first.ends(), "{first}");
    let second = routine.call(data.as_mut(), &caller);
    let _ = std::fs::remove_file(&folder);
    assert!(second.is_ok(), "{second:?}");
}

#[test]
fn who_dies_after_others_were_called_is_called_once_more_alone() {
    // The second call of a process is its end, whoever is called.
    let call = "n=$((${n:-0}+1)); [ $n -lt 2 ] || exit 1; say '{\"reply\":\"called\"}'";
    let worker = worker(&script(&[("call", call)]));
    let routine = |name: &str| -> Box<dyn Routine> {
        let (of, name, queue) = ("double".into(), name.into(), None);
        let (kernel, backend) = (Double::ENTRY, Backend::Serial);
        Box::leak(Box::new(ForeignVariant { worker, kernel, of, name, backend, queue })).routine()
    };
    let caller = Caller::Foreign(Mode::Warm, None);
    let mut data = Double::ENTRY.definition.data(&[4], 1);
    let (first, second) = (routine("first"), routine("second"));
    assert!(first.call(data.as_mut(), &caller).is_ok());
    assert!(second.call(data.as_mut(), &caller).is_ok(), "the former may have been to blame");
    let fault = second.call(data.as_mut(), &caller).map(|_| ()).expect_err("alone it dies as well");
    assert!(fault.ends(), "{fault}");
}

#[test]
fn a_worker_that_dies_when_data_is_given_back_costs_nobody() {
    let answers = [("release", "exit 1"), ("call", "say '{\"reply\":\"called\"}'")];
    let routine = routine(&script(&answers));
    let caller = Caller::Foreign(Mode::Warm, None);
    for seed in 0..3 {
        let mut data = Double::ENTRY.definition.data(&[4], seed);
        assert!(routine.call(data.as_mut(), &caller).is_ok(), "{seed}");
    }
}

#[test]
fn a_wrong_result_is_found_by_the_gate() {
    let worker = worker(&script(&[("call", r#"say '{"reply":"called"}'"#)]));
    let (of, name, queue) = ("double".into(), "idle".into(), None);
    let foreign = Box::leak(Box::new(ForeignVariant {
        worker,
        kernel: Double::ENTRY,
        of,
        name,
        backend: Backend::Serial,
        queue,
    }));
    let entry = Box::leak(Box::new(VariantEntry {
        implementation: Implementation::Foreign(foreign),
        ..*variant_of_double("idle", 9, right)
    }));
    let mut gate = Gate::new(Double::ENTRY, Some(base()), 1);
    let check = gate.check_awkward(entry, &mut |_| {});
    let text = check.outcome.expect_err("it writes nothing").to_string();
    assert!(text.contains("are never written"), "{text}");
}

/// A kernel with its own function and a variant `other` of a script.
fn registry_with(script: &str) -> Registry {
    let variant = AnnouncedVariant {
        of: "double".into(),
        name: "other".into(),
        backend: Backend::Serial,
        types: None,
        parameters: Vec::new(),
        tolerance: None,
        queue: None,
        place: None,
    };
    let announcement = Announcement {
        program: program(script),
        about: None,
        variants: vec![variant],
        unavailable: None,
        server: None,
    };
    let mut registry = Registry::of([base()]).expect("one kernel");
    registry.enlist(&[announcement], (0, false), Duration::from_secs(20)).expect("it fits");
    registry
}

/// A request to prepare rows of that kernel.
fn prepare(rows: &serde_json::Value, calibrate: &serde_json::Value) -> Request {
    let request = json!({
        "request": "prepare", "protocol": PROTOCOL, "seed": 1, "launch": 0, "memory": 1 << 20, "calibrate": calibrate,
        "cells": [{"kernel": "demo::double", "type": "f32", "size": [16], "rows": rows}],
    });
    Request::from_json(&request.to_string()).expect("a request")
}

#[test]
fn nothing_is_measured_while_a_worker_begins() {
    let flag = std::env::temp_dir().join(format!("kbench-begun-{}", std::process::id()));
    let begin = format!("sleep 0.3; : > {}; say '{{\"reply\":\"done\"}}'", flag.display());
    let registry = registry_with(&script(&[("begin", &begin)]));
    let rows = ["double", "other"].map(|name| json!({"variant": name, "threads": null}));
    let mut has_begun = None;
    Worker::new(&registry).answer(&prepare(&json!(rows), &json!(null)), &mut |_| {
        has_begun.get_or_insert_with(|| flag.exists());
    });
    let _ = std::fs::remove_file(&flag);
    assert_eq!(has_begun, Some(true), "it has begun before anything is said to be called");
}

/// A call copies all data there and back; what a check saw of one need not be found out again.
#[test]
fn a_row_whose_check_is_known_is_calibrated_without_another_call() {
    let fails = r#"say '{"reply":"failed","failure":"called"}'"#;
    // Every sample takes longer than the one before: the first ones, of no call, are what the clock takes.
    let samples = r#"n=$((${n:-0}+1)); say '{"reply":"sampled","nanoseconds":'$n'}'"#;
    let registry = registry_with(&script(&[("call", fails), ("sample", samples)]));
    let sampling = json!({"sample_seconds": 1e-7, "warm_up_seconds": 0.0, "iterations": 1, "patience_seconds": 1.0});
    let prepared = |checked_call: serde_json::Value| {
        let row = json!({"variant": "other", "threads": null, "checked_call": checked_call});
        let mut calibration = None;
        Worker::new(&registry).answer(&prepare(&json!([row]), &sampling), &mut |reply| {
            if let Reply::Prepared(prepared) = reply {
                calibration = prepared.calibrations[0];
            }
        });
        calibration
    };
    assert_eq!(prepared(json!(null)), None, "its call fails");
    let known = prepared(json!({"seconds": 0.5, "returned_bytes": 12})).expect("calibrated");
    assert_eq!((known.calls, known.returned_bytes), (Calls::once(1), 12));
}

/// A program that has loaded everything: a thread, with a new shell for every process that it is to fork.
struct Forking {
    control: UnixStream,
    thread: JoinHandle<Vec<JoinHandle<ExitStatus>>>,
}

impl Forking {
    fn start(script: String) -> Self {
        let (control, theirs) = UnixStream::pair().expect("a socket");
        let thread = std::thread::spawn(move || {
            let mut forks = Vec::new();
            while let Some((message, [channel, output, lifeline])) = receive(&theirs) {
                let message: serde_json::Value =
                    serde_json::from_slice(&message).expect("a request");
                assert_eq!(
                    (&message["request"], message["group"].is_i64()),
                    (&"fork".into(), true)
                );
                let script = script.clone();
                forks.push(std::thread::spawn(move || {
                    live(&script, channel, PipeWriter::from(output), UnixStream::from(lifeline))
                }));
            }
            forks
        });
        Forking { control, thread }
    }

    /// A worker whose processes are forked; its program cannot be started.
    fn worker(&self) -> &'static ForeignWorker {
        let program = ForeignProgram::new("forking", vec!["/no/such/program".into()]);
        let worker = ForeignWorker::new(program, (0, false), Duration::from_secs(20));
        Box::leak(Box::new(worker.forked_by(Some(self.control.as_raw_fd()))))
    }

    /// Ends it; gives the processes that it has forked.
    fn end(self) -> Vec<JoinHandle<ExitStatus>> {
        self.control.shutdown(std::net::Shutdown::Both).expect("open");
        self.thread.join().expect("a program")
    }
}

/// The life of one process: it ends by itself, or when its lifeline is closed; gives how.
fn live(
    script: &str,
    channel: OwnedFd,
    output: PipeWriter,
    mut lifeline: UnixStream,
) -> ExitStatus {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::from(channel)).stdout(Stdio::null()).stderr(output);
    let mut child = command.spawn().expect("a shell");
    drop(command);
    lifeline.write_all(b"{\"reply\":\"forked\"}\n").expect("room");
    lifeline.set_read_timeout(Some(Duration::from_millis(5))).expect("a time");
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if matches!(lifeline.read(&mut [0]), Ok(0)) {
            child.kill().expect("a child");
            break child.wait().expect("a child");
        }
    };
    let ended = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("{{\"reply\":\"ended\",\"signal\":{signal}}}\n"),
        (None, code) => format!("{{\"reply\":\"ended\",\"code\":{}}}\n", code.expect("a code")),
    };
    let _ = lifeline.write_all(ended.as_bytes());
    status
}

fn call_of(worker: &'static ForeignWorker) -> Result<(), Fault> {
    let (of, name, queue) = ("double".into(), "script".into(), None);
    let (kernel, backend) = (Double::ENTRY, Backend::Serial);
    let variant = Box::leak(Box::new(ForeignVariant { worker, kernel, of, name, backend, queue }));
    let mut data = Double::ENTRY.definition.data(&[4], 1);
    let caller = Caller::Foreign(Mode::Warm, None);
    variant.routine().call(data.as_mut(), &caller).map(|_| ())
}

#[test]
fn a_process_is_forked_for_every_launch_where_the_program_can_do_that() {
    let forking = Forking::start(script(&[("call", r#"say '{"reply":"called"}'"#)]));
    for launch in 0..2 {
        // Every launch is a process of its own elsewhere.
        let worker = forking.worker();
        assert_eq!((call_of(worker), call_of(worker)), (Ok(()), Ok(())), "{launch}");
    }
    assert_eq!(forking.end().len(), 2);
}

#[test]
fn a_row_is_told_how_a_forked_process_ended_and_the_next_one_is_forked_again() {
    for (end, reason) in [
        ("echo out of luck >&2; kill -SEGV $$", "its worker `forking` ended: SIGSEGV"),
        ("echo out of luck >&2; exit 7", "its worker `forking` ended: it called `exit(7)`"),
    ] {
        let forking = Forking::start(script(&[("call", end)]));
        let worker = forking.worker();
        for _ in 0..2 {
            let text = call_of(worker).expect_err("it ends").to_string();
            assert!(
                text.contains(reason) && text.contains("its last words: out of luck"),
                "{text}"
            );
        }
        assert_eq!(forking.end().len(), 2);
    }
}

#[test]
fn a_forked_process_that_goes_on_without_its_channel_is_ended() {
    let forking = Forking::start("exec 0</dev/null; exec sleep 30".into());
    let text = call_of(forking.worker()).expect_err("no answer").to_string();
    assert!(text.contains("it closed its channel, went on, and was killed"), "{text}");
    let ends = forking.end().into_iter().map(|process| process.join().expect("an end").signal());
    assert_eq!(ends.collect::<Vec<_>>(), [Some(libc::SIGKILL)]);
}

#[test]
fn a_program_that_does_not_fork_any_more_is_started_anew() {
    let (control, theirs) = UnixStream::pair().expect("a socket");
    drop(theirs);
    let answers = script(&[("call", r#"say '{"reply":"called"}'"#)]);
    let worker = ForeignWorker::new(program(&answers), (0, false), Duration::from_secs(20));
    let worker = Box::leak(Box::new(worker.forked_by(Some(control.as_raw_fd()))));
    assert_eq!(call_of(worker), Ok(()));
}

#[test]
fn a_program_that_can_be_forked_goes_on_and_any_other_ends() {
    let answers = |done: &str| script(&[("announce", &format!("say '{done}'"))]);
    let announcing = |done: &str| {
        let program = program(&answers(done));
        ForeignWorker::announcing(program, (0, false), Duration::from_secs(20))
    };
    let plain = announcing(r#"{"reply":"done"}"#);
    assert_eq!((plain.announcement().server, plain.process()), (None, None));
    let forking = announcing(r#"{"reply":"done","forks":true}"#);
    assert!(forking.announcement().server.is_some());
    let process = forking.process().expect("it goes on");
    drop(forking);
    let begun = Instant::now();
    while cfg!(target_os = "linux") && std::fs::exists(format!("/proc/{process}")).unwrap_or(true) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{process} goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
}
