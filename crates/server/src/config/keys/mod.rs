//! The tables of keys. A test compares them with `docs/reference/configuration.md`.

mod cluster;
mod limits;
mod listeners;
mod log;
mod tls;
mod users;
mod without_effect;

use super::Config;
use super::file::KeyName;
use super::key::{Effect, Key, Match};

/// Every key, in the order of display.
pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    let tables = [listeners::KEYS, tls::KEYS, limits::KEYS, users::KEYS, log::KEYS, cluster::KEYS];
    tables.into_iter().chain([without_effect::KEYS]).flatten()
}

/// The key that matches this name.
pub(super) fn find(name: &KeyName) -> Option<(&'static Key, Match)> {
    all().find_map(|key| key.matches(name).map(|matched| (key, matched)))
}

/// The names of keys without variable parts, as suggestions for misspelt names.
pub(super) fn plain_names() -> impl Iterator<Item = &'static str> {
    let known = all().filter(|key| !matches!(key.effect, Effect::Refused(_)));
    known
        .flat_map(|key| std::iter::once(key.name).chain(key.aliases.iter().copied()))
        .filter(|name| !name.contains(['$', '*']))
}

/// The key of which a name is only the beginning: `vm_memory_high_watermark` of
/// `vm_memory_high_watermark.relative`. Of several, one that accepts the value.
pub(super) fn longer_name(beginning: &str, value: &str) -> Option<&'static str> {
    let is_longer =
        |name: &&str| name.strip_prefix(beginning).is_some_and(|rest| rest.starts_with('.'));
    let accepts = |name: &&str| match find(&KeyName::new(name)).map(|(key, _)| key.effect) {
        Some(Effect::Sets(set)) => set(&mut Config::default(), "", value).is_ok(),
        _ => false,
    };
    let all = || plain_names().filter(is_longer);
    all().find(accepts).or_else(|| all().next())
}

/// Several keys that form one list. Any entry replaces the whole default.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    /// The prefix of the keys.
    pub(super) prefix: &'static str,
    /// The keys and values of the default.
    pub(super) default: &'static [(&'static str, &'static str)],
    /// Removes the default entries.
    pub(super) clear: fn(&mut Config),
}

/// All lists.
pub(super) const LISTS: &[List] = &[
    List {
        prefix: "listeners.tcp",
        default: &[("listeners.tcp.default", "5672")],
        clear: |config| config.amqp_listeners.clear(),
    },
    List { prefix: "listeners.ssl", default: &[], clear: |config| config.amqps_listeners.clear() },
    List {
        prefix: "listeners.cluster",
        default: &[],
        clear: |config| config.cluster.listeners.clear(),
    },
    List {
        prefix: "cluster_formation.classic_config.nodes",
        default: &[],
        clear: |config| config.cluster.nodes.clear(),
    },
    List {
        prefix: "auth_mechanisms",
        default: &[("auth_mechanisms.1", "PLAIN"), ("auth_mechanisms.2", "AMQPLAIN")],
        clear: |config| config.auth_mechanisms.clear(),
    },
    List {
        prefix: "ssl_options.versions",
        default: &[("ssl_options.versions.1", "tlsv1.3"), ("ssl_options.versions.2", "tlsv1.2")],
        clear: |config| config.tls.versions.clear(),
    },
    List {
        prefix: "management.ssl.versions",
        default: &[
            ("management.ssl.versions.1", "tlsv1.3"),
            ("management.ssl.versions.2", "tlsv1.2"),
        ],
        clear: |config| config.https_tls.versions.clear(),
    },
    List {
        prefix: "default_user_tags",
        default: &[("default_user_tags.administrator", "true")],
        clear: |config| config.default_user.tags.clear(),
    },
    List {
        prefix: "loopback_users",
        default: &[("loopback_users.guest", "true")],
        clear: |config| config.loopback_users.clear(),
    },
];

/// Pairs of keys of which the first takes precedence.
pub(super) const EITHER: &[(&str, &str)] = &[
    ("vm_memory_high_watermark.absolute", "vm_memory_high_watermark.relative"),
    ("disk_free_limit.absolute", "disk_free_limit.relative"),
];
