//! All commands: one file per subject, one folder per area.

mod access;
mod answer;
mod clients;
mod cluster;
mod node;
mod program;
mod progress;
mod queues;
mod settings;

pub(crate) use node::lifecycle::poll;
pub(crate) use program::absent::absent;

use crate::command::Command;
use crate::tool::Tool;

/// The commands of all files.
const ALL: &[&[Command]] = &[
    program::help::COMMANDS,
    program::completion::COMMANDS,
    program::context::COMMANDS,
    node::lifecycle::COMMANDS,
    node::backup::COMMANDS,
    node::file_check::COMMANDS,
    access::users::COMMANDS,
    access::permissions::COMMANDS,
    access::topic_permissions::COMMANDS,
    access::vhosts::COMMANDS,
    cluster::leadership::COMMANDS,
    cluster::membership::COMMANDS,
    cluster::members::COMMANDS,
    access::limits::COMMANDS,
    access::parameters::COMMANDS,
    settings::policies::COMMANDS,
    settings::policy_preview::COMMANDS,
    queues::listed_queues::COMMANDS,
    queues::peek::COMMANDS,
    queues::dlq::COMMANDS,
    queues::death_history::COMMANDS,
    queues::delays::COMMANDS,
    node::doctor::COMMANDS,
    queues::redrives::COMMANDS,
    queues::schedules::COMMANDS,
    clients::topology::COMMANDS,
    clients::connections::COMMANDS,
    clients::tracing::COMMANDS,
    settings::definitions::COMMANDS,
    settings::shovels::COMMANDS,
    program::features::COMMANDS,
    node::watermarks::COMMANDS,
    node::status::COMMANDS,
    cluster::cluster_status::COMMANDS,
    node::report::COMMANDS,
    node::maintenance::COMMANDS,
    program::eval::COMMANDS,
    node::listeners::COMMANDS,
    node::diagnostics::COMMANDS,
    node::upgrade::COMMANDS,
    program::plugins::COMMANDS,
];

/// The commands that a tool has.
pub(crate) fn of(tool: Tool) -> impl Iterator<Item = &'static Command> {
    ALL.iter().copied().flatten().filter(move |command| command.tools.has(tool))
}

/// The commands of all tools.
#[cfg(test)]
pub(crate) fn every() -> impl Iterator<Item = &'static Command> {
    ALL.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

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
    fn matrix_lists_every_command_and_no_other() {
        let page = include_str!("../../../../docs/reference/compatibility-matrix.md");
        let (_, section) = page.split_once("\n## Commands\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let (mut there, mut not_there) = (BTreeSet::new(), BTreeSet::new());
        for row in section.lines().filter(|line| line.starts_with("| ")).skip(2) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let names = cells[1].trim_start_matches("rabbitmq-plugins: ").split(", ");
            let verdict = if cells[2] == "no" { &mut not_there } else { &mut there };
            for name in names {
                assert!(verdict.insert(name), "{name} stands there twice");
            }
        }
        let names = |tool| of(tool).map(|command| command.name);
        let all: BTreeSet<&str> = names(Tool::Leveretctl).chain(names(Tool::Plugins)).collect();
        let wrong: Vec<_> = there.symmetric_difference(&all).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(all.is_disjoint(&not_there));
        let absent_ones: Vec<&str> = program::absent::names().collect();
        assert!(absent_ones.len() > 40);
        assert!(absent_ones.iter().all(|name| not_there.contains(name)), "{not_there:?}");
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
