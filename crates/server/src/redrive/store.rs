//! The files of redrive jobs: one for each, replaced as a whole, durably. A job that runs has its request and
//! position there, of a job that ended the result remains.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::record::Record;
use crate::disk::json_files::node_file;
use crate::disk::json_files::sealed_json::{self, SealedError};
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

/// The members of a file: the format is behind those of the job.
#[derive(Serialize)]
struct Members<'a> {
    #[serde(flatten)]
    record: &'a Record,
    format: u64,
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
        match sealed_json::open::<Record>(&text, FORMAT..=FORMAT) {
            Ok((_, record)) if record.job.id == id => Ok(record),
            Ok((_, record)) => Err(format!("it is the file of redrive {}", record.job.id)),
            Err(SealedError::Damaged(problem)) => Err(problem),
            Err(error) => Err(format!("its file {error}")),
        }
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
        let text = sealed_json::text(&Members { record, format: FORMAT }, false);
        let written = node_file::replace(&directory, &name(record.job.id), &text);
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
    use broker::dead_letter::DeathReason;
    use broker::redrive::RedriveTo;
    use broker::{EntryId, QueueNumber};
    use serde_json::{Value, json};

    use super::super::record::Unfinished;
    use super::*;
    use crate::disk::vhost_files::VhostId;
    use crate::requests::{
        MessageFilter, MessageId, RedriveCounts, RedriveJob, RedriveRequest, RedriveSelection,
        RedriveState,
    };

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
            ..MessageFilter::default()
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

    /// The file of a job that runs.
    const RUNNING: &str = concat!(
        r#"{"id":5,"vhost":"v","queue":"q","to":{"exchange":"x","routing_key":"k"},"user":"u","#,
        r#""state":"running","reason":null,"started_ms":1,"ended_ms":null,"messages_total":50,"#,
        r#""counts":{"scanned":28,"moved":20,"skipped":7,"unroutable":0,"no_origin":0,"gone":1},"#,
        r#""unacked_left":null,"kept":true,"unfinished":{"request":{"ids":["7-3-2"],"#,
        r#""reason":"expired","first_queue":"f","headers":[["h",null],["i","v"]],"text":"t","#,
        r#""older_than_ms":5,"max_redrives":6,"limit":90,"rate":8},"local":true,"vhost_id":3,"#,
        r#""queue_number":7,"last_seq":60,"position":"r1f","counts":{"scanned":0,"moved":0,"#,
        r#""skipped":4,"unroutable":0,"no_origin":0,"gone":1},"moved_max":25},"format":1,"#,
        r#""sha256":"c4fc3977e298adbb008d8a6f3548c4c33bc89f4db55bf72fa51353959e26ba75"}"#,
        "\n"
    );

    /// The file of a job that has failed.
    const ENDED: &str = concat!(
        r#"{"id":12,"vhost":"v","queue":"q","to":{"queue":"qé"},"user":"u","state":"failed","#,
        r#""reason":"the queue is gone","started_ms":1,"ended_ms":9,"messages_total":50,"#,
        r#""counts":{"scanned":28,"moved":20,"skipped":7,"unroutable":0,"no_origin":0,"gone":1},"#,
        r#""unacked_left":2,"kept":true,"unfinished":null,"format":1,"#,
        r#""sha256":"fb034e550a80541ab79a7ec895c55059c5f5628a235eb05e93423a4813e3854e"}"#,
        "\n"
    );

    #[test]
    fn redrives_have_the_octets_of_earlier_builds() {
        let store = store("octets");
        let mut ended = Record { unfinished: None, ..record(12) };
        ended.job.state = RedriveState::Failed("the queue is gone".to_owned());
        (ended.job.ended_ms, ended.job.unacked_left) = (Some(9), Some(2));
        ended.job.to = RedriveTo::Queue("q\u{e9}".into());
        for (record, expected) in [(record(5), RUNNING), (ended, ENDED)] {
            store.write_now(&record).unwrap();
            let path = store.directory().join(name(record.job.id));
            assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
            // In a log, the job has neither a format nor a checksum.
            let octets = record.to_bytes();
            assert!(expected.as_bytes().starts_with(&octets[..octets.len() - 1]));
            assert_eq!(Record::from_bytes(&octets), Ok(record));
        }
        std::fs::remove_dir_all(&store.data_dir).unwrap();
    }

    #[test]
    fn request_that_leaves_out_messages_reads_back() {
        let store = store("without");
        let mut record = record(5);
        let filter = &mut record.unfinished.as_mut().unwrap().request.selection.filter;
        filter.without_headers = vec![("h".to_owned(), Some("w".to_owned()))];
        filter.without_text = Some("u".to_owned());
        filter.json = vec![("/a".to_owned(), None)];
        store.write_now(&record).unwrap();
        assert_eq!(store.read_all(), [record.clone()]);
        assert_eq!(Record::from_bytes(&record.to_bytes()), Ok(record));
        std::fs::remove_dir_all(&store.data_dir).unwrap();
    }

    #[test]
    fn unknown_or_missing_member_is_refused_by_name() {
        let store = store("unknown");
        store.write_now(&record(5)).unwrap();
        let path = store.directory().join(name(5));
        let whole: Value = serde_json::from_str(RUNNING).unwrap();
        let problem = |mut root: Value| {
            root.as_object_mut().unwrap().remove("sha256");
            std::fs::write(&path, sealed_json::text(&root, false)).unwrap();
            let problem = store.read(5).unwrap_err();
            assert!(problem.starts_with("its file is whole, but another version"), "{problem}");
            assert_eq!(store.check().unwrap().problems, [format!("redrives/5.json: {problem}")]);
            root.as_object_mut().unwrap().remove("format");
            assert!(Record::from_bytes(root.to_string().as_bytes()).is_err());
            problem
        };
        let rest = "/unfinished";
        for place in ["", "/counts", rest, "/unfinished/counts", "/unfinished/request"] {
            let mut root = whole.clone();
            root.pointer_mut(place).unwrap()["colour"] = json!(1);
            assert!(problem(root).contains("unknown field `colour`"), "{place}");
            // A limit that is missing is none that is null.
            let names: Vec<String> =
                whole.pointer(place).unwrap().as_object().unwrap().keys().cloned().collect();
            for name in names.iter().filter(|name| !matches!(&***name, "sha256" | "format")) {
                let mut root = whole.clone();
                root.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(name);
                assert!(problem(root).contains(&format!("missing field `{name}`")), "{name}");
            }
        }
        for (place, value, expected) in [
            ("/to", json!({"exchange": "x", "routing_key": null, "colour": 1}), "`to` is neither"),
            ("/to", json!({"exchange": "x"}), "`to` is neither"),
            ("/to", json!("nowhere"), "`to` is neither"),
            ("/state", json!("finished"), "a job has work left if it runs"),
            ("/state", json!("resting"), "unknown state `resting`"),
            ("/unfinished/position", json!("x"), "unknown position `x`"),
            ("/unfinished/request/rate", json!(1_u64 << 32), "invalid value"),
            ("/unfinished/request/ids", json!(["1"]), "unknown id `1`"),
            ("/unfinished/request/reason", json!("age"), "unknown reason `age`"),
        ] {
            let mut root = whole.clone();
            *root.pointer_mut(place).unwrap() = value;
            let problem = problem(root);
            assert!(problem.contains(expected), "{problem}");
        }
        std::fs::remove_dir_all(&store.data_dir).unwrap();
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
