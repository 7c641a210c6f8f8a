//! Examples: commands for the commonest tasks, from a text of this crate, all of which a test runs.

use std::fmt::Write as _;

use crate::command::Command;
use crate::help::meanings::sections;
use crate::tool::Tool;

/// The text: its first line says how it is read.
const TEXT: &str = include_str!("../../help/examples.txt");

/// Words before each command.
const PREFIX: &str = "leveretctl ";

/// A task with its commands.
struct Task {
    topic: &'static str,
    about: &'static str,
    commands: Vec<&'static str>,
}

fn tasks() -> impl Iterator<Item = Task> {
    sections(TEXT).filter_map(|(title, lines)| {
        let (topic, about) = title.split_once(": ")?;
        let commands = lines.lines().filter_map(|line| line.strip_prefix(PREFIX)).collect();
        Some(Task { topic, about, commands })
    })
}

/// The names of all topics.
pub(crate) fn topics() -> impl Iterator<Item = &'static str> {
    tasks().map(|task| task.topic)
}

/// The examples of a topic, or of all; none if there is no such topic.
pub(crate) fn of_topic(tool: Tool, topic: Option<&str>) -> Option<String> {
    let mut text = String::new();
    for task in tasks().filter(|task| topic.is_none_or(|topic| task.topic == topic)) {
        // Writing to a string cannot fail, here and below.
        let _ = write!(text, "\n{}: {}\n\n", task.topic, task.about);
        for command in task.commands {
            let _ = writeln!(text, "   {} {command}", tool.name());
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The examples of a command.
pub(crate) fn of_command(command: &Command) -> impl Iterator<Item = &'static str> {
    let is_of = |line: &&str| {
        let rest = line.strip_prefix(command.name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    tasks().flat_map(|task| task.commands).filter(is_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands;

    #[test]
    fn ten_tasks_have_commands() {
        assert_eq!(topics().count(), 10);
        let all = of_topic(Tool::Leveretctl, None).unwrap();
        assert_eq!(all.matches("\n   leveretctl ").count(), TEXT.matches("\nleveretctl ").count());
        assert_eq!(of_topic(Tool::Leveretctl, Some("nothing")), None);
        let some = of_topic(Tool::Rabbitmqctl, Some("redrive")).unwrap();
        assert!(some.contains("\n   rabbitmqctl dlq redrive orders.dead --dry-run\n"), "{some}");
        assert!(!some.contains("list_queues"));
    }

    #[test]
    fn example_is_that_of_its_command_only() {
        let named = |name: &str| commands::every().find(|command| command.name == name).unwrap();
        let of = |name: &str| of_command(named(name)).collect::<Vec<_>>();
        assert_eq!(of("doctor"), ["doctor"]);
        assert_eq!(of("list_policies"), ["list_policies"]);
        assert!(of("stop").is_empty());
    }
}
