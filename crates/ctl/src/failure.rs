//! Failures of commands: the text on standard error, and the exit code, which is one of `sysexits.h`.

use serde_json::{Value, json};

use crate::http::HttpError;
use crate::printable::in_line;

/// The command line is wrong.
pub(crate) const USAGE: u8 = 64;
/// The input is wrong, or names a missing object.
pub(crate) const DATA: u8 = 65;
/// There is no such user.
pub(crate) const NO_USER: u8 = 67;
/// The node cannot be reached, or refuses.
pub(crate) const UNAVAILABLE: u8 = 69;
/// Internal error.
pub(crate) const SOFTWARE: u8 = 70;
/// A file cannot be written.
pub(crate) const INPUT_OUTPUT: u8 = 74;
/// A timeout.
pub(crate) const TIMEOUT: u8 = 75;
/// The node or the login is given in a wrong form.
pub(crate) const CONFIG: u8 = 78;

/// The exit codes, with their meanings.
pub(crate) const CODES: [(u8, &str); 8] = [
    (USAGE, "the command line is wrong"),
    (DATA, "the input is wrong, or names a missing object"),
    (NO_USER, "there is no such user"),
    (UNAVAILABLE, "the node cannot be reached, or refuses"),
    (SOFTWARE, "an internal error"),
    (INPUT_OUTPUT, "a file cannot be written"),
    (TIMEOUT, "the node did not answer in time"),
    (CONFIG, "the node or the login is given in a wrong form"),
];

/// Failure of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// A failure with a text.
    Message {
        /// Exit code of the process.
        code: u8,
        /// Text, without the end of the last line.
        text: String,
        /// True if the usage of the command follows.
        shows_usage: bool,
    },
    /// A failure with a text for people, and a value for programs that read JSON.
    WithDocument {
        /// Exit code of the process when the text is printed; with the value it is `UNAVAILABLE`.
        code: u8,
        /// Text, without the end of the last line.
        text: String,
        /// Value that JSON has in its place.
        document: Value,
    },
    /// The node has not answered, or has refused.
    Http(HttpError),
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

impl Failure {
    /// A failure with this text, in one line.
    pub(crate) fn plain(code: u8, text: impl AsRef<str>) -> Self {
        Self::lines(code, [text])
    }

    /// A failure with these lines.
    pub(crate) fn lines(code: u8, lines: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        Self::Message { code, text: joined(lines), shows_usage: false }
    }

    /// A failure with a text, in one line below the word Error, as RabbitMQ's tools print errors of a node.
    pub(crate) fn error(code: u8, text: impl AsRef<str>) -> Self {
        Self::error_lines(code, [text])
    }

    /// The same with several lines.
    pub(crate) fn error_lines(code: u8, lines: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let text = format!("Error:\n{}", joined(lines));
        Self::Message { code, text, shows_usage: false }
    }

    /// The words or options of a command are wrong.
    pub(crate) fn arguments(code: u8, problem: impl AsRef<str>) -> Self {
        Self::arguments_lines(code, [problem])
    }

    /// The same with several lines.
    pub(crate) fn arguments_lines(
        code: u8,
        lines: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Self {
        let text = format!("Error (argument validation): {}", joined(lines));
        Self::Message { code, text, shows_usage: true }
    }

    /// The same failure, as this value for programs that read JSON.
    pub(crate) fn told(self, document: Value) -> Self {
        match self {
            Self::Message { code, text, .. } | Self::WithDocument { code, text, .. } => {
                Self::WithDocument { code, text, document }
            }
            Self::Http(_) => self,
        }
    }

    /// The same failure, whose sentence is a message for programs that read JSON.
    pub(crate) fn told_by(self, node: &str) -> Self {
        let Self::Message { text, .. } = &self else { return self };
        let message = text.strip_prefix("Error:\n").unwrap_or(text);
        let document = json!({"message": message, "node": node, "result": "error"});
        self.told(document)
    }

    /// The text in one line, without the word Error.
    pub(crate) fn sentence(&self) -> String {
        let text = match self {
            Self::Message { text, .. } | Self::WithDocument { text, .. } => text.clone(),
            Self::Http(error) => format!("{error:?}"),
        };
        in_line(text.trim_start_matches("Error:").trim()).into_owned()
    }

    /// There is no such vhost.
    pub(crate) fn no_such_vhost(vhost: &str) -> Self {
        Self::plain(DATA, format!("Virtual host '{vhost}' does not exist"))
    }

    /// There is no such queue.
    pub(crate) fn no_such_queue(vhost: &str, queue: &str) -> Self {
        Self::plain(DATA, format!("Queue '{queue}' does not exist in vhost '{vhost}'"))
    }

    /// There is no such object, in RabbitMQ's words.
    pub(crate) fn no_such_object() -> Self {
        Self::plain(DATA, "Object (queue, stream, exchange, etc) was not found")
    }

    /// There is no such parameter.
    pub(crate) fn no_such_parameter() -> Self {
        Self::error(UNAVAILABLE, "Parameter does not exist")
    }

    /// There are too few words.
    pub(crate) fn not_enough_arguments() -> Self {
        Self::arguments(USAGE, "not enough arguments.")
    }

    /// There are too many words.
    pub(crate) fn too_many_arguments() -> Self {
        Self::arguments(USAGE, "too many arguments.")
    }

    /// A word is wrong, with the reason if it is known.
    pub(crate) fn bad_argument(problem: Option<&str>) -> Self {
        let why = problem.map_or_else(|| ".".to_owned(), |why| format!(": {why}"));
        Self::arguments(DATA, format!("Bad argument{why}"))
    }
}

/// Lines as a text. A name in a line ends no line.
fn joined(lines: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let lines: Vec<String> =
        lines.into_iter().map(|one| in_line(one.as_ref()).into_owned()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_in_a_failure_ends_no_line() {
        let text = |failure| match failure {
            Failure::Message { text, .. } | Failure::WithDocument { text, .. } => text,
            Failure::Http(error) => panic!("{error:?}"),
        };
        assert_eq!(
            text(Failure::no_such_vhost("a\nb\u{1b}[2J")),
            "Virtual host 'a\\u000ab\\u001b[2J' does not exist"
        );
        assert_eq!(text(Failure::error_lines(DATA, ["a\nb", "c"])), "Error:\na\\u000ab\nc");
        assert_eq!(
            text(Failure::arguments(USAGE, "a\rb")),
            "Error (argument validation): a\\u000db"
        );
    }

    #[test]
    fn failure_has_a_text_for_people_and_a_value_for_programs() {
        let told = Failure::error(NO_USER, "no 'a'").told_by("n@h");
        let document = json!({"message": "no 'a'", "node": "n@h", "result": "error"});
        let text = "Error:\nno 'a'".to_owned();
        assert_eq!(told, Failure::WithDocument { code: NO_USER, text, document });
    }
}
