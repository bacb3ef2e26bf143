//! What the tests of this folder share.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is a folder of it")
}

/// What an example of the repository prints.
pub fn example(name: &str, arguments: &[&str]) -> Output {
    let mut command = example_command(name);
    let output = command.args(arguments).output();
    output.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// The command that starts an example, in the root of the repository.
pub fn example_command(name: &str) -> Command {
    let mut command = Command::new(built().join("examples").join(name));
    command.current_dir(root());
    command
}

/// The folder of executables of the workspace: the examples, and the programs of `campaign`.
///
/// The workspace as a whole is asked for, as `cargo test --workspace` does, which has built them already: for a part of it,
/// dependencies would have other features, and be built again.
pub fn built() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--workspace", "--bin", "subject_times"]);
        build.args(["--example", "suite", "--example", "quickstart"]).current_dir(root());
        assert!(build.status().is_ok_and(|status| status.success()), "{build:?}");
        // This program is in `deps`, a folder of that folder.
        let this = std::env::current_exe().expect("a path");
        this.ancestors().nth(2).expect("the folder of this build").to_owned()
    })
}
