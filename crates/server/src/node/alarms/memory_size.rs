//! The memory that the process may use: that of the machine, or less if a control group limits it.

use std::fs;
use std::path::{Component, Path};

/// Directories of control groups below the root of the file systems, each with the name of its limit: version 2,
/// version 2 beside version 1, and the controller of version 1.
const HIERARCHIES: [(&str, &str); 3] = [
    ("sys/fs/cgroup", "memory.max"),
    ("sys/fs/cgroup/unified", "memory.max"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
];

/// Bytes of memory available to this process; none if the system does not tell.
pub(crate) fn total_bytes() -> Option<u64> {
    total_below(Path::new("/"))
}

/// The same for the files below `root`.
fn total_below(root: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total_kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    // A container that sees its own group only has the limit at the top, whatever path it is told.
    let paths = groups.lines().filter_map(memory_group).chain(["/"]);
    let limits = paths.flat_map(|path| {
        let of_hierarchy = move |(directory, name)| limit(&root.join(directory), path, name);
        HIERARCHIES.into_iter().filter_map(of_hierarchy)
    });
    Some(limits.fold(total_kib.saturating_mul(1024), u64::min))
}

/// The path in a line of `/proc/self/cgroup`, `NUMBER:CONTROLLERS:PATH`, if the hierarchy may limit memory.
fn memory_group(line: &str) -> Option<&str> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let is_of_memory = controllers.is_empty() || controllers.split(',').any(|one| one == "memory");
    is_of_memory.then_some(path)
}

/// The smallest limit of a group and of those above it. Levels without a limit, and without a file, are no limit.
fn limit(hierarchy: &Path, path: &str, name: &str) -> Option<u64> {
    let is_normal = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let relative: std::path::PathBuf = Path::new(path).components().filter(is_normal).collect();
    let levels = relative.ancestors();
    let limit = |level: &Path| {
        let text = fs::read_to_string(hierarchy.join(level).join(name)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    levels.filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory in MiB for these files on a machine with 16 GiB.
    fn total_mib(name: &str, cgroup: &str, limits: &[(&str, &str)]) -> Option<u64> {
        let root =
            std::env::temp_dir().join(format!("leveret-memory-{name}-{}", std::process::id()));
        let meminfo = ("proc/meminfo", "MemFree: 1 kB\nMemTotal:       16777216 kB\n");
        let groups = ("proc/self/cgroup", cgroup);
        for (path, text) in limits.iter().copied().chain([meminfo, groups]) {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        let total = total_below(&root);
        fs::remove_dir_all(&root).unwrap();
        total.map(|bytes| bytes / (1 << 20))
    }

    const V2_ROOT: &str = "sys/fs/cgroup/memory.max";

    #[test]
    fn limit_of_a_container_counts() {
        assert_eq!(total_mib("none", "0::/", &[]), Some(16384));
        assert_eq!(total_mib("v2", "0::/", &[(V2_ROOT, "536870912")]), Some(512));
        assert_eq!(total_mib("v2-max", "0::/", &[(V2_ROOT, "max")]), Some(16384));
        let v1 = "sys/fs/cgroup/memory/memory.limit_in_bytes";
        assert_eq!(total_mib("v1", "5:memory:/docker/abc", &[(v1, "1073741824")]), Some(1024));
        // Version 1 says "no limit" by a number.
        let unlimited = [(v1, "9223372036854771712")];
        assert_eq!(total_mib("v1-max", "5:memory:/", &unlimited), Some(16384));
    }

    #[test]
    fn limit_of_a_service_counts() {
        let service = "sys/fs/cgroup/system.slice/leveret.service/memory.max";
        let slice = "sys/fs/cgroup/system.slice/memory.max";
        let group = "0::/system.slice/leveret.service";
        assert_eq!(total_mib("service", group, &[(service, "4294967296")]), Some(4096));
        // The smallest on the way up.
        let both = [(service, "max"), (slice, "2147483648")];
        assert_eq!(total_mib("slice", group, &both), Some(2048));
        let hybrid = "3:cpu,memory:/a/b\n0::/c";
        let v1 = [("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576")];
        assert_eq!(total_mib("hybrid", hybrid, &v1), Some(1));
        let other = [("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1048576")];
        assert_eq!(total_mib("other", "3:memory:/a\n2:cpu:/x", &other), Some(16384));
        // A group outside of the visible part has dots.
        assert_eq!(total_mib("outside", "0::/../x", &[(V2_ROOT, "1048576")]), Some(1));
    }
}
