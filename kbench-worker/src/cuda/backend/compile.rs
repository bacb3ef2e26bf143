//! From the text of device code to machine code, by NVRTC.

use std::ffi::{CStr, CString, c_char};

use cudarc::nvrtc::{result, sys};

use super::{cache, library};
use crate::cuda::{GpuError, GpuResult};
use crate::value::Declined;

/// Device code with the options that it is compiled with.
///
/// ```
/// # use kbench_worker::cuda::Source;
/// const SOURCE: Source = Source::new("extern \"C\" __global__ void nothing() {}")
///     .named("nothing.cu")
///     .options(&["--use_fast_math"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    pub(super) text: &'static str,
    pub(super) name: &'static str,
    pub(super) options: &'static [&'static str],
    pub(super) headers: &'static [(&'static str, &'static str)],
}

impl Source {
    /// The text of a file, as `include_str!` gives it.
    pub const fn new(text: &'static str) -> Self {
        Source { text, name: "kernel.cu", options: &[], headers: &[] }
    }

    /// The file's name, for the compiler's messages.
    pub const fn named(self, name: &'static str) -> Self {
        Source { name, ..self }
    }

    /// Options of NVRTC.
    pub const fn options(self, options: &'static [&'static str]) -> Self {
        Source { options, ..self }
    }

    /// Headers that travel with the program: the name by which `#include "common.cuh"` asks for one, and its text.
    ///
    /// ```
    /// # use kbench_worker::cuda::Source;
    /// const SOURCE: Source = Source::new("#include \"half.cuh\"\nextern \"C\" __global__ void halve(float* x) { *x *= HALF; }")
    ///     .headers(&[("half.cuh", "static constexpr float HALF = 0.5f;")]);
    /// ```
    pub const fn headers(self, headers: &'static [(&'static str, &'static str)]) -> Self {
        Source { headers, ..self }
    }

    /// Its own text and those of its headers, with their names.
    fn texts(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        std::iter::once((self.name, self.text)).chain(self.headers.iter().copied())
    }
}

impl From<&'static str> for Source {
    fn from(text: &'static str) -> Self {
        Source::new(text)
    }
}

/// What the compiler made of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// Assembly, for those who read it.
    pub ptx: String,
    /// Machine code.
    pub cubin: Vec<u8>,
    /// What compiler and assembler said.
    pub log: String,
}

/// Compiles for an architecture (`sm_90`), or takes what was compiled before from the same text with the same compiler.
/// Needs no device.
pub fn compile(source: &Source, architecture: &str) -> GpuResult<Compiled> {
    let task = Task::new(source, architecture)?;
    if let Some(compiled) = task.kept() {
        return Ok(compiled);
    }
    let compiled = compile_anew(source, &task.options)?;
    if let Some(name) = &task.name {
        cache::write(name, &compiled.to_bytes());
    }
    Ok(compiled)
}

/// What was compiled before from the same text with the same compiler, if it is still there.
pub(super) fn kept(source: &Source, architecture: &str) -> GpuResult<Option<Compiled>> {
    Ok(Task::new(source, architecture)?.kept())
}

/// What the compiler is to do.
struct Task {
    options: Vec<String>,
    /// The name under which the result is kept; none where the same source may give something else tomorrow.
    name: Option<String>,
}

impl Task {
    fn new(source: &Source, architecture: &str) -> GpuResult<Self> {
        if !library::has_nvrtc() {
            return Err(Declined(crate::cuda::Unavailable::NoNvrtc.to_string()).into());
        }
        let options = all_options(source, architecture);
        let version = version()?;
        let texts = source.texts().flat_map(|(name, text)| [text, name]);
        let parts =
            [version.as_str()].into_iter().chain(texts).chain(options.iter().map(String::as_str));
        let key = cache::fingerprint(parts.map(str::as_bytes));
        let name = (!includes_others(source)).then(|| format!("code/{key:032x}"));
        Ok(Task { options, name })
    }

    fn kept(&self) -> Option<Compiled> {
        Compiled::from_bytes(&cache::read(self.name.as_ref()?)?)
    }
}

/// Whether a source may include files other than the toolkit's and its own headers: they can change while all that is known
/// of it stays the same.
fn includes_others(source: &Source) -> bool {
    let is_other = |line: &str| {
        let line = line.trim_start();
        let name = line.split('"').nth(1);
        let is_own = |name| source.headers.iter().any(|(own, _)| *own == name);
        line.starts_with('#') && line.contains("include") && name.is_some_and(|name| !is_own(name))
    };
    let names_folder = |option: &&str| option.starts_with("-I") || option.contains("-include");
    source.texts().any(|(_, text)| text.lines().any(is_other))
        || source.options.iter().any(names_folder)
}

fn all_options(source: &Source, architecture: &str) -> Vec<String> {
    let own = [
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".to_owned(),
        // Lines for profilers; the machine code stays the same.
        "--generate-line-info".to_owned(),
        // Registers and spills of every kernel, in the log.
        "--ptxas-options=--verbose".to_owned(),
    ];
    let folders = library::include_folders();
    let folders = folders.iter().map(|folder| format!("--include-path={}", folder.display()));
    own.into_iter().chain(folders).chain(source.options.iter().map(|o| (*o).to_owned())).collect()
}

/// The compiler's version: another one makes other code.
fn version() -> GpuResult<String> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is there, and the function writes two integers.
    let asked = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    match asked.result() {
        Ok(()) => Ok(format!("NVRTC {major}.{minor}")),
        Err(error) => {
            Err(GpuError::Failed(format!("NVRTC does not tell its version: {:?}", error.0)))
        }
    }
}

fn compile_anew(source: &Source, options: &[String]) -> GpuResult<Compiled> {
    let failed = |doing: &str, code: sys::nvrtcResult| {
        GpuError::Failed(format!("{}: NVRTC fails {doing}: {code:?}", source.name))
    };
    let program = Program::new(source)?.map_err(|code| failed("reading the source", code))?;
    // SAFETY: the program was just created, and is destroyed when it goes out of scope.
    let compiled = unsafe { result::compile_program(program.0, options) };
    // SAFETY: as above.
    let log = unsafe { result::get_program_log(program.0) };
    let log = text_of(&log.map_err(|error| failed("reading its log", error.0))?);
    if let Err(error) = compiled {
        if log.is_empty() {
            return Err(failed("compiling", error.0));
        }
        return Err(GpuError::Failed(explain(source, &log)));
    }
    // SAFETY: the program is compiled.
    let ptx = unsafe { result::get_ptx(program.0) };
    let ptx = text_of(&ptx.map_err(|error| failed("giving PTX", error.0))?);
    let cubin = program.cubin().map_err(|code| failed("giving machine code", code))?;
    Ok(Compiled { ptx, cubin, log })
}

/// A program of NVRTC.
struct Program(sys::nvrtcProgram);

impl Program {
    /// A source with its headers; the outer error is about its texts, the inner one the compiler's.
    fn new(source: &Source) -> GpuResult<Result<Self, sys::nvrtcResult>> {
        let c_string = |text: &str| {
            let zero =
                |_| GpuError::Failed(format!("{}: the text contains a zero byte", source.name));
            CString::new(text).map_err(zero)
        };
        let (text, name) = (c_string(source.text)?, c_string(source.name)?);
        let headers = source.headers.iter();
        let headers: Vec<(CString, CString)> = headers
            .map(|(name, text)| Ok((c_string(name)?, c_string(text)?)))
            .collect::<GpuResult<_>>()?;
        let names: Vec<*const c_char> = headers.iter().map(|(name, _)| name.as_ptr()).collect();
        let texts: Vec<*const c_char> = headers.iter().map(|(_, text)| text.as_ptr()).collect();
        let mut program = std::ptr::null_mut();
        // SAFETY: all texts end with a zero byte and outlive the call, and there are as many as is said.
        let made = unsafe {
            let count = headers.len() as i32;
            let (texts, names) = (texts.as_ptr(), names.as_ptr());
            sys::nvrtcCreateProgram(&mut program, text.as_ptr(), name.as_ptr(), count, texts, names)
        };
        Ok(made.result().map(|()| Program(program)).map_err(|error| error.0))
    }

    fn cubin(&self) -> Result<Vec<u8>, sys::nvrtcResult> {
        let mut size = 0;
        // SAFETY: the program is compiled, and the function writes one integer.
        unsafe { sys::nvrtcGetCUBINSize(self.0, &mut size) }.result().map_err(|e| e.0)?;
        let mut cubin = vec![0u8; size];
        // SAFETY: the buffer has the size that was asked for.
        unsafe { sys::nvrtcGetCUBIN(self.0, cubin.as_mut_ptr().cast::<c_char>()) }
            .result()
            .map_err(|e| e.0)?;
        Ok(cubin)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: nobody else has the program.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

/// Text of C, up to its zero byte.
fn text_of(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|byte| *byte as u8).collect();
    match CStr::from_bytes_until_nul(&bytes) {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// Messages that are shown at most.
const MOST_MESSAGES: usize = 10;

/// The compiler's errors, each with the line that it is about.
fn explain(source: &Source, log: &str) -> String {
    let mut text = format!("{} does not compile:", source.name);
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("error")).collect();
    let shown = if errors.is_empty() { log.lines().collect() } else { errors };
    for message in shown.iter().take(MOST_MESSAGES) {
        text += &format!("\n  {message}");
        if let Some((number, line)) = line_of(source, message) {
            text += &format!("\n  {number:>5} | {}", line.trim_end());
        }
    }
    if shown.len() > MOST_MESSAGES {
        text += &format!("\n  and {} more", shown.len() - MOST_MESSAGES);
    }
    text
}

/// The line that a message like `saxpy.cu(3): error: ...` is about.
fn line_of<'s>(source: &'s Source, message: &str) -> Option<(usize, &'s str)> {
    source.texts().find_map(|(name, text)| {
        let number = message.strip_prefix(name)?.strip_prefix('(')?.split(')').next()?;
        let number: usize = number.parse().ok()?;
        Some((number, text.lines().nth(number.checked_sub(1)?)?))
    })
}

impl Compiled {
    /// Bytes that a thread of a kernel spills, by the assembler's report.
    pub(super) fn spill_bytes(&self, kernel: &str) -> Option<u32> {
        let mut lines = self.log.lines().skip_while(|line| {
            !(line.contains("Compiling entry function") && line.contains(&format!("'{kernel}'")))
        });
        let line = lines.find(|line| line.contains("bytes spill stores"))?;
        let figure = |what: &str| {
            let before = line.split(what).next()?;
            before.rsplit(',').next()?.trim().parse::<u32>().ok()
        };
        Some(figure(" bytes spill stores")? + figure(" bytes spill loads")?)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let lengths = format!("{} {} {}\n", self.ptx.len(), self.log.len(), self.cubin.len());
        [lengths.as_bytes(), self.ptx.as_bytes(), self.log.as_bytes(), &self.cubin].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let lengths = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lengths = lengths.split(' ').map(str::parse::<usize>);
        let (ptx, rest) = bytes[end + 1..].split_at_checked(lengths.next()?.ok()?)?;
        let (log, cubin) = rest.split_at_checked(lengths.next()?.ok()?)?;
        let is_whole = cubin.len() == lengths.next()?.ok()?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        is_whole.then_some(Compiled { ptx: text(ptx)?, log: text(log)?, cubin: cubin.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source =
        Source::new("extern \"C\" __global__ void twice(float* x) {\n    *x += undefined;\n}\n")
            .named("twice.cu");

    #[test]
    fn an_error_shows_the_line_that_it_is_about() {
        let log =
            "twice.cu(2): error: identifier \"undefined\" is undefined\n      *x += undefined;\n";
        let text = explain(&SOURCE, log);
        assert!(text.starts_with("twice.cu does not compile:"), "{text}");
        assert!(text.ends_with("\n      2 |     *x += undefined;"), "{text}");
    }

    #[test]
    fn an_error_in_a_header_shows_its_line() {
        let source = SOURCE.headers(&[("common.cuh", "// nothing\nint x = y;\n")]);
        let text = explain(&source, "common.cuh(2): error: identifier \"y\" is undefined\n");
        assert!(text.ends_with("\n      2 | int x = y;"), "{text}");
    }

    #[test]
    fn a_source_is_kept_unless_it_includes_files_of_the_machine() {
        assert!(!includes_others(&Source::new("#include <cuda_fp16.h>\nint x;")));
        let own = Source::new("#include \"mine.h\"").headers(&[("mine.h", "int x;")]);
        assert!(!includes_others(&own));
        assert!(includes_others(&own.headers(&[("mine.h", "#include \"other.h\"")])));
        assert!(includes_others(&Source::new("int x;\n # include \"mine.h\"")));
        assert!(includes_others(&Source::new("int x;").options(&["-Iinclude"])));
        assert!(includes_others(&Source::new("int x;").options(&["--include-path=include"])));
    }

    #[test]
    fn what_is_kept_comes_back_whole_or_not_at_all() {
        let compiled = Compiled {
            ptx: ".version 9".into(),
            cubin: vec![0, 255, 10],
            log: "info\nmore".into(),
        };
        let bytes = compiled.to_bytes();
        assert_eq!(Compiled::from_bytes(&bytes), Some(compiled));
        assert_eq!(Compiled::from_bytes(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn spills_are_read_from_the_report_of_their_own_kernel() {
        let log = "ptxas info    : Compiling entry function 'first' for 'sm_90'\n\
                   ptxas info    : Function properties for first\n    \
                   0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                   ptxas info    : Compiling entry function 'second' for 'sm_90'\n\
                   ptxas info    : Function properties for second\n    \
                   48 bytes stack frame, 40 bytes spill stores, 8 bytes spill loads\n";
        let compiled = Compiled { ptx: String::new(), cubin: Vec::new(), log: log.into() };
        assert_eq!(compiled.spill_bytes("first"), Some(0));
        assert_eq!(compiled.spill_bytes("second"), Some(48));
        assert_eq!(compiled.spill_bytes("third"), None);
    }
}
