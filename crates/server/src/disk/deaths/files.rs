//! The files of the history of dead letters of a vhost: a line of JSON for each death.
//!
//! The deaths are appended to `deaths/new.jsonl`. A file that has as many deaths or bytes as the history may have
//! becomes `deaths/old.jsonl`, in place of the older one. Both together have the whole history. Nothing depends on
//! these files but the history: they are not synced, and a line that cannot be read is left out.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use broker::time::Now;
use broker::{DeadLetterHistoryLimits, RecordedDeath, RestoredDeath, Vhost, VhostOptions};

use crate::disk::deaths::line::{Decoder, Encoder};
use crate::disk::private_files::{self, FILE_MODE};
use crate::limits::DEATH_LINE_BYTES_MAX;

/// The files of one vhost.
#[derive(Debug)]
pub(crate) struct DeathFiles {
    directory: PathBuf,
    limits: DeadLetterHistoryLimits,
    /// The number of the last death that is written.
    last_number: u64,
    /// The file that deaths are appended to, once there is one.
    file: Option<File>,
    encoder: Encoder,
    /// Deaths and bytes of that file.
    deaths: u64,
    bytes: u64,
    /// True if the last write has failed, which was logged.
    has_failed: bool,
    /// True if the vhost is being deleted.
    is_closed: bool,
}

impl DeathFiles {
    /// The files in the directory of a vhost, and the deaths in them, the oldest first.
    pub(crate) fn open(
        vhost_path: &Path,
        limits: DeadLetterHistoryLimits,
    ) -> (Self, Vec<RestoredDeath>) {
        let mut files = Self {
            directory: vhost_path.join("deaths"),
            limits,
            last_number: 0,
            file: None,
            encoder: Encoder::default(),
            deaths: 0,
            bytes: 0,
            has_failed: false,
            is_closed: false,
        };
        let mut deaths = Vec::new();
        if limits.entries_max > 0 {
            let mut decoder = Decoder::default();
            read(&files.directory.join(OLD), limits, &mut decoder, &mut deaths);
            let old = deaths.len();
            let new = files.directory.join(NEW);
            read(&new, limits, &mut decoder, &mut deaths);
            files.encoder = Encoder::behind(&decoder);
            files.deaths = (deaths.len() - old) as u64;
            files.bytes = std::fs::metadata(new).map_or(0, |found| found.len());
        }
        (files, deaths)
    }

    /// The number of the last death that is written.
    pub(crate) fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Notes that the history has the deaths of the files, up to the one with this number.
    pub(crate) fn restored(&mut self, last_number: u64) {
        self.last_number = last_number;
    }

    /// Writes nothing any more.
    pub(crate) fn close(&mut self) {
        self.file = None;
        self.is_closed = true;
    }

    /// Appends deaths, the oldest first. A failure is logged once; the deaths are written later if they are still in
    /// the history then. True if they are written.
    pub(crate) fn append(&mut self, deaths: &[RecordedDeath]) -> bool {
        let Some(last) = deaths.last().filter(|_| !self.is_closed) else { return false };
        match self.try_append(deaths) {
            Ok(bytes) => {
                self.last_number = last.number;
                self.deaths += deaths.len() as u64;
                self.bytes += bytes as u64;
                self.has_failed = false;
                true
            }
            Err(error) => {
                // The next write begins a new line.
                self.file = None;
                if !self.has_failed {
                    let path = self.directory.display();
                    tracing::warn!(%path, %error, "deaths of messages cannot be written to the history");
                }
                self.has_failed = true;
                false
            }
        }
    }

    /// Writes deaths; returns the number of bytes.
    fn try_append(&mut self, deaths: &[RecordedDeath]) -> io::Result<usize> {
        let mut file = self.open_file()?;
        let mut lines = Vec::new();
        for death in deaths {
            self.encoder.encode(death, &mut lines);
        }
        file.write_all(&lines)?;
        self.file = Some(file);
        Ok(lines.len())
    }

    /// Takes the file that deaths are appended to; opens it first if necessary, and begins another one if it is full.
    fn open_file(&mut self) -> io::Result<File> {
        if self.deaths >= self.limits.entries_max || self.bytes >= self.limits.bytes_max {
            self.file = None;
            std::fs::rename(self.directory.join(NEW), self.directory.join(OLD))?;
            (self.deaths, self.bytes) = (0, 0);
        }
        if let Some(file) = self.file.take() {
            return Ok(file);
        }
        if !self.directory.is_dir() {
            private_files::create_dir(&self.directory)?;
        }
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(FILE_MODE);
        let mut file = options.open(self.directory.join(NEW))?;
        if file.metadata()?.len() > 0 {
            // The last line may be torn.
            file.write_all(b"\n")?;
        }
        self.encoder.begin();
        Ok(file)
    }
}

const NEW: &str = "new.jsonl";
const OLD: &str = "old.jsonl";

/// Adds the deaths of a file; reads no more than a file may have.
fn read(
    path: &Path,
    limits: DeadLetterHistoryLimits,
    decoder: &mut Decoder,
    deaths: &mut Vec<RestoredDeath>,
) {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "deaths of messages cannot be read");
            return;
        }
    };
    let reader = BufReader::new(file.take(limits.bytes_max.saturating_mul(2)));
    let (left_out, result) = read_lines(reader, limits.entries_max, decoder, deaths);
    if let Err(error) = result {
        tracing::warn!(path = %path.display(), %error, "deaths of messages cannot be read");
    }
    let LeftOut { lines, first_problem } = left_out;
    if lines > 0 {
        let path = path.display();
        tracing::info!(%path, left_out = lines, first_problem, "{LEFT_OUT}");
    }
}

const LEFT_OUT: &str = "lines of the history of deaths are left out: they are damaged, or another version of Leveret \
                        has written them, which can read them until a file replaces theirs";

/// The lines of which no death could be read.
#[derive(PartialEq, Eq, Default, Debug)]
pub(super) struct LeftOut {
    pub(super) lines: u64,
    pub(super) first_problem: String,
}

/// Adds the deaths of these lines until there are three times `entries_max`: no more than the history keeps, of each
/// file. Returns the lines that are left out, and the error that ended the reading.
pub(super) fn read_lines(
    mut reader: impl BufRead,
    entries_max: u64,
    decoder: &mut Decoder,
    deaths: &mut Vec<RestoredDeath>,
) -> (LeftOut, io::Result<()>) {
    let mut left_out = LeftOut::default();
    let mut line = Vec::new();
    while (deaths.len() as u64) < entries_max.saturating_mul(3) {
        line.clear();
        match reader.by_ref().take(DEATH_LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => match decoder.decode(&line) {
                Ok(death) => deaths.push(death),
                Err(problem) => {
                    if left_out.lines == 0 {
                        left_out.first_problem = problem;
                    }
                    left_out.lines += 1;
                }
            },
            Err(error) => return (left_out, Err(error)),
        }
    }
    (left_out, Ok(()))
}

/// The lines that this build writes of these deaths.
fn written(deaths: Vec<RestoredDeath>) -> Vec<u8> {
    let mut vhost = Vhost::new("/", [0; 32], VhostOptions::default());
    vhost.restore_deaths(Now::default(), deaths);
    let (mut encoder, mut written) = (Encoder::default(), Vec::new());
    for death in vhost.recorded_deaths_after(0, usize::MAX) {
        encoder.encode(&death, &mut written);
    }
    written
}

/// Reads lines into the history of a vhost, writes the history, and reads it again. Returns the number of deaths.
///
/// # Panics
/// When the deaths are not the same.
pub(crate) fn check_lines(lines: &[u8]) -> usize {
    let limits = DeadLetterHistoryLimits::default();
    let decoded = |lines: &[u8]| {
        let mut deaths = Vec::new();
        let mut decoder = Decoder::default();
        let (left_out, result) = read_lines(lines, limits.entries_max, &mut decoder, &mut deaths);
        assert!(result.is_ok(), "bytes in memory can be read");
        (deaths, left_out)
    };
    let (mut deaths, _) = decoded(lines);
    // Only properties can be cut.
    deaths.iter_mut().for_each(|death| death.is_cut &= !death.properties.is_empty());
    let written = written(deaths.clone());
    assert_eq!(decoded(&written), (deaths.clone(), LeftOut::default()), "the same deaths");
    deaths.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_lines_are_left_out_and_torn_ones_end_where_a_new_one_begins() {
        let name = format!("leveret-deaths-{}", std::process::id());
        let vhost = std::env::temp_dir().join(name);
        std::fs::create_dir_all(vhost.join("deaths")).unwrap();
        let line = r#"{"time_ms":7,"queue":"q","reason":"expired","exchange":"","key":"cQ==","outcome":"dropped","cause":"cycle"}"#;
        let torn = &line[..40];
        let huge = "x".repeat(usize::try_from(DEATH_LINE_BYTES_MAX).unwrap() * 2);
        let text = format!("{line}\n\n[]\n{huge}\nnull\n{line}\n{torn}");
        std::fs::write(vhost.join("deaths").join(NEW), text).unwrap();
        let limits = DeadLetterHistoryLimits::default();
        let (mut files, deaths) = DeathFiles::open(&vhost, limits);
        assert_eq!(deaths.len(), 2);
        assert_eq!((&*deaths[0].circumstances.queue, deaths[0].time_ms), ("q", 7));
        files.open_file().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
        assert_eq!(DeathFiles::open(&vhost, limits).1.len(), 3);
        let off = DeadLetterHistoryLimits { entries_max: 0, ..limits };
        assert!(DeathFiles::open(&vhost, off).1.is_empty());
        std::fs::remove_dir_all(&vhost).unwrap();
    }

    #[test]
    fn line_with_any_damage_is_read_or_left_out() {
        let line = br#"{"time_ms":7,"queue":"q","reason":"expired","exchange":"","key":"cQ==","outcome":"dead_lettered","targets":["a"],"targets_total":1,"copies_dropped":0,"user":"u","connection":"c","channel":1,"properties":"AAA="}"#;
        assert!(Decoder::default().decode(line).is_ok());
        for at in 0..line.len() {
            assert!(Decoder::default().decode(&line[..at]).is_err());
            for byte in [0, b'"', b'9', b'-', 0xff] {
                let mut damaged = line.to_vec();
                damaged[at] = byte;
                // Damage within a text is not noticed.
                let _ = Decoder::default().decode(&damaged);
            }
        }
    }

    /// The whole lines of two runs, each with two short ones.
    fn two_runs() -> [String; 6] {
        let whole = |run, queue| {
            format!(
                r#"{{"run":{run},"time_ms":7,"queue":"{queue}","reason":"expired","exchange":"","key":"cQ==","outcome":"dropped","cause":"cycle"}}"#
            )
        };
        let short =
            |run, time_ms| format!(r#"{{"run":{run},"time_ms":{time_ms},"properties":"AAA="}}"#);
        [whole(4, "a"), short(4, 8), short(4, 9), whole(5, "b"), short(5, 10), short(5, 11)]
    }

    fn read_times(lines: &[String]) -> Vec<(String, u64)> {
        let (mut decoder, mut deaths) = (Decoder::default(), Vec::new());
        read_lines(lines.join("\n").as_bytes(), 100, &mut decoder, &mut deaths).1.unwrap();
        deaths.iter().map(|death| (death.circumstances.queue.to_string(), death.time_ms)).collect()
    }

    /// The lines that a build writes of the deaths of these lines.
    fn written_again(lines: &str) -> String {
        let (mut decoder, mut deaths) = (Decoder::default(), Vec::new());
        let (left_out, _) = read_lines(lines.as_bytes(), 100, &mut decoder, &mut deaths);
        assert_eq!(left_out, LeftOut::default());
        String::from_utf8(written(deaths)).unwrap()
    }

    #[test]
    fn line_with_an_unknown_member_is_left_out_and_names_it() {
        let [whole, short, ..] = two_runs();
        for line in [&whole, &short] {
            let changed = line.replace(r#""time_ms""#, r#""colour":"red","time_ms""#);
            let (mut decoder, mut deaths) = (Decoder::default(), Vec::new());
            let lines = format!("{whole}\n{changed}\n{whole}");
            let (left_out, _) = read_lines(lines.as_bytes(), 100, &mut decoder, &mut deaths);
            assert_eq!((deaths.len(), left_out.lines), (2, 1));
            let problem = left_out.first_problem;
            assert!(problem.starts_with("unknown field `colour`"), "{problem}");
        }
    }

    #[test]
    fn line_with_half_of_a_settlement_or_of_an_outcome_is_left_out() {
        let [whole, ..] = two_runs();
        let decode = |line: &str| Decoder::default().decode(line.as_bytes()).map(|_| ());
        assert_eq!(decode(&whole), Ok(()));
        for (more, problem) in [
            (r#""user":"u","connection":"c""#, "a settlement without"),
            (r#""dead_letter_exchange":"x""#, "a dead letter without"),
            (r#""targets_total":1"#, "unknown outcome `dropped`, or one with"),
            (r#""channel":65536"#, "invalid value"),
        ] {
            let said = decode(&whole.replace(r#""time_ms""#, &format!(r#"{more},"time_ms""#)));
            assert!(said.clone().is_err_and(|said| said.starts_with(problem)), "{said:?}");
        }
    }

    #[test]
    fn lines_have_the_octets_of_earlier_builds() {
        let lines = [
            r#"{"run":1,"time_ms":7,"queue":"k\u0007\"","reason":"delivery_limit","exchange":"","key":"/w==","policy":null,"operator_policy":null,"properties":"AIABbQ==","is_cut":true,"outcome":"kept","cause":"unroutable"}"#,
            r#"{"run":2,"time_ms":8,"queue":"orders","reason":"rejected","exchange":"x","key":"b3JkZXJz","policy":"p","operator_policy":"o","properties":"AAA=","is_cut":false,"dead_letter_exchange":"dlx","dead_letter_key":"ZGVhZA==","outcome":"dead_lettered","targets":["a","b"],"targets_total":2,"copies_dropped":1,"user":"guest","connection":"127.0.0.1:1 -> 127.0.0.1:5672","channel":1,"consumer_tag":"t"}"#,
            r#"{"run":3,"time_ms":9,"queue":"q","reason":"maxlen","exchange":"","key":"cQ==","policy":null,"operator_policy":null,"properties":"","is_cut":false,"outcome":"dropped","cause":"cycle","user":"u","connection":"c","channel":2,"consumer_tag":null}"#,
            r#"{"run":3,"time_ms":10}"#,
            r#"{"run":3,"time_ms":11,"properties":"AAA="}"#,
            r#"{"run":3,"time_ms":12,"properties":"AIABbQ==","is_cut":true}"#,
        ];
        let lines = lines.join("\n") + "\n";
        assert_eq!(written_again(&lines), lines);
    }

    #[test]
    fn short_lines_have_the_circumstances_of_their_run() {
        let of = |times: [u64; 3], queue: &str| times.map(|time_ms| (queue.to_owned(), time_ms));
        let (a, b) = (of([7, 8, 9], "a"), of([7, 10, 11], "b"));
        let lines = two_runs();
        assert_eq!(read_times(&lines), [&a[..], &b[..]].concat());
        let mut damaged = lines.clone();
        damaged[3].truncate(60);
        assert_eq!(read_times(&damaged), a, "the second run has no circumstances");
        let mut damaged = lines.clone();
        damaged[1] = "damaged".to_owned();
        assert_eq!(read_times(&damaged), [&a[..1], &a[2..], &b[..]].concat());
        assert_eq!(read_times(&lines[1..]), b, "the file of the first line is gone");
        assert!(check_lines(lines.join("\n").as_bytes()) == 6);
    }

    #[test]
    fn a_process_begins_with_a_whole_line_and_a_run_of_its_own() {
        let name = format!("leveret-deaths-runs-{}", std::process::id());
        let vhost = std::env::temp_dir().join(name);
        std::fs::create_dir_all(vhost.join("deaths")).unwrap();
        std::fs::write(vhost.join("deaths").join(NEW), two_runs().join("\n")).unwrap();
        let limits = DeadLetterHistoryLimits::default();
        let (mut files, deaths) = DeathFiles::open(&vhost, limits);
        let options = VhostOptions { dead_letter_history: limits, ..VhostOptions::default() };
        let mut restored = Vhost::new("/", [0; 32], options);
        restored.restore_deaths(Now::default(), deaths);
        assert!(files.append(&restored.recorded_deaths_after(3, 3)));
        let text = std::fs::read_to_string(vhost.join("deaths").join(NEW)).unwrap();
        let added: Vec<&str> = text.lines().skip(6).collect();
        assert!(added[0].contains(r#""run":6"#) && added[0].contains(r#""queue":"b""#), "{text}");
        assert_eq!(
            added[1..],
            [
                r#"{"run":6,"time_ms":10,"properties":"AAA="}"#,
                r#"{"run":6,"time_ms":11,"properties":"AAA="}"#,
            ]
        );
        assert_eq!(DeathFiles::open(&vhost, limits).1.len(), 9);
        std::fs::remove_dir_all(&vhost).unwrap();
    }

    #[test]
    fn full_file_replaces_the_older_one() {
        let name = format!("leveret-deaths-full-{}", std::process::id());
        let vhost = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&vhost).unwrap();
        let limits = DeadLetterHistoryLimits { bytes_max: 10, ..Default::default() };
        let (mut files, _) = DeathFiles::open(&vhost, limits);
        for text in ["a", "b", "c"] {
            let line = text.repeat(12);
            files.open_file().unwrap().write_all(line.as_bytes()).unwrap();
            files.bytes += 12;
        }
        let content = |name| std::fs::read_to_string(vhost.join("deaths").join(name)).unwrap();
        assert_eq!((content(OLD), content(NEW)), ("b".repeat(12), "c".repeat(12)));
        std::fs::remove_dir_all(&vhost).unwrap();
    }
}
