//! Defaults of the container image: the paths of RabbitMQ's image, and safe access for the default user.
//!
//! The image sets `LEVERET_DEFAULTS=container`. Everything here gives way to files, other variables and the command
//! line.

use std::path::{Path, PathBuf};

use super::environment::{self, Lookup};
use super::settings::{Settings, Source};

/// Value of `LEVERET_DEFAULTS` in the image.
const CONTAINER: &str = "container";

/// The configuration file of RabbitMQ's image.
const CONFIG_FILE: &str = "/etc/rabbitmq/rabbitmq.conf";

/// The directory of further files.
const CONFIG_FILES: &str = "/etc/rabbitmq/conf.d";

/// A file of Erlang terms, which cannot be read.
const ADVANCED_CONFIG: &str = "/etc/rabbitmq/advanced.config";

/// The list of plugins that RabbitMQ's image enables.
const ENABLED_PLUGINS: &str = "/etc/rabbitmq/enabled_plugins";

/// Volume of the image, and of RabbitMQ's image, each with the data directory inside it. A volume is shared by
/// users, has `lost+found` or RabbitMQ's files; the directory inside is the broker's alone.
const DATA: (&str, &str) = ("/var/lib/leveret", "/var/lib/leveret/data");
const RABBITMQ_DATA: (&str, &str) = ("/var/lib/rabbitmq", "/var/lib/rabbitmq/leveret");

/// Port of the metrics, as in RabbitMQ's image.
const PROMETHEUS_PORT: &str = "15692";

/// Variables that old images of RabbitMQ read, each with the key to write instead. Ignoring one of them could admit
/// clients that it refuses.
const REFUSED: &[(&str, &str)] = &[
    ("RABBITMQ_DEFAULT_PASS_FILE", "default_pass in a mounted /etc/rabbitmq/conf.d/*.conf"),
    ("RABBITMQ_DEFAULT_USER_FILE", "default_user in a mounted /etc/rabbitmq/conf.d/*.conf"),
    ("RABBITMQ_MANAGEMENT_SSL_CACERTFILE", "management.ssl.cacertfile"),
    ("RABBITMQ_MANAGEMENT_SSL_CERTFILE", "management.ssl.certfile"),
    ("RABBITMQ_MANAGEMENT_SSL_FAIL_IF_NO_PEER_CERT", "management.ssl.fail_if_no_peer_cert"),
    ("RABBITMQ_MANAGEMENT_SSL_KEYFILE", "management.ssl.keyfile"),
    ("RABBITMQ_MANAGEMENT_SSL_VERIFY", "management.ssl.verify"),
    ("RABBITMQ_SSL_CACERTFILE", "ssl_options.cacertfile"),
    ("RABBITMQ_SSL_CERTFILE", "ssl_options.certfile"),
    ("RABBITMQ_SSL_FAIL_IF_NO_PEER_CERT", "ssl_options.fail_if_no_peer_cert"),
    ("RABBITMQ_SSL_KEYFILE", "ssl_options.keyfile"),
    ("RABBITMQ_SSL_VERIFY", "ssl_options.verify"),
    ("RABBITMQ_VM_MEMORY_HIGH_WATERMARK", "vm_memory_high_watermark.relative"),
];

/// Variables for the Erlang machine.
const WITHOUT_EFFECT: &[&str] = &["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"];

/// The rule for logins of the default user from other machines.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum DefaultUserAccess {
    /// `loopback_users` decides.
    #[default]
    LoopbackUsers,
    /// Also from other machines, provided that the user has the configured password.
    Anywhere,
    /// From this machine only, because nobody has chosen the password.
    ThisMachine,
}

/// The files around the broker.
pub(crate) trait Files {
    /// True if there is something at the path.
    fn exists(&self, path: &Path) -> bool;
    /// True if something is mounted at the path.
    fn is_mounted(&self, path: &Path) -> bool;
    /// True if the file has nothing but an empty list of Erlang.
    fn is_empty_list(&self, path: &Path) -> bool;
}

/// The files of this process.
#[derive(Debug)]
pub(crate) struct OfSystem;

impl Files for OfSystem {
    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn is_mounted(&self, path: &Path) -> bool {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        // The fifth word is the place of the mount.
        let mut places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
        places.any(|place| Path::new(place) == path)
    }

    fn is_empty_list(&self, path: &Path) -> bool {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().collect::<String>() == "[]."
    }
}

/// True if the environment asks for these defaults. Another value is a problem.
pub(crate) fn is_asked_for(settings: &mut Settings, lookup: Lookup<'_>) -> bool {
    match lookup("LEVERET_DEFAULTS").as_deref() {
        None | Some("") => false,
        Some(CONTAINER) => true,
        Some(other) => {
            let source = Source::Environment("LEVERET_DEFAULTS");
            settings.problem(&source, &format!("the only value is '{CONTAINER}', got '{other}'"));
            false
        }
    }
}

/// The configuration files: those that the environment names, and for others the usual ones if they exist.
pub(crate) fn files(lookup: Lookup<'_>, system: &dyn Files) -> Vec<PathBuf> {
    let usual = |path: &str| Some(PathBuf::from(path)).filter(|path| system.exists(path));
    let main = environment::main_file(lookup).or_else(|| usual(CONFIG_FILE));
    let more = environment::more_files(lookup).or_else(|| usual(CONFIG_FILES));
    let advanced = usual(ADVANCED_CONFIG).filter(|path| !system.is_empty_list(path));
    main.into_iter().chain(more).chain(advanced).collect()
}

/// Sets the defaults, before any other source is read.
pub(crate) fn set_defaults(settings: &mut Settings, lookup: Lookup<'_>, system: &dyn Files) {
    // Compose files for RabbitMQ mount a volume there; elsewhere the data would end with the container.
    let is_rabbitmqs =
        system.is_mounted(Path::new(RABBITMQ_DATA.0)) && !system.exists(Path::new(DATA.1));
    let data_dir = if is_rabbitmqs { RABBITMQ_DATA.1 } else { DATA.1 };
    settings.set("data_dir", data_dir, Source::Container);
    settings.set("prometheus.tcp.port", PROMETHEUS_PORT, Source::Container);
    let value = |name: &str| lookup(name).filter(|value| !value.is_empty());
    for (name, key) in REFUSED {
        if value(name).is_some() {
            let problem = format!("this variable is not read: write {key}");
            settings.problem(&Source::Environment(name), &problem);
        }
    }
    for name in WITHOUT_EFFECT.iter().filter(|name| value(name).is_some()) {
        settings.warn(format!("environment {name} has no effect: there is no Erlang"));
    }
    if system.exists(Path::new(ENABLED_PLUGINS)) {
        settings.warn(format!(
            "{ENABLED_PLUGINS} has no effect: the management API, metrics, delayed and hashing exchanges are always \
             enabled, other plugins do not exist"
        ));
    }
}

/// The rule for the default user, after all sources were read: a password that somebody has chosen may be used from
/// other machines, the well-known one may not.
pub(crate) fn default_user_access(settings: &Settings) -> DefaultUserAccess {
    if settings.source_of("loopback_users").is_some() {
        return DefaultUserAccess::LoopbackUsers;
    }
    if settings.source("default_pass").is_some() {
        return DefaultUserAccess::Anywhere;
    }
    DefaultUserAccess::ThisMachine
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ConfigError};

    /// Files, of which those with an `@` are mounts.
    struct Given(&'static [&'static str]);

    impl Files for Given {
        fn exists(&self, path: &Path) -> bool {
            self.0.iter().any(|one| Path::new(one.trim_start_matches('@')) == path)
        }

        fn is_mounted(&self, path: &Path) -> bool {
            self.0.iter().any(|one| one.strip_prefix('@').is_some_and(|one| Path::new(one) == path))
        }

        fn is_empty_list(&self, _: &Path) -> bool {
            false
        }
    }

    fn config(
        variables: &[(&str, &str)],
        file: &str,
        system: &Given,
    ) -> Result<Config, ConfigError> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let mut settings = Settings::default();
        assert!(is_asked_for(&mut settings, &|_| Some(CONTAINER.to_owned())));
        set_defaults(&mut settings, &lookup, system);
        settings.read_text(file, Path::new("rabbitmq.conf"), 0);
        environment::apply(&mut settings, &lookup);
        let access = default_user_access(&settings);
        settings.into_config().map(|config| Config { default_user_access: access, ..config })
    }

    #[test]
    fn data_are_where_a_volume_is_mounted() {
        let data_dir = |system: &'static [&'static str]| {
            config(&[], "", &Given(system)).unwrap().data_dir.display().to_string()
        };
        assert_eq!(data_dir(&[]), "/var/lib/leveret/data");
        assert_eq!(data_dir(&["@/var/lib/leveret"]), "/var/lib/leveret/data");
        assert_eq!(data_dir(&["@/var/lib/rabbitmq"]), "/var/lib/rabbitmq/leveret");
        // Docker mounts an anonymous volume beside it.
        let both = &["@/var/lib/rabbitmq", "@/var/lib/leveret"];
        assert_eq!(data_dir(both), "/var/lib/rabbitmq/leveret");
        let moved = &["@/var/lib/rabbitmq", "@/var/lib/leveret", "/var/lib/leveret/data"];
        assert_eq!(data_dir(moved), "/var/lib/leveret/data");
        let set = config(&[("LEVERET_DATA_DIR", "/d")], "", &Given(both)).unwrap();
        assert_eq!(set.data_dir, Path::new("/d"));
    }

    #[test]
    fn files_of_rabbitmqs_image_are_read_if_they_exist() {
        let read = |variables: &[(&str, &str)], system| {
            let lookup = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            files(&lookup, &Given(system))
        };
        assert!(read(&[], &[]).is_empty());
        let all = &[CONFIG_FILE, CONFIG_FILES, ADVANCED_CONFIG];
        assert_eq!(read(&[], all), all.map(PathBuf::from));
        let other = read(&[("RABBITMQ_CONFIG_FILE", "/other.conf")], &[CONFIG_FILE, CONFIG_FILES]);
        assert_eq!(other, [Path::new("/other.conf"), Path::new(CONFIG_FILES)]);
    }

    #[test]
    fn well_known_password_is_for_this_machine_only() {
        let access = |variables: &[(&str, &str)], file: &str| {
            config(variables, file, &Given(&[])).unwrap().default_user_access
        };
        assert_eq!(access(&[], ""), DefaultUserAccess::ThisMachine);
        let user = ("RABBITMQ_DEFAULT_USER", "bob");
        assert_eq!(access(&[user], ""), DefaultUserAccess::ThisMachine);
        let password = ("RABBITMQ_DEFAULT_PASS", "x");
        assert_eq!(access(&[password], ""), DefaultUserAccess::Anywhere);
        assert_eq!(access(&[], "default_pass = x\n"), DefaultUserAccess::Anywhere);
        assert_eq!(access(&[], "loopback_users = none\n"), DefaultUserAccess::LoopbackUsers);
        let kept = "loopback_users.guest = true\n";
        assert_eq!(access(&[password], kept), DefaultUserAccess::LoopbackUsers);
    }

    #[test]
    fn other_sources_win_over_the_image() {
        let by_file = config(&[], "prometheus.tcp.port = 9\n", &Given(&[])).unwrap();
        assert_eq!(by_file.prometheus.port, Some(9));
        let by_image = config(&[], "", &Given(&[])).unwrap();
        assert_eq!(by_image.prometheus.port, Some(15692));
        let shown: Vec<String> = by_image.effective.iter().map(ToString::to_string).collect();
        assert!(shown.iter().any(|line| line.ends_with("# container image")), "{shown:?}");
    }

    #[test]
    fn variables_of_old_images_are_refused() {
        let wrong = config(&[("RABBITMQ_VM_MEMORY_HIGH_WATERMARK", "0.4")], "", &Given(&[]));
        assert_eq!(
            wrong.unwrap_err().problems,
            ["environment RABBITMQ_VM_MEMORY_HIGH_WATERMARK: this variable is not read: write \
              vm_memory_high_watermark.relative"]
        );
        let flags = [("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-rabbit x")];
        let warned = config(&flags, "", &Given(&[ENABLED_PLUGINS])).unwrap().warnings;
        assert_eq!(warned.len(), 2, "{warned:?}");
        let mut settings = Settings::default();
        assert!(!is_asked_for(&mut settings, &|_| Some("contaner".to_owned())));
        assert_eq!(
            settings.into_config().unwrap_err().problems,
            ["environment LEVERET_DEFAULTS: the only value is 'container', got 'contaner'"]
        );
    }
}
