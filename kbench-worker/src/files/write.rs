//! Writing files that appear whole, or not at all.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, Metadata};
use std::hash::BuildHasher;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::owner::{is_own, is_trusted};
use crate::system::{SYNCS_FILE_SYSTEMS, sync_file_system};

/// What the names of files begin with that are not yet in their places.
const PREFIX: &str = ".tmp-";

/// Names that are tried: each has 64 random bits, so a second one is needed only where somebody plays tricks.
const ATTEMPTS: usize = 16;

/// Links that lead from one to the next: more are a ring.
const MOST_LINKS: usize = 40;

/// Who may use a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Those whom the user lets use new files.
    Usual,
    /// The user alone.
    Private,
    /// The user alone, who may also run it.
    Program,
}

impl Access {
    #[cfg(unix)]
    fn mode(self) -> u32 {
        match self {
            Access::Usual => 0o666,
            Access::Private => 0o600,
            Access::Program => 0o700,
        }
    }
}

/// Makes a new file in a folder, with random digits between the two parts of its name, and gives its path. Nothing that is
/// there is opened, and no link followed.
pub fn create_in(folder: &Path, name: [&str; 2], access: Access) -> io::Result<(File, PathBuf)> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, access.mode());
    let _ = access;
    under_random_name(folder, name, |path| options.open(path))
}

/// Gives a function random names in a folder until one is free.
fn under_random_name<T>(
    folder: &Path,
    [begin, end]: [&str; 2],
    mut make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut outcome = Err(io::Error::from(ErrorKind::AlreadyExists));
    for _ in 0..ATTEMPTS {
        // Every hasher of the standard library has random keys.
        let number = RandomState::new().hash_one(NEXT.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(format!("{begin}{number:016x}{end}"));
        outcome = make(&path).map(|made| (made, path));
        if !matches!(&outcome, Err(error) if error.kind() == ErrorKind::AlreadyExists) {
            break;
        }
    }
    outcome
}

/// Whether a file has the name of one that is not yet in its place.
pub fn is_draft(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
}

/// A new file beside the place where it is to be. It is removed unless it gets there.
pub struct Draft {
    file: File,
    written: Written,
    /// Whether it gets the permissions of what it replaces.
    keeps_permissions: bool,
}

/// A draft that is written.
struct Written {
    path: PathBuf,
    place: PathBuf,
}

impl Draft {
    /// Begins a file for a place. A usual one that replaces another of the user's gets its permissions when it is finished, and
    /// is private until then.
    pub fn of(place: &Path, access: Access) -> io::Result<Self> {
        let is_replaced = |found: Metadata| found.is_file() && is_own(&found);
        let replaces = fs::symlink_metadata(place).is_ok_and(is_replaced);
        let keeps_permissions = replaces && access == Access::Usual;
        let access = if keeps_permissions { Access::Private } else { access };
        let (file, path) = create_in(folder_of(place), [PREFIX, ""], access)?;
        let written = Written { path, place: place.to_owned() };
        Ok(Draft { file, written, keeps_permissions })
    }

    /// The file, to be written.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Brings the content to the disk, and moves the file to its place. The name is on the disk after [`sync_folder`].
    pub fn finish(self) -> io::Result<()> {
        // Else the name could be on the disk before the content is, should the machine lose its power now.
        self.file.sync_all()?;
        self.close()?.settle()
    }

    fn close(self) -> io::Result<Written> {
        if self.keeps_permissions
            && let Ok(replaced) = fs::symlink_metadata(&self.written.place)
            && is_own(&replaced)
        {
            keep_permissions(&self.file, &replaced)?;
        }
        Ok(self.written)
    }
}

impl Written {
    fn settle(mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.place)?;
        self.path = PathBuf::new();
        Ok(())
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes files below a folder, which is made when it is missing. Each is there as a whole or not at all.
pub fn put_all(root: &Path, files: &[(PathBuf, String)]) -> io::Result<()> {
    let mut written = Vec::new();
    for (path, text) in files {
        let place = root.join(path);
        make_folder(root, folder_of(&place))?;
        let mut draft = Draft::of(&place, Access::Usual)?;
        draft.file.write_all(text.as_bytes())?;
        if !SYNCS_FILE_SYSTEMS {
            draft.file.sync_all()?;
        }
        written.push(draft.close()?);
    }
    // One by one, thousands of files would take minutes.
    let folder = open_folder(root)?;
    sync_file_system(folder.as_ref())?;
    written.into_iter().try_for_each(Written::settle)?;
    let _ = sync_file_system(folder.as_ref());
    Ok(())
}

/// A folder, where it can be opened.
fn open_folder(folder: &Path) -> io::Result<Option<File>> {
    if cfg!(unix) { File::open(folder).map(Some) } else { Ok(None) }
}

/// Gives a file the group and the permissions of the one that it replaces.
#[cfg(unix)]
fn keep_permissions(file: &File, replaced: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let mut mode = replaced.mode() & 0o777;
    if file.metadata()?.gid() != replaced.gid() && fchown(file, None, Some(replaced.gid())).is_err()
    {
        // What was for one group is not for another.
        mode &= 0o707;
    }
    match file.set_permissions(fs::Permissions::from_mode(mode)) {
        // Some file systems have no permissions.
        Err(error)
            if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        outcome => outcome,
    }
}

/// Permissions go with the folder here.
#[cfg(not(unix))]
fn keep_permissions(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Writes a file whose path the user names, as a whole: a reader sees the old content or the new one, also after the machine lost
/// its power. A link is followed if it is the user's or the system's. A pipe or a device of theirs is written to.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let place = followed(path);
    match fs::symlink_metadata(&place) {
        Ok(found) if found.is_file() || found.is_symlink() => put(&place, bytes),
        Ok(found) if found.is_dir() => Err(io::Error::from(ErrorKind::IsADirectory)),
        Ok(found) if is_trusted(&found) => {
            let mut options = File::options();
            options.write(true);
            // Another user may have put a link there since.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
            options.open(&place)?.write_all(bytes)
        }
        Ok(_) => {
            let text = "it is a pipe or a device of another user";
            Err(io::Error::new(ErrorKind::PermissionDenied, text))
        }
        // `/dev/stdout` leads to what has no path of its own.
        Err(_) if fs::metadata(path).is_ok_and(|found| !found.is_file()) => {
            File::options().write(true).open(path)?.write_all(bytes)
        }
        Err(_) => put(&place, bytes),
    }
}

/// Adds text to a regular file, which is made if there is none. A link is followed if it is the user's or the system's.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOFOLLOW,
    );
    let mut file = options.open(followed(path))?;
    super::read::must_be_regular(&file.metadata()?)?;
    file.write_all(bytes)
}

/// Sets the time at which a file was changed to now.
pub fn touch(path: &Path) -> io::Result<()> {
    // Windows does that for files alone that are open for writing.
    let file = File::options().read(true).append(cfg!(windows)).open(path)?;
    file.set_modified(SystemTime::now())
}

/// Writes a file as a whole, in place of whatever has its name: also of a link, which is not followed.
pub fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = Draft::of(path, Access::Usual)?;
    draft.file().write_all(bytes)?;
    draft.finish()?;
    sync_folder(folder_of(path));
    Ok(())
}

/// Where a path leads by links of the user and of the system. Others may have made a link to a file of the user's.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let is_followed = |found: Metadata| found.is_symlink() && is_trusted(&found);
        if !fs::symlink_metadata(&path).is_ok_and(is_followed) {
            break;
        }
        let Ok(target) = fs::read_link(&path) else { break };
        path = folder_of(&path).join(target);
    }
    path
}

/// Makes a folder, and all that lead to it from a root. None of those below the root may be a link of another user.
pub fn make_folder(root: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(root)?;
    let mut below: Vec<&Path> = folder.ancestors().take_while(|folder| *folder != root).collect();
    below.reverse();
    for folder in below {
        match fs::create_dir(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            outcome => outcome?,
        }
        let found = fs::symlink_metadata(folder)?;
        if found.is_symlink() && !is_trusted(&found) {
            let text = format!("`{}` is a link of another user", folder.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, text));
        }
    }
    Ok(())
}

/// Opens a file that is there for its lock alone; it is made if there is none. A link is not followed.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).write(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NOFOLLOW | libc::O_NONBLOCK,
    );
    options.open(path)
}

/// A second name for a file, in place of whatever had it; a copy where the system has no such thing.
pub fn link(from: &Path, to: &Path) -> io::Result<()> {
    let linked = under_random_name(folder_of(to), [PREFIX, ""], |path| fs::hard_link(from, path));
    match linked {
        Ok(((), path)) => {
            let moved = fs::rename(&path, to);
            // After a rename between two names of the same file both are still there.
            let _ = fs::remove_file(&path);
            moved?;
        }
        Err(_) => {
            let mut draft = Draft::of(to, Access::Usual)?;
            io::copy(&mut super::open(from)?, draft.file())?;
            draft.finish()?;
        }
    }
    sync_folder(folder_of(to));
    Ok(())
}

/// Brings the names of a folder to the disk, where the system can do that.
pub fn sync_folder(folder: &Path) {
    if let Ok(Some(folder)) = open_folder(folder) {
        let _ = folder.sync_all();
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
