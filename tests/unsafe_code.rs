//! `unsafe` is in the files that are named here, and every use of it says why it is sound.
//!
//! Read as text: the compiler denies `unsafe` where no module allows it, but does not know which modules may.

use std::fs;
use std::path::PathBuf;

use kbench_tests::root;

/// The files that may have `unsafe`, and what for.
const FILES: &[(&str, &str)] = &[
    ("kbench-macros/src/dispatch/expand.rs", "an `unsafe fn` as a dispatcher"),
    ("kbench-macros/src/operand.rs", "writes the promise that `DeviceElement` asks for"),
    ("kbench-worker/src/cuda/absent.rs", "the promise that `DeviceElement` asks for"),
    ("kbench-worker/src/cuda/backend/blas.rs", "the interface of cuBLAS"),
    ("kbench-worker/src/cuda/backend/ceilings.rs", "launches of device code"),
    ("kbench-worker/src/cuda/backend/compile.rs", "the interface of NVRTC"),
    ("kbench-worker/src/cuda/backend/gpu.rs", "the driver's interface"),
    ("kbench-worker/src/cuda/backend/launch.rs", "launches of device code"),
    ("kbench-worker/src/cuda/backend/library.rs", "libraries that are opened at run time"),
    ("kbench-worker/src/cuda/backend/memory.rs", "memory of the device"),
    ("kbench-worker/src/cuda/backend/nvml.rs", "the interface of NVML"),
    ("kbench-worker/src/cuda/backend/profile.rs", "ranges of the profiler"),
    ("kbench-worker/src/cuda/backend/stopwatch.rs", "events and graphs of the driver"),
    ("kbench-worker/src/gauge/allocations.rs", "the trait of global allocators"),
    ("kbench-worker/src/kernel/timed.rs", "an alignment that the assembler is asked for"),
    ("kbench-worker/src/system/cpu.rs", "calls of the system"),
    ("kbench-worker/src/system/descriptors.rs", "calls of the system"),
    ("kbench-worker/src/system/disk.rs", "calls of the system"),
    ("kbench-worker/src/system/float_mode.rs", "the register that says how to round"),
    ("kbench-worker/src/system/interrupt.rs", "calls of the system"),
    ("kbench-worker/src/system/memory.rs", "calls of the system"),
    ("kbench-worker/src/system/process_group.rs", "calls of the system"),
    ("kbench-worker/src/value/cold.rs", "an instruction that takes an address"),
    ("kbench-worker/src/value/generator.rs", "instructions of the processor"),
    (
        "kbench-worker/src/value/pages.rs",
        "calls of the system, and vectors in memory that it gives",
    ),
    ("kbench-macros/src/expand/mod.rs", "an `unsafe fn` as a kernel"),
    ("kernels/src/device/features.rs", "instructions of the processor"),
    ("kernels/src/device/host.rs", "the driver's interface"),
    ("kernels/src/elementwise/scalar.rs", "volatile reads"),
    ("kernels/src/matmul/cublas.rs", "the interface of cuBLAS"),
    ("kernels/src/matmul/int8/vnni.rs", "instructions of the processor"),
    ("kernels/src/matmul/packed.rs", "threads write rectangles of one matrix"),
    (
        "kernels/src/matmul/packed/micro.rs",
        "instructions of the processor, rectangles of one matrix",
    ),
    ("kernels/src/matmul/packed/packing.rs", "instructions of the processor"),
    ("kernels/vendor/src/matmul.rs", "a GEMM that takes pointers"),
    ("kernels/src/shared/simd.rs", "instructions of the processor"),
    ("kernels/src/shared/streaming.rs", "instructions of the processor"),
    ("kernels/src/signal/convolution/tiles.rs", "tasks write pixels of the same rows"),
    ("kernels/src/signal/fft/mod.rs", "pairs are seen as complex numbers"),
    ("kernels/src/signal/fft/steps.rs", "tasks write blocks of one matrix"),
    ("kernels/src/signal/fft/vendor.rs", "pairs are seen as complex numbers"),
    ("kernels/src/signal/parts.rs", "parts that lie between each other"),
    ("kernels/src/signal/recurrent/mod.rs", "tasks write units of the same rows"),
    ("kernels/src/signal/vector/mod.rs", "instructions of the processor"),
    ("kernels/src/signal/vector/x86.rs", "instructions of the processor"),
    ("src/production/cuda.rs", "the promise that `DeviceElement` asks for"),
    ("tests/accepted/dispatch.rs", "an `unsafe fn` behind a dispatcher"),
    ("tests/attribute/kernels.rs", "an `unsafe fn` as a kernel"),
    ("tests/downstream/benches/faults.rs", "kernels that write where they must not"),
    ("tests/downstream/benches/limits.rs", "registrations that no attribute made"),
    ("tests/end_to_end/interrupts.rs", "signals as a program is given them"),
    ("tests/timed_loop.rs", "an alignment that the assembler is asked for"),
    ("tests/mutants/src/memory.rs", "reads and writes beyond arrays that are meant"),
    ("tests/mutants/src/reductions.rs", "vectors seen as what they are"),
];

/// A module that allows `unsafe` to the files below it, and has none itself.
const ALLOWING: &[&str] = &["kbench-worker/src/cuda/backend/mod.rs"];

/// Folders with our own sources.
const SOURCES: [&str; 10] = [
    "src",
    "kbench-core",
    "kbench-macros",
    "kbench-worker",
    "kernels",
    "campaign",
    "examples",
    "benches",
    "fuzz",
    "tests",
];

#[test]
fn unsafe_code_is_in_named_files_alone() {
    let mut mistakes = Vec::new();
    for path in sources() {
        let file = Source::read(&path);
        let is_listed = FILES.iter().any(|(listed, _)| *listed == path);
        if !file.uses().is_empty() && !is_listed {
            mistakes.push(format!("{path} has `unsafe`, and is not on the list"));
        }
        if file.uses().is_empty() && is_listed {
            mistakes.push(format!("{path} has no `unsafe` any more: take it off the list"));
        }
        let is_allowing = file.lines.iter().any(|line| line.code.contains("allow(unsafe_code)"));
        if is_allowing && !is_listed && !ALLOWING.contains(&path.as_str()) {
            mistakes.push(format!("{path} allows `unsafe`, and is not on the list"));
        }
        if !is_allowing && ALLOWING.contains(&path.as_str()) {
            mistakes.push(format!("{path} does not allow `unsafe` any more: take it off the list"));
        }
    }
    let known = FILES.iter().map(|(file, _)| *file).chain(ALLOWING.iter().copied());
    mistakes.extend(
        known.filter(|file| !root().join(file).is_file()).map(|file| format!("{file} is gone")),
    );
    assert!(mistakes.is_empty(), "\n{}", mistakes.join("\n"));
}

#[test]
fn every_use_of_unsafe_says_why_it_is_sound() {
    let mut mistakes = Vec::new();
    for path in sources() {
        let file = Source::read(&path);
        for (number, kind) in file.uses() {
            if !file.is_explained(number, kind) {
                mistakes.push(format!("{path}:{}: {}", number + 1, kind.wanted()));
            }
        }
    }
    assert!(mistakes.is_empty(), "\n{}", mistakes.join("\n"));
}

#[test]
fn words_in_texts_and_types_are_no_uses_and_whatever_is_one_wants_a_reason() {
    let uses = |text: &str| Source::of(text).uses();
    for innocent in [
        "// unsafe { } is a word here",
        "let a = \"unsafe { }\";",
        "let a = r#\"unsafe \" { }\"#;",
        "let quote = '\"'; // unsafe",
        "/* unsafe { /* nested */ unsafe } */ let a = 1;",
        "type Call = unsafe extern \"C\" fn(i32);",
        "field: Option<unsafe fn(u8) -> u8>,",
        "is_unsafe(unsafe_code)",
    ] {
        assert_eq!(uses(innocent), [], "{innocent}");
    }
    for (text, kind) in [
        ("let a = unsafe { f() };", Use::Block),
        ("unsafe\n{ f() }", Use::Block),
        ("unsafe impl Send for A {}", Use::Impl),
        ("pub unsafe fn f() {}", Use::Function),
        ("pub unsafe extern \"C\" fn f() {}", Use::Function),
        ("unsafe trait A {}", Use::Function),
    ] {
        let file = Source::of(text);
        assert_eq!(file.uses(), [(0, kind)], "{text}");
        assert!(!file.is_explained(0, kind), "{text}");
    }
    for (text, number) in [
        ("// SAFETY: it is\nlet a = unsafe { f() };", 1),
        ("// SAFETY: it is,\n// and remains so\nlet a =\n    unsafe { f() };", 3),
        ("// SAFETY: it is\n#[allow(unsafe_code)]\nunsafe impl Send for A {}", 2),
        ("let a = unsafe { f() }; // SAFETY: it is", 0),
        ("/// Calls.\n///\n/// # Safety\n/// None.\npub unsafe fn f() {}", 4),
    ] {
        let file = Source::of(text);
        let uses = file.uses();
        assert!(uses.len() == 1 && uses[0].0 == number, "{text}");
        assert!(file.is_explained(number, uses[0].1), "{text}");
    }
    let two = Source::of("// SAFETY: the first\nlet a = unsafe { f() };\nlet b = unsafe { g() };");
    assert!(!two.is_explained(2, Use::Block), "a reason is for one statement");
}

/// How `unsafe` is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Block,
    Impl,
    /// A function or trait that asks its users for something.
    Function,
}

impl Use {
    fn wanted(self) -> &'static str {
        match self {
            Use::Block => "an `unsafe` block without a `SAFETY:` comment",
            Use::Impl => "an `unsafe impl` without a `SAFETY:` comment",
            Use::Function => "an `unsafe` function or trait without a section `# Safety`",
        }
    }
}

/// A line, divided into what the compiler reads and what people read; literals are blank.
#[derive(Default)]
struct Line {
    code: String,
    comment: String,
}

struct Source {
    lines: Vec<Line>,
}

impl Source {
    fn read(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        Source::of(&text)
    }

    fn of(text: &str) -> Self {
        let mut lines = vec![Line::default()];
        let mut rest = text;
        while let Some(token) = Token::first(rest) {
            let (own, after) = rest.split_at(token.length);
            for (i, part) in own.split('\n').enumerate() {
                if i > 0 {
                    lines.push(Line::default());
                }
                let line = lines.last_mut().expect("never empty");
                match token.kind {
                    Kind::Code => line.code += part,
                    Kind::Comment => line.comment += part,
                    Kind::Literal => line.code.push('_'),
                }
            }
            rest = after;
        }
        Source { lines }
    }

    /// Lines of all uses, types of functions not among them.
    fn uses(&self) -> Vec<(usize, Use)> {
        let mut found = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            for after in words_after(&line.code, "unsafe") {
                let below = self.lines[number + 1..].iter().map(|line| line.code.as_str());
                let after: String =
                    [after].into_iter().chain(below.take(2)).collect::<Vec<_>>().join(" ");
                let mut words = after.split_whitespace();
                let mut next = words.next().unwrap_or_default();
                while next == "extern" || next == "_" {
                    next = words.next().unwrap_or_default();
                }
                match next {
                    next if next.starts_with('{') => found.push((number, Use::Block)),
                    "impl" => found.push((number, Use::Impl)),
                    next if next.starts_with("impl<") => found.push((number, Use::Impl)),
                    // A type has no name: `unsafe fn(`.
                    "fn" | "trait" => found.push((number, Use::Function)),
                    _ => {}
                }
            }
        }
        found
    }

    /// Whether comments say what is wanted: those of a use's own statement, and for a function also those of the trait or
    /// macro around it. A function of a trait keeps the trait's promises.
    fn is_explained(&self, number: usize, kind: Use) -> bool {
        if kind != Use::Function {
            return self.says(number, "SAFETY:");
        }
        let is_of_trait = |number: usize| {
            let code = self.lines[number].code.trim();
            code.trim_start_matches("unsafe ").starts_with("impl") && code.contains(" for ")
        };
        let explains = |number: &usize| self.says(*number, "# Safety") || is_of_trait(*number);
        std::iter::successors(Some(number), |inner| self.around(*inner)).any(|n| explains(&n))
    }

    /// Whether comments at a line, or above it within its statement, have some words.
    fn says(&self, number: usize, words: &str) -> bool {
        let above = self.lines[..number].iter().rev();
        // Up to where the statement before ends.
        let own = above.take_while(|line| {
            let code = line.code.trim();
            code.starts_with("#[") || !code.ends_with([';', '{', '}'])
        });
        [&self.lines[number]].into_iter().chain(own).any(|line| line.comment.contains(words))
    }

    /// The line that begins what a line is inside of: the next one above that is less indented.
    fn around(&self, number: usize) -> Option<usize> {
        let indentation = |line: &Line| line.code.len() - line.code.trim_start().len();
        let own = indentation(&self.lines[number]);
        (0..number).rev().find(|above| {
            let line = &self.lines[*above];
            !line.code.trim().is_empty() && indentation(line) < own
        })
    }
}

/// What follows every occurrence of a word.
fn words_after<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).filter_map(move |(start, _)| {
        let (before, after) = (&code[..start], &code[start + word.len()..]);
        (!before.ends_with(is_part) && !after.starts_with(is_part)).then_some(after)
    })
}

#[derive(Clone, Copy)]
enum Kind {
    Code,
    Comment,
    Literal,
}

struct Token {
    kind: Kind,
    length: usize,
}

impl Token {
    /// The first token of a text: a comment, a literal, or one character of code.
    fn first(text: &str) -> Option<Self> {
        let first = text.chars().next()?;
        let token = |kind, length| Some(Token { kind, length });
        if text.starts_with("//") {
            return token(Kind::Comment, text.find('\n').unwrap_or(text.len()));
        }
        if text.starts_with("/*") {
            return token(Kind::Comment, block_comment(text));
        }
        if let Some(length) = string(text) {
            return token(Kind::Literal, length);
        }
        // A name as a whole, so that the `r` of `for` begins no literal.
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        if is_part(first) {
            return token(Kind::Code, text.find(|c| !is_part(c)).unwrap_or(text.len()));
        }
        token(Kind::Code, first.len_utf8())
    }
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let step = match rest {
            rest if rest.starts_with("/*") => 1,
            rest if rest.starts_with("*/") => -1,
            _ => 0,
        };
        depth += step;
        at += if step == 0 { rest.chars().next().map_or(1, char::len_utf8) } else { 2 };
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of the string or character that a text begins with.
fn string(text: &str) -> Option<usize> {
    let bare = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - bare.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = bare.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let content = raw[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = content.find(&end)? + end.len();
        return Some(prefix + 1 + hashes + 1 + length);
    }
    let quote = bare.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut escaped = false;
    for (at, c) in bare.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(prefix + at + 1),
            // A lifetime: it has no end.
            _ if quote == '\'' && at > 1 && !bare.starts_with("'\\") => return None,
            _ => {}
        }
    }
    None
}

/// All Rust files of our own, relative to the root; kept compile errors are no code of ours.
fn sources() -> Vec<String> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = SOURCES.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").filter_map(Result::ok) {
            let path = entry.path();
            let is_ours = !path.ends_with("target") && !path.ends_with("tests/ui");
            if path.is_dir() && is_ours {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let path = path.strip_prefix(root()).expect("below the root");
                files.push(path.to_string_lossy().into_owned());
            }
        }
    }
    files.sort();
    assert!(files.len() > 300, "{} files", files.len());
    files
}
