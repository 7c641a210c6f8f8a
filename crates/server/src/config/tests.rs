//! Tests of every key with valid and invalid values, and of precedence.

use std::path::Path;

use super::*;

pub(super) fn parse(text: &str) -> Result<Config, ConfigError> {
    let mut settings = Settings::default();
    settings.read_text(text, Path::new("a.conf"), 0);
    settings.into_config()
}

pub(super) fn problem(text: &str) -> String {
    parse(text).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn keys_have_rabbitmqs_names() {
    let config = parse(
        "# a comment\n\
         listeners.tcp.default = 5673\n\
         \n\
         management.tcp.port = 15673   # another\n\
         heartbeat = 30\n\
         max_channels_per_connection = 128\n\
         default_pass = 's#cret'\n\
         default_user_tags.administrator = false\n\
         default_user_tags.monitoring = true\n\
         default_users.bob\\.smith.password = secret\n\
         default_users.bob\\.smith.tags = monitoring, management\n\
         loopback_users = none\n\
         disk_free_limit.relative = 1.5\n",
    )
    .unwrap();
    assert_eq!(config.amqp_listeners, ["[::]:5673".parse().unwrap()]);
    assert_eq!(config.http_listener(), Some("[::]:15673".parse().unwrap()));
    assert_eq!(config.session.heartbeat_s, 30);
    assert_eq!(config.session.channel_max, 128);
    assert_eq!(config.default_user.password, "s#cret");
    assert_eq!(config.default_user.tags, ["monitoring"]);
    let bob = &config.default_users["bob.smith"];
    assert_eq!(
        (bob.password.as_deref(), bob.tags.join("+").as_str()),
        (Some("secret"), "monitoring+management")
    );
    assert!(config.loopback_users.is_empty());
    assert_eq!(config.disk_free_limit, DiskFreeLimit::Relative(1.5));
}

/// For each key with an effect: valid values, and invalid ones.
pub(super) const VALUES: &[(&str, &[&str], &[&str])] = &[
    ("listeners.tcp", &["none"], &["5672", "all"]),
    ("listeners.tcp.1", &["5672", "127.0.0.1:0", "::1:5672", "[::1]:5672"], &["x", "70000"]),
    ("listeners.ssl", &["none"], &["5671"]),
    ("listeners.ssl.1", &[], &["x", "1:2:3:4"]),
    ("management.tcp.ip", &["127.0.0.1", "::"], &["localhost", "1.2.3"]),
    ("management.tcp.port", &["0", "65535"], &["65536", "-1", "http"]),
    ("management.listener.port", &["15672"], &["x"]),
    ("management.ssl.ip", &["127.0.0.1"], &["x"]),
    ("management.ssl.port", &[], &["70000"]),
    ("management.path_prefix", &["/rabbit", "/a/b-c/"], &["rabbit", "/", "/a b", "//a", "/../a"]),
    ("prometheus.tcp.ip", &["127.0.0.1"], &["x"]),
    ("prometheus.tcp.port", &["15692"], &["x"]),
    ("handshake_timeout", &["1", "10000", "infinity"], &["0", "10s"]),
    ("ssl_options.cacertfile", &["Cargo.toml"], &["no-such-file"]),
    ("ssl_options.certfile", &["Cargo.toml"], &["no-such-file"]),
    ("ssl_options.keyfile", &["Cargo.toml"], &["no-such-file"]),
    ("ssl_options.password", &["secret"], &[]),
    ("ssl_options.verify", &["verify_peer", "verify_none"], &["true"]),
    ("ssl_options.fail_if_no_peer_cert", &["true", "off"], &["maybe"]),
    ("ssl_options.versions.1", &["tlsv1.2", "tlsv1.3"], &["tlsv1.1", "sslv3"]),
    ("ssl_handshake_timeout", &["1", "5000"], &["0", "infinity"]),
    ("ssl_cert_login_from", &["common_name", "subject_alt_name"], &["name"]),
    ("ssl_cert_login_san_type", &["dns", "email", "uri", "ip"], &["other"]),
    ("ssl_cert_login_san_index", &["0", "3"], &["first"]),
    ("management.ssl.cacertfile", &["Cargo.toml"], &["no-such-file"]),
    ("management.ssl.certfile", &["Cargo.toml"], &["no-such-file"]),
    ("management.ssl.keyfile", &["Cargo.toml"], &["no-such-file"]),
    ("management.ssl.password", &["secret"], &[]),
    ("management.ssl.verify", &["verify_peer"], &["yes"]),
    ("management.ssl.fail_if_no_peer_cert", &["false"], &["2"]),
    ("management.ssl.versions.1", &["tlsv1.3"], &["tlsv1"]),
    ("heartbeat", &["0", "65535"], &["65536", "soon", "1.5"]),
    ("channel_max", &["0", "65535"], &["65536"]),
    ("max_channels_per_connection", &["9"], &["-9"]),
    ("frame_max", &["8192", "4294967295"], &["8191", "4294967296"]),
    ("max_message_size", &["1", "536870912"], &["0", "536870913", "1MB"]),
    ("management.login_session_timeout", &["1", "527040"], &["0", "527041", "8h"]),
    ("management.http.max_body_size", &["0", "209715200"], &["209715201", "-1", "10MB"]),
    ("connection_max", &["0", "1000", "infinity"], &["unlimited"]),
    ("max_connections", &["7"], &["x"]),
    ("durability", &["fsync", "os"], &["none"]),
    ("collect_statistics_interval", &["100", "86400000"], &["99", "86400001", "often"]),
    ("consumer_timeout", &["1", "undefined", "infinity", "false"], &["0", "never"]),
    ("consumer_max_per_channel", &["1", "infinity"], &["0"]),
    ("deprecated_features.permit.global_qos", &["true", "false"], &["deny"]),
    ("vm_memory_high_watermark.relative", &["0", "0.4", "1"], &["1.1", "-0.1", "NaN", "40%"]),
    ("vm_memory_high_watermark.absolute", &["2GB", "512MiB", "1024"], &["2XB", "1.5GB"]),
    ("vm_memory_high_watermark_paging_ratio", &["0.5"], &["2"]),
    ("total_memory_available_override_value", &["4GiB"], &["much"]),
    ("disk_free_limit.absolute", &["50MB", "0"], &["x"]),
    ("disk_free_limit.relative", &["0", "1.5"], &["-1", "inf"]),
    ("data_dir", &["/var/lib/leveret"], &[]),
    ("nodename", &["rabbit", "rabbit@host-1.example"], &["a b", "@host", "a@"]),
    ("cluster_name", &["any name"], &[]),
    ("listeners.cluster", &["none"], &["25672"]),
    ("listeners.cluster.1", &["25672", "127.0.0.1:26721"], &["x"]),
    (
        "cluster_formation.peer_discovery_backend",
        &["classic_config", "rabbit_peer_discovery_classic_config"],
        &["DNS", "rabbit_peer_discovery_k8s", "etcd", "consul"],
    ),
    ("cluster_formation.dns.hostname", &["nodes", "nodes.example."], &["a b", "a:1"]),
    ("cluster_formation.target_cluster_size_hint", &["1", "7"], &["0", "8", "three"]),
    (
        "cluster_formation.classic_config.nodes.1",
        &[],
        &["a", "@h", "a@", "a@h:x", "a@h:0", "a@h:70000", "a b@h", "a@[::1]:1"],
    ),
    ("cluster.secret_file", &["Cargo.toml"], &["no-such-file"]),
    ("cluster.secret", &["enough letters for all"], &[]),
    ("cluster.tls.certfile", &[], &["no-such-file"]),
    ("cluster.tls.keyfile", &[], &["no-such-file"]),
    ("cluster.tls.password", &["secret"], &[]),
    ("cluster.tls.cacertfile", &[], &["no-such-file"]),
    ("cluster.tls.required", &["false"], &["maybe"]),
    ("cluster.replace_lost_member", &["true"], &["if lost"]),
    ("cluster.default_replicas", &["1", "7"], &["0", "8", "all"]),
    ("cluster.record_level", &["1", "2"], &["0", "3", "newest"]),
    ("cluster.auto_level", &["false"], &["later"]),
    ("raft.log_retention", &["0", "2GiB"], &["much"]),
    ("raft.shipment_bandwidth", &["1MiB"], &["0", "much"]),
    ("raft.disk_stall_timeout", &["500", "600000"], &["499", "infinity"]),
    ("identity.product", &["RabbitMQ", "Leveret"], &[]),
    ("identity.version", &["4.3.6", "0.1.0"], &["4.3", "v4.3.6"]),
    (
        "auth_mechanisms.1",
        &["PLAIN", "AMQPLAIN", "ANONYMOUS", "EXTERNAL", "RABBIT-CR-DEMO"],
        &["plain", "GSSAPI"],
    ),
    ("anonymous_login_user", &["guest", "none"], &[]),
    ("anonymous_login_pass", &["secret"], &[]),
    ("auth_backends.1", &["internal"], &["ldap", "rabbit_auth_backend_http"]),
    ("auth_backends.1.authn", &["internal"], &["oauth2"]),
    ("auth_backends.1.authz", &["internal"], &["http"]),
    ("default_user", &["bob"], &[]),
    ("default_pass", &["secret"], &[]),
    ("default_user_tags.monitoring", &["true", "false"], &["maybe"]),
    ("default_vhost", &["/"], &[]),
    ("default_permissions.configure", &["^a"], &["("]),
    ("default_permissions.write", &[".*"], &["["]),
    ("default_permissions.read", &[".*"], &["*"]),
    ("default_users.bob.password", &["secret"], &[]),
    ("default_users.bob.tags", &["administrator, monitoring"], &[]),
    ("default_users.bob.vhost_pattern", &["^qa"], &["("]),
    ("default_users.bob.configure", &[".*"], &["("]),
    ("default_users.bob.write", &[".*"], &["("]),
    ("default_users.bob.read", &[".*"], &["("]),
    ("dead_letter_history.max_entries", &["0", "1000000"], &["1000001", "-1", "many"]),
    ("dead_letter_history.max_bytes", &["0", "16MiB", "1048576"], &["x", "-1"]),
    ("file_check.interval", &["1000", "4294967295", "infinity"], &["999", "4294967296", "week"]),
    ("file_check.bytes_per_second", &["1", "8MiB"], &["0", "x", "-1"]),
    ("dead_letter_history.max_age", &["1", "31536000000"], &["0", "31536000001", "week"]),
    ("loopback_users", &["none"], &["all"]),
    ("loopback_users.bob", &["true", "false"], &["maybe"]),
    ("load_definitions", &["Cargo.toml"], &["no-such-file"]),
    ("definitions.local.path", &["Cargo.toml"], &["no-such-file"]),
    ("management.load_definitions", &["Cargo.toml"], &["no-such-file"]),
    ("definitions.import_backend", &["local_filesystem"], &["https"]),
    ("log.default.level", &["debug", "notice", "critical", "none"], &["verbose"]),
    ("log.level", &["warning"], &["warn"]),
    ("log.connection.level", &["error"], &["x"]),
    ("log.queue.level", &["error"], &["x"]),
    ("log.console", &["true", "false"], &["stdout"]),
    ("log.console.level", &["info"], &["x"]),
    ("log.console.formatter", &["plaintext", "json"], &["xml"]),
    ("log.console.stdio", &["stdout", "stderr"], &["stdin"]),
    ("log.file", &["false", "true", "leveret.log", "/var/log/leveret.log"], &[]),
    ("log.file.level", &["debug"], &["x"]),
    ("log.file.formatter", &["json"], &["x"]),
    ("log.file.rotation.size", &["0", "10485760"], &["100", "10MB"]),
    ("log.file.rotation.count", &["0", "5"], &["x"]),
    ("log.dir", &["/var/log"], &[]),
];

#[test]
fn keys_accept_valid_values_and_refuse_others() {
    for (name, good, bad) in VALUES {
        for value in *good {
            let text = format!("{name} = {value}");
            assert_eq!(parse(&text).err(), None, "{text}");
        }
        for value in *bad {
            let problem = problem(&format!("\n{name} = {value}"));
            let canonical = keys::find(&file::KeyName::new(name)).unwrap().1.name;
            let beginning = format!("a.conf, line 2: {canonical} must be ");
            assert!(problem.starts_with(&beginning), "{problem}");
        }
    }
}

#[test]
fn keys_with_an_effect_are_all_tested() {
    for key in keys::all().filter(|key| matches!(key.effect, key::Effect::Sets(_))) {
        let mut tested = VALUES.iter().map(|(name, ..)| file::KeyName::new(name));
        assert!(tested.any(|name| key.matches(&name).is_some()), "{} is not tested", key.name);
    }
}

#[test]
fn shown_defaults_are_the_defaults() {
    let mut text = String::new();
    for shown in parse("").unwrap().effective {
        assert_eq!(shown.source, Source::Default);
        if shown.value != "********" {
            text.push_str(&format!("{shown}\n"));
        }
    }
    let said = Config { effective: Vec::new(), ..parse(&text).unwrap() };
    assert_eq!(format!("{said:?}"), format!("{:?}", Config::default()));
}

#[test]
fn default_list_is_replaced_as_a_whole() {
    let config = parse("listeners.tcp.1 = 127.0.0.1:1\nlisteners.tcp.2 = 2\n").unwrap();
    assert_eq!(config.amqp_listeners, ["127.0.0.1:1".parse().unwrap(), "[::]:2".parse().unwrap()]);
    assert!(parse("listeners.tcp = none\nlisteners.tcp.1 = 1").unwrap().amqp_listeners.is_empty());
    assert!(parse("loopback_users.guest = false").unwrap().loopback_users.is_empty());
    assert_eq!(parse("loopback_users.bob = true").unwrap().loopback_users, ["bob"]);
}

#[test]
fn all_problems_are_named_with_their_place() {
    assert_eq!(
        problem("\n\nheartbeet = 1\nframe_max = 100\nx\n"),
        "a.conf, line 3: unknown key 'heartbeet', did you mean 'heartbeat'?\n\
         leveret: a.conf, line 4: frame_max must be a number from 8192 to 4294967295, got '100'\n\
         leveret: a.conf, line 5: expected 'key = value', got 'x'"
    );
    assert_eq!(problem("tomato = 1"), "a.conf, line 1: unknown key 'tomato'");
}

#[test]
fn beginning_of_a_key_suggests_the_key_that_accepts_the_value() {
    for (text, key) in [
        ("vm_memory_high_watermark = 0.4", "vm_memory_high_watermark.relative"),
        ("vm_memory_high_watermark = 2GB", "vm_memory_high_watermark.absolute"),
        ("disk_free_limit = 1.5", "disk_free_limit.relative"),
        ("disk_free_limit = many", "disk_free_limit.absolute"),
    ] {
        let suggestion =
            format!("unknown key '{}', did you mean '{key}'?", &text[..text.find(' ').unwrap()]);
        assert!(problem(text).ends_with(&suggestion), "{}", problem(text));
    }
}

#[test]
fn erlang_terms_are_one_problem() {
    let terms = "%% advanced.config\n\n[{rabbit, [\n  {tcp_listeners, [5672]}\n]}].\n";
    assert_eq!(
        problem(terms),
        "a.conf, line 3: Erlang terms, as in advanced.config, are not read; write every setting as \
         'key = value'"
    );
}

#[test]
fn missing_directory_of_files_is_no_problem_beside_other_files() {
    let dir = std::env::temp_dir().join(format!("leveret-config-missing-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("empty.d")).unwrap();
    let problems = |path: &Path| {
        let mut settings = Settings::default();
        settings.read(path);
        settings.into_config().map(drop).map_err(|error| error.problems)
    };
    for name in ["empty.d", "conf.d"] {
        assert_eq!(problems(&dir.join(name)), Ok(()), "{name}");
    }
    for name in ["leveret.conf", "conf", "other/conf.d"] {
        let said = problems(&dir.join(name)).unwrap_err();
        assert!(said[0].starts_with("cannot read configuration file "), "{said:?}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn problems_of_several_files_are_in_the_order_of_reading() {
    let dir = std::env::temp_dir().join(format!("leveret-config-order-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    file("10.conf", "heartbeat = soon\ninclude more/none.conf\nbogus = 1\n");
    file("20.conf", "\ntomato = 1\n");
    let mut settings = Settings::default();
    settings.read(&dir);
    settings.set("frame_max", "1", Source::CommandLine("--frame"));
    let problems = settings.into_config().unwrap_err().problems;
    let known = ["heartbeat", "bogus", "tomato", "none.conf", "command line"];
    let place = |what: &&str| problems.iter().position(|one| one.contains(what)).unwrap();
    let places: Vec<usize> = known.iter().map(place).collect();
    assert_eq!(
        (places.as_slice(), problems.len()),
        ([0, 1, 3, 2, 4].as_slice(), 5),
        "{problems:?}"
    );

    file("10.conf", "heartbeat = 5\n");
    file("20.conf", "frame_max = 8192\n");
    let mut settings = Settings::default();
    settings.read(&dir);
    let files = settings.into_config().unwrap().files;
    assert_eq!(files, [dir.join("10.conf"), dir.join("20.conf")]);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn absolute_limit_wins_over_relative() {
    for text in [
        "vm_memory_high_watermark.absolute = 1GB\nvm_memory_high_watermark.relative = 0.4",
        "vm_memory_high_watermark.relative = 0.4\nvm_memory_high_watermark.absolute = 1GB",
    ] {
        let config = parse(text).unwrap();
        assert_eq!(config.memory_watermark, MemoryWatermark::Absolute(1_000_000_000));
        assert_eq!(config.warnings.len(), 1);
        assert!(config.effective.iter().all(|one| !one.name.ends_with("watermark.relative")));
    }
}

#[test]
fn key_without_effect_warns_and_refused_key_fails() {
    let config = parse("queue_master_locator = min-masters\nproxy_protocol = false").unwrap();
    assert_eq!(
        config.warnings,
        ["a.conf, line 1: queue_master_locator has no effect: nodes have no such settings"]
    );
    assert_eq!(
        problem("proxy_protocol = true"),
        "a.conf, line 1: proxy_protocol is not possible: the proxy protocol is not known"
    );
}

#[test]
fn value_may_refer_to_another() {
    let config = parse("default_vhost = qa\ncluster_name = x-$(default_vhost)-y").unwrap();
    assert_eq!(config.cluster_name.as_deref(), Some("x-qa-y"));
    let home = std::env::var("HOME").unwrap_or_default();
    if !home.is_empty() {
        assert_eq!(parse("cluster_name = $(HOME)").unwrap().cluster_name, Some(home));
    }
    assert_eq!(
        problem("cluster_name = $(NOT_THERE_AT_ALL)"),
        "a.conf, line 1: cluster_name names $(NOT_THERE_AT_ALL), which is neither a key nor a \
         variable of the environment"
    );
    assert_eq!(
        problem("cluster_name = $(cluster_name)"),
        "a.conf, line 1: cluster_name refers to itself"
    );
}

#[test]
fn tls_needs_certificate_and_key() {
    assert_eq!(problem("listeners.ssl.1 = 5671"), "listeners.ssl needs ssl_options.certfile");
    let files = "ssl_options.certfile = Cargo.toml\nssl_options.keyfile = Cargo.toml\n";
    let with = |more: &str| format!("listeners.ssl.1 = 5671\n{files}{more}");
    assert_eq!(parse(&with("")).unwrap().amqps_listeners.len(), 1);
    assert_eq!(
        problem(&with("ssl_options.verify = verify_peer")),
        "verify_peer needs ssl_options.cacertfile"
    );
    assert_eq!(
        problem(&with("ssl_options.fail_if_no_peer_cert = true")),
        "ssl_options.fail_if_no_peer_cert = true needs ssl_options.verify = verify_peer"
    );
    let https = parse(&format!("management.ssl.port = 15671\n{files}")).unwrap();
    assert_eq!((https.http_listener(), https.https.port), (None, Some(15671)));
    let both = format!("management.ssl.port = 1\nmanagement.tcp.port = 2\n{files}");
    assert_eq!(parse(&both).unwrap().http_listener(), Some("[::]:2".parse().unwrap()));
}

#[test]
fn secrets_are_not_shown() {
    let config = parse("default_pass = hunter2\ndefault_users.bob.password = hunter3").unwrap();
    let shown: Vec<String> = config.effective.iter().map(Effective::to_string).collect();
    assert!(!shown.join("\n").contains("hunter"));
    assert_eq!(shown.iter().filter(|line| line.contains("********")).count(), 2);
    assert!(!problem("default_pass = hunter2\ncluster_name = $(default_pass)").contains("hunter"));
}

#[test]
fn command_line_wins() {
    let mut settings = Settings::default();
    settings.read_text("listeners.tcp.1 = 1\nlisteners.tcp.2 = 2\n", Path::new("a.conf"), 0);
    let by = || Source::CommandLine("--amqp");
    settings.set("listeners.tcp.default", "127.0.0.1:3", by());
    let config = settings.into_config().unwrap();
    assert_eq!(config.amqp_listeners, ["127.0.0.1:3".parse().unwrap()]);
    let shown = config.effective.iter().find(|one| one.name.starts_with("listeners.tcp")).unwrap();
    assert_eq!(
        shown.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
        "listeners.tcp.default = 127.0.0.1:3 # command line --amqp"
    );
}

/// Cells of the rows of every table in the configuration page whose first column is `Key`.
fn documented(last_column: &str) -> Vec<Vec<&'static str>> {
    let page = include_str!("../../../../docs/reference/configuration.md");
    let cells = |line: &'static str| {
        let cells = line.trim_matches('|').split(" | ");
        cells.map(str::trim).collect::<Vec<_>>()
    };
    let (mut rows, mut is_in) = (Vec::new(), false);
    for line in page.lines() {
        let row = if line.starts_with('|') { cells(line) } else { Vec::new() };
        match row.first() {
            None => is_in = false,
            Some(&"Key") => is_in = row.last() == Some(&last_column),
            Some(first) if is_in && !first.starts_with('-') => rows.push(row),
            Some(_) => {}
        }
    }
    rows
}

/// Names in the first cell of a row, in the notation of the table of keys.
fn names(cell: &str) -> Vec<String> {
    let names = cell.split('`').filter(|part| part.contains(|c: char| c.is_ascii_alphanumeric()));
    let variable = |part: &str| match part {
        part if part.chars().all(|c| c.is_ascii_uppercase()) => {
            format!("${}", part.to_ascii_lowercase())
        }
        part => part.to_owned(),
    };
    names.map(|name| name.split('.').map(variable).collect::<Vec<_>>().join(".")).collect()
}

#[test]
fn documentation_lists_the_same_keys_with_the_same_defaults() {
    let mut listed: Vec<String> = Vec::new();
    for row in documented("Default") {
        let default = row.get(2).copied().unwrap_or_default();
        for name in names(row[0]) {
            let key =
                keys::all().find(|key| key.name == name || key.aliases.contains(&name.as_str()));
            let key = key.unwrap_or_else(|| panic!("{name} is documented and unknown"));
            if let Some(value) = key.default {
                assert_eq!(default, format!("`{value}`"), "the default of {name}");
            }
            listed.push(name);
        }
    }
    let known = keys::all().filter(|key| matches!(key.effect, key::Effect::Sets(_)));
    let known = known.flat_map(|key| std::iter::once(&key.name).chain(key.aliases));
    for name in known {
        assert!(listed.iter().any(|one| one == name), "{name} is not documented");
    }
}

#[test]
fn documentation_lists_the_keys_without_effect_with_their_reasons() {
    let mut listed = BTreeMap::new();
    for row in documented("Why") {
        listed.extend(names(row[0]).into_iter().map(|name| (name, row[1])));
    }
    let mut known = BTreeMap::new();
    for key in keys::all() {
        if let key::Effect::Nothing(why) | key::Effect::Refused(why) = key.effect {
            known.insert(key.name.to_owned(), why);
        }
    }
    assert_eq!(listed, known);
}

#[test]
fn anonymous_login_needs_configuration() {
    let mechanisms = |text: &str| {
        let mut settings = Settings::default();
        settings.read_text(text, Path::new("a.conf"), 0);
        settings.into_config().unwrap().mechanisms()
    };
    assert_eq!(mechanisms(""), ["AMQPLAIN", "PLAIN"]);
    let user = "anonymous_login_user = bob\n";
    assert_eq!(mechanisms(user), ["AMQPLAIN", "ANONYMOUS", "PLAIN"]);
    assert_eq!(mechanisms("anonymous_login_user = none\n"), ["AMQPLAIN", "PLAIN"]);
    let plain = "auth_mechanisms.1 = PLAIN\n";
    assert_eq!(mechanisms(&format!("{user}{plain}")), ["PLAIN"]);
    let both = format!("{plain}auth_mechanisms.2 = ANONYMOUS\n");
    assert_eq!(mechanisms(&both), ["ANONYMOUS", "PLAIN"]);
    assert_eq!(mechanisms(&format!("{both}anonymous_login_user = none\n")), ["PLAIN"]);
}

#[test]
fn identity_is_a_printable_name_and_version() {
    let identity = |text: &str| {
        let mut settings = Settings::default();
        settings.read_text(text, Path::new("a.conf"), 0);
        let identity = settings.into_config().map(|config| config.identity);
        identity.map(|identity| (identity.product, identity.version)).ok()
    };
    let pair = |product: &str, version: &str| Some((product.to_owned(), version.to_owned()));
    assert_eq!(identity(""), pair("RabbitMQ", "4.3.6"));
    let own = "identity.product = Leveret\nidentity.version = 0.1.0\n";
    assert_eq!(identity(own), pair("Leveret", "0.1.0"));
    assert_eq!(identity("identity.version = 4.2.4-rc.1+x\n"), pair("RabbitMQ", "4.2.4-rc.1+x"));
    for wrong in ["4", "4.3", "4.3.x", "4.3.06", "4.3.6.1", "v4.3.6", "4.3.6 beta", "+", "-"] {
        assert_eq!(identity(&format!("identity.version = {wrong}\n")), None, "{wrong}");
    }
    let long = "x".repeat(65);
    assert_eq!(identity(&format!("identity.product = {long}\n")), None);
    assert_eq!(identity(&format!("identity.version = 1.2.3-{long}\n")), None);
}
