//! Text without control sequences for the terminal and without secrets.
//!
//! Names come from clients and may hold anything: a sequence that moves the cursor, hides lines, or is
//! typed back by the terminal.

use std::borrow::Cow;

use crate::arguments::{Kind, Switch};

/// Replacement of a secret.
const HIDDEN: &str = "***";

/// Options whose values are secrets.
const SECRET_OPTIONS: &[&str] = &["password", "passphrase", "erlang-cookie", "token"];

/// Commands with secrets among their words, and the number of words before the first secret.
const SECRET_WORDS: &[(&str, usize)] = &[
    ("add_user", 1),
    ("authenticate_user", 1),
    ("change_password", 1),
    ("decode", 0),
    ("decrypt_conf_value", 0),
    ("encode", 0),
    ("encrypt_conf_value", 0),
    ("eval", 0),
    ("hash_password", 0),
    ("set_global_parameter", 1),
    ("set_parameter", 2),
];

// COMPAT: control characters: they are written as JSON writes them.
/// `text` with control characters escaped as in JSON, `\u001b`; line ends and tabs stay.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    line::escaped_as_json(text, |c| line::is_obeyed(c) && !matches!(c, '\n' | '\t'))
}

/// The same in one line: for a cell of a table, and for a name within a text.
pub(crate) fn in_line(text: &str) -> Cow<'_, str> {
    line::escaped_as_json(text, line::is_obeyed)
}

/// `text` without the passwords of addresses: `amqp://anna:***@host`.
pub(crate) fn without_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '\\');
        let end = after.find(is_end).unwrap_or(after.len());
        let (authority, behind) = after.split_at(end);
        let login = authority.rsplit_once('@');
        match login.and_then(|(login, host)| Some((login.split_once(':')?.0, host))) {
            Some((user, host)) => out.push_str(&format!("{user}:{HIDDEN}@{host}")),
            None => out.push_str(authority),
        }
        rest = behind;
    }
    out + rest
}

/// The value of a wrong option, as it may be printed: that of an unknown option may be a secret behind a
/// mistyped name.
pub(crate) fn option_value<'a>(written: &str, value: &'a str, switches: &[Switch]) -> &'a str {
    if value.is_empty() || is_open(written, switches) { value } else { HIDDEN }
}

/// True if the value of an option is no secret.
fn is_open(written: &str, switches: &[Switch]) -> bool {
    known(written, switches).is_some_and(|switch| !SECRET_OPTIONS.contains(&switch.name))
}

fn known<'a>(written: &str, switches: &'a [Switch]) -> Option<&'a Switch> {
    let name = written.trim_start_matches('-');
    switches.iter().find(|switch| {
        let is_letter =
            |short: char| written.strip_prefix('-').is_some_and(|w| w.chars().eq([short]));
        switch.name == name || switch.short.is_some_and(is_letter)
    })
}

/// Kind of the next word of a command line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A word of the command.
    Word,
    /// The value of an option.
    Value,
    /// The value of an unknown option, or a word of the command.
    Perhaps,
    /// The value of an option, which is a secret.
    Secret,
}

// COMPAT: secrets on the command line: an error does not repeat them.
/// A command line as it may be printed.
pub(crate) fn arguments_given(line: &[String], command: &str, switches: &[Switch]) -> String {
    let open = SECRET_WORDS.iter().find(|(name, _)| *name == command).map(|(_, open)| *open);
    let mut open = open.unwrap_or(usize::MAX);
    let mut next = Next::Word;
    let mut shown = Vec::new();
    for word in line {
        let is_option = word.starts_with('-') && word.len() > 1;
        let is = std::mem::replace(&mut next, Next::Word);
        shown.push(match word.split_once('=') {
            Some((written, value)) if is_option => {
                format!("{written}={}", option_value(written, value, switches))
            }
            _ if is_option => {
                next = match known(word, switches) {
                    Some(switch) if switch.kind == Kind::Flag => Next::Word,
                    Some(_) if is_open(word, switches) => Next::Value,
                    Some(_) => Next::Secret,
                    None => Next::Perhaps,
                };
                word.clone()
            }
            _ if is != Next::Secret && command.split(' ').any(|name| name == word) => word.clone(),
            _ if is == Next::Value => without_passwords(word),
            _ => {
                let is_secret = is != Next::Word || open == 0;
                open = if is == Next::Secret { open } else { open.saturating_sub(1) };
                if is_secret { HIDDEN.to_owned() } else { without_passwords(word) }
            }
        });
    }
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[31mb\r\n\tc"), "a\\u001b[31mb\\u000d\n\tc");
        assert_eq!(in_line("a\n\tb\u{7f}\u{9b}1m"), "a\\u000a\\u0009b\\u007f\\u009b1m");
        assert_eq!(in_line("\u{202e}gpj.exe\u{2066}"), "\\u202egpj.exe\\u2066");
        assert!(matches!(printable("hällo \u{1f430} \\.*"), Cow::Borrowed(_)));
        let json = serde_json::json!({"name": "\u{9b}1m\u{7f}"});
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&printable(&json.to_string())).unwrap(),
            json
        );
    }

    #[test]
    fn addresses_keep_users_without_passwords() {
        for (text, expected) in [
            ("amqp://anna:s3cret@host:5672/v", "amqp://anna:***@host:5672/v"),
            (
                "{\"uri\":\"amqp://a:b:c@d@h\",\"x\":\"http://u:p@i\"}",
                "{\"uri\":\"amqp://a:***@h\",\"x\":\"http://u:***@i\"}",
            ),
            ("http://host/a:b@c", "http://host/a:b@c"),
            ("amqp://anna@host", "amqp://anna@host"),
            ("no address: a@b", "no address: a@b"),
        ] {
            assert_eq!(without_passwords(text), expected);
        }
    }

    const SWITCHES: &[Switch] = &[
        Switch::text("vhost").or('p'),
        Switch::flag("quiet").or('q'),
        Switch::text("password"),
        Switch::integer("timeout").or('t'),
    ];

    #[test]
    fn secrets_of_a_command_line_are_hidden() {
        let given = |command: &str, line: &str| {
            let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
            arguments_given(&line, command, SWITCHES)
        };
        for (command, line, expected) in [
            ("list_queues", "list_queues -p v name --bogus", "list_queues -p v name --bogus"),
            ("list_queues", "list_queues --password s3cret", "list_queues --password ***"),
            (
                "list_queues",
                "--password=s3cret list_queues -q name",
                "--password=*** list_queues -q name",
            ),
            ("list_queues", "list_queues --pasword s3cret", "list_queues --pasword ***"),
            (
                "list_queues",
                "list_queues --pasword=s3cret -t soon",
                "list_queues --pasword=*** -t soon",
            ),
            ("add_user", "add_user anna s3cret more", "add_user anna *** ***"),
            ("add_user", "add_user --bogus anna s3cret", "add_user --bogus *** ***"),
            (
                "change_password",
                "-q change_password anna s3cret x",
                "-q change_password anna *** ***",
            ),
            ("add_user", "-p v add_user anna s3cret x", "-p v add_user anna *** ***"),
            ("add_user", "add_user --password s3cret anna x", "add_user --password *** anna ***"),
            ("list_queues", "--bogus list_queues", "--bogus list_queues"),
            ("encode", "encode s3cret phrase x", "encode *** *** ***"),
            ("set_parameter", "set_parameter c n v x", "set_parameter c n *** ***"),
            ("status", "status amqp://u:p@h", "status amqp://u:***@h"),
        ] {
            assert_eq!(given(command, line), expected);
        }
        assert_eq!(option_value("--timeout", "soon", SWITCHES), "soon");
        assert_eq!(option_value("-t", "soon", SWITCHES), "soon");
        assert_eq!(option_value("--password", "s3cret", SWITCHES), "***");
        assert_eq!(option_value("--timout", "5", SWITCHES), "***");
        assert_eq!(option_value("--bogus", "", SWITCHES), "");
    }
}
