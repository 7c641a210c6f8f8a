//! The web page and the documentation show the settings of the broker's table, with the same names, values
//! and rules. `UPDATE=1` writes the module of the web page.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod generated;

use std::fs;

use broker::{Group, QueueType, Setting, Unit, ValueKind, settings};
use serde_json::{Map, Value, json};

use generated::{hold, path};

const MODULE: &str = "crates/management/web/js/parts/settings-table.js";

const MODULE_HEAD: &str = "\
// The broker's table of settings. Generated: UPDATE=1 cargo test -p leveret-management --test settings_shown
//
// `key` is the policy key, `argument` the queue argument. `of` tells which names belong into the place of the value; `on`
// is what has the setting, if not every queue; `keepsFrom` is the type of queue that the whole policy passes by for the
// key; `isOperators` says that operator policies may have it. Whether a value is right is for the server to say.

";

/// The groups in the order in which the page shows them.
const GROUPS: [Group; 6] = [
    Group::Expiry,
    Group::Length,
    Group::DeadLetters,
    Group::Delivery,
    Group::Exchanges,
    Group::WithoutEffect,
];

fn value_fields(value: ValueKind) -> Value {
    let choice = |words: &[&str]| json!({ "type": "choice", "choices": words });
    match value {
        ValueKind::Number { unit: Unit::Milliseconds, .. } => {
            json!({ "type": "number", "unit": "ms" })
        }
        ValueKind::Number { unit: Unit::Bytes, .. } => json!({ "type": "number", "unit": "bytes" }),
        ValueKind::Number { unit: Unit::Count, .. } => json!({ "type": "number" }),
        ValueKind::Ratio { .. } => json!({ "type": "number" }),
        ValueKind::Schedule => json!({ "type": "text" }),
        ValueKind::ExchangeName => json!({ "type": "text", "of": "exchanges" }),
        // With the default exchange, the routing key is the name of a queue.
        ValueKind::RoutingKey => json!({ "type": "text", "of": "queues" }),
        ValueKind::Word(list) => choice(list.words()),
        ValueKind::OneOf(words) => choice(words),
        ValueKind::Age => json!({ "type": "text" }),
        ValueKind::Flag => json!({ "type": "boolean" }),
    }
}

fn module_row(setting: &Setting) -> Value {
    let mut row = Map::new();
    row.insert("group".to_owned(), json!(setting.group().title()));
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            row.insert(name.to_owned(), value);
        }
    };
    put("key", setting.policy_key().map(Value::from));
    put("argument", setting.argument_name().map(Value::from));
    for (name, value) in value_fields(setting.value()).as_object().unwrap() {
        put(name, Some(value.clone()));
    }
    let on = match (setting.group(), setting.queue_types()) {
        (Group::Exchanges, _) => Some("exchanges"),
        (_, [only]) => Some(only.as_str()),
        (_, _) => None,
    };
    put("on", on.map(Value::from));
    let kept = QueueType::ALL.into_iter().find(|queue_type| setting.disqualifies(*queue_type));
    put("keepsFrom", kept.map(|queue_type| queue_type.as_str().into()));
    put("isOperators", setting.is_for_operators().then(|| json!(true)));
    put("hint", (!setting.hint().is_empty()).then(|| setting.hint().into()));
    put("button", setting.argument_button().map(Value::from));
    let example = setting.argument_example();
    put("example", example.map(|example| serde_json::from_str(example).unwrap()));
    row.into()
}

fn module() -> String {
    let rows = GROUPS.into_iter().flat_map(|group| settings().filter(move |s| s.group() == group));
    let rows: Vec<String> = rows.map(|setting| format!("  {},\n", module_row(setting))).collect();
    format!("{MODULE_HEAD}export const SETTINGS = [\n{}];\n", rows.concat())
}

#[test]
fn page_has_the_settings_of_the_table() {
    hold(MODULE, &module());
}

/// The rows of the only table of the documentation with these headings, as cells.
fn documented(headings: &str) -> Vec<Vec<String>> {
    let mut folders = vec![path("docs")];
    let mut tables = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(path).unwrap();
                tables.extend(text.split_once(headings).map(|(_, table)| table.to_owned()));
            }
        }
    }
    assert_eq!(tables.len(), 1, "tables with the headings {headings}");
    let rows = tables[0].lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect();
    rows.map(cells).collect()
}

/// The names in backticks, of which one that begins with `-` replaces the end of the one before.
fn names(cell: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in cell.split('`').skip(1).step_by(2) {
        let whole = match names.last().filter(|_| name.starts_with('-')) {
            Some(before) => format!("{}{name}", before.rsplit_once('-').unwrap().0),
            None => name.to_owned(),
        };
        names.push(whole);
    }
    names
}

#[test]
fn policy_keys_of_the_documentation_are_those_of_the_table() {
    let mut expected: Vec<[String; 5]> = Vec::new();
    for setting in settings() {
        let (Some(key), false) = (
            setting.policy_key(),
            matches!(setting.group(), Group::WithoutEffect | Group::Streams),
        ) else {
            continue;
        };
        let on = match (setting.group(), setting.queue_types()) {
            (Group::Exchanges, _) => "(exchanges)".to_owned(),
            (_, [only]) => format!("({})", only.as_str()),
            (_, _) => String::new(),
        };
        expected.push([
            key.to_owned(),
            on,
            setting.value().to_string(),
            setting.operator_rule().to_owned(),
            setting.with_argument_rule().to_owned(),
        ]);
    }
    let mut found: Vec<[String; 5]> = Vec::new();
    for row in documented("| Key | Value | Operator policy | With an argument |") {
        let [key, value, operator, argument] = row.try_into().unwrap();
        let on = key.rsplit('`').next().unwrap().trim();
        for name in names(&key) {
            found.push([name, on.to_owned(), value.clone(), operator.clone(), argument.clone()]);
        }
    }
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn arguments_of_the_documentation_are_those_of_the_table() {
    let effect = |setting: &Setting, queue_type: QueueType| match setting.group() {
        _ if !setting.queue_types().contains(&queue_type) => "refused",
        Group::WithoutEffect | Group::Streams => "no effect",
        Group::Expiry | Group::Length | Group::DeadLetters | Group::Delivery | Group::Exchanges => {
            "yes"
        }
    };
    let mut expected: Vec<(String, &str, &str)> = Vec::new();
    for setting in settings() {
        if let Some(name) = setting.argument_name() {
            let (classic, quorum) =
                (effect(setting, QueueType::Classic), effect(setting, QueueType::Quorum));
            expected.push((name.to_owned(), classic, quorum));
        }
    }
    let rows = documented("| Argument | Classic | Quorum | See |");
    let mut found: Vec<(String, &str, &str)> = Vec::new();
    for row in &rows {
        for name in names(&row[0]) {
            found.push((name, &row[1], &row[2]));
        }
    }
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}
