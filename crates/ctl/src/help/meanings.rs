//! The meanings of the options and columns of each command, from a text of this crate.

/// The text: its first lines say how it is read.
const TEXT: &str = include_str!("../../help/commands.txt");

/// An option or a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meaning {
    /// The option with its value and its letter, or the name of the column.
    pub(crate) head: &'static str,
    pub(crate) about: &'static str,
    /// True for a column that a list shows if none is named.
    pub(crate) is_usual: bool,
}

impl Meaning {
    fn read(line: &'static str) -> Option<Self> {
        let (is_usual, line) = match line.strip_prefix("* ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (head, about) = line.split_once("  ")?;
        Some(Self { head, about: about.trim(), is_usual })
    }

    /// True for an option.
    pub(crate) fn is_option(&self) -> bool {
        self.head.starts_with('-')
    }
}

/// The sections of a text of this crate, each as its title behind `# ` and its lines.
pub(super) fn sections(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split("\n# ").skip(1).filter_map(|section| section.split_once('\n'))
}

/// The options and columns of a command, in the order of the text.
pub(crate) fn of(command: &str) -> impl Iterator<Item = Meaning> {
    let of_command =
        sections(TEXT).filter(move |(names, _)| names.split(", ").any(|one| one == command));
    of_command.flat_map(|(_, lines)| lines.lines().filter_map(Meaning::read))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::commands;
    use crate::tool::Tool;

    #[test]
    fn option_of_every_command_has_a_meaning() {
        for command in commands::every() {
            let named: BTreeSet<&str> = of(command.name)
                .filter(Meaning::is_option)
                .filter_map(|one| one.head.split([' ', ',']).next())
                .map(|option| option.trim_start_matches("--").trim_start_matches("no-"))
                .collect();
            let switches = command.switches.iter().map(|switch| switch.name).collect();
            assert_eq!(named, switches, "{}", command.name);
        }
    }

    #[test]
    fn column_of_every_list_has_a_meaning() {
        for command in commands::every() {
            let named: Vec<&str> =
                of(command.name).filter(|one| !one.is_option()).map(|one| one.head).collect();
            let columns: Vec<&str> = command.columns.iter().map(|column| column.name).collect();
            let has_stars = of(command.name).any(|one| one.is_usual);
            assert_eq!(has_stars, !columns.is_empty(), "{}", command.name);
            if !columns.is_empty() {
                assert_eq!(named, columns, "{}", command.name);
            } else if command.name.starts_with("list_") {
                assert!(!named.is_empty(), "{}", command.name);
            }
        }
    }

    #[test]
    fn text_names_commands_only() {
        for names in TEXT.lines().filter_map(|line| line.strip_prefix("# ")) {
            for name in names.split(", ") {
                assert!(commands::every().any(|command| command.name == name), "{name}");
            }
        }
        assert!(commands::of(Tool::Leveretctl).count() < commands::every().count());
    }
}
