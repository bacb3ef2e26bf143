//! What the tests of this folder share.

#![forbid(unsafe_code)]

use std::path::Path;
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

/// The command that starts an example, in the root of the repository. All of them are built once.
pub fn example_command(name: &str) -> Command {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "kbench", "--examples"]).current_dir(root());
        assert!(build.status().is_ok_and(|status| status.success()), "{build:?}");
    });
    // This program is in `deps`, beside `examples`.
    let this = std::env::current_exe().expect("a path");
    let folder = this.ancestors().nth(2).expect("the folder of this build");
    let mut command = Command::new(folder.join("examples").join(name));
    command.current_dir(root());
    command
}
