//! Tests that shown settings are read as the same settings, whatever the values are.

use std::path::Path;

use proptest::prelude::*;

use super::tests::{VALUES, parse, problem};
use super::*;

/// Characters with a meaning in a file, at its edges or on a terminal.
const CHARS: &str =
    "'#$()\\=. \t\n\r\u{b}\u{0}\u{1b}\u{85}\u{a0}\u{2028}\u{202e}\u{feff}\"@[{nx1\u{fc}";

fn text() -> impl Strategy<Value = String> {
    let chars: Vec<char> = CHARS.chars().collect();
    let text = prop::collection::vec(prop::sample::select(chars), 0..12);
    text.prop_map(|chars| chars.into_iter().collect())
}

/// The configuration with one more setting of the environment.
fn with(name: &str, value: &str) -> Result<Config, ConfigError> {
    let mut settings = Settings::default();
    settings.set(name, value, Source::Environment("NAME"));
    settings.into_config()
}

/// Names and values of the settings as they are shown, sorted.
fn settings(config: &Config) -> Vec<(String, String)> {
    let one = |one: &Effective| (one.name.clone(), one.value.clone());
    let mut settings: Vec<_> = config.effective.iter().map(one).collect();
    settings.sort();
    settings
}

/// The configuration without what tells where it is from.
fn content(config: Config) -> String {
    let no_files = Config { files: Vec::new(), warnings: Vec::new(), ..config };
    format!("{:?}", Config { effective: Vec::new(), ..no_files })
}

/// Reads a configuration as it is shown, one line for each setting, which must be the same configuration.
fn is_read_again(config: Config) {
    let lines: Vec<String> = config.effective.iter().map(ToString::to_string).collect();
    for line in &lines {
        assert!(!line.contains(line::is_obeyed), "{line:?}");
    }
    let again = parse(&lines.join("\n")).unwrap_or_else(|error| panic!("{error} in {lines:#?}"));
    assert_eq!(settings(&again), settings(&config), "{lines:#?}");
    let masked = |one: &Effective| one.value == "********" && one.source != Source::Default;
    if !config.effective.iter().any(masked) {
        let defaults = Config::default();
        let said = Config {
            default_user: DefaultUser {
                password: defaults.default_user.password,
                ..again.default_user
            },
            anonymous_login: AnonymousLogin {
                password: defaults.anonymous_login.password,
                ..again.anonymous_login
            },
            ..again
        };
        assert_eq!(content(said), content(config), "{lines:#?}");
    }
}

/// Keys that take any text.
const TEXTS: &[&str] = &[
    "cluster_name",
    "default_user",
    "default_vhost",
    "anonymous_login_user",
    "log.dir",
    "log.file",
    "data_dir",
    "default_users.bob.tags",
    "default_pass",
    "default_users.bob.password",
];

proptest! {
    // A case reads every key several times.
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn shown_text_is_read_again(name in prop::sample::select(TEXTS), value in text()) {
        match with(name, &value) {
            Ok(config) => is_read_again(config),
            Err(_) => prop_assert!(value.is_empty(), "{name} = {value:?}"),
        }
    }

    #[test]
    fn shown_settings_of_a_file_are_read_again(name in text(), value in text(), more in text()) {
        let text = format!(
            "loopback_users.{name} = true\ndefault_users.{name}.tags = '{value}'\n\
             cluster_name = '''{value}\n{more}'''\nlog.dir = {more}\n"
        );
        if !text.contains("$(") && let Ok(config) = parse(&text) {
            is_read_again(config);
        }
    }
}

#[test]
fn shown_value_of_every_key_is_read_again() {
    for (name, good, _) in VALUES {
        for value in *good {
            if let Ok(config) = with(name, value) {
                is_read_again(config);
            }
        }
    }
}

#[test]
fn value_with_line_ends_is_shown_in_one_line() {
    let config = parse("cluster_name = '''a\nlisteners.tcp.default = 1\nb'''\n").unwrap();
    let name = "a\nlisteners.tcp.default = 1\nb";
    assert_eq!(config.cluster_name.as_deref(), Some(name));
    let shown = config.effective.iter().find(|one| one.name == "cluster_name").unwrap();
    assert_eq!(
        shown.to_string(),
        "cluster_name = 'a'\\n'listeners.tcp.default = 1'\\n'b' # a.conf, line 1"
    );
    is_read_again(config);
}

#[test]
fn file_name_with_a_line_end_is_shown_in_one_line() {
    let mut settings = Settings::default();
    settings.read_text("cluster_name = x\n", Path::new("a\nheartbeat = 1 #.conf"), 0);
    let config = settings.into_config().unwrap();
    let shown = config.effective.iter().find(|one| one.name == "cluster_name").unwrap();
    assert!(shown.to_string().ends_with(" # a\\nheartbeat = 1 #.conf, line 1"), "{shown}");
    is_read_again(config);
}

#[test]
fn problem_is_in_one_line() {
    assert_eq!(
        problem("\nheartbeat = '''1\n2'''"),
        "a.conf, line 2: heartbeat must be a number from 0 to 65535, got '1\\n2'"
    );
    assert_eq!(
        problem("a\u{1b}[2J = 1"),
        "a.conf, line 1: a key has no control characters, got 'a\\u{1b}[2J'"
    );
}

#[test]
fn reference_of_a_file_is_replaced_unless_its_dollar_is_escaped() {
    let name = |text: &str| parse(text).map(|config| config.cluster_name.unwrap_or_default());
    assert_eq!(name("cluster_name = 'x$(default_vhost)'\ndefault_vhost = qa").unwrap(), "xqa");
    assert_eq!(name("cluster_name = 'x'\\$'(default_vhost)'").unwrap(), "x$(default_vhost)");
    let config = with("data_dir", "/a/$(HOME)").unwrap();
    assert_eq!(config.data_dir, Path::new("/a/$(HOME)"));
    is_read_again(config);
}

#[test]
fn setting_without_a_value_is_refused() {
    let problem = with("data_dir", "").map(|_| ()).unwrap_err().to_string();
    assert_eq!(problem, "environment NAME: data_dir: there is no value");
}
