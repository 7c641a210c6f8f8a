//! What can be said of the log.

use std::path::PathBuf;

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum LogFormat {
    /// Text.
    #[default]
    Plain,
    /// One JSON object per line.
    Json,
}

/// What is not too fine to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogLevel {
    Debug,
    Info,
    Warning,
    Error,
    /// Nothing.
    None,
}

/// Where the console's lines go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogStream {
    Stderr,
    Stdout,
}

/// A place that lines go to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sink {
    pub(crate) is_on: bool,
    /// A level of its own.
    pub(crate) level: Option<LogLevel>,
    pub(crate) format: LogFormat,
}

impl Sink {
    const ON: Self = Self { is_on: true, level: None, format: LogFormat::Plain };
}

/// The log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LogOptions {
    pub(crate) level: LogLevel,
    /// Of lines about connections.
    pub(crate) connection_level: Option<LogLevel>,
    /// Of lines about queues and what is in them.
    pub(crate) queue_level: Option<LogLevel>,
    pub(crate) console: Sink,
    pub(crate) stream: LogStream,
    pub(crate) file: Sink,
    /// Without a name there is no file.
    pub(crate) file_name: Option<PathBuf>,
    /// Where the file is, if its name does not say it.
    pub(crate) dir: PathBuf,
    /// From which size on a file is put aside and a new one begun.
    pub(crate) rotation_bytes: Option<u64>,
    /// Files put aside that are kept.
    pub(crate) rotated_files_max: u32,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            level: LogLevel::Info,
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
