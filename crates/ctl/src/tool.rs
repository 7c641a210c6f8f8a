//! The tool, from the name of the program.

use std::path::Path;

/// A tool that the program can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tool {
    /// `leveretctl`, which has all commands.
    Leveretctl,
    Rabbitmqctl,
    /// RabbitMQ's tool for diagnostics: `rabbitmq-diagnostics`.
    Diagnostics,
    /// RabbitMQ's tool for plugins: `rabbitmq-plugins`.
    Plugins,
    /// RabbitMQ's tool for replicas of queues: `rabbitmq-queues`.
    Queues,
    /// RabbitMQ's tool for streams: `rabbitmq-streams`.
    Streams,
    /// RabbitMQ's tool for upgrades: `rabbitmq-upgrade`.
    Upgrade,
}

/// Version of RabbitMQ that the tools imitate; the management API reports the same.
pub(crate) const RABBITMQ_VERSION: &str = "4.3.6";

impl Tool {
    /// The tool for a path of the program.
    pub(crate) fn called(program: &str) -> Self {
        let name = Path::new(program).file_name().and_then(|name| name.to_str());
        match name.unwrap_or_default().trim_end_matches(".bat") {
            "rabbitmqctl" => Self::Rabbitmqctl,
            "rabbitmq-diagnostics" => Self::Diagnostics,
            "rabbitmq-plugins" => Self::Plugins,
            "rabbitmq-queues" => Self::Queues,
            "rabbitmq-streams" => Self::Streams,
            "rabbitmq-upgrade" => Self::Upgrade,
            _ => Self::Leveretctl,
        }
    }

    /// Name of the tool.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Leveretctl => "leveretctl",
            Self::Rabbitmqctl => "rabbitmqctl",
            Self::Diagnostics => "rabbitmq-diagnostics",
            Self::Plugins => "rabbitmq-plugins",
            Self::Queues => "rabbitmq-queues",
            Self::Streams => "rabbitmq-streams",
            Self::Upgrade => "rabbitmq-upgrade",
        }
    }

    /// Version of the tool.
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::Leveretctl => env!("CARGO_PKG_VERSION"),
            Self::Rabbitmqctl
            | Self::Diagnostics
            | Self::Plugins
            | Self::Queues
            | Self::Streams
            | Self::Upgrade => RABBITMQ_VERSION,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_is_chosen_by_the_program_name() {
        for (program, tool) in [
            ("/usr/sbin/rabbitmqctl", Tool::Rabbitmqctl),
            ("rabbitmqctl.bat", Tool::Rabbitmqctl),
            ("./rabbitmq-diagnostics", Tool::Diagnostics),
            ("rabbitmq-plugins", Tool::Plugins),
            ("/usr/bin/rabbitmq-queues", Tool::Queues),
            ("rabbitmq-streams.bat", Tool::Streams),
            ("rabbitmq-upgrade", Tool::Upgrade),
            ("target/debug/leveretctl", Tool::Leveretctl),
            ("anything", Tool::Leveretctl),
        ] {
            assert_eq!(Tool::called(program), tool, "{program}");
        }
    }
}
