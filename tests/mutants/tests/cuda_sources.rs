//! The device code of all variants compiles, whatever the machine has: NVRTC needs no device.

use kbench::cuda::compile;
use kbench::{GpuError, Source};

#[test]
fn device_code_compiles_and_has_every_kernel_that_is_named() {
    const SOURCE: Source = Source::new(include_str!("../cuda/mutants.cu")).named("mutants.cu");
    let compiled = match compile(&SOURCE, "sm_90") {
        Ok(compiled) => compiled,
        Err(error @ GpuError::Declined(_)) => {
            assert!(std::env::var_os("KBENCH_REQUIRE_NVRTC").is_none(), "{error}");
            eprintln!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut names = 0;
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).expect("a folder") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("readable");
        for rest in text.split(".kernel(SOURCE, \"").skip(1) {
            let name = rest.split('"').next().expect("the end of a name");
            assert!(compiled.ptx.contains(&format!(".entry {name}(")), "{name}");
            names += 1;
        }
    }
    assert!(names >= 18, "{names} kernels are named");
}
