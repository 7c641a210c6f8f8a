//! Patterns of policies and permissions: regular expressions in the dialect used with RabbitMQ.
//!
//! A pattern is case-sensitive and not anchored. RabbitMQ's engine is PCRE, byte by byte, with a bound on the
//! steps of one match and on the size of a compiled pattern. Leveret uses a backtracking engine with similar
//! bounds for patterns that need one (look-around, back references) and a linear engine for all others. A
//! match that exceeds the bound on steps fails; a pattern that exceeds the bound on size is refused.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use fancy_regex::{BytesMode, CompileError, Error, Regex, RegexBuilder};

use crate::limits::{
    FILTER_STEPS_MAX, PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX, PATTERN_INSTRUCTIONS_MAX,
    PATTERN_STEPS_MAX,
};

/// A compiled pattern with its text. Clones share both: each engine needs kilobytes of memory to search, and
/// every connection has the patterns of its user.
#[derive(Clone)]
pub struct Pattern {
    text: Arc<str>,
    compiled: Result<Arc<Regex>, Arc<str>>,
    backtracks: bool,
}

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// RabbitMQ's text for a pattern that is too long or not a regular expression; a text that names the
    /// bound if the compiled pattern is too large.
    pub fn new(text: &str) -> Result<Self, String> {
        Self::bounded(text, PATTERN_STEPS_MAX)
    }

    /// Compiles `text`, a pattern stored on disk that was accepted before. A pattern that exceeds a bound now
    /// matches nothing; [`Pattern::problem`] gives the reason.
    pub fn stored(text: &str) -> Self {
        Self::new(text).unwrap_or_else(|problem| Self {
            text: text.into(),
            compiled: Err(problem.into()),
            backtracks: false,
        })
    }

    /// Compiles `text` as a case-insensitive filter for names in a list, with a lower bound on the steps of a
    /// match.
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
        let unquoted = unquoted(text);
        let backtracks = may_backtrack(&unquoted);
        // A backtracking pattern is compiled in parts, each with a share of the bound.
        let parts = if backtracks { 1 + unquoted.matches('(').count() } else { 1 };
        let part_bytes_max = PATTERN_COMPILED_BYTES_MAX / parts;
        let mut builder = RegexBuilder::new(&unquoted);
        if needs_unicode(&unquoted) {
            builder.bytes_mode(BytesMode::UnicodeBytes);
        } else {
            builder.unicode_mode(false).bytes_mode(BytesMode::Ascii);
        }
        let regex = builder
            .backtrack_limit(steps_max)
            .delegate_size_limit(part_bytes_max)
            .delegate_dfa_size_limit(part_bytes_max)
            .delegate_dfa_skip_cache_capacity_check(false)
            .max_prog_size(PATTERN_INSTRUCTIONS_MAX)
            .build();
        let regex = regex.map_err(|error| {
            let problem = problem(&error);
            format!("pattern should be regular expression but is invalid: {problem}")
        })?;
        Ok(Self { text: text.into(), compiled: Ok(Arc::new(regex)), backtracks })
    }

    /// True if the pattern is found in `name`. A match that needs too many steps counts as not found.
    pub fn matches(&self, name: &str) -> bool {
        let found = |regex: &Arc<Regex>| regex.is_match(name.as_bytes()).unwrap_or(false);
        self.compiled.as_ref().is_ok_and(found)
    }

    /// The reason why the pattern matches nothing, if it exceeds a bound.
    pub fn problem(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(|problem| &**problem)
    }

    /// True if a match may take up to [`PATTERN_STEPS_MAX`] steps instead of time linear in the name.
    pub(crate) fn backtracks(&self) -> bool {
        self.backtracks
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The engine's message about a pattern; for a pattern that exceeds a bound, a message of our own.
fn problem(error: &Error) -> String {
    let is_too_large = |error: &CompileError| {
        // Only the message distinguishes this bound from other failures.
        let is_no_dfa = |text: &str| !text.contains("parsing");
        matches!(error, CompileError::InnerError(error) if error.size_limit().is_some())
            || matches!(error, CompileError::DfaBuildError(_, text) if is_no_dfa(text))
            || matches!(error, CompileError::PatternTooComplex)
    };
    if let Error::CompileError(error) = error
        && is_too_large(error)
    {
        return "regular expression is too large when compiled; \
                use fewer or shorter counted repetitions"
            .to_owned();
    }
    error.to_string()
}

/// True if the pattern must be compiled for characters instead of bytes: it contains non-ASCII text or names
/// a property of characters.
fn needs_unicode(pattern: &str) -> bool {
    !pattern.is_ascii() || pattern.contains("\\p") || pattern.contains("\\P")
}

/// True if the pattern may need the backtracking engine; sometimes true for a pattern that does not.
fn may_backtrack(pattern: &str) -> bool {
    let is_special = |pair: &[u8]| match pair {
        // `(?:...)` and `(?i)` also count, although they are plain groups.
        [b'(', b'?'] => true,
        [b'*' | b'+' | b'?' | b'}', b'+'] => true,
        [b'\\', escape] => escape.is_ascii_digit() || b"kgGKRX".contains(escape),
        _ => false,
    };
    pattern.replace("(?:", "(").as_bytes().windows(2).any(is_special)
}

/// Replaces `\Q...\E` by an escaped literal: PCRE supports the quotation and Java produces it, but the engine
/// here does not support it.
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
            // A lone `\E` quotes nothing and is dropped.
            rest = behind;
        } else {
            // Copy the backslash together with the escaped character, which may be another backslash.
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
    fn pattern_is_searched_for_and_case_sensitive() {
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
    fn pattern_that_explodes_matches_nothing() {
        let bomb = Pattern::new("^(?=(a+)+$)(a|aa)+\\1b$").unwrap();
        assert!(!bomb.matches(&"a".repeat(200)));
    }

    #[test]
    fn pattern_that_is_invalid_is_refused() {
        let refused = Pattern::new("[a").unwrap_err();
        assert!(refused.starts_with("pattern should be regular expression but is invalid"));
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        assert_eq!(Pattern::new(&long).unwrap_err(), "pattern must not exceed 1024 bytes");
    }

    #[test]
    fn pattern_matches_bytes_as_pcre_does() {
        for (pattern, name, expected) in [
            ("^\\w+$", "queue_7", true),
            ("^\\w+$", "schlüssel", false),
            ("\\d", "٣", false),
            ("^..$", "é", true),
            ("^é+$", "éé", true),
            ("^[éà]$", "à", true),
            ("^\\p{L}+$", "schlüssel", true),
            ("^[^a]+$", "日本", true),
            ("\\W", "é", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().matches(name), expected, "{pattern} {name}");
        }
        assert!(Pattern::filter("SMS").unwrap().matches("sms.ttl"));
    }

    #[test]
    fn pattern_repetitions_are_bounded_by_compiled_size() {
        let group = "(?=\\w{99})".repeat(90);
        for pattern in
            ["^\\w{1,255}$", "^[a-z0-9._-]{1,255}$", ".{255}", "\\d{8}-(\\d{4}-){3}\\d{12}"]
        {
            assert!(Pattern::new(pattern).is_ok(), "{pattern}");
        }
        for pattern in [
            "((\\w{99}){99}){9}",
            "(((a{9}){9}){9}){9}",
            "\\pL{99}",
            "\\w{9999}",
            &format!("(a)\\1{group}"),
        ] {
            let problem = Pattern::new(pattern).unwrap_err();
            assert!(problem.contains("too large when compiled"), "{pattern}: {problem}");
            let stored = Pattern::stored(pattern);
            assert!(
                !stored.matches("a") && stored.problem().is_some() && stored.as_str() == pattern
            );
        }
    }

    #[test]
    fn pattern_backtracks_only_if_it_must() {
        for pattern in ["^(?!amq\\.)", "(a)\\1", "a++", "(?<=x)y"] {
            assert!(Pattern::new(pattern).unwrap().backtracks(), "{pattern}");
        }
        for pattern in [".*", "^(?:a|b)+\\.", "^\\Q(?=\\E", "a+b*c?", "[a+]+x"] {
            assert!(!Pattern::new(pattern).unwrap().backtracks(), "{pattern}");
        }
    }
}
