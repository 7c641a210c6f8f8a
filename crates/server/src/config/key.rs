//! A key of the configuration: its name, its default, and its effect.

use super::Config;
use super::file::KeyName;

/// Applies a value to the configuration, or returns a description of valid values. The first text is the part
/// of the name that matched the first `$`; the second is the value.
pub(super) type Set = fn(&mut Config, &str, &str) -> Result<(), String>;

/// A key, or a family of keys with variable parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// The name. A part that begins with `$` matches any part; a `*` at the end matches all further parts.
    pub(super) name: &'static str,
    /// Further names of the same key.
    pub(super) aliases: &'static [&'static str],
    /// The default, in the form of a configuration file.
    pub(super) default: Option<&'static str>,
    pub(super) effect: Effect,
    pub(super) is_secret: bool,
}

/// The effect of setting a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// Sets a value of the configuration.
    Sets(Set),
    /// No effect; the text gives the reason for the warning at the start.
    Nothing(&'static str),
    /// Prevents the start, because ignoring the request would be dangerous; the text gives the reason.
    Refused(&'static str),
}

impl Key {
    /// A key with an effect.
    pub(super) const fn new(name: &'static str, default: Option<&'static str>, set: Set) -> Self {
        Self { name, aliases: &[], default, effect: Effect::Sets(set), is_secret: false }
    }

    /// The same key with further names.
    pub(super) const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// The same key with a value that is never shown.
    pub(super) const fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    /// A known key without an effect.
    pub(super) const fn without_effect(name: &'static str, why: &'static str) -> Self {
        Self { name, aliases: &[], default: None, effect: Effect::Nothing(why), is_secret: false }
    }

    /// A key that prevents the start.
    pub(super) const fn refused(name: &'static str, why: &'static str) -> Self {
        Self { name, aliases: &[], default: None, effect: Effect::Refused(why), is_secret: false }
    }

    /// Matches a name from a file. Returns the canonical name, and the part that matched the first `$`.
    pub(super) fn matches(&self, name: &KeyName) -> Option<Match> {
        let variable = matched(self.name, name);
        if let Some(variable) = variable {
            return Some(Match { name: name.clone(), variable });
        }
        self.aliases.iter().find_map(|alias| {
            let variable = matched(alias, name)?;
            Some(Match { name: KeyName::new(self.name), variable })
        })
    }
}

/// A match of a key with a name from a file.
#[derive(Clone, Debug)]
pub(super) struct Match {
    /// The canonical name.
    pub(super) name: KeyName,
    /// The part that matched the first `$`; empty if there is none.
    pub(super) variable: String,
}

fn matched(pattern: &str, name: &KeyName) -> Option<String> {
    let mut variable = None;
    let mut parts = name.0.iter();
    for expected in pattern.split('.') {
        let part = parts.next()?;
        match expected.strip_suffix('*') {
            Some(beginning) if part.starts_with(beginning) => {
                return Some(variable.unwrap_or_default());
            }
            _ if expected.starts_with('$') => {
                variable.get_or_insert_with(|| part.clone());
            }
            _ if expected == part => {}
            _ => return None,
        }
    }
    if parts.next().is_some() {
        return None;
    }
    Some(variable.unwrap_or_default())
}

/// The name in `names` that a misspelt name probably meant, if one is similar.
pub(super) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (distance(wrong, name), name));
    // In a short name, two typos would make another name.
    let most = 1 + wrong.chars().count() / 6;
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

/// Edit distance: letters changed, inserted, deleted, or swapped with a neighbour.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    let mut previous = None;
    for (row, from) in a.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, to) in b.iter().enumerate() {
            let at =
                |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = at(&last, column) + usize::from(from != *to);
            best = best.min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            if let Some(other) = column.checked_sub(1)
                && previous == Some(*to)
                && b.get(other) == Some(&from)
            {
                best = best.min(at(&before, other) + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut last, current);
        previous = Some(from);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_may_have_variable_parts() {
        let variable = |pattern, name| matched(pattern, &KeyName::new(name));
        assert_eq!(variable("heartbeat", "heartbeat").as_deref(), Some(""));
        assert_eq!(variable("heartbeat", "heartbeat.x"), None);
        assert_eq!(variable("listeners.tcp.$name", "listeners.tcp.1").as_deref(), Some("1"));
        assert_eq!(variable("listeners.tcp.$name", "listeners.tcp"), None);
        assert_eq!(variable("users.$name.tags", "users.a\\.b.tags").as_deref(), Some("a.b"));
        assert_eq!(variable("raft.*", "raft.a.b").as_deref(), Some(""));
        assert_eq!(variable("raft.*", "raft"), None);
        assert_eq!(variable("a.oauth_*", "a.oauth_x.y").as_deref(), Some(""));
        assert_eq!(variable("a.oauth_*", "a.other"), None);
    }

    #[test]
    fn misspelt_name_is_recognised() {
        let names = ["heartbeat", "frame_max", "channel_max", "disk_free_limit.absolute"];
        let meant = |wrong| nearest(wrong, names.into_iter());
        assert_eq!(meant("hearbeat"), Some("heartbeat"));
        assert_eq!(meant("haertbeat"), Some("heartbeat"));
        assert_eq!(meant("disk_free_limits.absolut"), Some("disk_free_limit.absolute"));
        assert_eq!(meant("max"), None);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("abc", "acb"), 1);
    }
}
