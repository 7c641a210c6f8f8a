//! Help texts: the list of commands, the usage of one, and suggestions for unknown names.

pub(crate) mod man_page;

use std::fmt::Write as _;

use crate::command::Command;
use crate::commands;
use crate::printable::in_line;
use crate::tool::Tool;

/// Smallest similarity of a name that is suggested.
const SIMILARITY_MIN: f64 = 0.7;

/// The options of all commands.
pub(crate) const OPTIONS: &str = "\
Options of all commands

  -?, --help              show the usage of a command
  -n, --node <node>       name of the node, or rabbit@HOST for another machine
  -p, --vhost <vhost>     the vhost of the command [/]
  -t, --timeout <n>       timeout for the node, in seconds
  -q, --quiet             print the answer only
  -s, --silent            the same, and tables without headers
      --no-table-headers  tables without headers
      --formatter <name>  table, pretty_table, csv, json or erlang
      --dry-run           change nothing
  -l, --longnames, --print-stacktrace  have no effect

Address and login (options, then the environment, then ctl.json in the data directory of a node on
this machine)

      --http-url <url>    LEVERET_HTTP_URL     the management API
      --host, --port      LEVERET_HTTP_HOST, LEVERET_HTTP_PORT
      --username          LEVERET_USER
      --password          LEVERET_PASSWORD
      --cacert <file>, --insecure  authorities that an API over HTTPS is checked against, instead of
                                   those of the system; or no check
      --data-dir <dir>    LEVERET_DATA_DIR     [data, or that of /etc/leveret/leveret.conf]
      --config <file>     LEVERET_CONFIG_FILE
";

/// All commands of a tool.
pub(crate) fn all(tool: Tool) -> String {
    let mut commands: Vec<&Command> = commands::of(tool).collect();
    commands.sort_by_key(|command| (command.section, command.name));
    let width = commands.iter().map(|command| command.name.len()).max().unwrap_or_default();
    let name = tool.name();
    let mut text = format!(
        "\nUsage\n\n{name} [--node <node>] [--timeout <timeout>] [--longnames] [--quiet] <command> \
         [<command options>]\n\nAvailable commands:\n"
    );
    let mut section = None;
    for command in commands {
        if section != Some(command.section) {
            section = Some(command.section);
            // Writing to a string cannot fail, here and below.
            let _ = write!(text, "\n{}:\n\n", command.section.title());
        }
        let _ = writeln!(text, "   {:width$}  {}", command.name, command.about);
    }
    let _ = write!(text, "\nUse '{name} help <command>' to learn more about a specific command\n");
    text
}

/// Usage of a command, below an error.
pub(crate) fn usage(tool: Tool, command: &Command) -> String {
    let name = tool.name();
    let has_own = tool == Tool::Leveretctl && !command.own_options.is_empty();
    let own = if has_own { format!(" {}", command.own_options) } else { String::new() };
    format!("\nUsage\n\n{name} [--node <node>] [--longnames] [--quiet] {}{own}", command.usage)
}

/// Help of a command.
pub(crate) fn one(tool: Tool, command: &Command) -> String {
    format!("{}\n\n{}.\n\n{OPTIONS}", usage(tool, command), command.about)
}

/// The command at the beginning of a line: one word, or two as in `dlq ls`.
pub(crate) fn find(tool: Tool, words: &[String]) -> Option<&'static Command> {
    let begins_with = |command: &&'static Command| {
        let mut names = command.name_words().zip(words);
        // Names of commands of our own are written as people write options, too.
        words.len() >= command.name_words().count()
            && names.all(|(name, word)| name == word.replace('-', "_"))
    };
    commands::of(tool).find(begins_with)
}

/// The commands of a family: those whose names begin with this word.
pub(crate) fn family(tool: Tool, name: &str) -> Option<String> {
    let prefix = format!("{name} ");
    let of_family = |command: &&Command| command.name.starts_with(&prefix);
    let mut commands: Vec<&Command> = commands::of(tool).filter(of_family).collect();
    commands.sort_by_key(|command| command.name);
    let width = commands.iter().map(|command| command.name.len()).max()?;
    let lines = commands.iter().map(|c| format!("   {:width$}  {}\n", c.name, c.about));
    let tool = tool.name();
    Some(format!(
        "Commands of '{name}':\n\n{}\nUse '{tool} help {name} <command>' to learn more about one",
        lines.collect::<String>()
    ))
}

/// Error text for words that are no command.
pub(crate) fn unknown(tool: Tool, words: &[String]) -> String {
    let name = in_line(words.first().map(String::as_str).unwrap_or_default());
    let name = &*name;
    if let Some(family) = family(tool, name) {
        let wrong = |word: &String| format!("Command '{name} {}' not found.\n", in_line(word));
        let wrong = words.get(1).map(wrong);
        return wrong.unwrap_or_default() + &family;
    }
    let alike = |command: &'static Command| (similarity(name, command.name), command.name);
    let nearest = commands::of(tool).map(alike).max_by(|one, other| one.0.total_cmp(&other.0));
    let (similarity, nearest) = nearest.unwrap_or_default();
    if tool != Tool::Leveretctl && similarity >= SIMILARITY_MIN {
        return format!("\nCommand '{name}' not found. \nDid you mean '{nearest}'? \n");
    }
    let tool = tool.name();
    let question = match similarity >= SIMILARITY_MIN {
        true => format!("Did you mean '{nearest}'?"),
        false => format!("The command with the nearest name is '{nearest}'."),
    };
    format!("Command '{name}' not found.\n{question}\n'{tool} help' lists all commands.")
}

/// Jaro similarity: 1 for equal names, 0 for names without common letters.
fn similarity(one: &str, other: &str) -> f64 {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let reach = (one.len().max(other.len()) / 2).saturating_sub(1);
    let mut is_taken = vec![false; other.len()];
    let mut matched = Vec::new();
    for (at, c) in one.iter().enumerate() {
        let window = at.saturating_sub(reach)..(at + reach + 1).min(other.len());
        let free = window.into_iter().find(|i| !is_taken[*i] && other[*i] == *c);
        if let Some(i) = free {
            is_taken[i] = true;
            matched.push(*c);
        }
    }
    if matched.is_empty() {
        return 0.0;
    }
    let in_order = is_taken.iter().zip(&other).filter(|(taken, _)| **taken).map(|(_, c)| c);
    let moved = matched.iter().zip(in_order).filter(|(one, other)| one != other).count();
    #[expect(clippy::cast_precision_loss, reason = "names are short")]
    let [m, moved, one, other] =
        [matched.len(), moved / 2, one.len(), other.len()].map(|n| n as f64);
    (m / one + m / other + (m - moved) / m) / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_command_suggests_a_similar_one() {
        let told = |name: &str| unknown(Tool::Rabbitmqctl, &[name.to_owned()]);
        assert_eq!(
            told("list_queuess"),
            "\nCommand 'list_queuess' not found. \nDid you mean 'list_queues'? \n"
        );
        assert!(told("set_polcy").contains("Did you mean 'set_policy'? "));
        assert_eq!(told("bogus").lines().count(), 3);
        let own = unknown(Tool::Leveretctl, &["list_queuess".to_owned()]);
        let [what, nearest, more] = own.lines().collect::<Vec<_>>()[..] else { panic!("{own}") };
        assert_eq!(what, "Command 'list_queuess' not found.");
        assert_eq!(nearest, "Did you mean 'list_queues'?");
        assert_eq!(more, "'leveretctl help' lists all commands.");
    }

    #[test]
    fn own_options_are_in_the_usage_of_leveretctl_only() {
        let shown = |tool| usage(tool, find(tool, &["import_definitions".to_owned()]).unwrap());
        assert!(
            shown(Tool::Leveretctl).ends_with("[--timeout <timeout>] [-p <vhost>] [--dry-run]")
        );
        assert!(shown(Tool::Rabbitmqctl).ends_with("[--timeout <timeout>]"));
    }

    #[test]
    fn command_names_have_one_word_or_two() {
        let found = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            find(Tool::Leveretctl, &words).map(|command| command.name)
        };
        assert_eq!(found("list-queues name"), Some("list_queues"));
        assert_eq!(found("dlq ls"), Some("dlq ls"));
        assert_eq!(found("dlq ls more"), Some("dlq ls"));
        assert_eq!((found("dlq"), found("dlq nothing"), found("ls")), (None, None, None));
    }

    #[test]
    fn family_lists_its_commands() {
        let told = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            unknown(Tool::Leveretctl, &words)
        };
        let text = told("dlq");
        assert!(text.starts_with("Commands of 'dlq':\n\n   dlq cancel"), "{text}");
        assert!(text.contains("\n   dlq redrive") && text.contains("\n   dlq ls"), "{text}");
        assert_eq!(told("dlq nope"), format!("Command 'dlq nope' not found.\n{text}"));
        assert_eq!(family(Tool::Leveretctl, "list_queues"), None);
    }

    #[test]
    fn similarity_is_that_of_jaro() {
        let is =
            |one, other, expected: f64| assert!((similarity(one, other) - expected).abs() < 1e-3);
        is("martha", "marhta", 0.944);
        is("dixon", "dicksonx", 0.767);
        is("a", "a", 1.0);
        is("abc", "xyz", 0.0);
    }
}
