//! Options of the log.

use std::path::PathBuf;

/// The format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum LogFormat {
    /// Plain text.
    #[default]
    Plain,
    /// One JSON object per line.
    Json,
}

/// The lowest level that is written, from the most verbose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LogLevel {
    Debug,
    Info,
    Warning,
    Error,
    /// No lines at all.
    None,
}

/// The stream of console lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogStream {
    Stderr,
    Stdout,
}

/// A destination of log lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sink {
    pub(crate) is_on: bool,
    /// A level for this destination only.
    pub(crate) level: Option<LogLevel>,
    pub(crate) format: LogFormat,
}

impl Sink {
    const ON: Self = Self { is_on: true, level: None, format: LogFormat::Plain };
}

/// The options of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LogOptions {
    /// The level of categories without one of their own.
    pub(crate) level: Option<LogLevel>,
    /// The level of lines about connections.
    pub(crate) connection_level: Option<LogLevel>,
    /// The level of lines about queues and their messages.
    pub(crate) queue_level: Option<LogLevel>,
    pub(crate) console: Sink,
    pub(crate) stream: LogStream,
    pub(crate) file: Sink,
    /// The file name; none for no file.
    pub(crate) file_name: Option<PathBuf>,
    /// The directory of the file, if its name has none.
    pub(crate) dir: PathBuf,
    /// Size at which the file is rotated, in bytes.
    pub(crate) rotation_bytes: Option<u64>,
    /// Rotated files to keep.
    pub(crate) rotated_files_max: u32,
}

impl LogOptions {
    /// The path of the file, if there is one.
    pub(crate) fn file_path(&self) -> Option<PathBuf> {
        let name = self.file_name.as_ref()?;
        Some(if name.components().count() > 1 { name.clone() } else { self.dir.join(name) })
    }

    /// The level of lines of a category at a destination: the category's level or the general one, but never
    /// more verbose than the destination's.
    pub(crate) fn level_at(&self, sink: &Sink, category: Option<LogLevel>) -> LogLevel {
        let levels = [sink.level, category.or(self.level)];
        levels.into_iter().flatten().max().unwrap_or(LogLevel::Info)
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            level: None,
            connection_level: None,
            queue_level: None,
            console: Sink::ON,
            stream: LogStream::Stderr,
            file: Sink::ON,
            file_name: None,
            dir: PathBuf::from("."),
            rotation_bytes: None,
            rotated_files_max: 10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_is_the_stricter_of_category_and_output() {
        use LogLevel::{Debug, Error, Info, Warning};

        let level = |all, place, category| {
            let options = LogOptions { level: all, ..LogOptions::default() };
            let sink = Sink { level: place, ..Sink::ON };
            options.level_at(&sink, category)
        };
        assert_eq!(level(None, None, None), Info);
        assert_eq!(level(None, Some(Debug), None), Debug);
        assert_eq!(level(Some(Warning), Some(Debug), None), Warning);
        assert_eq!(level(Some(Warning), None, Some(Debug)), Debug);
        assert_eq!(level(Some(Debug), Some(Warning), Some(Error)), Error);
    }

    #[test]
    fn log_file_is_in_the_directory_unless_its_name_is_a_path() {
        let path = |name: &str| {
            let file_name = Some(PathBuf::from(name));
            LogOptions { file_name, dir: "/var/log".into(), ..LogOptions::default() }.file_path()
        };
        assert_eq!(path("a.log"), Some(PathBuf::from("/var/log/a.log")));
        assert_eq!(path("logs/a.log"), Some(PathBuf::from("logs/a.log")));
        assert_eq!(path("/a.log"), Some(PathBuf::from("/a.log")));
        assert_eq!(LogOptions::default().file_path(), None);
    }
}
