//! `rabbitmq.conf`: one `key = value` per line, `#` starts a comment, values may be quoted with `'`.

/// One line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
}

/// What is wrong in which line.
type Problem = (usize, String);

/// The entries of a file with their line numbers.
pub(super) fn entries(text: &str) -> impl Iterator<Item = Result<(usize, Entry<'_>), Problem>> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        Some(entry(line).map(|entry| (number, entry)).map_err(|problem| (number, problem)))
    })
}

fn entry(line: &str) -> Result<Entry<'_>, String> {
    let (key, value) =
        line.split_once('=').ok_or_else(|| format!("expected 'key = value', got '{line}'"))?;
    let (key, value) = (key.trim(), value.trim());
    let value = match value.strip_prefix('\'') {
        Some(quoted) => {
            let (value, rest) = quoted
                .split_once('\'')
                .ok_or_else(|| format!("{key}: the quote in front of '{quoted} is not closed"))?;
            let rest = rest.trim_start();
            if !rest.is_empty() && !rest.starts_with('#') {
                return Err(format!("{key}: '{rest}' stands behind the quotes"));
            }
            value
        }
        None => value.split_once(" #").map_or(value, |(value, _)| value).trim(),
    };
    Ok(Entry { key, value })
}
