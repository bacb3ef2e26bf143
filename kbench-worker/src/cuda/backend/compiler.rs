//! The compiler of one device, which can compile many sources side by side.
//!
//! Which sources a kernel needs is known when it asks for them, and not before. Where many kernels are called the compiler
//! therefore *collects*: a source that was never compiled is put off, and the call that asked for it fails. When all kernels
//! were called, the sources that came together are compiled on all cores, and the calls that failed are made again.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::compile::{Compiled, Source, compile, kept};
use crate::cuda::{GpuError, GpuResult};

/// Compiles for one architecture.
pub(super) struct Compiler {
    architecture: String,
    /// Whether sources that were never compiled are put off.
    is_collecting: Cell<bool>,
    /// Whether one was, since somebody asked last.
    has_put_off: Cell<bool>,
    collected: RefCell<Vec<Source>>,
    /// What came of sources that were compiled side by side, mistakes included: whoever asks again is told.
    made: RefCell<HashMap<Source, GpuResult<Compiled>>>,
}

impl Compiler {
    /// A compiler that puts nothing off.
    pub(super) fn new(architecture: String) -> Self {
        Compiler {
            architecture,
            is_collecting: Cell::new(false),
            has_put_off: Cell::new(false),
            collected: RefCell::default(),
            made: RefCell::default(),
        }
    }

    /// The architecture that it compiles for.
    pub(super) fn architecture(&self) -> &str {
        &self.architecture
    }

    /// What comes of a source: from memory, from disk, or compiled now unless it is put off.
    pub(super) fn compile(&self, source: &Source) -> GpuResult<Compiled> {
        if let Some(made) = self.made.borrow().get(source) {
            return made.clone();
        }
        if !self.is_collecting.get() {
            return compile(source, &self.architecture);
        }
        if let Some(kept) = kept(source, &self.architecture)? {
            return Ok(kept);
        }
        self.has_put_off.set(true);
        let mut collected = self.collected.borrow_mut();
        if !collected.contains(source) {
            collected.push(*source);
        }
        Err(GpuError::Failed(format!("{} is not compiled yet", source.name)))
    }

    /// Puts sources off from now on, or does not.
    pub(super) fn collect(&self, is_collecting: bool) {
        self.is_collecting.set(is_collecting);
    }

    /// Whether a source was put off since this was last asked.
    pub(super) fn has_put_off(&self) -> bool {
        self.has_put_off.take()
    }

    /// Compiles what was collected, on all cores; tells how many of how many are done.
    pub(super) fn compile_collected(&self, tell: &mut dyn FnMut(usize, usize)) {
        let sources = self.collected.take();
        if sources.is_empty() {
            return;
        }
        tell(0, sources.len());
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let architecture = self.architecture.as_str();
        thread::scope(|scope| {
            for _ in 0..cores.min(sources.len()) {
                let (sender, next, sources) = (sender.clone(), &next, &sources);
                scope.spawn(move || {
                    while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let _ = sender.send((*source, compile(source, architecture)));
                    }
                });
            }
            drop(sender);
            for (done, (source, made)) in receiver.into_iter().enumerate() {
                self.made.borrow_mut().insert(source, made);
                tell(done + 1, sources.len());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never kept on disk, as it may include files of the machine.
    const RIGHT: Source = Source::new("extern \"C\" __global__ void one(float* x) { *x = 1.0f; }")
        .named("right.cu")
        .options(&["-I."]);
    const WRONG: Source = Source::new("extern \"C\" __global__ void one(float* x) { *x = y; }")
        .named("wrong.cu")
        .options(&["-I."]);

    /// A compiler, or none where there is no NVRTC; CI says that there is.
    fn compiler() -> Option<Compiler> {
        let compiler = Compiler::new("sm_90a".to_owned());
        match compiler.compile(&RIGHT) {
            Err(error @ GpuError::Declined(_)) => {
                assert!(std::env::var_os("KBENCH_REQUIRE_NVRTC").is_none(), "{error}");
                eprintln!("skipped: {error}");
                None
            }
            compiled => {
                compiled.expect("there is nothing wrong with it");
                Some(compiler)
            }
        }
    }

    #[test]
    fn sources_are_put_off_and_compiled_together() {
        let Some(compiler) = compiler() else { return };
        assert!(!compiler.has_put_off(), "a compiler that does not collect puts nothing off");
        compiler.collect(true);
        for source in [RIGHT, WRONG, RIGHT] {
            let error = compiler.compile(&source).expect_err("it is put off");
            assert_eq!(error.to_string(), format!("{} is not compiled yet", source.name));
            assert!(compiler.has_put_off() && !compiler.has_put_off());
        }
        let mut told = Vec::new();
        compiler.compile_collected(&mut |done, all| told.push((done, all)));
        assert_eq!(told, [(0, 2), (1, 2), (2, 2)], "each is compiled once");
        assert!(!compiler.compile(&RIGHT).expect("it is compiled").cubin.is_empty());
        let error = compiler.compile(&WRONG).expect_err("a mistake").to_string();
        assert!(error.starts_with("wrong.cu does not compile:"), "{error}");
        assert!(!compiler.has_put_off(), "nothing is put off twice");
        compiler.compile_collected(&mut |_, _| panic!("nothing is left to compile"));
    }

    #[test]
    fn a_source_that_was_compiled_before_is_not_put_off() {
        let Some(compiler) = compiler() else { return };
        let before = Source { options: &[], ..RIGHT };
        compiler.compile(&before).expect("there is nothing wrong with it");
        compiler.collect(true);
        // Where nothing can be kept on disk, every source is new.
        let is_kept = kept(&before, compiler.architecture()).expect("a compiler").is_some();
        assert_eq!(compiler.compile(&before).is_ok(), is_kept);
        assert_eq!(compiler.has_put_off(), !is_kept);
    }
}
