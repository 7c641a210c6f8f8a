//! Patterns of policies and permissions: regular expressions in the dialect people use with RabbitMQ.
//!
//! A pattern is searched for, not anchored, and case-sensitive. RabbitMQ's engine is PCRE with a bound
//! on the work of one match; here it is a backtracking engine with the same bound for what needs it
//! (look-around, back references) and a linear one for everything else. Over the bound nothing
//! matches.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use fancy_regex::{Regex, RegexBuilder};

use crate::limits::{FILTER_STEPS_MAX, PATTERN_BYTES_MAX, PATTERN_STEPS_MAX};

/// A compiled pattern with its text. Copies share both: each engine has kilobytes to search with, and every
/// connection has the patterns of its user.
#[derive(Clone)]
pub struct Pattern {
    text: Arc<str>,
    regex: Arc<Regex>,
}

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// What RabbitMQ says of a pattern that is too long or not a regular expression.
    pub fn new(text: &str) -> Result<Self, String> {
        Self::bounded(text, PATTERN_STEPS_MAX)
    }

    /// Compiles `text` to look for names in a list, in upper or lower case; it may work less.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn filter(text: &str) -> Result<Self, String> {
        Self::bounded(&format!("(?i){text}"), FILTER_STEPS_MAX)
    }

    fn bounded(text: &str, steps_max: usize) -> Result<Self, String> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(format!("pattern must not exceed {PATTERN_BYTES_MAX} bytes"));
        }
        let regex = RegexBuilder::new(&unquoted(text)).backtrack_limit(steps_max).build();
        let regex = regex.map_err(|error| {
            format!("pattern should be regular expression but is invalid: {error}")
        })?;
        Ok(Self { text: text.into(), regex: Arc::new(regex) })
    }

    /// Whether it is found in `name`. A match that needs too much work is none.
    pub fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name).unwrap_or(false)
    }

    /// The text it was made of.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The pattern without `\Q...\E`, which PCRE knows and Java writes, and the engine here does not: what
/// stands between them means itself.
fn unquoted(text: &str) -> Cow<'_, str> {
    if !text.contains("\\Q") && !text.contains("\\E") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        if let Some(quoted) = escape.strip_prefix("\\Q") {
            let (literal, behind) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            out.push_str(&fancy_regex::escape(literal));
            rest = behind;
        } else if let Some(behind) = escape.strip_prefix("\\E") {
            // Nothing is quoted: it means nothing.
            rest = behind;
        } else {
            // The backslash and what it is before, which may be another one.
            let end = escape.char_indices().nth(2).map_or(escape.len(), |(at, _)| at);
            let (escape, behind) = escape.split_at(end);
            out.push_str(escape);
            rest = behind;
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_searched_for_and_case_sensitive() {
        for (pattern, name, expected) in [
            (".*", "anything", true),
            ("^sms\\.", "sms.ttl", true),
            ("ttl", "sms.ttl", true),
            ("TTL", "sms.ttl", false),
            ("^(?!amq\\.).*", "amq.gen-x", false),
            ("^(?!amq\\.).*", "orders", true),
            ("(a)\\1", "baab", true),
            ("^\\Qa.b*\\E$", "a.b*", true),
            ("^\\Qa.b*\\E$", "axb", false),
            ("\\Q(", "a(b", true),
            ("[\\Q]\\E]", "]", true),
            ("\\\\Q", "\\Q", true),
            ("a\\E+", "aa", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_that_explodes_matches_nothing() {
        let bomb = Pattern::new("^(?=(a+)+$)(a|aa)+\\1b$").unwrap();
        assert!(!bomb.matches(&"a".repeat(200)));
    }

    #[test]
    fn a_bad_pattern_is_refused() {
        let refused = Pattern::new("[a").unwrap_err();
        assert!(refused.starts_with("pattern should be regular expression but is invalid"));
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        assert_eq!(Pattern::new(&long).unwrap_err(), "pattern must not exceed 1024 bytes");
    }
}
