use super::StoreError;

/// Bytes of the longest name.
const LONGEST: usize = 64;

/// Names that Windows keeps for devices, with whatever ending.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// The same with a digit behind them.
const PORTS: [&str; 2] = ["com", "lpt"];

/// Whether a baseline may be called so: a name is also the name of a folder, and must not look like a file of its own.
pub fn check_name(name: &str) -> Result<(), StoreError> {
    match is_name(name) {
        true => Ok(()),
        false => Err(StoreError::BadName { name: name.to_owned(), most: LONGEST }),
    }
}

/// Whether a name is that of a file or a folder on every system, and of nothing outside of the folder that it is in.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_digit = |rest: &str| matches!(rest.as_bytes(), [b'1'..=b'9']);
    let is_port = PORTS.iter().any(|port| stem.strip_prefix(port).is_some_and(is_digit));
    let is_device = is_port || DEVICES.contains(&stem.as_str());
    begins
        && !name.ends_with('.')
        && !name.ends_with(".json")
        && !is_device
        && name.len() <= LONGEST
        && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_folder() {
        for name in ["main", "v1.2", "a-b_c", "7", "x-", "console", "com", "com10", &"x".repeat(64)]
        {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = "x".repeat(65);
        let too_long = "x".repeat(300);
        for name in [
            "",
            ".",
            "..",
            ".hidden",
            "a/b",
            "../../x",
            "/etc/passwd",
            "a\\b",
            "C:x",
            "ä",
            "a b",
            "-x",
            "x.json",
            "x.",
            "con",
            "NUL",
            "aux.txt",
            "com1",
            "a\0b",
            "a\nb",
            "🚀",
            "<script>",
            &long,
            &too_long,
        ] {
            let error = check_name(name).expect_err(name).to_string();
            assert!(error.contains("use letters, digits"), "{error}");
        }
    }
}
