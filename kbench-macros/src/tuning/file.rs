//! The reader of the tuning file: as much of TOML as the runtime writes.
//!
//! The file has other readers, now or later, so every table but `[[threshold]]` is skipped unread. Written by hand so
//! that an annotated crate has no dependency in production.

/// The newest format that is known.
const FORMAT: u64 = 1;
/// What to do about a malformed table.
const REMEDY: &str = "correct it, or delete this table and run with --tune again";

/// One table `[[threshold]]`.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    /// Where it begins.
    pub(super) line: usize,
    pub(super) krate: String,
    pub(super) function: String,
    pub(super) kernel: String,
    pub(super) machine: String,
    pub(super) value: u64,
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) code: String,
    pub(super) measured: String,
}

/// What is wrong with the file, where, and what to do.
#[derive(Debug, PartialEq)]
pub(super) struct Mistake {
    pub(super) line: usize,
    pub(super) text: String,
}

/// All thresholds of a file.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, Mistake> {
    let mut entries = Vec::new();
    let mut section = Section::Top;
    for (index, line) in text.lines().enumerate() {
        let (line, number) = (line.trim(), index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with('[') {
            entries.extend(section.finish()?);
            section = Section::of_header(line, number);
            continue;
        }
        match &mut section {
            Section::Top => check_format(line, number)?,
            Section::Threshold(table) => table.add(line, number)?,
            Section::Other => {}
        }
    }
    entries.extend(section.finish()?);
    Ok(entries)
}

/// The part of the file that a line is in.
enum Section {
    Top,
    Threshold(Table),
    Other,
}

impl Section {
    fn of_header(line: &str, number: usize) -> Self {
        let name = line.strip_prefix("[[").and_then(|line| line.split_once("]]"));
        match name {
            Some((name, _)) if name.trim() == "threshold" => {
                Section::Threshold(Table { line: number, values: Vec::new() })
            }
            _ => Section::Other,
        }
    }

    fn finish(self) -> Result<Option<Entry>, Mistake> {
        match self {
            Section::Threshold(table) => table.entry().map(Some),
            Section::Top | Section::Other => Ok(None),
        }
    }
}

fn check_format(line: &str, number: usize) -> Result<(), Mistake> {
    let mistake = |text: String| Err(Mistake { line: number, text });
    match line.split_once('=') {
        Some((key, value)) if key.trim() == "format" => match Value::parse(value) {
            Some(Value::Integer(format)) if format > FORMAT => mistake(format!(
                "the file has format {format}, and this kbench knows formats up to {FORMAT}; use the kbench that wrote \
                 it, or delete the file and run with --tune again"
            )),
            Some(Value::Integer(_)) => Ok(()),
            _ => mistake(format!("`format` is an integer, such as `format = {FORMAT}`")),
        },
        _ => Ok(()),
    }
}

/// The keys of one table.
struct Table {
    line: usize,
    values: Vec<(String, Value)>,
}

impl Table {
    fn add(&mut self, line: &str, number: usize) -> Result<(), Mistake> {
        let mistake = |text: String| Mistake { line: number, text: format!("{text}; {REMEDY}") };
        let (key, value) = line
            .split_once('=')
            .map(|(key, value)| (key.trim(), value))
            .ok_or_else(|| mistake(format!("expected `key = value`, found `{line}`")))?;
        let value = Value::parse(value).ok_or_else(|| {
            mistake(format!("the value of `{key}` is neither a string in quotes nor an integer"))
        })?;
        if self.values.iter().any(|(known, _)| known == key) {
            return Err(mistake(format!("`{key}` is there twice")));
        }
        self.values.push((key.to_owned(), value));
        Ok(())
    }

    fn entry(mut self) -> Result<Entry, Mistake> {
        let value = self.integer("value")?.ok_or_else(|| self.missing("value"))?;
        Ok(Entry {
            line: self.line,
            krate: self.required("crate")?,
            function: self.required("function")?,
            machine: self.required("machine")?,
            kernel: self.text("kernel")?.unwrap_or_default(),
            value,
            low: self.integer("low")?.unwrap_or(value),
            high: self.integer("high")?.unwrap_or(value),
            code: self.text("code")?.unwrap_or_default(),
            measured: self.text("measured")?.unwrap_or_default(),
        })
    }

    fn required(&mut self, key: &str) -> Result<String, Mistake> {
        self.text(key)?.ok_or_else(|| self.missing(key))
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, Mistake> {
        match self.take(key) {
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Integer(_)) => Err(self.mistake(format!("`{key}` is a string in quotes"))),
            None => Ok(None),
        }
    }

    fn integer(&mut self, key: &str) -> Result<Option<u64>, Mistake> {
        match self.take(key) {
            Some(Value::Integer(integer)) => Ok(Some(integer)),
            Some(Value::Text(_)) => Err(self.mistake(format!("`{key}` is an integer"))),
            None => Ok(None),
        }
    }

    fn take(&mut self, key: &str) -> Option<Value> {
        let position = self.values.iter().position(|(known, _)| known == key)?;
        Some(self.values.swap_remove(position).1)
    }

    fn missing(&self, key: &str) -> Mistake {
        self.mistake(format!("this `[[threshold]]` has no `{key}`"))
    }

    fn mistake(&self, text: String) -> Mistake {
        Mistake { line: self.line, text: format!("{text}; {REMEDY}") }
    }
}

/// What stands behind an equals sign.
enum Value {
    Text(String),
    Integer(u64),
}

impl Value {
    /// The value of a line; a comment may follow it.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim_start();
        let Some(quoted) = text.strip_prefix('"') else {
            let digits = text.split('#').next()?.trim();
            let is_number = digits.starts_with(|c: char| c.is_ascii_digit());
            let integer = digits.replace('_', "").parse().ok()?;
            return is_number.then_some(Value::Integer(integer));
        };
        let mut characters = quoted.chars();
        let mut value = String::new();
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => value.push(characters.next().filter(|c| ['"', '\\'].contains(c))?),
                c => value.push(c),
            }
        }
        let rest = characters.as_str().trim_start();
        (rest.is_empty() || rest.starts_with('#')).then_some(Value::Text(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the runtime writes it.
    const WRITTEN: &str = r##"
# Thresholds that `--tune` measured.
format = 1

[[threshold]]
crate = "kernels"                       # first segment of module_path!()
function = "saxpy_rayon"
kernel = "kernels::elementwise::saxpy"
base = "saxpy"
machine = "x86_64, \"Xeon\" \\ # 1, 2 cores"
value = 46_080
low = 44032
high = 48128 # a comment
code = "1f3a9c0d2b4e5f60"
measured = "2026-11-15"
how = "kbench 0.1.0, 15 launches, seed 20260101"
"##;

    #[test]
    fn what_the_runtime_writes_is_read() {
        let expected = Entry {
            line: 5,
            krate: "kernels".into(),
            function: "saxpy_rayon".into(),
            kernel: "kernels::elementwise::saxpy".into(),
            machine: "x86_64, \"Xeon\" \\ # 1, 2 cores".into(),
            value: 46_080,
            low: 44_032,
            high: 48_128,
            code: "1f3a9c0d2b4e5f60".into(),
            measured: "2026-11-15".into(),
        };
        assert_eq!(entries(WRITTEN), Ok(vec![expected]));
    }

    #[test]
    fn other_settings_are_left_to_their_readers() {
        let text = "name = what\n[gate]\nlimits = [\n  1,\n]\n[[ threshold ]]\ncrate=\"a\"\nfunction=\"f\"\n\
                    machine=\"m\"\nvalue=3\n[kernel.x]\nformat = 9\nvalue = none\n";
        let entries = entries(text).expect("a file");
        assert_eq!(entries.len(), 1);
        assert_eq!((entries[0].value, entries[0].low, entries[0].high), (3, 3, 3));
        assert_eq!(super::entries(""), Ok(Vec::new()));
    }

    #[test]
    fn mistakes_are_told_with_their_line_and_a_remedy() {
        let table = "[[threshold]]\ncrate = \"a\"\nfunction = \"f\"\nmachine = \"m\"\n";
        for (text, line, message) in [
            (format!("{table}value 3\n"), 5, "expected `key = value`, found `value 3`"),
            (format!("{table}value = three\n"), 5, "neither a string in quotes nor an integer"),
            (format!("{table}value = +3\n"), 5, "neither a string in quotes nor an integer"),
            (format!("{table}value = \"3\"\n"), 1, "`value` is an integer"),
            (format!("{table}\nvalue = 3\nlow = \"3\" 4\n"), 7, "the value of `low` is neither"),
            (format!("{table}code = \"\\n\"\n"), 5, "the value of `code` is neither"),
            (format!("{table}value = 3\nvalue = 4\n"), 6, "`value` is there twice"),
            (table.to_owned(), 1, "has no `value`"),
            ("\n[[threshold]]\nvalue = 3\n[x]\n".to_owned(), 2, "has no `crate`"),
        ] {
            let mistake = entries(&text).expect_err(message);
            assert_eq!(mistake.line, line, "{text}\n{mistake:?}");
            assert!(mistake.text.contains(message), "{mistake:?}");
            assert!(mistake.text.ends_with("run with --tune again"), "{mistake:?}");
        }
    }

    #[test]
    fn a_newer_format_is_not_guessed_at() {
        let mistake = entries("# 1\nformat = 2\n").expect_err("newer");
        assert_eq!(mistake.line, 2);
        assert!(mistake.text.contains("knows formats up to 1"), "{mistake:?}");
        assert!(entries("format = \"1\"").expect_err("text").text.contains("is an integer"));
    }
}
