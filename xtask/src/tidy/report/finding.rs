//! A report of a rule: a place, a sentence that says what is wrong and what to do, and a weight.
//!
//! Knows how a finding is printed, not why it was found.

use std::fmt;

/// Effect of a finding on the check.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Weight {
    /// Fails the check.
    Fault,
    /// Only deserves a second look.
    Note,
}

/// A report of a rule about one place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Finding {
    /// The file, relative to the root of the repository.
    pub(crate) path: String,
    /// The line, counted from 1; `None` when the whole file is meant.
    pub(crate) line: Option<usize>,
    pub(crate) weight: Weight,
    /// The fault, and what to do about it.
    pub(crate) message: String,
}

impl Finding {
    /// A fault at one line.
    pub(crate) fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::in_file(path, message) }
    }

    /// A fault of a file as a whole.
    pub(crate) fn in_file(path: &str, message: impl Into<String>) -> Self {
        let (path, message) = (path.to_owned(), message.into());
        Self { path, line: None, weight: Weight::Fault, message }
    }

    /// The same finding as a note.
    pub(crate) fn into_note(self) -> Self {
        Self { weight: Weight::Note, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line.unwrap_or(1);
        write!(f, "{}:{line}: {}", self.path, self.message)
    }
}

/// The findings as text, one per line: what the tests of the rules compare.
#[cfg(test)]
pub(crate) fn lines(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}
