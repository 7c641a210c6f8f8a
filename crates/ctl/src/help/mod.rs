//! Help texts: the list of commands, and all about one.

pub(crate) mod examples;
pub(crate) mod hints;
pub(crate) mod man_page;
pub(crate) mod meanings;

use std::fmt::Write as _;

use self::meanings::Meaning;
use crate::command::Command;
use crate::commands;
use crate::tool::Tool;

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

Address and login (options, then the environment, then the context in use, then ctl.json in the
data directory of a node on this machine)

      --context <name>    a broker with a name: see 'context add'
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
    let _ = write!(
        text,
        "\nUse '{name} help <command>' to learn more about a specific command, '{name} help options' for the \
         options of all\ncommands and the ways to name a node, '{name} examples' for the commonest tasks\n"
    );
    text
}

/// Usage of a command, below an error.
pub(crate) fn usage(tool: Tool, command: &Command) -> String {
    let name = tool.name();
    let has_own = tool == Tool::Leveretctl && !command.own_options.is_empty();
    let own = if has_own { format!(" {}", command.own_options) } else { String::new() };
    format!("\nUsage\n\n{name} [--node <node>] [--longnames] [--quiet] {}{own}", command.usage)
}

/// Widest column of names of options and columns; a longer one has its meaning in the next line.
const HEAD_WIDTH_MAX: usize = 32;

/// Help of a command: its usage, its own options and columns, and examples.
pub(crate) fn one(tool: Tool, command: &Command) -> String {
    let mut text = format!("{}\n\n{}.\n", usage(tool, command), command.about);
    let (options, columns): (Vec<Meaning>, Vec<Meaning>) =
        meanings::of(command.name).partition(Meaning::is_option);
    let columns_title = match command.columns.is_empty() {
        true => "Columns",
        false => "Columns, of which those with a star are shown if none is named",
    };
    for (title, all) in [("Options", &options), (columns_title, &columns)] {
        if !all.is_empty() {
            let _ = write!(text, "\n{title}\n\n{}", table(all));
        }
    }
    let name = tool.name();
    let examples = examples::of_command(command).map(|line| format!("  {name} {line}\n"));
    let examples: String = examples.collect();
    if !examples.is_empty() {
        let _ = write!(text, "\nExamples\n\n{examples}");
    }
    let _ = write!(
        text,
        "\nOptions of all commands: --vhost, --timeout, --formatter, --quiet, --silent, --no-table-headers, \
         --dry-run\nNode and login: --http-url, --host, --port, --username, --password, --data-dir, --context, --node\n\
         '{name} help options' explains them.\n"
    );
    text
}

/// Names and meanings in two columns.
fn table(all: &[Meaning]) -> String {
    let heads = all.iter().map(|one| one.head.len());
    let width = heads.filter(|width| *width <= HEAD_WIDTH_MAX).max().unwrap_or_default();
    let mut text = String::new();
    for Meaning { head, about, is_usual } in all {
        let star = if *is_usual { '*' } else { ' ' };
        let _ = match head.len() <= HEAD_WIDTH_MAX {
            true => writeln!(text, "{star} {head:width$}  {about}"),
            false => writeln!(text, "{star} {head}\n  {:width$}  {about}", ""),
        };
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_options_are_in_the_usage_of_leveretctl_only() {
        let shown = |tool| usage(tool, find(tool, &["import_definitions".to_owned()]).unwrap());
        assert!(
            shown(Tool::Leveretctl)
                .ends_with("[--timeout <timeout>] [-p <vhost>] [--skip-unsupported] [--dry-run]")
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
}
