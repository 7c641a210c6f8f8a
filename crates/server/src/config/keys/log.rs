//! Keys for the log: destinations, levels and formats.

use crate::config::key::Key;
use crate::config::values::{boolean, number, number_or, one_of};
use crate::config::{LogFormat, LogLevel, LogStream};

/// RabbitMQ's levels. A level that Leveret does not have maps to the next more severe one.
const LEVELS: &[(&str, LogLevel)] = &[
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("notice", LogLevel::Info),
    ("warning", LogLevel::Warning),
    ("error", LogLevel::Error),
    ("critical", LogLevel::Error),
    ("alert", LogLevel::Error),
    ("emergency", LogLevel::Error),
    ("none", LogLevel::None),
];

/// The formats of log lines.
const FORMATS: &[(&str, LogFormat)] = &[("plaintext", LogFormat::Plain), ("json", LogFormat::Json)];

pub(super) const KEYS: &[Key] = &[
    Key::new("log.default.level", None, |config, _, value| {
        config.log.level = Some(one_of(value, LEVELS)?);
        Ok(())
    })
    .or(&["log.level"]),
    Key::new("log.connection.level", None, |config, _, value| {
        config.log.connection_level = Some(one_of(value, LEVELS)?);
        Ok(())
    }),
    Key::new("log.queue.level", None, |config, _, value| {
        config.log.queue_level = Some(one_of(value, LEVELS)?);
        Ok(())
    }),
    Key::new("log.console", Some("true"), |config, _, value| {
        config.log.console.is_on = boolean(value)?;
        Ok(())
    }),
    Key::new("log.console.level", None, |config, _, value| {
        config.log.console.level = Some(one_of(value, LEVELS)?);
        Ok(())
    }),
    Key::new("log.console.formatter", Some("plaintext"), |config, _, value| {
        config.log.console.format = one_of(value, FORMATS)?;
        Ok(())
    }),
    Key::new("log.console.stdio", Some("stderr"), |config, _, value| {
        let words = [("stderr", LogStream::Stderr), ("stdout", LogStream::Stdout)];
        config.log.stream = one_of(value, &words)?;
        Ok(())
    }),
    Key::new("log.file", Some("false"), |config, _, value| {
        config.log.file_name = match value {
            "false" => None,
            "true" => Some("leveret.log".into()),
            name => Some(name.into()),
        };
        Ok(())
    }),
    Key::new("log.file.level", None, |config, _, value| {
        config.log.file.level = Some(one_of(value, LEVELS)?);
        Ok(())
    }),
    Key::new("log.file.formatter", Some("plaintext"), |config, _, value| {
        config.log.file.format = one_of(value, FORMATS)?;
        Ok(())
    }),
    Key::new("log.file.rotation.size", Some("0"), |config, _, value| {
        // 4096 bytes are a few lines; a smaller file would be rotated with each line.
        let bytes = number_or("0", value, 4096..=u64::from(u32::MAX))?;
        config.log.rotation_bytes = bytes;
        Ok(())
    }),
    Key::new("log.file.rotation.count", Some("10"), |config, _, value| {
        config.log.rotated_files_max = number(value, 0..=1000)?;
        Ok(())
    }),
    Key::new("log.dir", Some("."), |config, _, value| {
        config.log.dir = value.into();
        Ok(())
    }),
];
