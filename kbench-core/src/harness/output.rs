//! Writing results: to stdout, and to files as a whole or not at all.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::Exit;
use crate::files;
use crate::report::{Exported, Format, Report, Trend, export};
use crate::visible::{in_lines, without_commands};

/// A file to be written, or a folder of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Export {
    pub(super) format: Format,
    pub(super) path: PathBuf,
}

impl Export {
    /// `FORMAT=PATH`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (format, path) = text
            .split_once('=')
            .filter(|(_, path)| !path.is_empty())
            .ok_or_else(|| format!("`{text}` names no file; write for example csv=results.csv"))?;
        let format: Format = format.parse().map_err(|error| format!("{error}"))?;
        if path == "-" {
            return Err("results are printed anyway; name a file, or use --format json".into());
        }
        let path = PathBuf::from(path);
        has_folder(&path)?;
        if path.is_dir() && !format.is_tree() {
            return Err(format!("`{}` is a folder; name a file", path.display()));
        }
        if path.exists() && !path.is_dir() && format.is_tree() {
            let name = format.name();
            return Err(format!("`{}` is a file; {name} is a folder of files", path.display()));
        }
        Ok(Export { format, path })
    }
}

/// A folder that does not exist is an error now, not after an hour of measuring.
pub(super) fn has_folder(path: &Path) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(format!("the folder `{}` does not exist", folder.display())),
        None => Ok(()),
    }
}

/// Says something beside the results; nobody may be listening. It may quote what others wrote, which neither a terminal nor a CI
/// service shall obey.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", without_commands(&in_lines(text), false));
}

/// Prints results; a reader that went away is not an error.
pub(super) fn print(text: &str) -> Exit {
    write(&without_commands(text, false))
}

/// Prints results as lines of JSON.
pub(super) fn print_json(text: &str) -> Exit {
    write(&without_commands(text, true))
}

fn write(text: &str) -> Exit {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(&format!("error: results cannot be printed: {error}"));
            Exit::Internal
        }
        _ => Exit::Fine,
    }
}

/// Writes all exports; one that fails does not stop the others.
pub(super) fn write_exports(report: &Report, trends: &[Trend], exports: &[Export]) -> Exit {
    let mut exit = Exit::Fine;
    for Export { format, path } in exports {
        let exported = export(report, trends, *format).map_err(io::Error::other);
        let written = exported.and_then(|exported| match exported {
            Exported::File(text) => files::replace(path, text.as_bytes()),
            Exported::Tree(files) => files::put_all(path, &files),
        });
        if let Err(error) = written {
            say(&format!("error: `{}` cannot be written: {error}", path.display()));
            exit = Exit::Internal;
        }
    }
    exit
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder of this test alone.
    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("kbench-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn report() -> Report {
        let text = include_str!("../store/fixtures/schema-1.json");
        crate::store::read_document(text).expect("readable")
    }

    #[test]
    fn the_help_names_every_format() {
        let flag = super::super::flags::FLAGS.iter().find(|flag| flag.name == "export");
        let help = flag.expect("a flag").help;
        let words: Vec<&str> = help.split([' ', ',', ';']).collect();
        let forgotten =
            Format::ALL.map(Format::name).into_iter().find(|name| !words.contains(name));
        assert_eq!(forgotten, None, "{help}");
    }

    #[test]
    fn a_tree_is_a_folder_and_everything_else_a_file() {
        let folder = scratch("parse");
        let file = folder.join("file");
        fs::write(&file, "").expect("a file");
        let parse = |format: &str, path: &Path| {
            Export::parse(&format!("{format}={}", path.display())).map(|export| export.path)
        };
        let error = |format, path: &Path| parse(format, path).expect_err("refused");
        for format in Format::ALL.map(Format::name) {
            assert_eq!(parse(format, &folder.join("new")), Ok(folder.join("new")));
            assert!(error(format, &folder.join("no/such")).contains("does not exist"));
        }
        assert_eq!(parse("criterion", &folder), Ok(folder.clone()));
        assert!(error("criterion", &file).contains("is a file"));
        assert!(error("junit", &folder).contains("is a folder"));
        assert!(error("cvs", &file).contains("did you mean `csv`?"));
        assert!(Export::parse("csv").is_err() && Export::parse("csv=-").is_err());
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn an_export_that_fails_does_not_stop_the_others() {
        let folder = scratch("write");
        let export = |format, name: &str| Export { format, path: folder.join(name) };
        let exports = [
            export(Format::Csv, "gone/results.csv"),
            export(Format::Junit, "junit.xml"),
            export(Format::Criterion, "criterion"),
        ];
        assert_eq!(write_exports(&report(), &[], &exports), Exit::Internal);
        let junit = fs::read_to_string(folder.join("junit.xml")).expect("written");
        assert!(junit.ends_with("</testsuites>\n"));
        let row = "criterion/kernels.elementwise.saxpy.saxpy/saxpy+f32/n=1024/new/estimates.json";
        assert!(folder.join(row).is_file());
        assert_eq!(write_exports(&report(), &[], &exports[1..]), Exit::Fine);
        fs::remove_dir_all(folder).expect("removed");
    }
}
