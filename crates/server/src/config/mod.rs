//! The configuration: RabbitMQ's file format and key names, then command line flags.
//!
//! `file` knows the format, `options` the keys with their types; this is what comes out.

mod file;
mod options;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use broker::VhostOptions;
use session::SessionOptions;

use crate::limits::STATISTICS_INTERVAL;

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum LogFormat {
    /// Text.
    #[default]
    Plain,
    /// One JSON object per line.
    Json,
}

/// The user that exists from the first start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DefaultUser {
    pub(crate) name: String,
    pub(crate) password: String,
    pub(crate) tags: Vec<String>,
    pub(crate) vhost: String,
    pub(crate) configure: String,
    pub(crate) write: String,
    pub(crate) read: String,
}

/// When a persistent message counts as safe.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Durability {
    /// When the disk says that it is on it.
    #[default]
    Fsync,
    /// When the operating system has it: a crash of the broker loses nothing, a power cut may.
    Os,
}

impl Durability {
    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Os => "os",
        }
    }
}

/// How much memory the process may hold before publishers are blocked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum MemoryWatermark {
    /// A fraction of the machine's memory.
    Relative(f64),
    /// Bytes.
    Absolute(u64),
}

/// How much must be free on the disk before publishers are blocked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum DiskFreeLimit {
    /// Bytes.
    Absolute(u64),
    /// A multiple of the machine's memory.
    Relative(f64),
}

/// Everything that can be configured.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) amqp_listeners: Vec<SocketAddr>,
    pub(crate) http_listener: SocketAddr,
    pub(crate) data_dir: PathBuf,
    pub(crate) durability: Durability,
    /// Time between two samples of everything; `collect_statistics_interval`.
    pub(crate) statistics_interval: Duration,
    pub(crate) session: SessionOptions,
    pub(crate) vhost: VhostOptions,
    pub(crate) default_user: DefaultUser,
    pub(crate) loopback_users: Vec<String>,
    pub(crate) load_definitions: Option<PathBuf>,
    pub(crate) memory_watermark: MemoryWatermark,
    /// Share of the memory watermark that messages waiting in the queues of a vhost may take before
    /// long queues are put aside; none for the default.
    pub(crate) paging_ratio: Option<f64>,
    pub(crate) disk_free_limit: DiskFreeLimit,
    pub(crate) cluster_name: Option<String>,
    pub(crate) log_level: String,
    pub(crate) log_format: LogFormat,
}

/// Why a configuration cannot be used.
#[derive(thiserror::Error, Debug)]
pub(crate) enum ConfigError {
    #[error("cannot read configuration file {path}: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{path}, line {line}: {problem}")]
    Line { path: PathBuf, line: usize, problem: String },
}

impl Default for Config {
    fn default() -> Self {
        let any = std::net::IpAddr::from([0_u16; 8]);
        Self {
            amqp_listeners: vec![SocketAddr::new(any, 5672)],
            http_listener: SocketAddr::new(any, 15672),
            data_dir: PathBuf::from("data"),
            durability: Durability::default(),
            statistics_interval: STATISTICS_INTERVAL,
            session: SessionOptions::default(),
            vhost: VhostOptions::default(),
            default_user: DefaultUser {
                name: "guest".to_owned(),
                password: "guest".to_owned(),
                tags: vec!["administrator".to_owned()],
                vhost: "/".to_owned(),
                configure: ".*".to_owned(),
                write: ".*".to_owned(),
                read: ".*".to_owned(),
            },
            loopback_users: vec!["guest".to_owned()],
            load_definitions: None,
            memory_watermark: MemoryWatermark::Relative(0.6),
            paging_ratio: None,
            disk_free_limit: DiskFreeLimit::Absolute(50_000_000),
            cluster_name: None,
            log_level: "info".to_owned(),
            log_format: LogFormat::Plain,
        }
    }
}

impl Config {
    /// The defaults with what the file at `path` says.
    ///
    /// # Errors
    /// [`ConfigError`], which names the file and the line.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Read { path: path.to_owned(), error })?;
        Self::parse(&text).map_err(|(line, problem)| ConfigError::Line {
            path: path.to_owned(),
            line,
            problem,
        })
    }

    /// The defaults with what `text` says; on failure the line and what is wrong with it.
    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut config = Self::default();
        let mut seen = options::Seen::default();
        for entry in file::entries(text) {
            let (line, entry) = entry?;
            options::set(&mut config, &mut seen, entry.key, entry.value)
                .map_err(|problem| (line, problem))?;
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> (usize, String) {
        Config::parse(text).unwrap_err()
    }

    #[test]
    fn keys_have_rabbitmqs_names() {
        let config = Config::parse(
            "# a comment\n\
             listeners.tcp.default = 5673\n\
             \n\
             management.tcp.port = 15673   # another\n\
             heartbeat = 30\n\
             channel_max = 128\n\
             frame_max = 65536\n\
             max_message_size = 1048576\n\
             consumer_timeout = 1000\n\
             default_user = bob\n\
             default_pass = 's#cret'\n\
             default_user_tags.administrator = false\n\
             default_user_tags.monitoring = true\n\
             loopback_users = none\n\
             vm_memory_high_watermark.absolute = 2GB\n\
             disk_free_limit.relative = 1.5\n\
             durability = os\n\
             vm_memory_high_watermark_paging_ratio = 0.25\n\
             deprecated_features.permit.global_qos = true\n\
             log.console.level = warning\n",
        )
        .unwrap();
        assert_eq!(config.amqp_listeners, ["[::]:5673".parse().unwrap()]);
        assert_eq!(config.http_listener, "[::]:15673".parse().unwrap());
        assert_eq!(config.session.heartbeat_s, 30);
        assert_eq!(config.session.channel_max, 128);
        assert_eq!(config.session.frame_max, 65_536);
        assert_eq!(config.session.message_bytes_max, 1_048_576);
        assert_eq!(config.vhost.queue_defaults.consumer_timeout_ms, Some(1000));
        assert_eq!(config.default_user.name, "bob");
        assert_eq!(config.default_user.password, "s#cret");
        assert_eq!(config.default_user.tags, ["monitoring"]);
        assert!(config.loopback_users.is_empty());
        assert_eq!(config.memory_watermark, MemoryWatermark::Absolute(2_000_000_000));
        assert_eq!(config.disk_free_limit, DiskFreeLimit::Relative(1.5));
        assert_eq!(config.durability, Durability::Os);
        assert_eq!(config.paging_ratio, Some(0.25));
        assert!(config.vhost.permits_global_qos);
        assert_eq!(config.log_level, "warn");
    }

    #[test]
    fn listeners_are_ports_or_addresses() {
        let config = Config::parse(
            "listeners.tcp.1 = 127.0.0.1:5672\nlisteners.tcp.2 = ::1:5673\nlisteners.tcp.3 = 5674",
        );
        let expected: Vec<SocketAddr> = ["127.0.0.1:5672", "[::1]:5673", "[::]:5674"]
            .into_iter()
            .map(|address| address.parse().unwrap())
            .collect();
        assert_eq!(config.unwrap().amqp_listeners, expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert_eq!(problem("\n\nheartbeat = soon").0, 3);
        assert_eq!(problem("heartbeet = 1"), (1, "unknown key 'heartbeet'".to_owned()));
        assert_eq!(problem("heartbeat"), (1, "expected 'key = value', got 'heartbeat'".to_owned()));
        assert_eq!(
            problem("frame_max = 100"),
            (1, "frame_max must be at least 8192, got 100".to_owned())
        );
        assert_eq!(
            problem("default_pass = 'open"),
            (1, "default_pass: the quote in front of 'open is not closed".to_owned())
        );
        assert_eq!(
            problem("default_pass = 'it's'  # mine"),
            (1, "default_pass: 's'  # mine' stands behind the quotes".to_owned())
        );
        let (line, text) = problem("default_vhost = a\ndefault_permissions.read = (");
        assert!(line == 2 && text.starts_with("default_permissions.read: "), "{line} {text}");
    }
}
