//! Why a command fails: what is said on standard error, and the code the process ends with, which is
//! one of `sysexits.h`.

use crate::http::HttpError;

/// The command line is wrong.
pub(crate) const USAGE: u8 = 64;
/// The input is wrong, or what it names is not there.
pub(crate) const DATA: u8 = 65;
/// There is no such user.
pub(crate) const NO_USER: u8 = 67;
/// The node cannot be reached, or refuses.
pub(crate) const UNAVAILABLE: u8 = 69;
/// Something went wrong within.
pub(crate) const SOFTWARE: u8 = 70;
/// A file cannot be written.
pub(crate) const INPUT_OUTPUT: u8 = 74;
/// It took too long.
pub(crate) const TIMEOUT: u8 = 75;
/// Node or login are given in a way that cannot be understood.
pub(crate) const CONFIG: u8 = 78;

/// Why a command fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The command itself says so.
    Said {
        /// What the process ends with.
        code: u8,
        /// What is said, without the end of its last line.
        text: String,
        /// The usage of the command is to follow.
        shows_usage: bool,
    },
    /// The node has not answered, or refused.
    Http(HttpError),
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

impl Failure {
    /// A text as it is.
    pub(crate) fn plain(code: u8, text: impl Into<String>) -> Self {
        Self::Said { code, text: text.into(), shows_usage: false }
    }

    /// A text below the word Error, which is how RabbitMQ's tools show what a node answers.
    pub(crate) fn error(code: u8, text: impl AsRef<str>) -> Self {
        Self::plain(code, format!("Error:\n{}", text.as_ref()))
    }

    /// The words or options of a command are wrong.
    pub(crate) fn arguments(code: u8, problem: impl AsRef<str>) -> Self {
        let text = format!("Error (argument validation): {}", problem.as_ref());
        Self::Said { code, text, shows_usage: true }
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

    /// A word is not what it should be; perhaps why.
    pub(crate) fn bad_argument(problem: Option<&str>) -> Self {
        let why = problem.map_or_else(|| ".".to_owned(), |why| format!(": {why}"));
        Self::arguments(DATA, format!("Bad argument{why}"))
    }
}
