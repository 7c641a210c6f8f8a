//! A broker inside another program: without sockets, signals and a log.
//!
//! The configuration is a text; the program may answer requests over HTTP about the node.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::config::{Config, Settings};
use crate::node::Node;
use crate::node::alarms;

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Configuration(Config);

impl Configuration {
    /// Parses a text in the format of `rabbitmq.conf`; problems name `path` as their place.
    ///
    /// # Errors
    /// All problems, each a sentence with its place.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Vec<String>> {
        let mut settings = Settings::default();
        settings.read_text(text, path, 0);
        settings.into_config().map(Self).map_err(|error| error.problems)
    }

    /// Every key in force with its value, as a line of a file; secrets are masked.
    pub fn in_force(&self) -> impl Iterator<Item = String> {
        self.0.effective.iter().map(ToString::to_string)
    }
}

/// A running broker; it stops when dropped.
pub struct Embedded {
    node: Arc<Node>,
}

impl Embedded {
    /// Starts a broker in the data directory that the configuration names.
    ///
    /// # Errors
    /// The reason why the broker does not start, as a sentence for the operator.
    pub fn start(configuration: &Configuration) -> Result<Self, String> {
        let node = Node::start(&configuration.0, Vec::new()).map_err(|error| error.to_string())?;
        // There is no task that watches memory and disk.
        alarms::clear(&node);
        Ok(Self { node: Arc::new(node) })
    }

    /// The node, for the services of HTTP. Some requests need a runtime with several threads.
    #[must_use]
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// The token of the local administrator: requests from the local machine with this token as `Bearer` have
    /// all permissions and need no password.
    pub fn token(&self) -> &str {
        self.node.ctl_token.as_str()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.node.begin_stop();
        self.node.close_connections();
        self.node.close();
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("name", &self.node.identity.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_drop_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("leveret-embedded-{}", std::process::id()));
        let text = format!("data_dir = {}\n", folder.display());
        let configuration = Configuration::parse(&text, Path::new("a.conf")).unwrap();
        for _ in 0..2 {
            let embedded = Embedded::start(&configuration).unwrap();
            let node = Arc::downgrade(&embedded.node);
            drop(embedded);
            assert!(node.upgrade().is_none());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn parse_errors_name_their_place() {
        let wrong = Configuration::parse("heartbeat = soon\n", Path::new("a.conf")).unwrap_err();
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].starts_with("a.conf, line 1: heartbeat "), "{wrong:?}");
    }
}
