//! The configuration of a process: from files, its environment and its command line.

use std::path::PathBuf;

use super::{Config, ConfigError, DefaultUserAccess, Settings, Source, container, environment};

/// A setting that an option of the command line gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandLineSetting {
    /// The option, with its hyphens.
    pub option: &'static str,
    /// The key of the configuration.
    pub key: &'static str,
    /// The value, as in a file.
    pub value: String,
}

impl Config {
    /// The configuration from defaults, files, the environment and the command line, in this order. Without files, those
    /// that the environment names are read.
    ///
    /// # Errors
    /// [`ConfigError`] with all problems.
    pub fn load(files: &[PathBuf], given: &[CommandLineSetting]) -> Result<Self, ConfigError> {
        let mut settings = Settings::default();
        let lookup = &environment::of_process;
        let is_in_image = container::is_asked_for(&mut settings, lookup);
        if is_in_image {
            container::set_defaults(&mut settings, lookup, &container::OfSystem);
        }
        let files = match files.is_empty() {
            true if is_in_image => container::files(lookup, &container::OfSystem),
            true => environment::files(lookup),
            false => files.to_vec(),
        };
        files.iter().for_each(|path| settings.read(path));
        environment::apply(&mut settings, lookup);
        for CommandLineSetting { option, key, value } in given {
            settings.set(key, value, Source::CommandLine(option));
        }
        let access = match is_in_image {
            true => container::default_user_access(&settings),
            false => DefaultUserAccess::default(),
        };
        settings.into_config().map(|config| Self { default_user_access: access, ..config })
    }
}
