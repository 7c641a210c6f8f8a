//! The files of a node that operators look for: its configuration and its log.

use std::path::{Path, PathBuf};

use crate::config::{Config, LogOptions, LogStream};

/// Paths of the files of a node.
#[derive(Debug)]
pub(crate) struct NodeFiles {
    /// The configuration files that the node has read, in order.
    pub(crate) config: Vec<String>,
    /// The log file and the console, `<stdout>` or `<stderr>`, as far as the log goes there.
    pub(crate) log: Vec<String>,
}

impl NodeFiles {
    /// The files of a node with this configuration.
    pub(crate) fn new(config: &Config) -> Self {
        let shown = |path: &PathBuf| path.display().to_string();
        Self { config: config.files.iter().map(shown).collect(), log: log_files(&config.log) }
    }
}

fn log_files(options: &LogOptions) -> Vec<String> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let file = options.file_path().map(|path| absolute(&path).display().to_string());
    let console = match options.stream {
        LogStream::Stdout => "<stdout>",
        LogStream::Stderr => "<stderr>",
    };
    let console = options.console.is_on.then(|| console.to_owned());
    file.into_iter().chain(console).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sink;

    #[test]
    fn log_goes_to_a_file_and_the_console() {
        let console = LogOptions::default();
        assert_eq!(log_files(&console), ["<stderr>"]);
        let both = LogOptions {
            stream: LogStream::Stdout,
            file_name: Some("/var/log/leveret.log".into()),
            ..LogOptions::default()
        };
        assert_eq!(log_files(&both), ["/var/log/leveret.log", "<stdout>"]);
        let console = Sink { is_on: false, ..both.console };
        let file = LogOptions { console, ..both };
        assert_eq!(log_files(&file), ["/var/log/leveret.log"]);
    }
}
