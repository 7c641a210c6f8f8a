//! Failures of commands: the text on standard error, and the exit code, which is one of `sysexits.h`.

use crate::http::HttpError;

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
    /// The node has not answered, or has refused.
    Http(HttpError),
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

impl Failure {
    /// A failure with this text.
    pub(crate) fn plain(code: u8, text: impl Into<String>) -> Self {
        Self::Message { code, text: text.into(), shows_usage: false }
    }

    /// A failure with a text below the word Error, as RabbitMQ's tools print errors of a node.
    pub(crate) fn error(code: u8, text: impl AsRef<str>) -> Self {
        Self::plain(code, format!("Error:\n{}", text.as_ref()))
    }

    /// The words or options of a command are wrong.
    pub(crate) fn arguments(code: u8, problem: impl AsRef<str>) -> Self {
        let text = format!("Error (argument validation): {}", problem.as_ref());
        Self::Message { code, text, shows_usage: true }
    }

    /// There is no such vhost.
    pub(crate) fn no_such_vhost(vhost: &str) -> Self {
        Self::plain(DATA, format!("Virtual host '{vhost}' does not exist"))
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
