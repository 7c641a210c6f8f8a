//! Limits that older code exceeds: each such place is in a list with its number, which may only fall.
//!
//! Knows how numbers are held against a limit and a list, not the rules. A row that is higher than needed is a
//! fault like one that is exceeded: otherwise a place that was mended could slide back unseen.

use crate::tidy::report::finding::Finding;

/// The places that exceed a limit, each with its number.
pub(crate) type Exceptions = &'static [(&'static str, usize)];

/// A rule with a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// The largest number without an exception.
    pub(crate) most: usize,
    /// The places with a larger number.
    pub(crate) exceptions: Exceptions,
    /// The file with the list.
    pub(crate) list: &'static str,
    /// The unit of the numbers: `fields`.
    pub(crate) unit: &'static str,
    /// A hint for a place that exceeds the limit.
    pub(crate) hint: &'static str,
}

/// A place with its number.
#[derive(Debug)]
pub(crate) struct Counted {
    /// Name in the list.
    pub(crate) name: String,
    /// The file or folder.
    pub(crate) path: String,
    /// The line, counted from 1.
    pub(crate) line: usize,
    pub(crate) number: usize,
}

/// Holds numbers against a limit and its list.
pub(crate) fn check(counted: &[Counted], limit: Limit) -> Vec<Finding> {
    let Limit { most, exceptions, list, unit, hint } = limit;
    let mut findings = Vec::new();
    for Counted { name, path, line, number } in counted {
        let row = exceptions.iter().find(|(place, _)| place == name).map(|(_, number)| *number);
        let allowed = row.unwrap_or(most);
        if *number > allowed {
            let message = format!("{name}: {number} {unit}, at most {allowed}: {hint}");
            findings.push(Finding::at(path, *line, message));
        } else if row.is_some_and(|row| *number < row) {
            let message = match *number > most {
                true => format!("{name} has {number} {unit} now: lower its row"),
                false => format!("{name} keeps the limit now: remove its row"),
            };
            findings.push(Finding::in_file(list, message));
        }
    }
    for (place, _) in exceptions {
        if counted.iter().all(|counted| counted.name != *place) {
            findings.push(Finding::in_file(list, format!("{place} is gone: remove its row")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(numbers: &[(&str, usize)], exceptions: Exceptions) -> String {
        let counted = numbers.iter().map(|(name, number)| Counted {
            name: (*name).to_owned(),
            path: "a.rs".to_owned(),
            line: 3,
            number: *number,
        });
        let limit = Limit { most: 5, exceptions, list: "list.rs", unit: "legs", hint: "cut" };
        lines(&check(&counted.collect::<Vec<_>>(), limit))
    }

    #[test]
    fn numbers_up_to_the_limit_or_their_row_pass() {
        assert_eq!(findings(&[("cow", 4), ("ant", 5)], &[]), "");
        assert_eq!(findings(&[("cow", 4), ("spider", 8)], &[("spider", 8)]), "");
    }

    #[test]
    fn numbers_above_the_limit_or_their_row_are_faults() {
        assert_eq!(findings(&[("ant", 6)], &[]), "a.rs:3: ant: 6 legs, at most 5: cut\n");
        let grown = findings(&[("spider", 9)], &[("spider", 8)]);
        assert_eq!(grown, "a.rs:3: spider: 9 legs, at most 8: cut\n");
    }

    #[test]
    fn rows_fall_with_their_places() {
        let shrunk = findings(&[("spider", 7)], &[("spider", 8)]);
        assert_eq!(shrunk, "list.rs:1: spider has 7 legs now: lower its row\n");
        let mended = findings(&[("spider", 5)], &[("spider", 8)]);
        assert_eq!(mended, "list.rs:1: spider keeps the limit now: remove its row\n");
        let gone = findings(&[], &[("spider", 8)]);
        assert_eq!(gone, "list.rs:1: spider is gone: remove its row\n");
    }
}
