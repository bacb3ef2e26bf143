//! The messages of the attribute for what it does not accept; `tests/accepted` has what it does.
//!
//! The messages are kept beside the cases. After a change that is meant, `TRYBUILD=overwrite` writes them anew; read them
//! before they are kept.

#[test]
fn every_mistake_has_its_message() {
    let cases = trybuild::TestCases::new();
    for theme in ["options", "sizes", "inputs", "function", "variant", "dispatch", "operand"] {
        cases.compile_fail(format!("ui/{theme}/*.rs"));
    }
}
