//! The line of a shell as words, and names as a shell writes them.

/// A line that ends in the word to complete.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct ShellLine {
    /// The words before the last one, without their quotes.
    pub(crate) words: Vec<String>,
    /// The last word, without its quotes; empty behind a blank.
    pub(crate) current: String,
    /// The quote that is still open.
    pub(crate) quote: Option<char>,
}

/// Splits a line at blanks outside of quotes.
pub(crate) fn split(line: &str) -> ShellLine {
    let mut words = Vec::new();
    let mut current: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => current.get_or_insert_default().extend(chars.next()),
            (None, '\'' | '"') => {
                quote = Some(c);
                current.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(current.take()),
            (_, c) => current.get_or_insert_default().push(c),
        }
    }
    ShellLine { words, current: current.unwrap_or_default(), quote }
}

/// A word with backslashes before all characters that a shell would interpret.
pub(crate) fn escaped(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,".contains(c);
    let mut text = String::new();
    for c in word.chars() {
        if !is_plain(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str], current: &str, quote: Option<char>) -> ShellLine {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        ShellLine { words, current: current.to_owned(), quote }
    }

    #[test]
    fn line_is_split_as_a_shell_splits_it() {
        assert_eq!(split("ctl list_q"), line(&["ctl"], "list_q", None));
        assert_eq!(split("ctl  list_queues "), line(&["ctl", "list_queues"], "", None));
        assert_eq!(split("ctl 'a b' \"c d"), line(&["ctl", "a b"], "c d", Some('"')));
        assert_eq!(split(r"ctl a\ b\"), line(&["ctl"], "a b", None));
        assert_eq!(split("ctl '' -p="), line(&["ctl", ""], "-p=", None));
        assert_eq!(split(""), ShellLine::default());
    }

    #[test]
    fn escaped_word_is_split_into_itself() {
        for word in ["a b", "it's $HOME", "q\"\\", "orders.in", "größe*", "(x)#"] {
            assert_eq!(split(&escaped(word)).current, word, "{}", escaped(word));
        }
    }
}
