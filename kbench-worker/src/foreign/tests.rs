//! Foreign workers that are shell scripts: standard input is the channel, in both directions.

use std::time::Duration;

use super::*;
use crate::check::Gate;
use crate::kernel::{
    Backend, Caller, Calls, Fault, Foreign, Implementation, Kernel, Mode, Routine, VariantEntry,
};
use crate::registry::Registry;
use crate::registry::fixtures::{Double, base, right, variant_of_double};
use crate::worker::{PROTOCOL, Request, Worker};

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

fn program_that_sleeps() -> ForeignProgram {
    program("sleep 600")
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

#[test]
fn nothing_is_measured_while_a_worker_begins() {
    let flag = std::env::temp_dir().join(format!("kbench-begun-{}", std::process::id()));
    let begin = format!("sleep 0.3; : > {}; say '{{\"reply\":\"done\"}}'", flag.display());
    let variant = AnnouncedVariant {
        of: "double".into(),
        name: "slow".into(),
        backend: Backend::Serial,
        types: None,
        parameters: Vec::new(),
        tolerance: None,
        queue: None,
        place: None,
    };
    let announcement = Announcement {
        program: program(&script(&[("begin", &begin)])),
        about: None,
        variants: vec![variant],
        unavailable: None,
    };
    let mut registry = Registry::of([base()]).expect("one kernel");
    registry.enlist(&[announcement], (0, false), Duration::from_secs(20)).expect("it fits");
    let request = serde_json::json!({
        "request": "prepare", "protocol": PROTOCOL, "seed": 1, "launch": 0, "memory": 1 << 20, "calibrate": null,
        "cells": [{"kernel": "demo::double", "type": "f32", "size": [16],
                   "rows": [{"variant": "double", "threads": null}, {"variant": "slow", "threads": null}]}],
    });
    let request = Request::from_json(&request.to_string()).expect("a request");
    let mut has_begun = None;
    Worker::new(&registry).answer(&request, &mut |_| {
        has_begun.get_or_insert_with(|| flag.exists());
    });
    let _ = std::fs::remove_file(&flag);
    assert_eq!(has_begun, Some(true), "it has begun before anything is said to be called");
}
