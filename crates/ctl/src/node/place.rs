//! The place of a node: what the options, the environment and the machine say about its address and the login.

use std::path::{Path, PathBuf};

use line::setting_value;

use super::machine::{Environment, Local, other_host};
use crate::arguments::Parsed;
use crate::failure::{CONFIG, Failure};

/// Configuration of the node that a package has installed.
const INSTALLED_CONFIG: &str = "/etc/leveret/leveret.conf";

/// Data directories of the container image.
pub(super) const CONTAINER_DATA: [&str; 2] = ["/var/lib/leveret/data", "/var/lib/rabbitmq/leveret"];

/// Port of a node whose address has none.
pub(super) const HTTP_PORT: u16 = 15672;

/// The place of a node, and the login for it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) address: Address,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// The data directory of a node of this machine, which may be the one at the address.
    pub(super) directory: PathBuf,
    /// True if the name of the node is that of a node on another machine.
    pub(super) is_elsewhere: bool,
}

/// Address of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Address {
    /// Address of the API.
    Url(String),
    /// The address in the data directory that was asked for; there is no other.
    Directory,
    /// The address in the data directory of a node of this machine, or else the default one.
    Machine,
}

impl Place {
    /// The place in the options, or else in the environment, or else on this machine.
    ///
    /// # Errors
    /// Options or variables that are wrong, or a data directory that is not there.
    pub(super) fn of(options: &Parsed, environment: &Environment<'_>) -> Result<Self, Failure> {
        let option = |name: &str| options.text(name).map(str::to_owned);
        let variable = environment.variable;
        let given = |name: &str, other: &str| option(name).or_else(|| variable(other));
        let directory = data_dir(&given, environment);
        let asked = option("data-dir");
        if let Some(asked) = &asked
            && !(environment.is_directory)(Path::new(asked))
        {
            let problem = format!("Error: there is no data directory '{asked}' (see --data-dir)");
            return Err(Failure::plain(CONFIG, problem));
        }
        let is_by_option = option("host").or_else(|| option("port")).is_some();
        let address = if let Some(url) = option("http-url") {
            Address::Url(checked(&url)?)
        } else if is_by_option && let Some(url) = of_host(&given)? {
            Address::Url(url)
        } else if asked.is_some() {
            Address::Directory
        } else if let Some(url) = variable("LEVERET_HTTP_URL") {
            Address::Url(checked(&url)?)
        } else {
            of_host(&given)?.map_or(Address::Machine, Address::Url)
        };
        // A login of the environment belongs to another node.
        let is_by_directory = address == Address::Directory;
        let login = |name: &str, other: &str| match is_by_directory {
            true => option(name),
            false => given(name, other),
        };
        let (user, password) =
            (login("username", "LEVERET_USER"), login("password", "LEVERET_PASSWORD"));
        let host = option("node").filter(|_| !is_by_directory).and_then(|name| {
            let local = Local::read(&directory, environment);
            other_host(&name, local.as_ref(), environment)
        });
        let is_elsewhere = host.is_some();
        let address = match (address, host) {
            (Address::Machine, Some(host)) => Address::Url(format!("http://{host}:{HTTP_PORT}")),
            (address, _) => address,
        };
        Ok(Self { address, user, password, directory, is_elsewhere })
    }
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
fn of_host(given: &Given<'_>) -> Result<Option<String>, Failure> {
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
