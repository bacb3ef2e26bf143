//! What is kept between runs: compiled device code, and what devices were measured to be capable of.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::cuda::CACHE;
use crate::files::{self, Access, Draft};

/// More than any device code that is kept has.
const MOST_BYTES: u64 = 1 << 30;

/// Where it is kept: `KBENCH_CACHE`, or `kbench` in the user's cache folder; none where there is no such place.
pub(super) fn folder() -> Option<PathBuf> {
    let named = env::var_os(CACHE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let of_user = || {
        let cache = env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
        let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cache"));
        Some(cache.map(PathBuf::from).or_else(home)?.join("kbench"))
    };
    named.or_else(of_user)
}

/// What is kept under a name, if it is whole and nobody else can have written it: it runs on the device.
pub(super) fn read(name: &str) -> Option<Vec<u8>> {
    read_file(&folder()?.join(name))
}

fn read_file(path: &Path) -> Option<Vec<u8>> {
    let file = files::open(path).ok()?;
    file.metadata().ok().filter(files::is_private)?;
    let file = files::read_file(file, MOST_BYTES).ok()?;
    let (digest, content) = file.split_at_checked(16)?;
    (digest == fingerprint([content]).to_be_bytes()).then(|| content.to_vec())
}

/// Keeps something under a name. That it cannot be kept is no reason to fail: it is made again next time.
pub(super) fn write(name: &str, content: &[u8]) {
    let _ = folder().map(|folder| write_file(&folder.join(name), content));
}

/// Whoever reads finds a whole file or none, also when several threads and processes write at once.
fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    fs::create_dir_all(path.parent().ok_or(io::ErrorKind::NotFound)?)?;
    let mut draft = Draft::of(path, Access::Private)?;
    draft.file().write_all(&fingerprint([content]).to_be_bytes())?;
    draft.file().write_all(content)?;
    draft.finish()
}

/// A digest of 128 bits that is the same on every machine (FNV-1a, Fowler, Noll and Vo); parts do not run into each
/// other.
pub(super) fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let step = |digest: u128, byte: &u8| (digest ^ u128::from(*byte)).wrapping_mul(PRIME);
    parts.into_iter().fold(OFFSET, |digest, part| {
        let digest = part.iter().fold(digest, step);
        part.len().to_le_bytes().iter().fold(digest, step)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_sees_every_byte_and_where_parts_end() {
        let digest = |parts: &[&str]| fingerprint(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(digest(&["ab", "c"]), digest(&["ab", "c"]));
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_ne!(digest(&["ab"]), digest(&["ac"]));
        assert_ne!(digest(&[""]), digest(&["", ""]));
    }

    #[cfg(unix)]
    #[test]
    fn device_code_that_others_may_have_written_is_not_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = env::temp_dir().join(format!("kbench-others-{}", std::process::id()));
        let path = folder.join("code");
        write_file(&path, b"code").expect("a temporary folder");
        assert_eq!(read_file(&path).as_deref(), Some(&b"code"[..]));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("set");
        assert_eq!(read_file(&path), None);
        // One that is written again is the user's own.
        write_file(&path, b"code").expect("a temporary folder");
        assert!(read_file(&path).is_some());
        fs::remove_dir_all(&folder).expect("it is there");
    }

    #[test]
    fn whoever_reads_finds_a_whole_file_whoever_else_writes() {
        let folder = env::temp_dir().join(format!("kbench-cache-{}", std::process::id()));
        let path = folder.join("code/0123");
        let content = |writer: u8| vec![writer; 1 << 16];
        write_file(&path, &content(0)).expect("a temporary folder");
        std::thread::scope(|scope| {
            for writer in 1..5 {
                let (path, content) = (&path, content(writer));
                scope.spawn(move || {
                    for _ in 0..20 {
                        write_file(path, &content).expect("a temporary folder");
                        let found = read_file(path).expect("a whole file");
                        assert!(found.len() == 1 << 16 && found.iter().all(|b| *b == found[0]));
                    }
                });
            }
        });
        let files = fs::read_dir(path.parent().expect("a folder")).expect("a folder").count();
        assert_eq!(files, 1, "no draft is left");
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
