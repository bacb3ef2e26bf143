//! The file in which a foreign worker sees the data of a cell.
//!
//! It is written and read by ordinary calls of the system here, and mapped into memory there. On Linux it has no name of its own but
//! that of this process's handle, so that nothing is left behind, however they end; elsewhere its name is gone as soon as both have
//! it open.

use std::fs::{File, remove_file};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::message::HeldOperand;
use crate::files::{Access, create_in};
use crate::kernel::{InPlace, KernelEntry};
use crate::value::{Content, Parts, Plain};

/// Every operand begins at a multiple of this: a page.
const PAGE: u64 = 4096;

/// A folder in memory, where there is one.
const IN_MEMORY: &str = "/dev/shm";

/// Data of one cell in a file.
pub(super) struct Exchange {
    file: File,
    path: PathBuf,
    pub(super) operands: Vec<HeldOperand<'static>>,
    /// Bytes of the operands that are written, where they begin and how many there are.
    written: Vec<(u64, usize)>,
}

impl Exchange {
    /// Puts operands into a new file: in memory if there is room for them, or else wherever temporary files are.
    pub(super) fn of(kernel: &'static KernelEntry, parts: [Vec<Plain<'_>>; 2]) -> io::Result<Self> {
        let named = named(kernel, parts)?;
        let folders = [PathBuf::from(IN_MEMORY), std::env::temp_dir()];
        let mut last = None;
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            match Exchange::within(folder, &named, kernel.in_place) {
                Ok(exchange) => return Ok(exchange),
                Err(error) => last = Some(error),
            }
        }
        Err(last
            .unwrap_or_else(|| io::Error::new(ErrorKind::NotFound, "there is no folder for it")))
    }

    fn within(folder: &Path, named: &[Named<'_>], in_place: InPlace) -> io::Result<Self> {
        let name = format!("kbench-{}-", std::process::id());
        let (file, path) = create_in(folder, [&name, ""], Access::Private)?;
        let path = without_name(&file, path);
        let mut exchange = Exchange { file, path, operands: Vec::new(), written: Vec::new() };
        let mut offset = 0;
        for Named { name, element, length, content, written } in named {
            let (element, length, written) = (*element, *length, *written);
            // What is only written has no content that matters.
            if !written || in_place != InPlace::No {
                exchange.write(offset, content.as_ref())?;
            }
            exchange.operands.push(HeldOperand { name, element, length, offset, written });
            if written {
                exchange.written.push((offset, content.bytes()));
            }
            offset = (offset + content.bytes() as u64).next_multiple_of(PAGE);
        }
        // A mapping reaches to the end of a page, and an empty file cannot be mapped.
        exchange.file.set_len(offset.max(PAGE))?;
        Ok(exchange)
    }

    /// Where it is, until it is hidden.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes its name away: whoever needs it has it open.
    pub(super) fn hide(&self) {
        // Handles are not files to remove.
        let _ = remove_file(&self.path);
    }

    fn write(&self, offset: u64, content: &dyn Content) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        let mut outcome = Ok(());
        content.read(&mut |piece| {
            outcome = file.write_all(piece);
            outcome.is_ok()
        });
        outcome
    }

    /// Some bytes of it.
    pub(super) fn read(&self, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let end = offset.checked_add(bytes as u64);
        if end.is_none_or(|end| self.file.metadata().is_ok_and(|file| end > file.len())) {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "it is not in the file"));
        }
        let (mut file, mut read) = (&self.file, vec![0; bytes]);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(&mut read)?;
        Ok(read)
    }

    /// Gives the outputs some content.
    pub(super) fn write_outputs(&self, parts: &[Plain<'_>]) -> io::Result<()> {
        for ((offset, _), part) in self.written.iter().zip(parts) {
            if let Plain::Numbers { content, .. } = part {
                self.write(*offset, content.as_ref())?;
            }
        }
        Ok(())
    }

    /// The content of the outputs.
    pub(super) fn outputs(&self) -> WrittenParts<'_> {
        WrittenParts { exchange: self, error: None }
    }
}

/// Outputs in a file, as another program has left them.
pub(super) struct WrittenParts<'a> {
    exchange: &'a Exchange,
    /// Why they could not be read.
    pub(super) error: Option<io::Error>,
}

impl Parts for WrittenParts<'_> {
    fn bytes(&self, part: usize) -> Option<usize> {
        self.exchange.written.get(part).map(|(_, bytes)| *bytes)
    }

    fn read(&mut self, part: usize, offset: usize, into: &mut [u8]) -> bool {
        let Some((begin, _)) = self.exchange.written.get(part) else { return false };
        let mut file = &self.exchange.file;
        let read =
            file.seek(SeekFrom::Start(begin + offset as u64)).and_then(|_| file.read_exact(into));
        self.error = read.err();
        self.error.is_none()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.hide();
    }
}

/// Takes a file's name away where it can be opened without one; gives the path by which others open it.
#[cfg(target_os = "linux")]
fn without_name(file: &File, path: PathBuf) -> PathBuf {
    use std::os::fd::AsRawFd;
    let handle = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    if !handle.exists() {
        return path;
    }
    let _ = remove_file(&path);
    handle
}

/// A file is opened by its name here.
#[cfg(not(target_os = "linux"))]
fn without_name(_: &File, path: PathBuf) -> PathBuf {
    path
}

/// An operand with its name.
struct Named<'a> {
    name: &'static str,
    element: &'static str,
    length: Option<usize>,
    content: Box<dyn Content + 'a>,
    written: bool,
}

/// Operands with their names: those that are read, and those that are written.
fn named<'a>(
    kernel: &'static KernelEntry,
    [reads, writes]: [Vec<Plain<'a>>; 2],
) -> io::Result<Vec<Named<'a>>> {
    let is_written = |name: &&'static str| kernel.outputs.contains(name);
    let (outputs, inputs): (Vec<&str>, Vec<&str>) =
        kernel.parameters.iter().copied().partition(is_written);
    if inputs.len() != reads.len() || outputs.len() != writes.len() {
        return Err(io::Error::other(
            "a parameter of the kernel is more than one sequence of numbers",
        ));
    }
    let reads = inputs.into_iter().zip(reads).map(|(name, part)| (name, part, false));
    let writes = outputs.into_iter().zip(writes).map(|(name, part)| (name, part, true));
    let named = |(name, part, written)| match part {
        Plain::Numbers { element, length, content } => {
            Some(Ok(Named { name, element, length, content, written }))
        }
        // Who does not ask for it does not miss it.
        Plain::Opaque if !written => None,
        Plain::Opaque => Some(Err(io::Error::other(format!(
            "its output `{name}` is of a type that has no form in other languages"
        )))),
    };
    reads.chain(writes).filter_map(named).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::registry::fixtures::Double;

    #[test]
    fn a_file_has_no_name_that_could_be_left_behind_and_can_be_opened_all_the_same() {
        let data = Double::ENTRY.definition.data(&[4], 1);
        let exchange = Exchange::of(Double::ENTRY, data.export()).expect("a file");
        let number = format!("kbench-{}-", std::process::id());
        let names = |folder: &Path| -> Vec<String> {
            let entries = folder.read_dir().into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        for folder in [PathBuf::from(IN_MEMORY), std::env::temp_dir()] {
            let named = names(&folder).into_iter().filter(|name| {
                let rest = name.strip_prefix(&number);
                rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
            });
            // Other tests of this process make files as well, whose names are there for a moment.
            let stays = |name: &String| {
                std::thread::sleep(std::time::Duration::from_millis(50));
                names(&folder).contains(name)
            };
            assert_eq!(named.filter(stays).collect::<Vec<_>>(), Vec::<String>::new());
        }
        let seen = std::fs::read(exchange.path()).expect("it is there");
        assert_eq!(seen.len() as u64, 2 * PAGE);
    }
}
