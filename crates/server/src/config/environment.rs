//! Environment variables, with the names of RabbitMQ and its container images.
//!
//! `LEVERET_...` overrides `RABBITMQ_...`; an empty variable counts as unset.

use std::path::PathBuf;

use super::settings::{Settings, Source};

/// Variables, each with the key that it sets.
const VARIABLES: &[(&[&str], &str)] = &[
    (&["LEVERET_DATA_DIR"], "data_dir"),
    (&["LEVERET_NODE_PORT", "RABBITMQ_NODE_PORT"], "listeners.tcp.default"),
    (&["LEVERET_LOG_BASE", "RABBITMQ_LOG_BASE"], "log.dir"),
    (&["LEVERET_NODENAME", "RABBITMQ_NODENAME"], "nodename"),
    (&["LEVERET_CLUSTER_SECRET", "RABBITMQ_ERLANG_COOKIE"], "cluster.secret"),
    (&["LEVERET_DEFAULT_USER", "RABBITMQ_DEFAULT_USER"], "default_user"),
    (&["LEVERET_DEFAULT_PASS", "RABBITMQ_DEFAULT_PASS"], "default_pass"),
    (&["LEVERET_DEFAULT_VHOST", "RABBITMQ_DEFAULT_VHOST"], "default_vhost"),
];

/// The destination of the log: `-` for the console, or a file.
const LOGS: &[&str] = &["LEVERET_LOGS", "RABBITMQ_LOGS"];

/// Log levels: `debug`, or `connection=debug,queue=warning`.
const LOG: &[&str] = &["LEVERET_LOG", "RABBITMQ_LOG"];

/// The configuration file.
const CONFIG_FILE: &[&str] = &["LEVERET_CONFIG_FILE", "RABBITMQ_CONFIG_FILE"];

/// A directory of further files.
const CONFIG_FILES: &[&str] = &["LEVERET_CONFIG_FILES", "RABBITMQ_CONFIG_FILES"];

/// Looks up the value of a variable by name.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Looks up a variable of this process.
pub(crate) fn of_process(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn first(names: &[&'static str], lookup: Lookup<'_>) -> Option<(&'static str, String)> {
    names.iter().find_map(|name| {
        let value = lookup(name).filter(|value| !value.is_empty())?;
        Some((*name, value))
    })
}

/// The configuration files that the environment names.
pub(crate) fn files(lookup: Lookup<'_>) -> Vec<PathBuf> {
    main_file(lookup).into_iter().chain(more_files(lookup)).collect()
}

/// The main configuration file that the environment names.
pub(super) fn main_file(lookup: Lookup<'_>) -> Option<PathBuf> {
    first(CONFIG_FILE, lookup).map(|(_, path)| with_extension(path))
}

/// The directory of further configuration files that the environment names.
pub(super) fn more_files(lookup: Lookup<'_>) -> Option<PathBuf> {
    first(CONFIG_FILES, lookup).map(|(_, path)| PathBuf::from(path))
}

/// Adds the extension `.conf` if the file exists only with it, as RabbitMQ does.
fn with_extension(path: String) -> PathBuf {
    let whole = PathBuf::from(format!("{path}.conf"));
    let path = PathBuf::from(path);
    if !path.exists() && whole.exists() { whole } else { path }
}

/// Applies the variables of the environment.
pub(crate) fn apply(settings: &mut Settings, lookup: Lookup<'_>) {
    for (names, key) in VARIABLES {
        if let Some((name, value)) = first(names, lookup) {
            settings.set(key, &value, Source::Environment(name));
        }
    }
    if let Some((name, value)) = first(LOGS, lookup) {
        let source = || Source::Environment(name);
        if value == "-" {
            settings.set("log.console", "true", source());
            settings.set("log.file", "false", source());
        } else {
            settings.set("log.console", "false", source());
            settings.set("log.file", &value, source());
        }
    }
    if let Some((name, value)) = first(LOG, lookup) {
        for part in value.split(',').map(str::trim) {
            let source = Source::Environment(name);
            match part.split_once('=') {
                Some((category, level)) => {
                    settings.set(&format!("log.{category}.level"), level, source);
                }
                // `+color` and `-color` have no effect: terminals are detected.
                None if part.starts_with(['+', '-']) => {}
                None => settings.set("log.default.level", part, source),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn config(variables: &[(&str, &str)]) -> Config {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let mut settings = Settings::default();
        settings.set("listeners.tcp.1", "1", Source::File { path: "a.conf".into(), line: 1 });
        apply(&mut settings, &lookup);
        settings.into_config().unwrap()
    }

    #[test]
    fn environment_wins_over_files_and_own_names_over_rabbitmqs() {
        let config = config(&[
            ("RABBITMQ_NODE_PORT", "5700"),
            ("RABBITMQ_DEFAULT_USER", "bob"),
            ("LEVERET_DEFAULT_USER", "alice"),
            ("RABBITMQ_DEFAULT_PASS", "secret"),
            ("LEVERET_DEFAULT_PASS", ""),
            ("RABBITMQ_NODENAME", "rabbit@here"),
        ]);
        assert_eq!(config.amqp_listeners, ["[::]:5700".parse().unwrap()]);
        assert_eq!(
            (config.default_user.name.as_str(), config.default_user.password.as_str()),
            ("alice", "secret")
        );
        assert_eq!(config.node_name.as_deref(), Some("rabbit@here"));
    }

    #[test]
    fn log_outputs_are_configured() {
        let on =
            config(&[("RABBITMQ_LOGS", "-"), ("RABBITMQ_LOG", "debug,connection=error,+color")]);
        assert!(on.log.console.is_on && on.log.file_name.is_none());
        assert_eq!(on.log.level, Some(crate::config::LogLevel::Debug));
        assert_eq!(on.log.connection_level, Some(crate::config::LogLevel::Error));
        let file = config(&[("RABBITMQ_LOGS", "/var/log/x.log")]);
        assert!(!file.log.console.is_on);
        assert_eq!(file.log.file_name.as_deref(), Some(std::path::Path::new("/var/log/x.log")));
    }
}
