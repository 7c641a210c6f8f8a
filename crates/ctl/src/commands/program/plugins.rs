//! Commands of `rabbitmq-plugins`. The features of some plugins of RabbitMQ are part of Leveret, and always on: scripts
//! that enable these plugins run, also where no node does.

use serde_json::{Value, json};

use crate::arguments::Switch;
use crate::command::{Call, Command, Section, Tools};
use crate::failure::{Failure, UNAVAILABLE};
use crate::format::Output;
use crate::tool::RABBITMQ_VERSION;

/// Plugins whose features are part of Leveret.
pub(in crate::commands) const BUILT_IN: [&str; 7] = [
    "rabbitmq_auth_mechanism_ssl",
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_delayed_message_exchange",
    "rabbitmq_management",
    "rabbitmq_management_agent",
    "rabbitmq_prometheus",
    "rabbitmq_web_dispatch",
];

/// Description of each of them.
const DESCRIPTION: &str = "Its features are part of Leveret";

/// Most plugins in a call.
const PLUGINS_MAX: usize = 100;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    plugins(
        "list",
        "list [pattern] [--verbose] [--minimal] [--enabled] [--implicitly-enabled]",
        "Lists the plugins whose features are part of Leveret",
        list,
    )
    .words(0, 1)
    .switches(&[
        Switch::flag("verbose").or('v'),
        Switch::flag("minimal").or('m'),
        Switch::flag("enabled").or('E'),
        Switch::flag("implicitly-enabled").or('e'),
    ])
    .banner(|call| format!("Listing plugins with pattern \"{}\" ...", pattern(call))),
    plugins(
        "is_enabled",
        "is_enabled <plugin> [<plugin> ..] [--offline] [--online]",
        "Fails unless the features of the plugins are part of Leveret",
        is_enabled,
    )
    .words(1, PLUGINS_MAX)
    .switches(MODES)
    .banner(|call| {
        let (names, node) = (call.words.join(", "), call.node.name());
        format!("Asking node {node} if plugin {names} is enabled...")
    }),
    plugins(
        "enable",
        "enable <plugin> [<plugin> ..] [--offline] [--online]",
        "Does nothing for plugins whose features are part of Leveret, and fails for others",
        enable,
    )
    .words(1, PLUGINS_MAX)
    .switches(MODES)
    .banner(|call| {
        format!("Enabling plugins on node {}:\n{}", call.node.name(), call.words.join("\n"))
    }),
    plugins(
        "disable",
        "disable <plugin> [<plugin> ..] [--offline] [--online]",
        "Fails: what is part of Leveret is always on",
        |call| {
            let names = call.words.join(", ");
            let text = format!(
                "Error: cannot disable {names}: the features are part of Leveret, or there are none"
            );
            Err(Failure::plain(UNAVAILABLE, text))
        },
    )
    .words(1, PLUGINS_MAX)
    .switches(MODES),
    plugins(
        "set",
        "set [<plugin> ..] [--offline] [--online]",
        "Does nothing for plugins whose features are part of Leveret, and fails for others",
        enable,
    )
    .words(0, PLUGINS_MAX)
    .switches(MODES),
];

/// With and without a node there is no difference.
const MODES: &[Switch] = &[Switch::flag("offline"), Switch::flag("online")];

/// A command of `rabbitmq-plugins`.
const fn plugins(
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&Call<'_>) -> Result<Output, Failure>,
) -> Command {
    Command::new(Section::Plugins, name, usage, about, run).of(Tools::PLUGINS)
}

fn pattern<'a>(call: &'a Call<'_>) -> &'a str {
    match call.words {
        [] => ".*",
        words => words.first().map(String::as_str).unwrap_or_default(),
    }
}

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    let is_meant = |name: &&str| call.words.is_empty() || name.contains(pattern(call));
    let names: Vec<&str> = BUILT_IN.into_iter().filter(is_meant).collect();
    let format = ["minimal", "verbose"].into_iter().find(|format| call.has(format));
    let format = format.unwrap_or("normal");
    let text = match format {
        "minimal" => names.join("\n"),
        format => {
            let head = [
                " Configured: E = explicitly enabled; e = implicitly enabled".to_owned(),
                format!(" | Status: * = running on {}", call.node.name()),
                " |/".to_owned(),
            ];
            let head = if call.is_quiet { &[][..] } else { &head };
            [head, &lines(&names, format == "verbose")].concat().join("\n")
        }
    };
    let all: Vec<_> = names.iter().map(|name| told(name, format)).collect();
    Ok(Output::Both(text, json!({"status": "running", "format": format, "plugins": all})))
}

/// The lines about plugins.
fn lines(names: &[&str], is_verbose: bool) -> Vec<String> {
    let width = names.iter().map(|name| name.len()).max().unwrap_or_default();
    let line = |name: &&str| match is_verbose {
        false => format!("[E*] {name:width$} {RABBITMQ_VERSION}"),
        true => format!(
            "[E*] {name}\n     Version:     \t{RABBITMQ_VERSION}\n     Dependencies:\t[]\n     Description: \t{DESCRIPTION}"
        ),
    };
    names.iter().map(line).collect()
}

/// A plugin in JSON.
fn told(name: &str, format: &str) -> Value {
    let mut told = json!({"name": name});
    if format != "minimal" {
        told["enabled"] = json!("enabled");
        told["running"] = json!(true);
        told["version"] = json!(RABBITMQ_VERSION);
        told["running_version"] = json!(RABBITMQ_VERSION);
    }
    if format == "verbose" {
        told["description"] = json!(DESCRIPTION);
        told["dependencies"] = json!([]);
    }
    told
}

fn is_enabled(call: &Call<'_>) -> Result<Output, Failure> {
    let node = call.node.name();
    let others = others(call);
    if others.is_empty() {
        let text = match call.words {
            [one] => format!("Plugin {one} is enabled on node {node}"),
            all => format!("Plugins {} are enabled on node {node}", all.join(", ")),
        };
        let told = json!({"message": text, "result": "ok"});
        return Ok(Output::Said(text, told));
    }
    let (names, known) = (others.join(", "), BUILT_IN.join(", "));
    let text = format!(
        "Plugin {names} is not enabled on node {node}. Enabled plugins and dependencies: {known}"
    );
    let told = json!({"message": text, "result": "error"});
    Err(Failure::error(UNAVAILABLE, text).told(told))
}

fn enable(call: &Call<'_>) -> Result<Output, Failure> {
    let others = others(call);
    if !others.is_empty() {
        let names = others.join(", ");
        let text =
            format!("Error: there is no plugin {names}, and no feature of Leveret in its place");
        return Err(Failure::plain(UNAVAILABLE, text));
    }
    let configured = BUILT_IN.map(|name| format!("  {name}")).join("\n");
    Ok(Output::Text(format!(
        "The following plugins have been configured:\n{configured}\nApplying plugin configuration to {}...\nPlugin \
         configuration unchanged.",
        call.node.name()
    )))
}

/// Plugins of a call whose features are not part of Leveret.
fn others<'a>(call: &'a Call<'_>) -> Vec<&'a str> {
    let names = call.words.iter().map(String::as_str);
    names.filter(|name| !BUILT_IN.contains(name)).collect()
}
