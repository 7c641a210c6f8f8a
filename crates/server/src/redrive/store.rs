//! The files of redrive jobs: one for each, replaced as a whole, durably. A job that runs has its request and
//! position there, of a job that ended the result remains.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::record::Record;
use crate::disk::json_files::{node_file, sealed_json};
use crate::disk::private_files;
use crate::limits::{REDRIVE_FILE_BYTES_MAX, REDRIVES_READ_MAX};

const DIRECTORY: &str = "redrives";
const FORMAT: u64 = 1;

/// The files of redrive jobs in a data directory that is not in use.
#[derive(PartialEq, Eq, Default, Debug)]
pub(crate) struct CheckedRedrives {
    /// Jobs whose files are whole.
    pub(crate) jobs: u64,
    /// Whole jobs that a start lets go on.
    pub(crate) running: u64,
    /// One sentence for each damaged file.
    pub(crate) problems: Vec<String>,
}

/// The directory of the files.
#[derive(Clone, Debug)]
pub(super) struct Store {
    data_dir: PathBuf,
}

impl Store {
    pub(super) fn new(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned() }
    }

    fn directory(&self) -> PathBuf {
        self.data_dir.join(DIRECTORY)
    }

    /// Reads all jobs, the oldest first. A file that cannot be read is logged and left as it is: without it
    /// its job stops, and no message is lost.
    pub(super) fn read_all(&self) -> Vec<Record> {
        let ids = self.ids().unwrap_or_else(|error| {
            tracing::error!(%error, "the redrives of earlier runs cannot be read");
            Vec::new()
        });
        let excess = ids.len().saturating_sub(REDRIVES_READ_MAX);
        let ids = ids.into_iter().skip(excess);
        ids.filter_map(|id| match self.read(id) {
            Ok(record) => Some(record),
            Err(problem) => {
                tracing::error!(id, problem, "a redrive cannot be read, and does not go on");
                None
            }
        })
        .collect()
    }

    /// The ids of all files, ascending; none without a directory.
    fn ids(&self) -> io::Result<Vec<u64>> {
        let entries = match std::fs::read_dir(self.directory()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.collect::<io::Result<Vec<_>>>()?;
        let names = names.into_iter().map(|entry| entry.file_name());
        let ids = names.filter_map(|name| name.to_str()?.strip_suffix(".json")?.parse().ok());
        let mut ids: Vec<u64> = ids.collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Reads all jobs for a check.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub(super) fn check(&self) -> io::Result<CheckedRedrives> {
        let mut found = CheckedRedrives::default();
        for id in self.ids()? {
            match self.read(id) {
                Ok(record) => {
                    found.jobs += 1;
                    found.running += u64::from(record.unfinished.is_some());
                }
                Err(problem) => {
                    found.problems.push(format!("{DIRECTORY}/{}: {problem}", name(id)));
                }
            }
        }
        Ok(found)
    }

    fn read(&self, id: u64) -> Result<Record, String> {
        let path = self.directory().join(name(id));
        let size = std::fs::metadata(&path).map_err(|error| error.to_string())?.len();
        if size > REDRIVE_FILE_BYTES_MAX {
            return Err(format!("its file is longer than {REDRIVE_FILE_BYTES_MAX} bytes"));
        }
        let text = std::fs::read(&path).map_err(|error| error.to_string())?;
        let root = Value::Object(sealed_json::open(&text)?);
        if root.get("format").and_then(Value::as_u64) != Some(FORMAT) {
            return Err("its file has another format".to_owned());
        }
        let record = Record::from_json(&root).filter(|record| record.job.id == id);
        record.ok_or_else(|| "something in it is missing or of the wrong type".to_owned())
    }

    /// Writes a job, durably, on a thread for blocking work.
    ///
    /// # Errors
    /// A sentence for the user, if the disk refuses.
    pub(super) async fn write(&self, record: Record) -> Result<(), String> {
        let store = self.clone();
        let written = tokio::task::spawn_blocking(move || store.write_now(&record)).await;
        written.map_err(|error| error.to_string())?
    }

    fn write_now(&self, record: &Record) -> Result<(), String> {
        let directory = self.directory();
        self.make(&directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        let mut root = record.to_json();
        root["format"] = Value::from(FORMAT);
        let written =
            node_file::replace(&directory, &name(record.job.id), &sealed_json::text(root, false));
        written.map_err(|error| error.to_string())
    }

    fn make(&self, directory: &Path) -> io::Result<()> {
        match private_files::create_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.and_then(|()| File::open(&self.data_dir)?.sync_all()),
        }
    }

    /// Removes the file of a job that is forgotten. A file that stays is forgotten again after the next start.
    pub(super) fn remove(&self, id: u64) {
        if let Err(error) = std::fs::remove_file(self.directory().join(name(id)))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(id, %error, "the file of a redrive cannot be removed");
        }
    }
}

fn name(id: u64) -> String {
    format!("{id}.json")
}

#[cfg(test)]
mod tests {
    use crate::requests::{
        MessageFilter, MessageId, RedriveCounts, RedriveJob, RedriveRequest, RedriveSelection,
        RedriveState,
    };
    use broker::dead_letter::DeathReason;
    use broker::redrive::RedriveTo;
    use broker::{EntryId, QueueNumber};

    use super::super::record::Unfinished;
    use super::*;
    use crate::disk::vhost_files::VhostId;

    fn record(id: u64) -> Record {
        let to = RedriveTo::Exchange { exchange: "x".into(), routing_key: Some("k".into()) };
        let queue = QueueNumber(7);
        let entry = EntryId { seq: 3, level: 2 };
        let counts = RedriveCounts { skipped: 4, gone: 1, ..RedriveCounts::default() };
        let filter = MessageFilter {
            reason: Some(DeathReason::Expired),
            first_queue: Some("f".to_owned()),
            headers: vec![("h".to_owned(), None), ("i".to_owned(), Some("v".to_owned()))],
            text: Some("t".to_owned()),
        };
        let selection = RedriveSelection {
            ids: Some([MessageId { queue, entry }].into()),
            filter,
            older_than_ms: Some(5),
            max_redrives: Some(6),
        };
        let request = RedriveRequest {
            to: to.clone(),
            selection,
            limit: Some(90),
            rate: Some(8),
            is_of_kept: true,
        };
        let mut job = RedriveJob {
            id,
            vhost: "v".to_owned(),
            queue: "q".to_owned(),
            to,
            user: "u".to_owned(),
            state: RedriveState::Running,
            started_ms: 1,
            ended_ms: None,
            messages_total: 50,
            counts,
            unacked_left: None,
            is_of_kept: true,
        };
        job.add(RedriveCounts { moved: 20, skipped: 3, ..RedriveCounts::default() });
        let unfinished = Unfinished {
            request,
            is_local: true,
            vhost_id: VhostId(3),
            queue,
            last_seq: 60,
            position: "r1f".parse().unwrap(),
            counts,
            moved_max: 25,
        };
        Record { job, unfinished: Some(unfinished) }
    }

    fn store(test: &str) -> Store {
        let name = format!("leveret-redrives-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Store::new(&folder)
    }

    #[test]
    fn redrives_read_back_and_a_damaged_one_is_left_out() {
        let store = store("back");
        assert_eq!(store.read_all(), []);
        let running = record(5);
        let mut ended = Record { unfinished: None, ..record(12) };
        ended.job.state = RedriveState::Failed("the queue is gone".to_owned());
        (ended.job.ended_ms, ended.job.unacked_left) = (Some(9), Some(2));
        for record in [&ended, &running] {
            store.write_now(record).unwrap();
        }
        assert_eq!(store.read_all(), [running, ended.clone()]);
        let whole = CheckedRedrives { jobs: 2, running: 1, problems: Vec::new() };
        assert_eq!(store.check().unwrap(), whole);
        let path = store.directory().join("5.json");
        let text = std::fs::read(&path).unwrap();
        for at in 0..text.len() - 1 {
            let mut changed = text.clone();
            changed[at] ^= 1;
            std::fs::write(&path, &changed).unwrap();
            assert_eq!(store.read_all(), std::slice::from_ref(&ended), "byte {at}");
        }
        let problem = "redrives/5.json: 'sha256' does not fit what it says".to_owned();
        let damaged = CheckedRedrives { jobs: 1, running: 0, problems: vec![problem] };
        let changed = String::from_utf8(text).unwrap().replace(r#""user":"u""#, r#""user":"w""#);
        std::fs::write(&path, &changed).unwrap();
        assert_eq!(store.check().unwrap(), damaged);
        store.remove(12);
        assert!(path.exists() && store.read_all().is_empty());
        std::fs::remove_dir_all(&store.data_dir).unwrap();
    }

    #[test]
    fn a_resumed_job_has_the_counts_of_its_position_and_all_that_it_may_have_moved() {
        let RedriveCounts { scanned, moved, skipped, gone, .. } = record(1).resumed().job.counts;
        assert_eq!((scanned, moved, skipped, gone), (30, 25, 4, 1));
        let mut ended = Record { unfinished: None, ..record(1) };
        ended.job.state = RedriveState::Finished;
        assert_eq!(ended.clone().resumed(), ended);
    }
}
