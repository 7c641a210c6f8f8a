//! The settings of a node that it shows to clients of the management API.

use crate::config::Config;

/// The settings that a node shows.
#[derive(Debug)]
pub(crate) struct ShownSettings {
    /// All settings in force, as lines of a configuration file; secrets are masked.
    pub(crate) lines: String,
    /// Minutes after which a login to the web page ends; none for no end.
    pub(crate) login_session_timeout_minutes: Option<u32>,
}

impl ShownSettings {
    /// The settings of the configuration.
    pub(crate) fn new(config: &Config) -> Self {
        let lines = config.lines_in_force();
        Self { lines, login_session_timeout_minutes: config.login_session_timeout_minutes }
    }
}
