use super::StoreError;

/// Bytes of the longest name.
const LONGEST: usize = 64;

/// Whether a baseline may be called so: a name is also the name of a folder, and must not look like a file of its own.
pub fn check_name(name: &str) -> Result<(), StoreError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_file = name.ends_with(".json");
    if begins && !is_file && name.len() <= LONGEST && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(StoreError::BadName { name: name.to_owned(), most: LONGEST })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_folder() {
        for name in ["main", "v1.2", "a-b_c", "7", &"x".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = "x".repeat(65);
        for name in
            ["", ".", "..", ".hidden", "a/b", "../x", "a\\b", "ä", "a b", "-x", "x.json", &long]
        {
            let error = check_name(name).expect_err(name).to_string();
            assert!(error.contains("use letters, digits"), "{error}");
        }
    }
}
