use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use super::*;

/// A folder of its own, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("kbench-files-{:?}-{}", std::thread::current().id(), std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("made");
        Folder(folder)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("written");
        path
    }

    fn names(&self) -> usize {
        fs::read_dir(&self.0).expect("there").count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_is_read_up_to_its_limit() {
    let folder = Folder::new();
    let file = folder.file("file", "12345");
    assert_eq!(read_text(&file, 5).expect("small enough"), "12345");
    assert_eq!(read(&file, u64::MAX).expect("no limit"), b"12345");
    let error = read(&file, 4).expect_err("too large");
    let source = error.get_ref().and_then(|error| error.downcast_ref::<TooLarge>());
    assert_eq!(source.map(|error| error.limit), Some(4), "{error}");
    fs::write(&file, b"a\xff").expect("written");
    assert!(read_text(&file, 5).expect_err("no text").to_string().contains("UTF-8"));
    let error = read(&folder.0, 5).expect_err("a folder").to_string();
    assert!(error.contains("it is a folder"), "{error}");
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused_at_once() {
    let folder = Folder::new();
    let pipe = folder.0.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let linked = folder.0.join("linked");
    std::os::unix::fs::symlink("/dev/zero", &linked).expect("linked");
    for path in [pipe, linked, PathBuf::from("/dev/zero")] {
        let error = read(&path, 1 << 20).expect_err("no file").to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}

#[test]
fn a_file_is_replaced_as_a_whole_and_no_draft_is_left() {
    let folder = Folder::new();
    let file = folder.0.join("file");
    for text in ["one", "two"] {
        replace(&file, text.as_bytes()).expect("written");
        assert_eq!(fs::read_to_string(&file).expect("there"), text);
    }
    let mut draft = Draft::of(&file, Access::Usual).expect("begun");
    std::io::Write::write_all(draft.file(), b"three").expect("written");
    assert_eq!(folder.names(), 2);
    drop(draft);
    assert_eq!((fs::read_to_string(&file).expect("there"), folder.names()), ("two".into(), 1));
    assert!(replace(&folder.0.join("gone/file"), b"").is_err());
    let name = folder.0.join("name");
    for _ in 0..2 {
        link(&file, &name).expect("linked");
        assert_eq!(fs::read_to_string(&name).expect("there"), "two");
    }
    assert_eq!(folder.names(), 2);
}

#[test]
fn a_tree_of_files_is_there_as_a_whole() {
    let folder = Folder::new();
    let root = folder.0.join("tree");
    let files = |text: &str| -> Vec<(PathBuf, String)> {
        ["a", "b/c", "b/d/e"].map(|path| (PathBuf::from(path), text.to_owned())).to_vec()
    };
    for text in ["one", "two"] {
        put_all(&root, &files(text)).expect("written");
        for (path, _) in files(text) {
            assert_eq!(fs::read_to_string(root.join(path)).expect("there"), text);
        }
        assert_eq!(fs::read_dir(root.join("b")).expect("there").count(), 2, "no draft is left");
    }
    fs::create_dir_all(root.join("f")).expect("made");
    let mixed = [files("three"), vec![(PathBuf::from("f"), String::new())]].concat();
    assert!(put_all(&root, &mixed).is_err(), "a folder has the name of the last");
    assert_eq!(fs::read_dir(&root).expect("there").count(), 3, "no draft is left");
}

#[test]
fn a_new_file_has_a_name_that_cannot_be_foreseen() {
    let folder = Folder::new();
    let paths: Vec<PathBuf> = (0..20)
        .map(|_| create_in(&folder.0, ["a-", ".b"], Access::Private).expect("made").1)
        .collect();
    let names = paths.iter().map(|path| path.file_name().expect("a name").to_string_lossy());
    let digits = |name: &str| Some(name.strip_prefix("a-")?.strip_suffix(".b")?.to_owned());
    let digits: HashSet<String> = names.filter_map(|name| digits(&name)).collect();
    assert!(digits.len() == 20 && digits.iter().all(|digits| digits.len() == 16), "{digits:?}");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn mode(path: &std::path::Path) -> u32 {
        fs::metadata(path).expect("there").mode() & 0o777
    }

    #[test]
    fn permissions_of_what_is_replaced_are_kept() {
        let folder = Folder::new();
        let [file, usual] = ["file", "usual"].map(|name| folder.file(name, "old"));
        for kept in [0o600, 0o640, 0o444] {
            fs::set_permissions(&file, fs::Permissions::from_mode(kept)).expect("set");
            replace(&file, b"new").expect("written");
            assert_eq!(mode(&file), kept);
        }
        let new = folder.0.join("new");
        replace(&new, b"new").expect("written");
        assert_eq!(mode(&new), mode(&usual), "a new file is as any other");
        let (_, private) = create_in(&folder.0, ["", ""], Access::Private).expect("made");
        assert_eq!(mode(&private), 0o600);
    }

    #[test]
    fn a_link_that_the_user_names_is_followed_and_stays() {
        let folder = Folder::new();
        let (target, linked) = (folder.file("target", "old"), folder.0.join("linked"));
        symlink(&target, &linked).expect("linked");
        replace(&linked, b"new").expect("written");
        assert_eq!(fs::read_to_string(&target).expect("there"), "new");
        assert!(fs::symlink_metadata(&linked).expect("there").is_symlink());
    }

    /// Only root can make a link of another user.
    #[test]
    fn links_of_others_are_replaced_and_not_followed() {
        let folder = Folder::new();
        let (target, linked) = (folder.file("target", "old"), folder.0.join("linked"));
        let link = |path: &std::path::Path, target: &std::path::Path| {
            symlink(target, path).expect("linked");
            std::os::unix::fs::lchown(path, Some(65534), None)
        };
        if link(&linked, &target).is_err() {
            eprintln!("skipped: only root can give a link to another user");
            return;
        }
        replace(&linked, b"new").expect("written");
        assert_eq!(fs::read_to_string(&target).expect("there"), "old");
        assert_eq!(fs::read_to_string(&linked).expect("there"), "new");
        let (elsewhere, inner) = (folder.0.join("elsewhere"), folder.0.join("store/runs"));
        fs::create_dir_all(&elsewhere).expect("made");
        make_folder(&folder.0.join("store"), &inner).expect("an empty store");
        fs::remove_dir(&inner).expect("there");
        link(&inner, &elsewhere).expect("given away");
        let error = make_folder(&folder.0.join("store"), &inner.join("a")).expect_err("a link");
        assert!(error.to_string().contains("is a link of another user"), "{error}");
        let pipe = folder.0.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        std::os::unix::fs::chown(&pipe, Some(65534), None).expect("given away");
        let error = replace(&pipe, b"secret").expect_err("nobody reads it for the user");
        assert!(error.to_string().contains("of another user"), "{error}");
    }

    #[test]
    fn what_has_a_name_is_replaced_and_a_lock_is_no_link() {
        let folder = Folder::new();
        let (target, linked) = (folder.file("target", "old"), folder.0.join("linked"));
        symlink(&target, &linked).expect("linked");
        assert!(open_lock(&linked).is_err());
        put(&linked, b"new").expect("written");
        assert_eq!(fs::read_to_string(&target).expect("there"), "old");
        assert!(open_lock(&linked).is_ok());
        assert_eq!(fs::read_to_string(&linked).expect("there"), "new", "a lock changes nothing");
    }

    #[test]
    fn a_file_that_others_may_change_is_not_private() {
        let folder = Folder::new();
        let file = folder.file("file", "");
        let is = |mode: u32| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("set");
            let metadata = fs::metadata(&file).expect("there");
            (is_own(&metadata), is_private(&metadata))
        };
        assert_eq!([is(0o600), is(0o644)], [(true, true); 2]);
        assert_eq!([is(0o664), is(0o646)], [(true, false); 2]);
        let root = fs::metadata("/").expect("there");
        assert_eq!(is_own(&root), crate::system::user() == 0);
    }
}
