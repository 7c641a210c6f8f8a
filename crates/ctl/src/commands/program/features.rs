//! Feature flags and deprecated features.

use serde_json::{Value, json};

use crate::arguments::Switch;
use crate::columns::{Column, selected};
use crate::command::{Call, Command, Section};
use crate::failure::{Failure, UNAVAILABLE, USAGE};
use crate::format::{Formatter, Output};
use crate::http::path;
use crate::pids::Pids;
use crate::rows::rows_of;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::FeatureFlags,
        "list_feature_flags",
        "list_feature_flags [<column> ...] [--timeout <timeout>]",
        "Lists feature flags",
        list,
    )
    .everywhere()
    .words(0, usize::MAX)
    .columns(FLAG)
    .banner(|_| "Listing feature flags ...".to_owned()),
    Command::new(
        Section::FeatureFlags,
        "enable_feature_flag",
        "enable_feature_flag [--opt-in] <all | feature_flag>",
        "Enables a feature flag, or all: lets the records of a cluster be those that all nodes read",
        enable,
    )
    .slow()
    .words(1, 1)
    .switches(&[Switch::flag("opt-in"), Switch::flag("experimental")])
    .banner(|call| match call.word(0) {
        "all" => "Enabling all feature flags ...".to_owned(),
        flag => format!("Enabling feature flag \"{flag}\" ..."),
    }),
    Command::new(
        Section::FeatureFlags,
        "list_deprecated_features",
        "list_deprecated_features [--used] [<column> ...]",
        "Lists deprecated features, or only those in use",
        list_deprecated,
    )
    .everywhere()
    .words(0, usize::MAX)
    .switches(&[Switch::flag("used")])
    .formatter(Formatter::PrettyTable)
    .columns(DEPRECATED)
    .banner(|call| {
        let which =
            if call.has("used") { "deprecated features in use" } else { "deprecated features" };
        format!("Listing {which} ...")
    }),
    Command::new(
        Section::Monitoring,
        "check_if_any_deprecated_features_are_used",
        "check_if_any_deprecated_features_are_used",
        "Fails if a deprecated feature is in use",
        check_deprecated,
    )
    .everywhere()
    .banner(|_| "Checking if any deprecated features are used ...".to_owned()),
];

const FLAG: &[Column] = &[
    Column::same("name"),
    Column::atom("state"),
    Column::atom("stability"),
    Column::atom("provided_by"),
    Column::same("desc"),
    Column::same("doc_url"),
    Column::atom("require_level"),
    Column::atom("experiment_level"),
];

const DEPRECATED: &[Column] = &[
    Column::same("name"),
    Column::atom("deprecation_phase"),
    Column::atom("provided_by"),
    Column::same("desc"),
    Column::same("doc_url"),
    Column::atom("state"),
];

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    let flags = call.node.api.get("/api/feature-flags")?;
    Ok(table(call, flags, FLAG, &["name", "state"]))
}

fn list_deprecated(call: &Call<'_>) -> Result<Output, Failure> {
    let at =
        if call.has("used") { "/api/deprecated-features/used" } else { "/api/deprecated-features" };
    let features = call.node.api.get(at)?;
    Ok(table(call, features, DEPRECATED, &["name", "deprecation_phase", "state"]))
}

fn table(call: &Call<'_>, mut all: Value, columns: &[Column], usual: &[&str]) -> Output {
    if let Value::Array(all) = &mut all {
        all.sort_by_key(|one| one.get("name").map(Value::to_string));
    }
    let columns = selected(call.words, columns, usual);
    let nobody = Pids::default();
    rows_of(&all, |one| columns.iter().map(|c| c.cell(one, &nobody)).collect()).into()
}

fn enable(call: &Call<'_>) -> Result<Output, Failure> {
    let flags = call.node.api.get("/api/feature-flags")?;
    let flags = flags.as_array().into_iter().flatten();
    let meant = |flag: &&Value| {
        let name = flag.get("name").and_then(Value::as_str).unwrap_or_default();
        call.word(0) == "all" || call.word(0) == name
    };
    let meant: Vec<&Value> = flags.filter(meant).collect();
    if meant.is_empty() && call.word(0) != "all" {
        let node = call.node.name();
        let text = format!("This feature flag is not supported by node {node}");
        return Err(Failure::error(USAGE, text));
    }
    for flag in meant {
        if flag.get("state").and_then(Value::as_str) != Some("enabled") {
            let name = flag.get("name").and_then(Value::as_str).unwrap_or_default();
            call.node.api.put(&path(&["feature-flags", name, "enable"]), &json!({}))?;
        }
    }
    // RabbitMQ's API does not know this.
    if call.word(0) == "all"
        && call.node.api.get("/api/overview")?.get("cluster_record_level").is_some()
    {
        call.node.api.put("/api/feature-flags/all/enable", &json!({}))?;
    }
    Ok(Output::Done)
}

fn check_deprecated(call: &Call<'_>) -> Result<Output, Failure> {
    let used = call.node.api.get("/api/deprecated-features/used")?;
    let name = |one: &Value| Some(one.get("name")?.as_str()?.to_owned());
    let names: Vec<String> = used.as_array().into_iter().flatten().filter_map(name).collect();
    if names.is_empty() {
        return Ok(Output::passed("Cluster reported no deprecated features in use"));
    }
    let told = json!({
        "deprecated_features": names,
        "message": "Cluster reported deprecated features in use",
        "result": "error",
    });
    Err(Failure::lines(UNAVAILABLE, names).told(told))
}
