//! Comments that are read once: few of the turns that make a sentence a riddle, and types that are nouns.
//!
//! A turn as *as far as* or *any more* is right now and then; in every second comment it is a habit. And a type that
//! is named by a participle alone (`Told`) says what happened to a thing, but not which thing it is.

use crate::tidy::report::ceilings::{self, Ceilings};
use crate::tidy::report::finding::Finding;
use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::tree::Tree;

/// Turns of which a file has few.
const TURNS: &[&str] = &[
    "told",
    "tells",
    "anew",
    "any more",
    "no more",
    "that of",
    "those of",
    "as far as",
    "goes on",
    "is to",
];

/// Lines of comments for one such turn.
const LINES_PER_TURN: usize = 40;

/// Participles that do not end with `ed`.
const PARTICIPLES: &[&str] = &[
    "Told", "Heard", "Known", "Left", "Sought", "Shaken", "Sent", "Seen", "Given", "Taken", "Held",
    "Standing",
];

/// The file with the lists.
const LIST: &str = "xtask/src/tidy/code/wording.rs";

/// The turns of older code above the rule, by crate.
const TURNS_ABOVE: Ceilings = &[
    ("crates/amqp", 1),
    ("crates/broker", 30),
    ("crates/ctl", 7),
    ("crates/management", 22),
    ("crates/perf", 1),
    ("crates/replica", 60),
    ("crates/replication", 53),
    ("crates/server", 210),
    ("crates/session", 2),
    ("crates/sim", 46),
    ("crates/storage", 12),
    ("fuzz", 2),
    ("xtask", 12),
];

/// Types of older code that are named by a participle alone, by crate.
const PARTICIPLES_LEFT: Ceilings = &[
    ("crates/amqp", 1),
    ("crates/broker", 20),
    ("crates/ctl", 3),
    ("crates/management", 9),
    ("crates/perf", 3),
    ("crates/replica", 1),
    ("crates/replication", 3),
    ("crates/server", 28),
    ("crates/session", 3),
    ("crates/sim", 13),
    ("crates/storage", 6),
    ("fuzz", 1),
    ("xtask", 6),
];

/// Checks comments and the names of types.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let (mut turns, mut names) = (Vec::new(), Vec::new());
    for (file, source) in tree.production() {
        turns.extend(turns_above(&file.path, source));
        names.extend(participles(&file.path, source));
    }
    let mut findings = ceilings::above(turns, TURNS_ABOVE, LIST);
    findings.extend(ceilings::above(names, PARTICIPLES_LEFT, LIST));
    findings
}

/// The turns of a file above one in so many lines of comments.
fn turns_above(path: &str, source: &RustSource) -> Vec<Finding> {
    let mut lines = 0;
    let mut turns = Vec::new();
    for (at, comment) in source.comments().filter(|(at, _)| !source.is_test(*at)) {
        lines += 1;
        let text = comment.to_lowercase();
        for turn in TURNS {
            let number =
                text.match_indices(turn).filter(|(at, _)| is_whole(&text, *at, turn)).count();
            turns.extend(std::iter::repeat_n((at, *turn), number));
        }
    }
    let allowed = (lines / LINES_PER_TURN).max(1);
    let above = turns.into_iter().skip(allowed);
    let finding = |(at, turn)| {
        let message = format!("`{turn}` again: say who does what, in a sentence that is read once");
        Finding::at(path, source.line(at), message)
    };
    above.map(finding).collect()
}

fn is_whole(text: &str, at: usize, turn: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + turn.len()..].chars().next())
}

/// The types of a file that are named by a participle alone.
fn participles(path: &str, source: &RustSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    for keyword in ["struct", "enum"] {
        for (at, name, _) in source.items(keyword) {
            if is_participle(name) {
                let message = format!("type `{name}`: name the thing, not what has happened to it");
                findings.push(Finding::at(path, source.line(at), message));
            }
        }
    }
    findings
}

fn is_participle(name: &str) -> bool {
    let is_one_word = !name.chars().skip(1).any(char::is_uppercase);
    is_one_word && (name.ends_with("ed") || PARTICIPLES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    #[test]
    fn one_turn_in_forty_lines_passes() {
        let source = |text: String| RustSource::new(text);
        let one = source("// A peer that was told.\n".to_owned());
        assert_eq!(lines(&turns_above("a.rs", &one)), "");
        let two = source("// A peer that was told.\n// It goes on.\n".to_owned());
        let fault = lines(&turns_above("a.rs", &two));
        assert!(fault.starts_with("a.rs:2: `goes on` again"), "{fault}");
        let long = source(format!(
            "// A peer that was told.\n// It goes on.\n{}",
            "// A line.\n".repeat(78)
        ));
        assert_eq!(lines(&turns_above("a.rs", &long)), "");
        let parts = source("// An analogue told.\n// Canewood, is total.\n".to_owned());
        assert_eq!(lines(&turns_above("a.rs", &parts)), "");
    }

    #[test]
    fn types_are_nouns() {
        let source = RustSource::new(
            "struct Told;\nenum Released {}\nstruct ReleasedBytes;\nstruct Feed;".to_owned(),
        );
        let found = lines(&participles("a.rs", &source));
        assert!(found.contains("`Told`") && found.contains("`Released`"), "{found}");
        assert!(!found.contains("ReleasedBytes"), "{found}");
    }
}
