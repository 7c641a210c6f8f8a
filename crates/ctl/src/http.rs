//! Client of the management API of a node.

use std::cell::Cell;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use ureq::Agent;
use ureq::http::Request;
use ureq::tls::TlsConfig;

use crate::term;

/// Login of a caller.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    /// A user with a password.
    Password(String, String),
    /// The token that the node has written for this machine.
    Token(String),
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Password(user, _) => {
                f.debug_tuple("Password").field(user).finish_non_exhaustive()
            }
            Self::Token(_) => f.debug_tuple("Token").finish_non_exhaustive(),
        }
    }
}

/// Error of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum HttpError {
    /// No HTTP server answers, with the reason.
    Unreachable(String),
    /// The answer did not come in time.
    TimedOut,
    /// The node refuses the request.
    Refused {
        /// HTTP status.
        status: u16,
        /// The node's reason.
        reason: String,
    },
}

/// The reason of a node that is stopped.
pub(crate) const STOPPED: &str = "the rabbit app is stopped";

impl HttpError {
    /// True if the node is the problem: it is missing, refuses the login, or is stopped.
    pub(crate) fn is_about_the_node(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::TimedOut => false,
            Self::Refused { status, .. } => matches!(status, 401 | 409 | 503),
        }
    }
}

/// A client with an address and a login.
#[derive(Debug)]
pub(crate) struct Api {
    agent: Agent,
    /// For the requests after one that was not answered in time.
    impatient: Agent,
    was_late: Cell<bool>,
    url: String,
    authorization: String,
    user: Option<String>,
    /// The reason for which there is no node to ask.
    absent: Option<String>,
}

/// Characters that are not escaped in a part of a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Path of the API from its parts, which may be any names.
pub(crate) fn path(parts: &[&str]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| escaped(part)).collect();
    format!("/api/{}", parts.join("/"))
}

/// A text in a path or a query.
pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

impl Api {
    /// A client for this address; `timeout` limits each request.
    pub(crate) fn new(
        url: &str,
        login: &Login,
        tls: &TlsConfig,
        timeout: Option<Duration>,
    ) -> Self {
        let agent = |timeout: Option<Duration>| -> Agent {
            let config = Agent::config_builder()
                .http_status_as_error(false)
                .proxy(None)
                .max_redirects(0)
                .timeout_global(timeout)
                .timeout_connect(Some(CONNECT_TIMEOUT))
                .tls_config(tls.clone())
                .build();
            config.into()
        };
        let (authorization, user) = match login {
            Login::Password(user, password) => {
                let login = STANDARD.encode(format!("{user}:{password}"));
                (format!("Basic {login}"), Some(user.clone()))
            }
            Login::Token(token) => (format!("Bearer {token}"), None),
        };
        let url = url.trim_end_matches('/').to_owned();
        let soon = timeout.map(|timeout| timeout.min(LATE_TIMEOUT));
        Self {
            agent: agent(timeout),
            impatient: agent(soon),
            was_late: Cell::new(false),
            url,
            authorization,
            user,
            absent: None,
        }
    }

    /// A client of no node: every request fails with this reason.
    pub(crate) fn absent(reason: String) -> Self {
        let nobody = Login::Token(String::new());
        Self { absent: Some(reason), ..Self::new("", &nobody, &TlsConfig::default(), None) }
    }

    /// Address of the API.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Host of the address.
    pub(crate) fn host(&self) -> &str {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => authority.split(':').next().unwrap_or_default(),
        }
    }

    /// True if the login is a token, which becomes invalid when the node starts again.
    pub(crate) fn has_token(&self) -> bool {
        self.authorization.starts_with("Bearer ")
    }

    /// Name of the user, if the login has one.
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Description of the login, for people.
    pub(crate) fn who(&self) -> String {
        match &self.user {
            Some(user) => format!("the login of '{user}'"),
            None => "the token of its ctl.json".to_owned(),
        }
    }

    /// Gets the resource at a path.
    pub(crate) fn get(&self, path: &str) -> Result<Value, HttpError> {
        parsed(&self.ask("GET", path, None)?)
    }

    /// Asks a health check; the answer of one that fails, none of one that passes.
    pub(crate) fn failed_check(&self, path: &str) -> Result<Option<Value>, HttpError> {
        let (status, text) = self.answer("GET", path, None, &[])?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        match status {
            200..300 => Ok(None),
            503 if answer.get("status").and_then(Value::as_str) == Some("failed") => {
                Ok(Some(answer))
            }
            _ => Err(refused("GET", path, status, &text)),
        }
    }

    /// Gets the resource at a path as text.
    pub(crate) fn get_text(&self, path: &str) -> Result<String, HttpError> {
        self.ask("GET", path, None)
    }

    /// Gets the resource at a path; `None` if there is none.
    pub(crate) fn find(&self, path: &str) -> Result<Option<Value>, HttpError> {
        match self.get(path) {
            Ok(value) => Ok(Some(value)),
            Err(HttpError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a resource at a path.
    pub(crate) fn put(&self, path: &str, body: &Value) -> Result<(), HttpError> {
        self.ask("PUT", path, Some(&body.to_string())).map(drop)
    }

    /// Posts to a path, and returns the answer.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, HttpError> {
        parsed(&self.ask("POST", path, Some(&body.to_string()))?)
    }

    /// Posts a text to a path. The answer, or that which refuses the text with the status 400.
    pub(crate) fn post_judged(
        &self,
        path: &str,
        body: &str,
    ) -> Result<Result<Value, Value>, HttpError> {
        let (status, text) = self.answer("POST", path, Some(body), &[])?;
        let answer = || serde_json::from_str(&text).unwrap_or(Value::Null);
        match status {
            200..300 => Ok(Ok(answer())),
            400 => Ok(Err(answer())),
            _ => Err(refused("POST", path, status, &text)),
        }
    }

    /// Posts a text to a path.
    pub(crate) fn post_text(&self, path: &str, body: &str) -> Result<Value, HttpError> {
        Ok(serde_json::from_str(&self.ask("POST", path, Some(body))?).unwrap_or(Value::Null))
    }

    /// Puts a resource at a path, and returns the answer.
    pub(crate) fn put_answered(&self, path: &str, body: &Value) -> Result<Value, HttpError> {
        parsed(&self.ask("PUT", path, Some(&body.to_string()))?)
    }

    /// Deletes the resource at a path, and returns the answer.
    pub(crate) fn delete_answered(&self, path: &str) -> Result<Value, HttpError> {
        parsed(&self.ask("DELETE", path, None)?)
    }

    /// Deletes the resource at a path.
    pub(crate) fn delete(&self, path: &str) -> Result<(), HttpError> {
        self.ask("DELETE", path, None).map(drop)
    }

    /// Deletes the resource at a path; false if there was none.
    pub(crate) fn remove(&self, path: &str) -> Result<bool, HttpError> {
        match self.delete(path) {
            Ok(()) => Ok(true),
            Err(HttpError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the resource at a path, with a reason for the clients.
    pub(crate) fn delete_with_reason(&self, path: &str, reason: &str) -> Result<(), HttpError> {
        // A reason that is no valid header is left out: the connection must be closed all the same.
        let reason: String = reason.chars().filter(|c| !c.is_control()).collect();
        self.send("DELETE", path, None, &[("x-reason", &reason)]).map(drop)
    }

    /// True if the node accepts this user and password.
    pub(crate) fn accepts(&self, user: &str, password: &str) -> Result<bool, HttpError> {
        let login = Login::Password(user.to_owned(), password.to_owned());
        let tls = self.agent.config().tls_config();
        let other = Self::new(&self.url, &login, tls, Some(ANSWER_TIMEOUT));
        match other.get("/api/whoami") {
            Ok(_) => Ok(true),
            // A user without the tags for the API is accepted, too.
            Err(HttpError::Refused { status: 401, reason }) => Ok(reason == "Not management user"),
            Err(HttpError::Refused { status: 403, .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn ask(&self, method: &str, path: &str, body: Option<&str>) -> Result<String, HttpError> {
        self.send(method, path, body, &[])
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        headers: &[(&str, &str)],
    ) -> Result<String, HttpError> {
        let (status, text) = self.answer(method, path, body, headers)?;
        match status {
            200..300 => Ok(text),
            _ => Err(refused(method, path, status, &text)),
        }
    }

    /// The status and the body of an answer.
    fn answer(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        headers: &[(&str, &str)],
    ) -> Result<(u16, String), HttpError> {
        if let Some(reason) = &self.absent {
            return Err(HttpError::Unreachable(reason.clone()));
        }
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("authorization", &self.authorization)
            .header("content-type", "application/json")
            // Some of RabbitMQ's resources refuse a request that accepts only JSON.
            .header("accept", "*/*");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(body.unwrap_or_default().to_owned())
            .map_err(|error| HttpError::Unreachable(error.to_string()))?;
        let agent = if self.was_late.get() { &self.impatient } else { &self.agent };
        let mut response = agent.run(request).map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let text = response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_string()
            .map_err(|error| self.unreachable(&error))?;
        self.was_late.set(false);
        Ok((status, text))
    }

    fn unreachable(&self, error: &ureq::Error) -> HttpError {
        let url = &self.url;
        if matches!(error, ureq::Error::Timeout(ureq::Timeout::Connect)) {
            HttpError::Unreachable(format!("no connection to {url} in time"))
        } else if matches!(error, ureq::Error::Timeout(_)) {
            self.was_late.set(true);
            HttpError::TimedOut
        } else if let ureq::Error::Io(error) = error {
            HttpError::Unreachable(format!("{url}: {error}"))
        } else {
            HttpError::Unreachable(format!("{url}: {error}"))
        }
    }
}

/// The refusal of a request.
fn refused(method: &str, path: &str, status: u16, text: &str) -> HttpError {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    let reason = match answer.get("reason") {
        Some(Value::String(reason)) => reason.clone(),
        Some(reason) => term::inspected(reason),
        None => text.trim().to_owned(),
    };
    let reason = match reason.is_empty() {
        true => format!("{method} {path} is answered with the status {status}"),
        false => reason,
    };
    HttpError::Refused { status, reason }
}

/// Time limit for an answer, as in RabbitMQ's tools, unless one is given.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit for an answer of a node that has not answered in time before.
const LATE_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest answer, in bytes: larger than the definitions of any broker.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

fn parsed(text: &str) -> Result<Value, HttpError> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text)
        .map_err(|error| HttpError::Unreachable(format!("the answer is no JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_escapes_any_name() {
        assert_eq!(path(&["queues", "/", "a b/ü?#%"]), "/api/queues/%2F/a%20b%2F%C3%BC%3F%23%25");
        assert_eq!(path(&["users", ".."]), "/api/users/..");
    }
}
