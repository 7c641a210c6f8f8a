//! What the broker writes about itself: one line per event, with fields, to standard error.

use broker::Event;
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogLevel, LogOptions};

/// Starts logging.
pub(crate) fn start(options: &LogOptions) {
    let level = options.console.level.unwrap_or(options.level);
    let filter = EnvFilter::try_new(word(level)).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        // A log that cannot be written is no reason to stop: the report of it would panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    match options.console.format {
        LogFormat::Plain => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            builder.with_ansi(colours).init();
        }
        LogFormat::Json => builder.json().init(),
    }
}

/// The word of `tracing` for a level.
const fn word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warning => "warn",
        LogLevel::Error => "error",
        LogLevel::None => "off",
    }
}

/// Writes down what happened in a vhost.
pub(crate) fn event(vhost: &str, event: &Event) {
    match event {
        Event::DroppedDeadLetters { queue, reason, cause } => {
            let (queue, reason, cause) = (&**queue, reason.as_str(), cause.as_str());
            tracing::warn!(vhost, queue, reason, cause, "dead messages are dropped");
        }
        Event::DeadLetterCycle { queues } => {
            let circle = queues.join(" <- ");
            tracing::warn!(vhost, circle, "dead letters would go round in a circle, dropped");
        }
        Event::QueueExpired { queue, message_count } => {
            let queue = &**queue;
            tracing::info!(vhost, queue, message_count, "queue expired with messages in it");
        }
        Event::ConsumerTimedOut { queue, consumer_tag } => {
            let (queue, consumer_tag) = (&**queue, consumer_tag.as_deref().unwrap_or("basic.get"));
            tracing::warn!(vhost, queue, consumer_tag, "delivery acknowledgement timed out");
        }
    }
}
