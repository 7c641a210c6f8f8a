//! The broker's log: one line per event, with fields, to the console or a file.

pub(crate) mod file;
pub(crate) mod line;
pub(crate) mod queue_events;

use std::io;
use std::sync::Arc;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Layer, Registry};

use crate::config::{LogFormat, LogLevel, LogOptions, LogStream, Sink};
use crate::logging::file::{LogFile, ToFile};
use crate::logging::line::{Form, OneLine};

/// The targets of lines about connections.
const CONNECTION: [&str; 3] = ["server::connection", "server::tls::accept", "server::http::socket"];

/// The target of lines about queues.
const QUEUE: &str = queue_events::TARGET;

/// A layer that writes lines to one destination.
type Output = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging; returns the log file, if there is one.
///
/// # Errors
/// If the file cannot be opened.
pub(crate) fn start(options: &LogOptions) -> io::Result<Option<Arc<LogFile>>> {
    let mut outputs = Vec::new();
    if options.console.is_on {
        let (writer, is_terminal) = console(options.stream);
        outputs.push(output(
            &options.console,
            writer,
            is_terminal,
            filter(options, &options.console),
        ));
    }
    let mut file = None;
    if let Some(path) = options.file_path() {
        let (bytes_max, kept_max) = (options.rotation_bytes, options.rotated_files_max);
        let opened = Arc::new(LogFile::open(path, bytes_max, kept_max)?);
        let writer = ToFile(Arc::clone(&opened));
        outputs.push(output(&options.file, writer, false, filter(options, &options.file)));
        file = Some(opened);
    }
    // Without outputs no subscriber is set, so that `tracing` reports logging as disabled.
    if !outputs.is_empty() {
        tracing_subscriber::registry().with(outputs).init();
    }
    Ok(file)
}

fn console(stream: LogStream) -> (BoxMakeWriter, bool) {
    match stream {
        LogStream::Stderr => {
            (BoxMakeWriter::new(io::stderr), io::IsTerminal::is_terminal(&io::stderr()))
        }
        LogStream::Stdout => {
            (BoxMakeWriter::new(io::stdout), io::IsTerminal::is_terminal(&io::stdout()))
        }
    }
}

fn output<W>(sink: &Sink, writer: W, has_colours: bool, filter: Targets) -> Output
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let form = match sink.format {
        LogFormat::Json => Form::Json,
        LogFormat::Plain if has_colours => Form::Coloured,
        LogFormat::Plain => Form::Plain,
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_target(false)
        // A failed write to the log must not stop the broker, and reporting it would panic.
        .log_internal_errors(false)
        .with_ansi(has_colours)
        .with_writer(OneLine::new(writer, form));
    match sink.format {
        LogFormat::Plain => layer.with_filter(filter).boxed(),
        LogFormat::Json => layer.json().with_filter(filter).boxed(),
    }
}

/// The filter of lines for one destination.
fn filter(options: &LogOptions, sink: &Sink) -> Targets {
    let level = |category| of_tracing(options.level_at(sink, category));
    let connection = CONNECTION.map(|target| (target, level(options.connection_level)));
    Targets::new()
        .with_default(level(None))
        .with_targets(connection)
        .with_target(QUEUE, level(options.queue_level))
}

const fn of_tracing(level: LogLevel) -> tracing::level_filters::LevelFilter {
    use tracing::level_filters::LevelFilter;

    match level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::None => LevelFilter::OFF,
    }
}
