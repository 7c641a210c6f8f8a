//! Hints for words that are no command: the family that they name, or the command that they may mean.

use super::family;
use crate::commands;
use crate::printable::in_line;
use crate::tool::Tool;

/// Smallest similarity of a name that is suggested.
const SIMILARITY_MIN: f64 = 0.7;

/// Smallest similarity of a name with a slip of the finger.
const SIMILARITY_OF_A_SLIP: f64 = 0.9;

/// Commands, each with words that people use for what it does.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("dlq redrive", &["move", "redeliver", "replay", "requeue", "resend", "retry"]),
    ("dlq check", &["find_lost", "lost", "missing", "vanished"]),
    ("dlq history", &["death", "deaths", "died"]),
    ("dlq ls", &["dead", "dead_letter", "dead_letters", "dlqs", "dlx"]),
    ("dlq show", &["browse", "get", "message", "messages", "view"]),
    ("dlq delays", &["delay", "delayed"]),
    ("schedule ls", &["scheduled", "schedules"]),
    ("explain_queue", &["explain", "why"]),
    ("dry_run_policy", &["dry_run", "preview", "simulate"]),
    ("doctor", &["diagnose", "findings", "health", "problems", "warnings", "wrong"]),
    ("status", &["info", "overview"]),
    ("cluster_status", &["cluster", "nodes"]),
    ("purge_queue", &["clear_queue", "empty", "purge"]),
    ("export_definitions", &["dump", "export"]),
    ("import_definitions", &["import", "load"]),
    ("change_password", &["passwd", "password"]),
    ("set_permissions", &["allow", "grant"]),
    ("clear_permissions", &["deny", "revoke"]),
    ("close_connection", &["disconnect", "kick", "kill"]),
    ("trace_on", &["firehose", "trace"]),
    ("list_queues", &["queue", "queues"]),
    ("list_exchanges", &["exchange", "exchanges"]),
    ("list_bindings", &["binding", "bindings"]),
    ("list_connections", &["clients", "connection", "connections"]),
    ("list_channels", &["channel", "channels"]),
    ("list_consumers", &["consumer", "consumers"]),
    ("list_users", &["user", "users"]),
    ("list_permissions", &["permissions"]),
    ("list_policies", &["policies", "policy"]),
    ("list_vhosts", &["vhost", "vhosts"]),
];

/// Error text for words that are no command.
pub(crate) fn unknown(tool: Tool, words: &[String]) -> String {
    let name = in_line(words.first().map(String::as_str).unwrap_or_default());
    let name = &*name;
    if let Some(family) = family(tool, name) {
        let wrong = |word: &String| format!("Command '{name} {}' not found.\n", in_line(word));
        let wrong = words.get(1).map(wrong);
        return wrong.unwrap_or_default() + &family;
    }
    let meant = meant(tool, name);
    let suggested = meant.map(|meant| format!("Did you mean '{meant}'?"));
    match suggested {
        Some(question) if tool != Tool::Leveretctl => {
            format!("\nCommand '{name}' not found. \n{question} \n")
        }
        suggested => {
            let tool = tool.name();
            let end =
                format!("'{tool} help' lists all commands, '{tool} examples' the commonest tasks.");
            let lines = [Some(format!("Command '{name}' not found.")), suggested, Some(end)];
            lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
        }
    }
}

/// The command that a name may mean: by its meaning if the whole name has one, by its letters, or by a part of it.
fn meant(tool: Tool, name: &str) -> Option<&'static str> {
    let name = name.replace('-', "_").to_lowercase();
    let all = || commands::of(tool).map(|command| command.name);
    let by_meaning = |word: &str| {
        let second = |command: &&str| {
            let words = command.split_once(' ');
            words.is_some_and(|(family, rest)| rest == word && family != "context")
        };
        let mut of_families = all().filter(second);
        let only = of_families.next().filter(|_| of_families.next().is_none());
        let row = SYNONYMS.iter().find(|(_, words)| words.contains(&word)).map(|(name, _)| *name);
        row.filter(|row| all().any(|name| name == *row)).or(only)
    };
    let alike = all().map(|command| (similarity(&name, command), command));
    let nearest = alike.max_by(|one, other| one.0.total_cmp(&other.0));
    let from = |least: f64| nearest.filter(|(alike, _)| *alike >= least).map(|(_, name)| name);
    by_meaning(&name)
        .or_else(|| from(SIMILARITY_OF_A_SLIP))
        .or_else(|| name.split('_').find_map(by_meaning))
        .or_else(|| from(SIMILARITY_MIN))
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
        assert_eq!(told("bogus").lines().count(), 2);
        let own = unknown(Tool::Leveretctl, &["list_queuess".to_owned()]);
        let [what, nearest, more] = own.lines().collect::<Vec<_>>()[..] else { panic!("{own}") };
        assert_eq!(what, "Command 'list_queuess' not found.");
        assert_eq!(nearest, "Did you mean 'list_queues'?");
        assert_eq!(
            more,
            "'leveretctl help' lists all commands, 'leveretctl examples' the commonest tasks."
        );
    }

    #[test]
    fn unknown_command_is_understood_by_its_meaning() {
        for (name, expected) in [
            ("redrive", Some("dlq redrive")),
            ("find_lost", Some("dlq check")),
            ("find-lost-messages", Some("dlq check")),
            ("queues", Some("list_queues")),
            ("show_messages", Some("dlq show")),
            ("delete_users", Some("delete_user")),
            ("purge", Some("purge_queue")),
            ("reschedule", Some("schedule reschedule")),
            ("health", Some("doctor")),
            ("xyzzy", None),
        ] {
            assert_eq!(meant(Tool::Leveretctl, name), expected, "{name}");
        }
        // A tool suggests its own commands.
        assert_eq!(meant(Tool::Upgrade, "lost"), None);
        for (command, words) in SYNONYMS {
            let known = |name: &str| commands::of(Tool::Leveretctl).any(|one| one.name == name);
            assert!(known(command), "{command}");
            assert!(!words.iter().any(|word| known(word)), "{command}");
        }
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
