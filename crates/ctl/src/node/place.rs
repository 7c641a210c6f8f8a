//! The place of a node: what the options, the environment and the machine say about its address and the login.

use std::path::{Path, PathBuf};

use line::setting_value;

use super::contexts::{Context, Contexts};
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
    /// File with the authorities that may sign the certificate of the node.
    pub(super) cacert: Option<String>,
    /// True if any certificate is accepted.
    pub(super) is_insecure: bool,
    /// Name of the context that says all this.
    pub(super) context: Option<String>,
    /// The data directory of a node of this machine, which may be the one at the address.
    pub(super) directory: PathBuf,
    /// The address and token that the node of that directory has written, if one runs there.
    pub(super) local: Option<Local>,
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
        let context = context(options, environment)?;
        let of_context = |field: fn(&Context) -> &Option<String>| {
            context.as_ref().and_then(|(_, context)| field(context).clone())
        };
        let asked = option("data-dir").or_else(|| of_context(|context| &context.data_dir));
        if let Some(asked) = &asked
            && !(environment.is_directory)(Path::new(asked))
        {
            let source = context.as_ref().map_or_else(
                || "see --data-dir".to_owned(),
                |(name, _)| format!("of the context '{name}'"),
            );
            let problem = format!("Error: there is no data directory '{asked}' ({source})");
            return Err(Failure::plain(CONFIG, problem));
        }
        let by_context = of_context(|context| &context.http_url);
        let address = if let Some(url) = url_of_options(options, &given)? {
            Address::Url(url)
        } else if asked.is_some() {
            Address::Directory
        } else if option("config").is_some() {
            Address::Machine
        } else if let Some(url) = by_context.or_else(|| variable("LEVERET_HTTP_URL")) {
            Address::Url(checked(&url)?)
        } else {
            of_host(&given)?.map_or(Address::Machine, Address::Url)
        };
        let directory = match &asked {
            Some(asked) => PathBuf::from(asked),
            None => data_dir(options.text("config"), environment),
        };
        let local = Local::read(&directory, environment);
        let is_by_directory = address == Address::Directory;
        let kept = context.as_ref().map(|(_, context)| context);
        let (user, password) = login(options, variable, kept, is_by_directory);
        let host = option("node")
            .filter(|_| !is_by_directory)
            .and_then(|name| other_host(&name, local.as_ref(), environment));
        let address = match (address, host) {
            (Address::Machine, Some(host)) => Address::Url(format!("http://{host}:{HTTP_PORT}")),
            (address, _) => address,
        };
        let cacert = option("cacert").or_else(|| of_context(|context| &context.cacert));
        let is_insecure = options.flag("insecure") == Some(true)
            || context.as_ref().is_some_and(|(_, context)| context.is_insecure);
        let context = context.map(|(name, _)| name);
        Ok(Self { address, user, password, cacert, is_insecure, directory, local, context })
    }
}

/// User and password. A login of the environment belongs to another node than a directory or a context; but the
/// password for the user of a context may come from there.
fn login(
    options: &Parsed,
    variable: &dyn Fn(&str) -> Option<String>,
    context: Option<&Context>,
    is_by_directory: bool,
) -> (Option<String>, Option<String>) {
    let option = |name: &str| options.text(name).map(str::to_owned);
    let kept_user = context.and_then(|context| context.username.clone());
    let is_kept = option("username").is_none_or(|user| Some(user) == kept_user);
    let kept_password = context.and_then(|context| context.password.clone()).filter(|_| is_kept);
    let has_user = !is_by_directory && context.is_none();
    let has_password = has_user || !is_by_directory && kept_user.is_some();
    let user = || variable("LEVERET_USER").filter(|_| has_user);
    let password = || variable("LEVERET_PASSWORD").filter(|_| has_password);
    (
        option("username").or(kept_user).or_else(user),
        option("password").or(kept_password).or_else(password),
    )
}

/// The address in the options.
///
/// # Errors
/// If it is none.
pub(crate) fn address_given(options: &Parsed) -> Result<Option<String>, Failure> {
    url_of_options(options, &|name, _| options.text(name).map(str::to_owned))
}

fn url_of_options(options: &Parsed, given: &Given<'_>) -> Result<Option<String>, Failure> {
    match options.text("http-url") {
        Some(url) => checked(url).map(Some),
        None if options.text("host").or_else(|| options.text("port")).is_some() => of_host(given),
        None => Ok(None),
    }
}

/// The context that the options name; or that in use, if neither options nor the environment name a node.
fn context(
    options: &Parsed,
    environment: &Environment<'_>,
) -> Result<Option<(String, Context)>, Failure> {
    let has_option = |names: &[&str]| names.iter().any(|name| options.text(name).is_some());
    let has_address = has_option(&["http-url", "host", "port", "data-dir"]);
    if let Some(name) = options.text("context") {
        if has_address || has_option(&["config"]) {
            let problem = "Error: --context names a node, and another option as well";
            return Err(Failure::plain(CONFIG, problem));
        }
        let contexts = Contexts::read(environment)?;
        return Ok(Some((name.to_owned(), contexts.named(name)?.clone())));
    }
    let is_set = VARIABLES.iter().any(|name| (environment.variable)(name).is_some());
    if has_address || has_option(&["node", "config"]) || is_set {
        return Ok(None);
    }
    let contexts = Contexts::read(environment)?;
    match &contexts.used {
        Some(name) => Ok(Some((name.clone(), contexts.named(name)?.clone()))),
        None => Ok(None),
    }
}

/// Variables that name a node.
const VARIABLES: [&str; 5] = [
    "LEVERET_HTTP_URL",
    "LEVERET_HTTP_HOST",
    "LEVERET_HTTP_PORT",
    "LEVERET_DATA_DIR",
    "LEVERET_CONFIG_FILE",
];

type Given<'a> = dyn Fn(&str, &str) -> Option<String> + 'a;

/// Data directory of a node on this machine: that in the configuration file of the options, or else of the environment.
fn data_dir(config: Option<&str>, environment: &Environment<'_>) -> PathBuf {
    let variable = |name| (environment.variable)(name).filter(|_| config.is_none());
    if let Some(directory) = variable("LEVERET_DATA_DIR") {
        return PathBuf::from(directory);
    }
    let here = PathBuf::from("data");
    let config = config.map(str::to_owned).or_else(|| variable("LEVERET_CONFIG_FILE"));
    let configured = match config {
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
