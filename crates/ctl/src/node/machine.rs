//! The environment of the process, the file of a node that runs on this machine, and the names of nodes.

use std::path::Path;

use serde_json::Value;

/// Environment of the process.
pub(crate) struct Environment<'a> {
    /// A variable of the environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file.
    pub(crate) read: &'a dyn Fn(&Path) -> Option<String>,
    /// The name of this machine.
    pub(crate) host: String,
    /// True for the path of a directory.
    pub(crate) is_directory: &'a dyn Fn(&Path) -> bool,
}

/// Calls a function with the environment of this process.
pub(crate) fn with_environment<T>(call: impl FnOnce(&Environment<'_>) -> T) -> T {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    call(&Environment {
        variable: &|name| std::env::var(name).ok().filter(|value| !value.is_empty()),
        read: &|path| std::fs::read_to_string(path).ok(),
        host: host.trim().to_owned(),
        is_directory: &|path| path.is_dir(),
    })
}

/// Content of `ctl.json` in the data directory of a running node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Local {
    pub(super) url: String,
    pub(super) name: String,
    pub(super) token: String,
}

impl Local {
    /// The file in a data directory, if a node runs there.
    pub(super) fn read(directory: &Path, environment: &Environment<'_>) -> Option<Self> {
        Self::parse(&(environment.read)(&directory.join("ctl.json"))?)
    }

    fn parse(text: &str) -> Option<Self> {
        let file: Value = serde_json::from_str(text).ok()?;
        let text = |key| file.get(key)?.as_str().map(str::to_owned);
        Some(Self { url: text("http")?, name: text("node")?, token: text("token")? })
    }
}

/// The name of a node without its host, and the host.
pub(super) fn parts(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((local, host)) => (local, Some(host)),
        None => (name, None),
    }
}

pub(super) fn is_this_machine(host: &str, environment: &Environment<'_>) -> bool {
    let short = |host: &str| host.split('.').next().unwrap_or_default().to_owned();
    matches!(host, "localhost" | "127.0.0.1" | "::1") || short(host) == short(&environment.host)
}

/// The host of a node that is on another machine.
pub(super) fn other_host(
    name: &str,
    local: Option<&Local>,
    environment: &Environment<'_>,
) -> Option<String> {
    let host = parts(name).1?;
    let is_known = local.is_some_and(|local| parts(&local.name).1 == Some(host));
    (!is_known && !is_this_machine(host, environment)).then(|| host.to_owned())
}

/// True for the usual name of a node, if its host is this machine.
pub(super) fn is_usual_here(asked: &str, environment: &Environment<'_>) -> bool {
    let (local, host) = parts(asked);
    is_usual(local) && host.is_none_or(|host| is_this_machine(host, environment))
}

fn is_usual(local: &str) -> bool {
    matches!(local, "rabbit" | "leveret")
}

/// True if a node that calls itself `name`, and has its API on the host `at`, is the one that was asked for.
pub(super) fn is_name_of(asked: &str, name: &str, at: &str, environment: &Environment<'_>) -> bool {
    let ((local, host), (own, own_host)) = (parts(asked), parts(name));
    let is_local = local == own || is_usual(local) && is_usual(own);
    let is_its_host = |host: &str| {
        Some(host) == own_host
            || host == at
            || is_this_machine(host, environment) && is_this_machine(at, environment)
    };
    asked == name || is_local && host.is_none_or(is_its_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_has_the_name_that_was_asked_for() {
        let environment = Environment {
            variable: &|_| None,
            read: &|_| None,
            host: "box.example.org".to_owned(),
            is_directory: &|_| true,
        };
        let is = |asked, name, at| is_name_of(asked, name, at, &environment);
        assert!(is("rabbit@a", "rabbit@a", "10.0.0.1") && is("a", "a@box", "127.0.0.1"));
        assert!(
            is("rabbit@a", "leveret@localhost", "a")
                && is("rabbit@localhost", "leveret@box", "::1")
        );
        assert!(!is("rabbit@b", "rabbit@a", "10.0.0.1") && !is("rabbit@b", "rabbit@a", "a"));
        assert!(!is("rabbit@localhost", "rabbit@a", "a") && !is("rabbit", "a@box", "127.0.0.1"));
        assert!(!is("b@localhost", "a@localhost", "127.0.0.1"));
    }
}
