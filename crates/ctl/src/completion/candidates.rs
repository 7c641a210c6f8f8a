//! Candidates for the next word of a command line: from the table of commands, which is also that of the
//! help, and from names that the node, or the file of contexts, knows.

use crate::GLOBAL_SWITCHES;
use crate::arguments::{self, Kind, Parsed, Switch, parse};
use crate::command::Command;
use crate::commands;
use crate::help;
use crate::tool::Tool;

/// Names that the node, or the user's file of contexts, knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Names {
    Vhosts,
    Queues,
    Exchanges,
    Users,
    Policies,
    OperatorPolicies,
    /// The ids of redrives.
    Redrives,
    /// The contexts of the user, which no node knows.
    Contexts,
}

/// Kind of a word, by its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// A word without known values.
    Anything,
    Files,
    Commands,
    Names(Names),
    Choices(&'static [&'static str]),
}

/// A word that fits, and a summary of it; the summary may be empty.
pub(crate) type Candidate = (String, &'static str);

/// The candidates for a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Candidates {
    /// The names of files, which a shell knows better.
    Files,
    Words(Vec<Candidate>),
}

/// Finds names with a beginning, for the options of a line.
pub(crate) type Find<'a> = dyn Fn(Names, &Parsed, &str) -> Vec<String> + 'a;

/// Values of options whose usage does not list them.
const OPTION_VALUES: &[(&str, &[&str])] = &[
    ("apply-to", &["all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges"]),
    ("formatter", &["table", "pretty_table", "csv", "json", "erlang"]),
    ("unit", &["bytes", "mb", "gb"]),
];

/// Tags that have a meaning.
const TAGS: &[&str] = &["administrator", "management", "monitoring", "policymaker"];

/// The candidates for `current` behind the words and options of `before`.
pub(crate) fn candidates(
    tool: Tool,
    before: &[String],
    current: &str,
    find: &Find<'_>,
) -> Candidates {
    let of_commands = commands::of(tool).flat_map(|command| command.switches);
    let every: Vec<Switch> = GLOBAL_SWITCHES.iter().chain(of_commands).copied().collect();
    let line = parse(before, &every);
    let command = help::find(tool, &line.words);
    let own = command.map_or(&[][..], |command| command.switches);
    let switches: Vec<Switch> = GLOBAL_SWITCHES.iter().chain(own).copied().collect();
    let completion = Completion { tool, line: &line, command, switches: &switches, find };
    if let Some((written, typed)) = current.split_once('=')
        && let Some(switch) = completion.awaited(written)
    {
        return completion.option_value(switch, typed).with_prefix(&format!("{written}="));
    }
    if let Some(switch) = before.last().and_then(|word| completion.awaited(word)) {
        return completion.option_value(switch, current);
    }
    if current.starts_with('-') {
        return Candidates::Words(completion.options(current));
    }
    match command {
        None => Candidates::Words(command_names(tool, &line.words, current)),
        Some(command) => completion.word(command, current),
    }
}

impl Candidates {
    fn with_prefix(self, prefix: &str) -> Self {
        match self {
            Self::Files => Self::Files,
            Self::Words(words) => {
                let one = |(word, about)| (format!("{prefix}{word}"), about);
                Self::Words(words.into_iter().map(one).collect())
            }
        }
    }
}

/// A line that is being completed.
struct Completion<'a> {
    tool: Tool,
    line: &'a Parsed,
    command: Option<&'static Command>,
    switches: &'a [Switch],
    find: &'a Find<'a>,
}

impl Completion<'_> {
    /// The option that waits for a value behind this word.
    fn awaited(&self, word: &str) -> Option<&Switch> {
        let (switch, _) = arguments::find(word, self.switches).filter(|_| word.starts_with('-'))?;
        (switch.kind != Kind::Flag).then_some(switch)
    }

    fn option_value(&self, switch: &Switch, typed: &str) -> Candidates {
        let usage = self.command.map_or("", |command| command.usage);
        let listed = alternatives(usage, switch.name);
        if !listed.is_empty() {
            return self.of(Place::Choices(&[]), &listed, typed);
        }
        let place = match switch.name {
            "vhost" => Place::Names(Names::Vhosts),
            "user" | "username" => Place::Names(Names::Users),
            "first-queue" => Place::Names(Names::Queues),
            "context" => Place::Names(Names::Contexts),
            "data-dir" | "config" | "cacert" | "file" => Place::Files,
            name => {
                let known = OPTION_VALUES.iter().find(|(option, _)| *option == name);
                known.map_or(Place::Anything, |(_, values)| Place::Choices(values))
            }
        };
        self.of(place, &[], typed)
    }

    /// The options that the help shows, in the form in which it shows them.
    fn options(&self, typed: &str) -> Vec<Candidate> {
        let usage = self.command.map_or("", |command| command.usage);
        let is_shown = |option: &str| {
            let shown = |text: &str| {
                let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
                words.any(|word| word == option)
            };
            shown(help::OPTIONS) || shown(usage)
        };
        let mut found = Vec::new();
        for switch in self.switches {
            for option in [format!("--{}", switch.name), format!("--no-{}", switch.name)] {
                if option.starts_with(typed) && is_shown(&option) {
                    found.push((option, ""));
                }
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// A word of a command.
    fn word(&self, command: &'static Command, typed: &str) -> Candidates {
        let given = self.line.words.get(command.name_words().count()..).unwrap_or_default();
        if !command.columns.is_empty() {
            let names = command.columns.iter().map(|column| column.name);
            let left = names.filter(|name| !given.iter().any(|word| word == name));
            return self.of(Place::Choices(&[]), &left.collect::<Vec<_>>(), typed);
        }
        let all = placeholders(command.usage);
        let is_tags = command.usage.contains("<tag> [...]");
        let placeholder = all.get(given.len()).copied().or_else(|| is_tags.then_some("tag"));
        let place = match placeholder.unwrap_or_default() {
            "vhost" => Place::Names(Names::Vhosts),
            "queue" | "queue_name" => Place::Names(Names::Queues),
            "exchange" => Place::Names(Names::Exchanges),
            "username" => Place::Names(Names::Users),
            _ if command.name == "help" => Place::Commands,
            "tag" if command.name == "set_user_tags" => Place::Choices(TAGS),
            "id" => Place::Names(Names::Redrives),
            "name" if matches!(command.name, "context use" | "context remove") => {
                Place::Names(Names::Contexts)
            }
            "name" if command.name == "list_policies_that_match" => Place::Names(Names::Queues),
            "name" if command.name.ends_with("operator_policy") => {
                Place::Names(Names::OperatorPolicies)
            }
            "name" if command.name.ends_with("policy") => Place::Names(Names::Policies),
            "topic" => {
                let topics: Vec<&str> = help::examples::topics().collect();
                return self.of(Place::Choices(&[]), &topics, typed);
            }
            "directory" | "pidfile" => Place::Files,
            name if name.starts_with("file") => Place::Files,
            name if name.contains(" | ") => {
                return self.of(Place::Choices(&[]), &name.split(" | ").collect::<Vec<_>>(), typed);
            }
            _ => Place::Anything,
        };
        self.of(place, &[], typed)
    }

    /// The candidates at a place, and `more`, that begin as what is typed.
    fn of(&self, place: Place, more: &[&str], typed: &str) -> Candidates {
        let plain = |all: &[&str]| {
            let fitting = all.iter().filter(|word| word.starts_with(typed));
            fitting.map(|word| ((*word).to_owned(), "")).collect::<Vec<Candidate>>()
        };
        Candidates::Words(match place {
            Place::Files => return Candidates::Files,
            Place::Anything => Vec::new(),
            Place::Choices(choices) => plain(choices).into_iter().chain(plain(more)).collect(),
            Place::Commands => {
                let named = self.line.words.get(1..).unwrap_or_default();
                command_names(self.tool, named, typed)
            }
            Place::Names(names) => {
                let found = (self.find)(names, self.line, typed);
                let fitting = found.into_iter().filter(|name| name.starts_with(typed));
                fitting.map(|name| (name, "")).collect()
            }
        })
    }
}

/// Names of commands behind the words of a family.
fn command_names(tool: Tool, words: &[String], typed: &str) -> Vec<Candidate> {
    // Written with dashes if the user does so.
    let has_dashes = typed.contains('-');
    let mut found: Vec<Candidate> = Vec::new();
    for command in commands::of(tool) {
        let mut names = command.name_words();
        if !words.iter().all(|word| names.next() == Some(word.as_str())) {
            continue;
        }
        let Some(name) = names.next() else { continue };
        let name = if has_dashes { name.replace('_', "-") } else { name.to_owned() };
        let is_family = names.next().is_some();
        if name.starts_with(typed) && !found.iter().any(|(known, _)| *known == name) {
            found.push((name, if is_family { "" } else { command.about }));
        }
    }
    found.sort();
    found
}

/// The names between angle brackets of a usage that are words: not those of options.
fn placeholders(usage: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = usage;
    while let Some((before, after)) = rest.split_once('<') {
        let Some((name, after)) = after.split_once('>') else { break };
        let opened = before.rsplit_once('[').map_or("", |(_, group)| group);
        if !opened.starts_with('-') {
            found.push(name);
            rest = after;
            continue;
        }
        // The whole group of an option, which ends with as many brackets as it has opened.
        let mut depth = 1_usize;
        let end = after.find(|c| {
            match c {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        rest = end.and_then(|end| after.get(end..)).unwrap_or_default();
    }
    found
}

/// The values of an option that its usage lists: `--unit <days | weeks>`, `--to origin|queue:<name>`.
fn alternatives<'a>(usage: &'a str, option: &str) -> Vec<&'a str> {
    let Some((_, after)) = usage.split_once(&format!("--{option} ")) else { return Vec::new() };
    let listed = match after.strip_prefix('<') {
        Some(inside) => inside.split('>').next(),
        None => after.split(' ').next(),
    };
    let listed = listed.filter(|listed| listed.contains('|')).unwrap_or_default();
    let one = |value: &'a str| value.trim().split(['<', '[', ']']).next().unwrap_or_default();
    listed.split('|').map(one).filter(|value| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The candidates at the end of a line; names of the node are shown by their kind.
    fn at(line: &str) -> String {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let current = words.pop().unwrap();
        let find = |names: Names, line: &Parsed, typed: &str| {
            vec![format!("{typed}{names:?}@{}", line.text("vhost").unwrap_or("/"))]
        };
        match candidates(Tool::Leveretctl, &words, &current, &find) {
            Candidates::Files => "files".to_owned(),
            Candidates::Words(words) => {
                words.into_iter().map(|(word, _)| word).collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn commands_are_completed() {
        assert_eq!(at("list_queu"), "list_queues");
        assert_eq!(at("list-queu"), "list-queues");
        assert_eq!(at("-p v --quiet list_queu"), "list_queues");
        assert!(at("dlq ").contains("redrive") && at("dlq ").contains("show"));
        assert_eq!(at("dlq sh"), "show");
        assert_eq!(at("schedule "), "cancel deliver ls reschedule show");
        assert_eq!(at("dl"), "dlq");
        assert_eq!(at("help set_po"), "set_policy");
        assert_eq!(at("help dlq sh"), "show");
        assert_eq!(at("bogus "), "");
    }

    #[test]
    fn options_are_completed_as_the_help_shows_them() {
        assert_eq!(at("delete_queue --if"), "--if-empty --if-unused");
        assert_eq!(at("list_queues --no"), "--no-table-headers --node");
        assert!(at("dlq redrive q --").contains("--no-wait"));
        assert_eq!(at("schedule reschedule --t"), "--target --time --timeout");
        assert!(!at("status --").contains("--script-name"));
    }

    #[test]
    fn values_of_options_are_completed() {
        assert_eq!(at("list_queues -p "), "Vhosts@/");
        assert_eq!(at("list_queues --vhost="), "--vhost=Vhosts@/");
        assert_eq!(at("--formatter p"), "pretty_table");
        assert_eq!(at("check_certificate_expiration --unit "), "days weeks months years");
        assert_eq!(at("status --unit "), "bytes mb gb");
        assert_eq!(at("dlq redrive q --to "), "origin first queue: exchange:");
        assert_eq!(at("schedule ls --target "), "queue/ exchange/");
        assert_eq!(at("--data-dir "), "files");
        assert_eq!(at("set_policy --apply-to ex"), "exchanges");
        assert_eq!(at("--context "), "Contexts@/");
        assert_eq!(at("list_queues --timeout "), "");
    }

    #[test]
    fn words_are_completed_by_their_place() {
        assert_eq!(at("purge_queue -p v "), "Queues@v");
        assert_eq!(at("dlq show o"), "oQueues@/");
        assert_eq!(at("clear_policy "), "Policies@/");
        assert_eq!(at("clear_operator_policy "), "OperatorPolicies@/");
        assert_eq!(at("set_permissions "), "Users@/");
        assert_eq!(at("set_permissions anna "), "");
        assert_eq!(at("set_topic_permissions anna "), "Exchanges@/");
        assert_eq!(at("set_user_tags anna moni"), "monitoring");
        assert_eq!(at("set_user_tags anna x moni"), "monitoring");
        assert_eq!(at("delete_vhost "), "Vhosts@/");
        assert_eq!(at("dlq cancel "), "Redrives@/");
        assert_eq!([at("context use "), at("context add ")], ["Contexts@/", ""]);
        assert_eq!(at("examples re"), "redrive");
        assert_eq!(at("import_definitions "), "files");
        assert_eq!(at("list_users "), "");
    }

    #[test]
    fn columns_are_completed_once() {
        assert_eq!(at("list_queues messages_rea"), "messages_ready messages_ready_ram");
        assert_eq!(at("list_queues messages_ready messages_rea"), "messages_ready_ram");
    }

    #[test]
    fn every_usage_can_be_read() {
        for command in commands::of(Tool::Leveretctl) {
            let words = placeholders(command.usage);
            assert!(words.iter().all(|word| !word.is_empty()), "{}", command.usage);
        }
    }
}
