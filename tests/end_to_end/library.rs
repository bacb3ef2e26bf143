//! The kernel library, checked by its own suite.

use kbench_tests::example_command;

use super::support::Finished;

#[test]
fn every_kernel_of_the_library_passes_its_checks() {
    let run = Finished::of(example_command("suite").args(["--test", "--no-gpu"]));
    run.assert_code(0);
    run.assert_stdout("test kernels::elementwise::");
    // What does not fit into a second per kernel is skipped: the number depends on the machine.
    let result = run.stdout.lines().rfind(|line| line.starts_with("test result: ok. "));
    let passed = result.and_then(|line| line.split(' ').nth(3)?.parse::<usize>().ok());
    assert!(passed >= Some(700), "{result:?}");
}
