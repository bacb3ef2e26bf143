//! What the README shows is what the repository has.

use std::path::Path;

use kbench_tests::{example, root};

use kbench::harness::{Exit, Interrupt};

const README: &str = include_str!("../README.md");

#[test]
fn its_example_is_the_quickstart() {
    let example = include_str!("../examples/quickstart.rs").trim_end();
    assert!(README.contains(&format!("```rust,no_run\n{example}\n```")));
}

#[test]
fn dependency_lines_name_this_version_and_a_clone() {
    let (series, _) = env!("CARGO_PKG_VERSION").rsplit_once('.').expect("three numbers");
    let line = format!("kbench = {{ version = \"{series}\", path = \"../kbench\"");
    for (page, expected) in [(README, 2), (include_str!("../docs/gpu.md"), 1)] {
        let lines = page.lines().filter(|line| line.starts_with("kbench = "));
        let right = lines.clone().filter(|shown| shown.starts_with(&line)).count();
        assert_eq!((right, lines.count()), (expected, expected), "{line}");
    }
}

#[test]
fn the_variant_of_the_page_about_gpus_is_that_of_the_example() {
    let page = include_str!("../docs/gpu.md");
    let example = include_str!("../examples/gpu.rs");
    let start = example.find("const SOURCE").expect("a source");
    let end = example.find("\nkbench::main!").expect("a main");
    let shown = &example[start..end];
    assert!(page.contains(&format!("```rust\n{shown}```")), "{shown}");
    let body = shown.lines().skip_while(|line| !line.starts_with("#[kernel_bench"));
    assert!(body.count() <= 15, "a CUDA variant takes 15 lines");
}

#[test]
fn the_page_about_adding_a_kernel_shows_those_of_the_library() {
    let page = include_str!("../docs/adding-a-kernel.md");
    let shown = |language: &str| -> Vec<&str> {
        let begun = page.split(&format!("```{language}\n")).skip(1).collect::<Vec<_>>();
        begun.iter().map(|rest| rest.split("```").next().expect("its end")).collect()
    };
    let rust = shown("rust");
    let (file, fragments) = rust.split_first().expect("an example");
    assert_eq!(*file, include_str!("../kernels/src/elementwise/saxpy.rs"), "a complete file");
    // Fragments are real as well, and compiled; one of them is an example in the documentation of `Float`.
    let sources = [
        include_str!("../kernels/src/normalisation/soft.rs").to_owned(),
        include_str!("../kernels/src/shared/float.rs").replace("/// ", ""),
    ];
    for fragment in fragments {
        assert!(sources.iter().any(|source| source.contains(fragment)), "{fragment}");
    }
    let device = shown("cuda");
    assert!(!fragments.is_empty() && !device.is_empty());
    for fragment in device {
        assert!(include_str!("../kernels/cuda/elementwise.cu").contains(fragment), "{fragment}");
    }
}

#[test]
fn the_questions_to_the_library_are_answered() {
    let page = include_str!("../docs/kernels.md");
    let is_question = |line: &&str| line.starts_with("| ") && line.contains("| `--");
    let questions = page.lines().skip_while(|line| *line != "## Questions").filter(is_question);
    let mut count = 0;
    for question in questions {
        let flags = question.rsplit('`').nth(1).expect("flags");
        let flags = flags.split(' ').map(|flag| flag.trim_matches('\''));
        let flags: Vec<&str> = flags.chain(["--list", "--format", "terse"]).collect();
        let listed = example("suite", &flags);
        let rows = String::from_utf8_lossy(&listed.stdout).lines().count();
        let errors = String::from_utf8_lossy(&listed.stderr);
        assert!(rows >= 2, "{question} lists {rows} rows: {errors}");
        count += 1;
    }
    assert!(count >= 20, "{count} questions");
}

#[test]
fn no_page_waits_for_its_figures() {
    let pages = [
        README,
        include_str!("../docs/adding-a-kernel.md"),
        include_str!("../docs/gpu.md"),
        include_str!("../docs/kernels.md"),
        include_str!("../docs/statistics.md"),
    ];
    for page in pages {
        let is_left =
            |word: &str| word.len() > 6 && word.chars().all(|c| c.is_ascii_uppercase() || c == '-');
        let left = page.lines().find(|line| is_left(line.trim()));
        assert_eq!(left, None);
    }
}

#[test]
fn its_exit_codes_are_those_of_the_harness() {
    let exits = [
        Exit::Fine,
        Exit::Internal,
        Exit::Usage,
        Exit::NothingSelected,
        Exit::CheckFailed,
        Exit::Gate,
        Exit::Interrupted(Interrupt::HangUp),
        Exit::Interrupted(Interrupt::Keyboard),
        Exit::Interrupted(Interrupt::Termination),
    ];
    for exit in exits {
        assert!(README.contains(&format!("\n| {} | ", exit.code())), "{exit:?}");
    }
    let rows = README.lines().filter(|line| {
        line.strip_prefix("| ")
            .and_then(|rest| rest.split(' ').next())
            .is_some_and(|c| c.parse::<u8>().is_ok())
    });
    assert_eq!(rows.count(), exits.len() + 1, "and 101, which is Rust's own");
}

#[test]
fn its_commands_use_flags_that_exist() {
    let help = example("quickstart", &["--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let flags = README
        .lines()
        .filter(|line| line.contains("cargo bench -- "))
        .flat_map(|line| line.split([' ', '`']))
        .filter(|word| word.starts_with("--") && word.len() > 2);
    let mut count = 0;
    for flag in flags {
        assert!(help.contains(flag), "{flag} is not in --help:\n{help}");
        count += 1;
    }
    assert!(count >= 6, "the README shows some flags");
}

/// Every source below a folder, with its path.
fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).expect("text")));
        }
    }
}

#[test]
fn every_test_that_the_page_about_reliability_names_is_there() {
    let page = include_str!("../docs/reliability.md");
    let root = root();
    let mut all = Vec::new();
    for name in ["tests", "campaign/tests", "kbench-core", "kbench-worker"] {
        sources(&root.join(name), &mut all);
    }
    let mut count = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| fault ")) {
        let proof = row.trim_end_matches(" |").rsplit(" | ").next().expect("a last column");
        let names: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "nothing proves this: {row}");
        for name in names {
            count += 1;
            let Some((place, test)) = name.rsplit_once("::") else {
                assert!(root.join(name).exists(), "there is no {name}");
                continue;
            };
            let place = format!("/{}", place.trim_end_matches("::tests").replace("::", "/"));
            let is_there = all
                .iter()
                .any(|(path, text)| path.contains(&place) && text.contains(&format!("fn {test}(")));
            assert!(is_there, "there is no test `{name}`");
        }
    }
    assert!(count > 40, "{count}");
}
