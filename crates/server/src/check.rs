//! The command `leveret check --data-dir DIR`: reads a data directory that is not in use, changes nothing,
//! and reports its contents and its faults.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use broker::page::Paging;
use broker::time::{Now, Time};
use broker::{Vhost, VhostOptions};
use storage::OpenReport;

use crate::disk::access::permission::{Use, first_unusable};
use crate::disk::access::read_only_directory::ReadOnlyDirectory;
use crate::disk::data_dir::IdleDataDir;
use crate::disk::json_files::node_file::{self, VhostEntry};
use crate::disk::pages::page_files::PageFiles;
use crate::disk::private_files;
use crate::disk::recovery::damaged_record;
use crate::disk::recovery::pages::{LogReplay, PageRecovery};
use crate::disk::recovery::replay_thread::replay_log;
use crate::disk::vhost_files::{VhostId, vhost_path};
use crate::limits::RESIDENT_BYTES_MAX;
use crate::node::metadata::global_parameters::GlobalParameters;
use crate::redrive::{self, CheckedRedrives};

/// Checks the directory and prints the result; fails if there is any fault.
pub fn run(data_dir: &Path) -> ExitCode {
    let mut out = io::stdout().lock();
    match check(data_dir, &mut out) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(problem) => {
            // There is no other place to report a failure.
            let _ = writeln!(out, "{}", line::one_line(&problem));
            ExitCode::FAILURE
        }
    }
}

/// Checks every vhost; returns the number of faults.
fn check(data_dir: &Path, out: &mut dyn Write) -> Result<u64, String> {
    if !data_dir.is_dir() {
        return Err(format!("there is no directory {}", data_dir.display()));
    }
    // Before anything is read, which would pass for damage otherwise.
    if let Some(unusable) = first_unusable(data_dir, Use::Read) {
        return Err(format!("cannot read {}: {unusable}", data_dir.display()));
    }
    let _lock = IdleDataDir::open(data_dir).map_err(|error| error.to_string())?;
    let known = node_file::read(data_dir).map_err(|error| error.to_string())?;
    let known = known.ok_or_else(|| format!("{} holds no broker", data_dir.display()))?;
    let mut faults = 0;
    let mut print = |text: String| {
        writeln!(out, "{}", line::one_line(&text)).map_err(|error| error.to_string())
    };
    print(format!("node.json: {} vhosts, {} users", known.vhosts.len(), known.users.len()))?;
    if !node_file::has_first_format(data_dir) {
        match GlobalParameters::open(data_dir, false) {
            Ok(parameters) => {
                print(format!("global_parameters.json: {} parameters", parameters.all().len()))?;
            }
            Err(error) => {
                faults += 1;
                print(error.to_string())?;
            }
        }
    }
    for VhostEntry { name, id, .. } in known.vhosts {
        let path = vhost_path(data_dir, id);
        let found = match vhost(&path, id, &name) {
            Ok(found) => found,
            Err(problem) => {
                faults += 1;
                print(format!("vhost '{name}' in {}: {problem}", path.display()))?;
                continue;
            }
        };
        let Found { report, problems, queues, messages } = found;
        print(format!(
            "vhost '{name}' in {}: format {}, {} files, {} records up to {}, {queues} queues, {messages} messages",
            path.display(),
            report.format_version,
            report.files,
            report.records,
            report.last
        ))?;
        if report.torn_bytes > 0 {
            print(format!("  {} bytes that a crash left half written", report.torn_bytes))?;
        }
        let damages =
            report.damages.iter().map(|damage| format!("{damage}{}", damaged_record(damage)));
        for fault in damages.chain(problems) {
            faults += 1;
            print(format!("  {fault}"))?;
        }
    }
    let redrives = redrive::check(data_dir).unwrap_or_else(|error| CheckedRedrives {
        problems: vec![format!("redrives: {error}")],
        ..CheckedRedrives::default()
    });
    let CheckedRedrives { jobs, running, problems } = redrives;
    if jobs > 0 || !problems.is_empty() {
        print(format!("redrives: {jobs} jobs, of which {running} go on at the next start"))?;
    }
    for problem in problems {
        faults += 1;
        print(format!("  {problem}"))?;
    }
    print(if faults == 0 { "nothing is wrong".to_owned() } else { format!("{faults} faults") })?;
    Ok(faults)
}

/// A scratch directory for pages, outside of the checked directory.
struct Scratch(PathBuf);

impl Scratch {
    /// Creates a directory under an unpredictable name, because it will hold message bodies.
    fn new(id: VhostId) -> Result<Self, String> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        let name =
            format!("leveret-check-pages-{:016x}-{id}", u64::from_le_bytes(random), id = id.0);
        let path = std::env::temp_dir().join(name);
        match private_files::create_dir(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(format!(
                "no temporary directory {}: {error}; TMPDIR may name another place",
                path.display()
            )),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover is removed with the temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The contents of a vhost's log.
struct Found {
    report: OpenReport,
    problems: Vec<String>,
    queues: usize,
    messages: u64,
}

fn vhost(path: &Path, id: VhostId, name: &str) -> Result<Found, String> {
    if !path.is_dir() {
        return Err("missing".to_owned());
    }
    let directory = ReadOnlyDirectory::new(path);
    let scratch = Scratch::new(id)?;
    let unusable = |error| format!("{}: {error}", scratch.0.display());
    let page_files =
        Arc::new(PageFiles::open(&scratch.0, 0, None, &Arc::default()).map_err(unusable)?);
    let pages = PageRecovery::start(page_files).map_err(unusable)?;
    let paging = Paging::beyond(RESIDENT_BYTES_MAX);
    let vhost = Vhost::new(name, [0; 32], VhostOptions { paging, ..VhostOptions::default() });
    let mut replay = LogReplay::new(vhost, Time::MAX, pages);
    let mut problems = Vec::new();
    let mut left_out =
        |lsn: storage::Lsn, problem: String| problems.push(format!("record {lsn}: {problem}"));
    let report =
        replay_log(&mut replay, &mut left_out, |records| storage::check(&directory, id.0, records));
    let report = report.map_err(|error| error.to_string())?;
    problems.extend(replay.recover());
    let vhost = replay.finish(Now::default(), report.last);
    let vhost = vhost.map_err(|problem| format!("{}: {problem}", scratch.0.display()))?;
    let messages = vhost.queues().map(|(_, queue)| queue.message_count()).sum();
    Ok(Found { report, problems, queues: vhost.queues().count(), messages })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::json_files::node_file::NodeFile;

    #[test]
    fn check_reports_missing_brokers_and_vhosts() {
        let folder = std::env::temp_dir().join(format!("leveret-check-{}", std::process::id()));
        let mut out = Vec::new();
        let missing = check(&folder, &mut out).unwrap_err();
        assert_eq!(missing, format!("there is no directory {}", folder.display()));
        std::fs::create_dir_all(&folder).unwrap();
        let empty = check(&folder, &mut out).unwrap_err();
        assert_eq!(empty, format!("{} holds no broker", folder.display()));
        GlobalParameters::open(&folder, true).unwrap();
        let settings = Arc::default();
        let (name, voters) = ("/".to_owned(), Vec::new());
        let vhosts = vec![VhostEntry { name, id: VhostId(1), settings, voters, placement: None }];
        let contents = NodeFile { next_vhost_id: 2, vhosts, ..NodeFile::default() };
        node_file::write(&folder, &contents).unwrap();
        assert_eq!(check(&folder, &mut out), Ok(1));
        let said = String::from_utf8(out).unwrap();
        assert!(said.contains("vhosts/1: missing"), "{said}");
        assert!(said.ends_with("1 faults\n") && !said.contains("redrives"), "{said}");
        std::fs::create_dir(folder.join("redrives")).unwrap();
        std::fs::write(folder.join("redrives").join("7.json"), "{").unwrap();
        std::fs::write(folder.join("redrives").join("7.json.new"), "half written").unwrap();
        let mut out = Vec::new();
        assert_eq!(check(&folder, &mut out), Ok(2));
        let said = String::from_utf8(out).unwrap();
        assert!(said.contains("redrives: 0 jobs, of which 0 go on"), "{said}");
        assert!(said.contains("  redrives/7.json: EOF while parsing"), "{said}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
