//! The node to operate: the address of its API, its name, and the login.
//!
//! Options take precedence, then the environment, then the file `ctl.json` in the data directory of a node
//! on this machine (in the working directory, or else that of an installed package), then the defaults of a new node: port 15672, guest, guest.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use line::setting_value;
use serde_json::Value;

use crate::arguments::Parsed;
use crate::certificates::Trust;
use crate::failure::{CONFIG, Failure, UNAVAILABLE};
use crate::http::{Api, HttpError, Login};

/// Configuration of the node that a package has installed.
const INSTALLED_CONFIG: &str = "/etc/leveret/leveret.conf";

/// Data directories of the container image.
const CONTAINER_DATA: [&str; 2] = ["/var/lib/leveret/data", "/var/lib/rabbitmq/leveret"];

/// Port of a node whose address has none.
const HTTP_PORT: u16 = 15672;

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    /// The management API.
    pub(crate) api: Api,
    name: OnceCell<String>,
    /// The name that was asked for.
    asked: Option<String>,
    /// True if the name is that of a node on another machine.
    is_elsewhere: bool,
    /// Directory in which no node of this machine was found.
    missing: Option<PathBuf>,
}

/// Content of `ctl.json` in the data directory of a running node.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Local {
    url: String,
    name: String,
    token: String,
}

/// Environment of the process.
pub(crate) struct Environment<'a> {
    /// A variable of the environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file.
    pub(crate) read: &'a dyn Fn(&Path) -> Option<String>,
    /// The name of this machine.
    pub(crate) host: String,
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
        let given = |option: &str, variable: &str| {
            options.text(option).map(str::to_owned).or_else(|| (environment.variable)(variable))
        };
        let directory = data_dir(&given, environment);
        let file = directory.join("ctl.json");
        let local = (environment.read)(&file).and_then(|text| Local::parse(&text));
        let asked = options.text("node").map(str::to_owned);
        let elsewhere =
            asked.as_deref().and_then(|name| other_host(name, local.as_ref(), environment));
        let url = match (given("http-url", "LEVERET_HTTP_URL"), address(&given)?, &elsewhere) {
            (Some(url), ..) => Some(checked(&url)?),
            (None, Some(url), _) => Some(url),
            (None, None, Some(host)) => Some(format!("http://{host}:{HTTP_PORT}")),
            (None, None, None) => None,
        };
        let user = given("username", "LEVERET_USER");
        let password = given("password", "LEVERET_PASSWORD");
        let guest = || Login::Password("guest".to_owned(), "guest".to_owned());
        let login = match (user, password, &local) {
            (Some(user), password, _) => Login::Password(user, password.unwrap_or_default()),
            (None, Some(password), _) => Login::Password("guest".to_owned(), password),
            // The token is sent to its own node only.
            (None, None, Some(local)) if url.as_ref().is_none_or(|url| *url == local.url) => {
                Login::Token(local.token.clone())
            }
            (None, None, _) => guest(),
        };
        let trust = match (options.text("cacert"), &login) {
            (Some(file), _) => Trust::File(file.to_owned()),
            // It is sent to the address in `ctl.json`, which the node has written.
            (None, Login::Token(_)) => Trust::Anybody,
            (None, Login::Password(..)) if options.flag("insecure") == Some(true) => Trust::Anybody,
            (None, Login::Password(..)) => Trust::System,
        };
        let is_missing = url.is_none() && local.is_none();
        let name = OnceCell::new();
        let url = match (url, local) {
            (None, Some(local)) => {
                // The variable is empty until now.
                let _ = name.set(local.name);
                local.url
            }
            (Some(url), _) => url,
            (None, None) => format!("http://127.0.0.1:{HTTP_PORT}"),
        };
        let seconds = options.integer("timeout").and_then(|seconds| u64::try_from(seconds).ok());
        let trust = if url.starts_with("https:") { trust } else { Trust::Anybody };
        let tls = trust.tls(environment.read)?;
        let timeout = seconds.map(Duration::from_secs).or(usual);
        let api = Api::new(&url, &login, &tls, timeout);
        let missing = is_missing.then_some(file);
        Ok(Self { api, name, asked, missing, is_elsewhere: elsewhere.is_some() })
    }

    /// Name from the node's answer; the requested name if it does not answer.
    pub(crate) fn name(&self) -> &str {
        self.name.get_or_init(|| {
            let overview = self.api.get("/api/overview").ok();
            let name = overview.as_ref().and_then(|told| told.get("node")?.as_str());
            name.or(self.asked.as_deref()).unwrap_or("rabbit@localhost").to_owned()
        })
    }

    /// Checks that the node has the requested name.
    ///
    /// # Errors
    /// The node has another name.
    // COMPAT: node names of ctl: a node of this machine is also found as rabbit or leveret, so that
    // scripts with the usual name go on; any other name must be its own.
    pub(crate) fn check_name(&self, environment: &Environment<'_>) -> Result<(), Failure> {
        let Some(asked) = self.asked.as_deref().filter(|_| !self.is_elsewhere) else {
            return Ok(());
        };
        let (local, host) = parts(asked);
        let is_usual = matches!(local, "rabbit" | "leveret");
        if is_usual && host.is_none_or(|host| is_this_machine(host, environment)) {
            return Ok(());
        }
        let name = self.name();
        let same_host =
            |host: &str| Some(host) == parts(name).1 || is_this_machine(host, environment);
        if asked == name || (local == parts(name).0 && host.is_none_or(same_host)) {
            return Ok(());
        }
        let why = format!("The node at {} is called {name}", self.api.url());
        Err(Failure::plain(UNAVAILABLE, unable(asked, &why)))
    }

    /// Error text for a node that does not answer.
    pub(crate) fn unreachable(&self, why: &str) -> String {
        let name =
            self.asked.as_ref().or_else(|| self.name.get()).map_or("rabbit@localhost", |name| name);
        let hint = self.missing.as_ref().map_or_else(String::new, |file| {
            let file = file.display();
            format!("; there is no {file} of a node of this machine (see --data-dir, --http-url)")
        });
        unable(name, &format!("{why}{hint}"))
    }

    /// True if the address answers.
    pub(crate) fn answers(&self) -> bool {
        matches!(self.api.get("/api/whoami"), Ok(_) | Err(HttpError::Refused { .. }))
    }
}

impl Local {
    fn parse(text: &str) -> Option<Self> {
        let file: Value = serde_json::from_str(text).ok()?;
        let text = |key| file.get(key)?.as_str().map(str::to_owned);
        Some(Self { url: text("http")?, name: text("node")?, token: text("token")? })
    }
}

fn unable(node: &str, why: &str) -> String {
    format!("Error: unable to perform an operation on node '{node}'. {why}")
}

/// The name of a node without its host, and the host.
fn parts(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((local, host)) => (local, Some(host)),
        None => (name, None),
    }
}

fn is_this_machine(host: &str, environment: &Environment<'_>) -> bool {
    let short = |host: &str| host.split('.').next().unwrap_or_default().to_owned();
    matches!(host, "localhost" | "127.0.0.1" | "::1") || short(host) == short(&environment.host)
}

/// The host of a node that is on another machine.
fn other_host(name: &str, local: Option<&Local>, environment: &Environment<'_>) -> Option<String> {
    let host = parts(name).1?;
    let is_known = local.is_some_and(|local| parts(&local.name).1 == Some(host));
    (!is_known && !is_this_machine(host, environment)).then(|| host.to_owned())
}

type Given<'a> = dyn Fn(&str, &str) -> Option<String> + 'a;

/// Data directory of a node on this machine.
fn data_dir(given: &Given<'_>, environment: &Environment<'_>) -> PathBuf {
    if let Some(directory) = given("data-dir", "LEVERET_DATA_DIR") {
        return PathBuf::from(directory);
    }
    let here = PathBuf::from("data");
    let configured = match given("config", "LEVERET_CONFIG_FILE") {
        Some(path) => configured_data_dir(Path::new(&path), environment),
        None if (environment.read)(&here.join("ctl.json")).is_some() => None,
        None => configured_data_dir(Path::new(INSTALLED_CONFIG), environment)
            .or_else(|| container_data_dir(environment)),
    };
    configured.unwrap_or(here)
}

/// The data directory of the container image in which a node runs.
fn container_data_dir(environment: &Environment<'_>) -> Option<PathBuf> {
    let mut all = CONTAINER_DATA.map(PathBuf::from).into_iter();
    all.find(|directory| (environment.read)(&directory.join("ctl.json")).is_some())
}

/// The data directory in a configuration file.
fn configured_data_dir(file: &Path, environment: &Environment<'_>) -> Option<PathBuf> {
    let text = (environment.read)(file)?;
    let value = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let value = (key.trim() == "data_dir").then(|| setting_value::read(value.trim()))?;
        value.ok().map(|value| PathBuf::from(value.text))
    };
    text.lines().filter_map(value).next_back()
}

/// Address from a host and a port.
fn address(given: &Given<'_>) -> Result<Option<String>, Failure> {
    let host = given("host", "LEVERET_HTTP_HOST");
    let port = given("port", "LEVERET_HTTP_PORT");
    if host.is_none() && port.is_none() {
        return Ok(None);
    }
    let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
    let host =
        if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
    let port = port.unwrap_or_else(|| HTTP_PORT.to_string());
    if port.parse::<u16>().is_err() {
        return Err(Failure::plain(CONFIG, format!("Error: '{port}' is no port")));
    }
    checked(&format!("http://{host}:{port}")).map(Some)
}

fn checked(url: &str) -> Result<String, Failure> {
    let wrong = |why: &str| Failure::plain(CONFIG, format!("Error: '{url}' {why}"));
    let uri: ureq::http::Uri = url.parse().map_err(|_| wrong("is no address of HTTP"))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some() => Ok(url.trim_end_matches('/').to_owned()),
        _ => Err(wrong("is no address of HTTP")),
    }
}

#[cfg(test)]
mod tests {
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
        }
        let installed = [
            ("/etc/leveret/leveret.conf", "data_dir = /var/lib/leveret\n"),
            ("/var/lib/leveret/ctl.json", FILE),
        ];
        is("", &[], &installed, "http://127.0.0.1:25672", TOKEN);
        is("--data-dir d", &[], &installed, "http://127.0.0.1:15672", GUEST);
        for directory in CONTAINER_DATA {
            let file = format!("{directory}/ctl.json");
            is("", &[], &[(file.as_str(), FILE)], "http://127.0.0.1:25672", TOKEN);
        }
    }

    #[test]
    fn token_is_sent_to_its_own_node_only() {
        is("--http-url http://127.0.0.1:25672", &[], &[LOCAL], "http://127.0.0.1:25672", TOKEN);
        is("--http-url http://evil:25672", &[], &[LOCAL], "http://evil:25672", GUEST);
        is("-n rabbit@elsewhere", &[], &[LOCAL], "http://elsewhere:15672", GUEST);
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
    fn malformed_addresses_are_refused() {
        assert_eq!(found("--port many", &[], &[]), "Error: 'many' is no port");
        assert_eq!(found("--http-url host", &[], &[]), "Error: 'host' is no address of HTTP");
        let cacert = "--http-url https://h --cacert ca.pem";
        assert_eq!(found(cacert, &[], &[]), "Error: there are no certificates in 'ca.pem'");
        is("--http-url https://h:15671", &[], &[], "https://h:15671", GUEST);
    }
}
