//! The manual page of `leveretctl`, in the language of `man`: from the tables that also make the help.

use std::fmt::Write as _;

use super::{OPTIONS, meanings};
use crate::command::Command;
use crate::tool::Tool;
use crate::{commands, failure};

/// The page.
pub(crate) fn page() -> String {
    let mut page = format!(".TH LEVERETCTL 1 \"\" \"leveret {}\"\n", Tool::Leveretctl.version());
    let name = "leveretctl, rabbitmqctl, rabbitmq-diagnostics \u{2013} operate a node of Leveret";
    section(&mut page, "NAME", name);
    section(
        &mut page,
        "SYNOPSIS",
        "leveretctl [options] <command> [words and options of the command]",
    );
    section(
        &mut page,
        "DESCRIPTION",
        "The program works over the management API of a node. Called as rabbitmqctl or \
         rabbitmq-diagnostics it has the commands and the output of RabbitMQ's tools.",
    );
    page.push_str(".SH OPTIONS\n");
    literal(&mut page, OPTIONS.trim_end());
    page.push_str(".SH COMMANDS\n");
    let mut all: Vec<&Command> = commands::of(Tool::Leveretctl).collect();
    all.sort_by_key(|command| (command.section, command.name));
    let mut section = None;
    for command in all {
        if section.replace(command.section) != Some(command.section) {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(page, ".SS {}", escaped(command.section.title()));
        }
        let own = match command.own_options {
            "" => String::new(),
            own => format!(" {own}"),
        };
        let _ = writeln!(page, ".TP\n\\fB{}\\fR", escaped(&format!("{}{own}", command.usage)));
        let _ = writeln!(page, "{}.", escaped(command.about));
        meanings_of(&mut page, command);
    }
    page.push_str(".SH EXIT STATUS\n");
    for (code, meaning) in failure::CODES {
        let _ = writeln!(page, ".TP\n\\fB{code}\\fR\n{}.", escaped(meaning));
    }
    page.push_str(".SH SEE ALSO\n\\fBleveret\\fR(1), \\fBleveret.conf\\fR(5).\n");
    let documents = "A running node serves all documents, at the path /docs of its HTTP port: http://localhost:15672/docs.";
    let _ = write!(page, "{}", escaped(documents));
    page
}

/// The options and columns of a command, indented below it.
fn meanings_of(page: &mut String, command: &Command) {
    let mut all = meanings::of(command.name).peekable();
    if all.peek().is_none() {
        return;
    }
    page.push_str(".RS\n");
    for meaning in all {
        let (head, about) = (escaped(meaning.head), escaped(meaning.about));
        let _ = writeln!(page, ".TP\n\\fB{head}\\fR\n{about}.");
    }
    page.push_str(".RE\n");
}

fn section(page: &mut String, title: &str, text: &str) {
    let _ = writeln!(page, ".SH {title}\n{}", escaped(text));
}

/// Text with its line breaks and its columns.
fn literal(page: &mut String, text: &str) {
    page.push_str(".nf\n");
    for line in text.lines() {
        let _ = writeln!(page, "{}", escaped(line));
    }
    page.push_str(".fi\n");
}

/// Text in which nothing is a request or an escape.
fn escaped(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace(['-', '\u{2013}'], "\\-");
    match escaped.starts_with(['.', '\'']) {
        true => format!("\\&{escaped}"),
        false => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_names_every_command_with_its_usage() {
        let page = page();
        for command in commands::of(Tool::Leveretctl) {
            assert!(
                page.contains(&format!("\n\\fB{}", escaped(command.usage))),
                "{}",
                command.name
            );
        }
        assert!(page.contains("\n.RS\n.TP\n\\fB\\-\\-to <target>\\fR\norigin, first, "));
        assert!(page.contains("\n.SS Users\n") && page.contains("\n.SH EXIT STATUS\n.TP\n\\fB64"));
    }

    #[test]
    fn escaped_text_is_no_request() {
        assert_eq!(escaped(".de --x\\n"), "\\&.de \\-\\-x\\en");
    }
}
