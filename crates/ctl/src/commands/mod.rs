//! All commands, one file per subject.

mod absent;
mod backup;
mod clients;
mod cluster_status;
mod completion;
mod death_history;
mod definitions;
mod delays;
mod diagnostics;
mod dlq;
mod doctor;
mod eval;
mod features;
mod given_reasons;
mod help;
mod import_preview;
mod leadership;
mod lifecycle;
mod limits;
mod listeners;
mod maintenance;
mod members;
mod membership;
mod memory;
mod parameters;
mod peek;
mod permissions;
mod plugins;
mod policies;
mod policy_preview;
mod queues;
mod quorum_queue;
mod redrives;
mod replicas;
mod report;
mod schedules;
mod status;
mod topic_permissions;
mod topology;
mod tracing;
mod upgrade;
mod users;
mod vhosts;
mod watermarks;

pub(crate) use absent::absent;

use crate::command::Command;
use crate::tool::Tool;

/// The commands of all files.
const ALL: &[&[Command]] = &[
    help::COMMANDS,
    completion::COMMANDS,
    lifecycle::COMMANDS,
    backup::COMMANDS,
    users::COMMANDS,
    permissions::COMMANDS,
    topic_permissions::COMMANDS,
    vhosts::COMMANDS,
    leadership::COMMANDS,
    membership::COMMANDS,
    members::COMMANDS,
    limits::COMMANDS,
    parameters::COMMANDS,
    policies::COMMANDS,
    policy_preview::COMMANDS,
    queues::COMMANDS,
    peek::COMMANDS,
    dlq::COMMANDS,
    death_history::COMMANDS,
    delays::COMMANDS,
    doctor::COMMANDS,
    redrives::COMMANDS,
    schedules::COMMANDS,
    topology::COMMANDS,
    clients::COMMANDS,
    tracing::COMMANDS,
    definitions::COMMANDS,
    features::COMMANDS,
    watermarks::COMMANDS,
    status::COMMANDS,
    cluster_status::COMMANDS,
    report::COMMANDS,
    maintenance::COMMANDS,
    eval::COMMANDS,
    listeners::COMMANDS,
    diagnostics::COMMANDS,
    upgrade::COMMANDS,
    plugins::COMMANDS,
];

/// The commands that a tool has.
pub(crate) fn of(tool: Tool) -> impl Iterator<Item = &'static Command> {
    ALL.iter().copied().flatten().filter(move |command| command.tools.has(tool))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn command_names_are_unique_and_begin_their_usage() {
        let mut seen = BTreeMap::new();
        for command in of(Tool::Leveretctl) {
            let usage: Vec<&str> = command.usage.split(' ').collect();
            let name: Vec<&str> = command.name_words().collect();
            assert!(usage.starts_with(&name), "{}", command.usage);
            assert!(!command.about.is_empty(), "{}", command.name);
            assert!(command.words.0 <= command.words.1, "{}", command.name);
            assert_eq!(seen.insert(command.name, ()), None, "{}", command.name);
        }
    }

    #[test]
    fn answers_have_a_time_limit_unless_there_may_be_much_to_do() {
        let limit = |name: &str| {
            let mut commands = of(Tool::Leveretctl);
            let command = commands.find(|command| command.name == name);
            command.unwrap().answer_timeout().map(|limit| limit.as_secs())
        };
        for name in ["status", "cluster_status", "list_queues", "add_user", "ping"] {
            assert_eq!(limit(name), Some(60), "{name}");
        }
        for name in ["import_definitions", "reset", "delete_vhost", "drain", "dlq redrive", "stop"]
        {
            assert_eq!(limit(name), None, "{name}");
        }
    }
}
