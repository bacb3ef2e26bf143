//! The fences around a process: how much of the machine its control group may use, and what kind of container it is in.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::root::Root;

/// What a process is contained by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Container {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// A pod, whatever runs it.
    Kubernetes,
    /// LXC, LXD or Incus.
    Lxc,
    /// A container that does not say of what kind it is.
    Unknown,
}

impl Container {
    /// The name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Container::Docker => "Docker",
            Container::Podman => "Podman",
            Container::Kubernetes => "Kubernetes",
            Container::Lxc => "LXC",
            Container::Unknown => "container",
        }
    }

    /// Looks for signs, those of the outermost manager first.
    pub(super) fn read(root: &Root) -> Option<Self> {
        let groups = root.text("proc/self/cgroup").unwrap_or_default();
        let variables = root.text("proc/self/environ").unwrap_or_default();
        let pod = root.has("var/run/secrets/kubernetes.io")
            || variable(&variables, "KUBERNETES_SERVICE_HOST").is_some();
        pod.then_some(Container::Kubernetes)
            .or_else(|| Self::of_groups(&groups))
            .or_else(|| root.has(".dockerenv").then_some(Container::Docker))
            .or_else(|| root.has("run/.containerenv").then_some(Container::Podman))
            .or_else(|| Self::named(&root.line("run/systemd/container")?))
            .or_else(|| Self::named(variable(&variables, "container")?))
            .or_else(|| is_layered(&root.text("proc/self/mountinfo")?).then_some(Self::Unknown))
    }

    /// By the paths of control groups, which are visible when the container shares the host's view of them.
    fn of_groups(groups: &str) -> Option<Self> {
        let signs = [
            ("kubepods", Container::Kubernetes),
            ("/docker/", Container::Docker),
            ("/docker-", Container::Docker),
            ("/libpod", Container::Podman),
            ("/lxc/", Container::Lxc),
            ("/lxc.", Container::Lxc),
        ];
        signs.into_iter().find(|(sign, _)| groups.contains(sign)).map(|(_, container)| container)
    }

    /// By the word that a manager leaves for what it starts.
    fn named(word: &str) -> Option<Self> {
        match word {
            "" => None,
            "docker" => Some(Container::Docker),
            "podman" => Some(Container::Podman),
            "lxc" | "lxc-libvirt" => Some(Container::Lxc),
            _ => Some(Container::Unknown),
        }
    }
}

/// The value of a variable in `/proc/self/environ`.
fn variable<'a>(variables: &'a str, name: &str) -> Option<&'a str> {
    variables.split('\0').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// Whether the root file system lies in layers, as those of containers do: `36 35 0:52 / / rw - overlay overlay rw`.
fn is_layered(mounts: &str) -> bool {
    mounts.lines().any(|line| {
        let kind = line.split_once(" - ").and_then(|(_, rest)| rest.split_whitespace().next());
        line.split_whitespace().nth(4) == Some("/")
            && matches!(kind, Some("overlay" | "fuse.fuse-overlayfs" | "aufs"))
    })
}

/// Cores whose time may be used: the least of the limits on the process's control group and on those around it.
pub(super) fn quota(root: &Root) -> Option<f64> {
    let folders = folders(root, "cpu").into_iter();
    folders.filter_map(|folder| limit(root, &folder)).min_by(f64::total_cmp)
}

/// Periods in which the process's control group, or one around it, was stopped because it had used up its time.
pub(super) fn stopped_periods(root: &Root) -> Option<u64> {
    let periods = |folder: PathBuf| -> Option<u64> {
        let figures = root.text(folder.join("cpu.stat"))?;
        let periods = figures.lines().find_map(|line| line.strip_prefix("nr_throttled "))?;
        periods.trim().parse().ok()
    };
    folders(root, "cpu").into_iter().filter_map(periods).max()
}

/// The folders of the process's control group and of those around it that may hold limits of a controller, such as `cpu`.
pub(super) fn folders(root: &Root, controller: &str) -> Vec<PathBuf> {
    let groups = root.text("proc/self/cgroup").unwrap_or_default();
    let mut folders = Vec::new();
    for line in groups.lines() {
        folders.extend(group_folders(line, controller).unwrap_or_default());
    }
    folders
}

/// From a line `hierarchy:controllers:path` all folders that may hold a limit of one of the controllers.
///
/// A container that sees the host's paths has its own group mounted at the top, so the folders around a path that does
/// not exist lead there too.
fn group_folders(line: &str, wanted: &str) -> Option<Vec<PathBuf>> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let mounts = if controllers.is_empty() {
        vec!["sys/fs/cgroup".to_owned(), "sys/fs/cgroup/unified".to_owned()]
    } else if controllers.split(',').any(|controller| controller == wanted) {
        vec![format!("sys/fs/cgroup/{wanted}"), format!("sys/fs/cgroup/{controllers}")]
    } else {
        return None;
    };
    // A process outside of its namespace's root has `..` in its path, which must not lead out of the mount.
    let path: PathBuf =
        Path::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let mut folders = Vec::new();
    for mount in mounts {
        folders.extend(path.ancestors().map(|group| Path::new(&mount).join(group)));
    }
    Some(folders)
}

fn limit(root: &Root, folder: &Path) -> Option<f64> {
    if let Some(line) = root.line(folder.join("cpu.max")) {
        return cores_of_max(&line);
    }
    let quota = root.line(folder.join("cpu.cfs_quota_us"))?;
    let period = root.line(folder.join("cpu.cfs_period_us"))?;
    cores_of(&quota, &period)
}

/// From `cpu.max` of version 2: `max 100000` or `150000 100000`.
fn cores_of_max(line: &str) -> Option<f64> {
    let (quota, period) = line.split_once(' ')?;
    cores_of(quota, period)
}

/// From microseconds of time in every period; version 1 writes -1 for no limit, version 2 `max`.
fn cores_of(quota: &str, period: &str) -> Option<f64> {
    let quota: u64 = quota.trim().parse().ok()?;
    let period: u64 = period.trim().parse().ok()?;
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::super::root::Fake;
    use super::*;

    fn quota_of(files: &[(&str, &str)]) -> Option<f64> {
        quota(&Fake::new(files).root())
    }

    #[test]
    fn limits_are_read_as_both_versions_write_them() {
        assert_eq!(cores_of_max("150000 100000"), Some(1.5));
        assert_eq!(cores_of("50000", "100000\n"), Some(0.5));
        assert_eq!([cores_of_max("max 100000"), cores_of("-1", "100000")], [None; 2]);
        assert_eq!([cores_of_max(""), cores_of_max("1 0"), cores_of("x", "1")], [None; 3]);
    }

    #[test]
    fn the_least_limit_of_all_groups_around_counts() {
        let files = [
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("sys/fs/cgroup/outer/cpu.max", "200000 100000\n"),
            ("sys/fs/cgroup/outer/inner/cpu.max", "300000 100000\n"),
        ];
        assert_eq!(quota_of(&files), Some(2.0));
        let free = [("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/cpu.max", "max 100000\n")];
        assert_eq!(quota_of(&free), None);
    }

    #[test]
    fn version_1_is_found_under_either_name_and_only_for_time() {
        let quota = "cpu.cfs_quota_us";
        let period = ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
        let path = format!("sys/fs/cgroup/cpu,cpuacct/job/{quota}");
        let groups = ("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:cpuset:/job\n");
        assert_eq!(quota_of(&[groups, period, (&path, "250000\n")]), Some(2.5));
        assert_eq!(quota_of(&[groups, period, (&path, "-1\n")]), None);
        let other = ("proc/self/cgroup", "4:cpuacct:/job\n");
        assert_eq!(quota_of(&[other, period, (&path, "250000\n")]), None);
    }

    #[test]
    fn a_path_of_the_host_or_out_of_the_namespace_leads_to_the_mounted_group() {
        for path in ["/docker/abc", "/../../elsewhere"] {
            let groups = format!("0::{path}\n");
            let files = [
                ("proc/self/cgroup", groups.as_str()),
                ("sys/fs/cgroup/cpu.max", "100000 50000\n"),
            ];
            assert_eq!(quota_of(&files), Some(2.0), "{path}");
        }
    }

    #[test]
    fn every_kind_of_container_is_known_by_its_signs() {
        let told = |file: &str, text: &str| Container::read(&Fake::new(&[(file, text)]).root());
        let cases = [
            ("var/run/secrets/kubernetes.io/token", "", Some(Container::Kubernetes)),
            ("proc/self/environ", "A=1\0KUBERNETES_SERVICE_HOST=h\0", Some(Container::Kubernetes)),
            ("proc/self/cgroup", "0::/kubepods.slice/pod1\n", Some(Container::Kubernetes)),
            ("proc/self/cgroup", "4:cpu:/docker/abc\n", Some(Container::Docker)),
            ("proc/self/cgroup", "0::/system.slice/docker-abc.scope\n", Some(Container::Docker)),
            ("proc/self/cgroup", "0::/machine.slice/libpod-abc.scope\n", Some(Container::Podman)),
            ("proc/self/cgroup", "0::/lxc.payload.web/init.scope\n", Some(Container::Lxc)),
            (".dockerenv", "", Some(Container::Docker)),
            ("run/.containerenv", "", Some(Container::Podman)),
            ("run/systemd/container", "lxc\n", Some(Container::Lxc)),
            ("run/systemd/container", "systemd-nspawn\n", Some(Container::Unknown)),
            ("proc/self/environ", "container=podman\0", Some(Container::Podman)),
            (
                "proc/self/mountinfo",
                "36 35 0:52 / / rw - overlay overlay rw\n",
                Some(Container::Unknown),
            ),
            ("proc/self/mountinfo", "27 1 254:0 / / rw - ext4 /dev/vda rw\n", None),
            ("proc/self/mountinfo", "36 35 0:52 / /mnt rw - overlay overlay rw\n", None),
            ("proc/self/cgroup", "0::/system.slice/docker.service\n", None),
            ("proc/self/environ", "my_container=docker\0container=\0", None),
        ];
        for (file, text, expected) in cases {
            assert_eq!(told(file, text), expected, "{file}: {text}");
        }
    }
}
