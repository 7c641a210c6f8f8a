//! The node to operate: the address of its API, its name, and the login.
//!
//! Options take precedence, then the environment, then the context in use, then the file `ctl.json` in the data directory
//! of a node on this machine (in the working directory, or else that of an installed package), then the defaults of a new
//! node: port 15672, guest, guest.

mod contexts;
mod machine;
mod place;

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use self::contexts::{Context, Contexts};
pub(crate) use self::machine::{Environment, with_environment};
use self::machine::{Local, is_name_of, is_usual_here};
pub(crate) use self::place::address_given;
use self::place::{Address, HTTP_PORT, Place};

use serde_json::Value;

use crate::arguments::Parsed;
use crate::certificates::Trust;
use crate::failure::{Failure, UNAVAILABLE};
use crate::http::{Api, HttpError, Login, STOPPED};

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    /// The management API.
    pub(crate) api: Api,
    name: OnceCell<String>,
    /// The name that was asked for.
    asked: Option<String>,
    /// True if the address comes from an option, the environment, a context or the name.
    is_at_url: bool,
    /// Name of the context in which it was found.
    context: Option<String>,
    /// Directory in which no node of this machine was found.
    missing: Option<PathBuf>,
}

impl Node {
    /// Finds the node from the options and the environment. `usual` limits the time for each answer, unless the options do.
    ///
    /// # Errors
    /// Options or variables that are wrong.
    pub(crate) fn find(
        options: &Parsed,
        environment: &Environment<'_>,
        usual: Option<Duration>,
    ) -> Result<Self, Failure> {
        let place = Place::of(options, environment)?;
        let local = place.local;
        let url = match (&place.address, &local) {
            (Address::Url(url), _) => Some(url.clone()),
            (Address::Directory | Address::Machine, Some(local)) => Some(local.url.clone()),
            (Address::Directory | Address::Machine, None) => None,
        };
        let is_local = |local: &Local| url.as_ref() == Some(&local.url);
        let login = match (place.user, place.password, local.as_ref().filter(|it| is_local(it))) {
            (Some(user), password, _) => Login::Password(user, password.unwrap_or_default()),
            (None, Some(password), _) => Login::Password("guest".to_owned(), password),
            // The token is sent to its own node only.
            (None, None, Some(local)) => Login::Token(local.token.clone()),
            (None, None, None) => Login::Password("guest".to_owned(), "guest".to_owned()),
        };
        let trust = match (place.cacert, &login) {
            (Some(file), _) => Trust::File(file),
            // It is sent to the address in `ctl.json`, which the node has written.
            (None, Login::Token(_)) => Trust::Anybody,
            (None, Login::Password(..)) if place.is_insecure => Trust::Anybody,
            (None, Login::Password(..)) => Trust::System,
        };
        let is_named = !matches!(place.address, Address::Url(_));
        let name = local.filter(|_| is_named).map_or_else(OnceCell::new, |it| it.name.into());
        let file = place.directory.join("ctl.json");
        let is_absent = url.is_none() && place.address == Address::Directory;
        let missing = (url.is_none() && !is_absent).then(|| file.clone());
        let url = url.unwrap_or_else(|| format!("http://127.0.0.1:{HTTP_PORT}"));
        let seconds = options.integer("timeout").and_then(|seconds| u64::try_from(seconds).ok());
        let trust = if url.starts_with("https:") { trust } else { Trust::Anybody };
        let tls = trust.tls(environment.read)?;
        let timeout = seconds.map(Duration::from_secs).or(usual);
        let api = match is_absent {
            true => {
                Api::absent(format!("no node runs there: it has written no {}", file.display()))
            }
            false => Api::new(&url, &login, &tls, timeout),
        };
        let asked = options.text("node").map(str::to_owned);
        Ok(Self { api, name, asked, missing, is_at_url: !is_named, context: place.context })
    }

    /// No node: for commands that need none.
    pub(crate) fn absent() -> Self {
        Self {
            api: Api::absent("no node is named".to_owned()),
            name: OnceCell::new(),
            asked: None,
            is_at_url: false,
            missing: None,
            context: None,
        }
    }

    /// Name from the node's answer; the requested name if it does not answer.
    pub(crate) fn name(&self) -> &str {
        self.name.get_or_init(|| {
            let overview = self.api.get("/api/overview").ok();
            let name = overview.as_ref().and_then(|told| told.get("node")?.as_str());
            name.or(self.asked.as_deref()).unwrap_or("rabbit@localhost").to_owned()
        })
    }

    /// Checks that the node has the requested name. A node that does not answer, refuses the login or is stopped gives no
    /// name: the request itself fails, or names the node.
    ///
    /// # Errors
    /// The node has another name, or the request for it fails.
    // COMPAT: node names of ctl: a node of this machine is also found as rabbit or leveret, so that
    // scripts with the usual name go on; any other name must be its own.
    pub(crate) fn check_name(&self, environment: &Environment<'_>) -> Result<(), Failure> {
        let Some(asked) = self.asked.as_deref() else { return Ok(()) };
        if !self.is_at_url && is_usual_here(asked, environment) {
            return Ok(());
        }
        let name = match self.name.get() {
            Some(name) => name.clone(),
            None => match self.api.get("/api/overview") {
                Ok(told) => told.get("node").and_then(Value::as_str).unwrap_or_default().to_owned(),
                Err(HttpError::Unreachable(_) | HttpError::Refused { status: 401 | 403, .. }) => {
                    return Ok(());
                }
                Err(HttpError::Refused { status: 503, reason }) if reason == STOPPED => {
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            },
        };
        if is_name_of(asked, &name, host_of(self.api.url()), environment) {
            return Ok(());
        }
        let why = format!("The node at {} is called {name}", self.api.url());
        Err(Failure::plain(UNAVAILABLE, unable(asked, &why)))
    }

    /// Error text for a node that does not answer.
    pub(crate) fn unreachable(&self, why: &str) -> String {
        let name =
            self.asked.as_ref().or_else(|| self.name.get()).map_or("rabbit@localhost", |name| name);
        unable(name, &self.unanswered(why))
    }

    /// The reason for which the node does not answer, and the options that name another one.
    pub(crate) fn unanswered(&self, why: &str) -> String {
        let hint = self.missing.as_ref().map_or_else(String::new, |file| {
            let file = file.display();
            format!("; there is no {file} of a node of this machine (see --data-dir, --http-url)")
        });
        let context = self.context.as_ref().map_or_else(String::new, |context| {
            format!("; the node is that of the context '{context}'")
        });
        format!("{why}{hint}{context}")
    }

    /// True if the address answers.
    pub(crate) fn answers(&self) -> bool {
        matches!(self.api.get("/api/whoami"), Ok(_) | Err(HttpError::Refused { .. }))
    }
}

/// The host in the address of an API.
fn host_of(url: &str) -> &str {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn unable(node: &str, why: &str) -> String {
    format!("Error: unable to perform an operation on node '{node}'. {why}")
}

#[cfg(test)]
mod tests {
    use super::place::CONTAINER_DATA;
    use super::*;
    use crate::GLOBAL_SWITCHES;
    use crate::arguments::parse;

    const FILE: &str =
        r#"{"http": "http://127.0.0.1:25672", "node": "leveret@box", "token": "secret"}"#;

    /// Address and login of the found node, or the error.
    fn found(line: &str, variables: &[(&str, &str)], files: &[(&str, &str)]) -> String {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let options = parse(&words, GLOBAL_SWITCHES);
        let look = |all: &[(&str, &str)], key: &str| {
            all.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned())
        };
        let environment = Environment {
            variable: &|name| look(variables, name),
            read: &|path| look(files, path.to_str()?),
            host: "box.example.org".to_owned(),
            is_directory: &|path| !path.starts_with("nowhere"),
        };
        let checked = |node: Node| node.check_name(&environment).map(|()| node);
        match Node::find(&options, &environment, None).and_then(checked) {
            Ok(node) => format!("{:?}", node.api).split("url: ").nth(1).unwrap().to_owned(),
            Err(Failure::Message { text, .. }) => text,
            Err(other) => format!("{other:?}"),
        }
    }

    fn is(line: &str, variables: &[(&str, &str)], files: &[(&str, &str)], url: &str, login: &str) {
        let expected = format!("{url:?}, authorization: {login:?}, ");
        let found = found(line, variables, files);
        assert!(found.starts_with(&expected), "{line}: {found}");
    }

    const GUEST: &str = "Basic Z3Vlc3Q6Z3Vlc3Q=";
    const TOKEN: &str = "Bearer secret";
    const LOCAL: (&str, &str) = ("data/ctl.json", FILE);

    #[test]
    fn node_is_found_by_options_environment_file_and_defaults() {
        let url = [("LEVERET_HTTP_URL", "http://other:1"), ("LEVERET_USER", "guest")];
        is("", &[], &[], "http://127.0.0.1:15672", GUEST);
        is("", &[], &[LOCAL], "http://127.0.0.1:25672", TOKEN);
        is("", &url, &[LOCAL], "http://other:1", "Basic Z3Vlc3Q6");
        is("--http-url http://a:2/ --password guest", &[], &[LOCAL], "http://a:2", GUEST);
        is("--port 99", &[], &[], "http://127.0.0.1:99", GUEST);
        is("--host ::1", &[], &[], "http://[::1]:15672", GUEST);
        is("--data-dir d", &[], &[("d/ctl.json", FILE)], "http://127.0.0.1:25672", TOKEN);
        let dir = [("LEVERET_DATA_DIR", "e")];
        is("", &dir, &[("e/ctl.json", FILE)], "http://127.0.0.1:25672", TOKEN);
        for line in
            ["data_dir = f", "data_dir = f   # command line --data-dir", "data_dir='f' # mine"]
        {
            let text = format!("a = b\n{line}\n");
            let config = [("l.conf", text.as_str()), ("f/ctl.json", FILE)];
            is("--config l.conf", &[], &config, "http://127.0.0.1:25672", TOKEN);
            let elsewhere = [("LEVERET_HTTP_URL", "http://e:1"), ("LEVERET_DATA_DIR", "g")];
            is("--config l.conf", &elsewhere, &config, "http://127.0.0.1:25672", TOKEN);
        }
        let installed = [
            ("/etc/leveret/leveret.conf", "data_dir = /var/lib/leveret\n"),
            ("/var/lib/leveret/ctl.json", FILE),
        ];
        is("", &[], &installed, "http://127.0.0.1:25672", TOKEN);
        for directory in CONTAINER_DATA {
            let file = format!("{directory}/ctl.json");
            is("", &[], &[(file.as_str(), FILE)], "http://127.0.0.1:25672", TOKEN);
        }
    }

    #[test]
    fn option_with_a_directory_asks_its_node_and_no_other() {
        let elsewhere = [("LEVERET_HTTP_URL", "http://other:1"), ("LEVERET_USER", "anna")];
        let there = [("d/ctl.json", FILE)];
        is("--data-dir d", &elsewhere, &there, "http://127.0.0.1:25672", TOKEN);
        is("--data-dir d --port 99", &elsewhere, &there, "http://127.0.0.1:99", "Basic YW5uYTo=");
        assert!(found("--data-dir d", &elsewhere, &[]).contains("written no d/ctl.json"));
        assert_eq!(
            found("--data-dir nowhere", &elsewhere, &[LOCAL]),
            "Error: there is no data directory 'nowhere' (see --data-dir)"
        );
    }

    #[test]
    fn context_is_a_broker_with_a_name() {
        const CONTEXTS: &str = r#"{"used": "prod", "contexts": {
            "prod": {"http_url": "http://prod:1", "username": "ops", "password": "p"},
            "bare": {"http_url": "http://bare:1", "username": "ops"},
            "here": {"data_dir": "d"}, "gone": {"data_dir": "nowhere"}}}"#;
        let home = ("HOME", "/h");
        let kept = ("/h/.config/leveret/contexts.json", CONTEXTS);
        let secret = ("LEVERET_PASSWORD", "s");
        let files = [kept, ("d/ctl.json", FILE)];
        is("", &[home], &files, "http://prod:1", "Basic b3BzOnA=");
        is("--username ann", &[home], &files, "http://prod:1", "Basic YW5uOg==");
        is("--http-url http://o:1", &[home], &files, "http://o:1", GUEST);
        is("", &[home, ("LEVERET_HTTP_URL", "http://e:1")], &files, "http://e:1", GUEST);
        is("-n rabbit", &[home], &files, "http://127.0.0.1:15672", GUEST);
        let elsewhere = [home, secret, ("LEVERET_HTTP_URL", "http://e:1"), ("LEVERET_USER", "u")];
        is("--context bare", &elsewhere, &files, "http://bare:1", "Basic b3BzOnM=");
        is("--context here", &elsewhere, &files, "http://127.0.0.1:25672", TOKEN);
        let told = |line| found(line, &[home], &files);
        assert!(told("--context none").starts_with("Error: there is no context 'none'"));
        assert_eq!(
            told("--context gone"),
            "Error: there is no data directory 'nowhere' (of the context 'gone')"
        );
        assert!(
            told("--context bare --config c").starts_with("Error: --context names a node, and")
        );
        assert!(told("--context bare --port 1").starts_with("Error: --context names a node, and"));
    }

    #[test]
    fn token_is_sent_to_its_own_node_only() {
        is("--http-url http://127.0.0.1:25672", &[], &[LOCAL], "http://127.0.0.1:25672", TOKEN);
        is("--http-url http://evil:25672", &[], &[LOCAL], "http://evil:25672", GUEST);
        is("-n rabbit@far.invalid", &[], &[LOCAL], "http://far.invalid:15672", GUEST);
    }

    #[test]
    fn names_of_this_machine_s_node() {
        for name in ["rabbit", "rabbit@localhost", "rabbit@box", "leveret@box", "leveret@localhost"]
        {
            is(&format!("-n {name}"), &[], &[LOCAL], "http://127.0.0.1:25672", TOKEN);
        }
        assert_eq!(
            found("-n jct@localhost", &[], &[LOCAL]),
            "Error: unable to perform an operation on node 'jct@localhost'. The node at \
             http://127.0.0.1:25672 is called leveret@box"
        );
    }

    #[test]
    fn hosts_of_addresses() {
        for (url, host) in [
            ("http://b:15672", "b"),
            ("https://b.example.org/x", "b.example.org"),
            ("http://[::1]:15672", "::1"),
        ] {
            assert_eq!(host_of(url), host);
        }
    }

    #[test]
    fn malformed_addresses_are_refused() {
        assert_eq!(found("--port many", &[], &[]), "Error: 'many' is no port");
        assert_eq!(found("--http-url host", &[], &[]), "Error: 'host' is no address of HTTP");
        let cacert = "--http-url https://h --cacert ca.pem";
        assert_eq!(found(cacert, &[], &[]), "Error: there are no certificates in 'ca.pem'");
        is("--http-url https://h:15671", &[], &[], "https://h:15671", GUEST);
    }
}
