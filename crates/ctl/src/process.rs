//! Processes of this machine.

use std::path::{Path, PathBuf};

/// True while a process runs. One that has ended and waits for its parent does not, but its last threads may still be
/// about to end.
pub(crate) fn is_running(pid: i64) -> bool {
    let stat = std::fs::read_to_string(directory(pid).join("stat"));
    stat.is_ok_and(|stat| is_alive(&stat, threads(pid)))
}

/// True for a process with this state and number of threads, of which the first one may have ended.
fn is_alive(stat: &str, threads: usize) -> bool {
    !has_ended(stat) || threads > 1
}

/// True if a process has ended and holds no lock of a file any more, so that another one can take its data directory.
pub(crate) fn has_released(pid: i64) -> bool {
    let locks = || std::fs::read_to_string("/proc/locks").unwrap_or_default();
    !is_running(pid) && !holds_lock(&locks(), pid)
}

fn directory(pid: i64) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// True for a process whose first thread has ended. The state stands behind the name, which is in parentheses.
fn has_ended(stat: &str) -> bool {
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    matches!(state, Some("Z" | "X"))
}

/// Number of threads of a process that have not ended, with the first one in any state.
fn threads(pid: i64) -> usize {
    std::fs::read_dir(directory(pid).join("task")).map_or(0, Iterator::count)
}

/// True if the kernel's list of locks has one of this process: `1: FLOCK  ADVISORY  WRITE 4711 08:01:35 0 EOF`.
fn holds_lock(locks: &str, pid: i64) -> bool {
    let pid = pid.to_string();
    let holder = |line: &str| line.split_whitespace().nth(4).map(str::to_owned);
    locks
        .lines()
        .filter(|line| !line.contains("->"))
        .any(|line| holder(line).as_ref() == Some(&pid))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn zombie_process_has_ended() {
        assert!(has_ended("12 (leveret) Z 1 12"));
        assert!(has_ended("12 (a) S (b)) Z 1 12"));
        assert!(!has_ended("12 (a Z (b) S 1 12"));
        assert!(is_running(i64::from(std::process::id())) && !is_running(0));
    }

    #[test]
    fn holder_of_a_lock_is_found() {
        let locks = "1: FLOCK  ADVISORY  WRITE 47 08:01:35 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 48 08:01:35 0 EOF\n";
        assert!(holds_lock(locks, 47));
        assert!(!holds_lock(locks, 48) && !holds_lock(locks, 4) && !holds_lock("", 47));
        // As the kernel writes it.
        let file = File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.try_lock_shared().unwrap();
        let me = i64::from(std::process::id());
        assert!(holds_lock(&std::fs::read_to_string("/proc/locks").unwrap(), me));
    }

    #[test]
    fn process_is_alive_until_its_last_thread_has_ended() {
        assert!(is_alive("12 (leveret) S 1 12", 9) && is_alive("12 (leveret) S 1 12", 1));
        assert!(is_alive("12 (leveret) Z 1 12", 2));
        assert!(!is_alive("12 (leveret) Z 1 12", 1) && !is_alive("12 (leveret) X 1 12", 0));
    }

    #[test]
    fn threads_of_a_process_are_counted() {
        let me = i64::from(std::process::id());
        let another = std::thread::spawn(move || threads(me));
        assert!(another.join().unwrap() > 1);
        assert_eq!(threads(0), 0);
    }
}
