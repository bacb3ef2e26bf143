//! Values of flags, whatever they are for.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use crate::plan::nearest;

/// What a name stands for, of all that there is of a kind.
pub(super) fn one_of<T: Copy, const N: usize>(
    kind: &str,
    all: [(&'static str, T); N],
    name: &str,
) -> Result<T, String> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names = all.map(|(known, _)| known);
        let near = nearest(name, names);
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("there is no {kind} `{name}`; there are: {}{hint}", names.join(", "))
    })
}

/// A folder, which need not exist yet: it is made when there is something to write.
pub(super) fn folder(path: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    let existing = path.ancestors().find(|ancestor| ancestor.exists());
    match existing.filter(|existing| !existing.is_dir()) {
        Some(file) => Err(format!("`{}` is a file; name a folder", file.display())),
        None if path.as_os_str().is_empty() => Err("name a folder".into()),
        None => Ok(path),
    }
}

pub(super) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.replace('_', "").parse().map_err(|_| format!("`{text}` is not a whole number that fits"))
}

pub(super) fn at_least<T: FromStr + PartialOrd + Display>(
    text: &str,
    least: T,
) -> Result<T, String> {
    let number: T = whole(text)?;
    if number < least {
        Err(format!("{number} is too few; the least is {least}"))
    } else {
        Ok(number)
    }
}
