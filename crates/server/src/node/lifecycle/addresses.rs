//! Addresses of the listeners, handed from one image of the process to the next.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::config::{Config, MaybeListener};
use crate::snapshot::node::Listener;

/// Environment variables that make the next image begin stopped, or start, with the addresses to listen on.
const STOPPED_ON: &str = "LEVERET_STOPPED_ON";
const STARTS_ON: &str = "LEVERET_STARTS_ON";

/// Names of the protocols of listeners.
const PROTOCOLS: [&str; 6] = ["amqp", "amqp/ssl", "http", "https", "http/prometheus", "clustering"];

/// The addresses of the current phase, on which the next one listens, too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Addresses(Vec<Listener>);

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Listener { protocol, address }) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{protocol}={address}")?;
        }
        Ok(())
    }
}

impl Addresses {
    pub(crate) fn new(listeners: Vec<Listener>) -> Self {
        Self(listeners)
    }

    /// The addresses of a configuration.
    pub(crate) fn of(config: &Config) -> Self {
        let all = |protocol, addresses: &[SocketAddr]| {
            let listener = |address: &SocketAddr| Listener { protocol, address: *address };
            addresses.iter().map(listener).collect::<Vec<_>>()
        };
        let one = |protocol, address: Option<SocketAddr>| all(protocol, address.as_slice());
        Self(
            [
                all("amqp", &config.amqp_listeners),
                all("amqp/ssl", &config.amqps_listeners),
                one("http", config.http_listener()),
                one("https", config.https.address()),
                one("http/prometheus", config.prometheus.address()),
                all("clustering", &config.cluster.listen_on(&config.full_node_name())),
            ]
            .concat(),
        )
    }

    fn parse(text: &str) -> Option<Self> {
        let listener = |text: &str| {
            let (protocol, address) = text.split_once('=')?;
            let protocol = PROTOCOLS.into_iter().find(|known| *known == protocol)?;
            Some(Listener { protocol, address: address.parse().ok()? })
        };
        text.split(',').map(listener).collect::<Option<_>>().map(Self)
    }

    fn speaking(&self, protocol: &str) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().filter(move |one| one.protocol == protocol).map(|one| one.address)
    }

    /// Sets the addresses in a configuration.
    fn put_into(&self, config: &mut Config) {
        config.amqp_listeners = self.speaking("amqp").collect();
        config.amqps_listeners = self.speaking("amqp/ssl").collect();
        let links: Vec<SocketAddr> = self.speaking("clustering").collect();
        // A node that was in no cluster may have joined one.
        if !links.is_empty() {
            config.cluster.listeners = links;
        }
        let one = |protocol| self.speaking(protocol).next();
        let listeners = [
            (&mut config.http, one("http")),
            (&mut config.https, one("https")),
            (&mut config.prometheus, one("http/prometheus")),
        ];
        for (listener, address) in listeners {
            if let Some(address) = address {
                *listener = MaybeListener { ip: address.ip(), port: Some(address.port()) };
            }
        }
    }

    /// Replaces the process by a stopped one. Returns only if that fails.
    pub(crate) fn begin_stopped(&self) -> io::Error {
        self.begin(STOPPED_ON)
    }

    /// Replaces the process by one that starts. Returns only if that fails.
    pub(crate) fn begin_anew(&self) -> io::Error {
        self.begin(STARTS_ON)
    }

    fn begin(&self, variable: &str) -> io::Error {
        let program = match std::env::current_exe() {
            Ok(program) => program,
            Err(error) => return error,
        };
        let mut words = std::env::args_os();
        let mut command = Command::new(program);
        if let Some(name) = words.next() {
            command.arg0(name);
        }
        for other in [STOPPED_ON, STARTS_ON] {
            command.env_remove(other);
        }
        command.args(words).env(variable, self.to_string()).exec()
    }
}

/// Applies the addresses left by the previous image; true if this image begins stopped.
pub(crate) fn begins_stopped(config: &mut Config) -> bool {
    let left = |variable| std::env::var(variable).ok().and_then(|text| Addresses::parse(&text));
    let stopped_on = left(STOPPED_ON);
    let is_stopped = stopped_on.is_some();
    if let Some(addresses) = stopped_on.or_else(|| left(STARTS_ON)) {
        addresses.put_into(config);
    }
    is_stopped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_pass_through_the_environment() {
        let mut config = Config::default();
        let text =
            "amqp=127.0.0.1:5,amqp=[::]:6,amqp/ssl=[::1]:7,http=127.0.0.1:8,https=127.0.0.1:9";
        let addresses = Addresses::parse(text).unwrap();
        assert_eq!(addresses.to_string(), text);
        addresses.put_into(&mut config);
        assert_eq!(Addresses::of(&config), addresses);
        for wrong in ["", "127.0.0.1:1", "amqp=x", "smtp=127.0.0.1:1", "amqp=127.0.0.1:5,"] {
            assert_eq!(Addresses::parse(wrong), None, "{wrong}");
        }
    }
}
