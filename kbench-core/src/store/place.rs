//! Where the store is.

use std::env;
use std::path::{Path, PathBuf};

use super::Store;
use crate::environment::target_name;

/// The variable that names the folder of the store.
pub(crate) const HOME: &str = "KBENCH_HOME";

/// What cargo leaves in every target directory.
const TARGET_MARK: &str = "CACHEDIR.TAG";

impl Store {
    /// The store of this program, which is a target of a package: the folder that `KBENCH_HOME` names, or else `kbench` in
    /// cargo's target directory. That is the one which the program itself lies in, or the one that `CARGO_TARGET_DIR` names, or
    /// `target`.
    pub fn find(package: Option<&str>) -> Self {
        let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let home = named(HOME).map(PathBuf::from);
        let program = env::current_exe().ok();
        let target = || {
            let around = program.as_deref().and_then(target_around);
            let variable = || named("CARGO_TARGET_DIR").map(PathBuf::from);
            around.or_else(variable).unwrap_or_else(|| PathBuf::from("target"))
        };
        let name = program.as_deref().and_then(Path::file_name).unwrap_or_default();
        let name = name.to_string_lossy();
        let target_name = target_name(&name);
        // Packages of a workspace share a target directory, and often the names of their bench targets.
        let program = match package.filter(|package| !package.is_empty()) {
            Some(package) => format!("{package}.{target_name}"),
            None => target_name.to_owned(),
        };
        Store::at(home.unwrap_or_else(|| target().join("kbench")), &program)
    }
}

/// The target directory that a program lies in, however deep.
fn target_around(program: &Path) -> Option<PathBuf> {
    program
        .ancestors()
        .skip(1)
        .find(|folder| folder.join(TARGET_MARK).is_file())
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::tests::Folder;
    use super::*;

    #[test]
    fn a_program_knows_the_target_directory_that_it_lies_in() {
        let folder = Folder::new();
        let target = folder.path().join("deep/target");
        std::fs::create_dir_all(&target).expect("made");
        let program = target.join("x86_64-unknown-linux-gnu/release/examples/suite");
        assert_eq!(target_around(&program), None);
        std::fs::write(target.join(TARGET_MARK), "Signature: 8a477f597d28d172789f06886806bc55")
            .expect("written");
        assert_eq!(target_around(&program), Some(target));
    }
}
