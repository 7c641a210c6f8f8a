//! The web page, the documentation and `list_queues` show the numbers of a queue as the broker's table has them. `UPDATE=1`
//! writes the columns of the page and the tables of the documentation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod generated;

use std::collections::BTreeSet;

use management::{QUEUE_DECLARATION, QUEUE_STATE, QueueProperty};
use serde_json::{Map, Value, json};
use server::snapshot::queue_fields::{PageGroup, QUEUE_FIELDS, QueueField, QueueGroup, Unit};

use generated::{hold, read};

const MODULE: &str = "crates/management/web/js/parts/queue-numbers.js";
const METRICS: &str = "docs/reference/metrics.md";
const FIELDS: &str = "docs/reference/http-api-endpoints.md";
const LISTED: &str = "crates/ctl/src/commands/queues/listed_queues.rs";
const CHARTS: &str = "crates/management/web/js/parts/flow.js";
const AMOUNTS: &str = "crates/management/web/js/pages/queue/amounts.js";

const MODULE_HEAD: &str = "\
// Columns of the list of queues with numbers. Generated: UPDATE=1 cargo test -p leveret-management --test fields_shown
//
// `field` is the field of the API, `as` how the column shows it. The rest are properties of a column (table.js).

";

/// Headings of the tables of metrics, with their groups and labels.
const FAMILIES: [(&str, &[QueueGroup], &str); 5] = [
    ("`queue_coarse_metrics`:", &[QueueGroup::Coarse], "`vhost`, `queue`"),
    ("`queue_metrics`:", &[QueueGroup::ConsumerCount, QueueGroup::Queue], "`vhost`, `queue`"),
    ("`queue_delivery_metrics`:", &[QueueGroup::Delivery], "`vhost`, `queue`"),
    ("`channel_queue_exchange_metrics`:", &[QueueGroup::Published], "`queue_vhost`, `queue`"),
    ("`queue_time_metrics`:", &[QueueGroup::Time], "`vhost`, `queue`"),
];

/// Columns of `list_queues` that are no fields of the API.
const OTHER_COLUMNS: [&str; 5] =
    ["pid", "owner_pid", "exclusive_consumer_pid", "disk_reads", "disk_writes"];

/// The text with other rows in the first table behind a heading.
fn with_rows(text: &str, heading: &str, rows: &str) -> String {
    let (before, after) = text.split_once(&format!("\n{heading}\n")).unwrap();
    let (introduction, table) = after.split_once("\n| --- |").unwrap();
    let (line, table) = table.split_once('\n').unwrap();
    let rest: String = table.split_inclusive('\n').skip_while(|row| row.starts_with('|')).collect();
    format!("{before}\n{heading}\n{introduction}\n| --- |{line}\n{rows}{rest}")
}

/// The quoted words behind each place of `start` in a text.
fn quoted<'a>(text: &'a str, start: &str) -> BTreeSet<&'a str> {
    text.split(start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

fn named() -> impl Iterator<Item = &'static QueueField> {
    QUEUE_FIELDS.iter().filter(|row| !row.name.is_empty())
}

fn properties() -> impl Iterator<Item = &'static QueueProperty> {
    QUEUE_DECLARATION.iter().chain(QUEUE_STATE)
}

fn column(row: &QueueField) -> Option<(u32, String)> {
    let page = row.page?;
    let field =
        if row.is_count() { format!("message_stats.{}", row.name) } else { row.name.into() };
    let shown_as = match row.unit {
        _ if row.is_count() => "rate",
        Unit::Bytes => "bytes",
        Unit::Share => "share",
        Unit::Messages | Unit::Consumers | Unit::Seconds | Unit::EpochSeconds => "number",
    };
    let group = match page.group {
        PageGroup::Overview => "Overview",
        PageGroup::Messages => "Messages",
        PageGroup::Bytes => "Message bytes",
        PageGroup::Rates => "Message rates",
        PageGroup::Deaths => "Deaths per second",
    };
    let mut column = Map::new();
    let mut put = |name: &str, value| {
        column.insert(name.to_owned(), value);
    };
    put("key", json!(page.key));
    put("title", json!(page.title));
    put("field", json!(field));
    put("as", json!(shown_as));
    put("group", json!(group));
    page.name.into_iter().for_each(|name| put("name", json!(name)));
    page.hint.into_iter().for_each(|hint| put("hint", json!(hint)));
    page.phone.into_iter().for_each(|phone| put("phone", json!(phone)));
    if page.is_optional {
        put("isOptional", json!(true));
    }
    Some((page.place, format!("  {},\n", Value::Object(column))))
}

#[test]
fn page_has_the_columns_of_the_table() {
    let mut columns: Vec<(u32, String)> = QUEUE_FIELDS.iter().filter_map(column).collect();
    columns.sort();
    assert!(columns.is_sorted_by(|a, b| a.0 < b.0), "two columns have the same place");
    let columns: String = columns.into_iter().map(|(_, column)| column).collect();
    hold(MODULE, &format!("{MODULE_HEAD}export const QUEUE_NUMBERS = [\n{columns}];\n"));
}

#[test]
fn page_draws_fields_of_the_table() {
    let (charts, amounts) = (read(CHARTS), read(AMOUNTS));
    let is_field = |name: &str| named().any(|row| row.name == name);
    // The label, which may be the name of a constant, and the field.
    let lines = charts.lines().filter_map(|line| line.trim().strip_prefix("line("));
    let names = lines.filter_map(|line| line.split(", ").nth(1));
    let names: Vec<&str> = names.map(|name| name.trim_matches(['"', ')', ','])).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(is_field(name), "{name} in {CHARTS} is no number of a queue");
    }
    let rows = amounts.lines().filter_map(|line| line.strip_prefix("  [\""));
    let suffixes: Vec<&str> = rows.filter_map(|row| row.split('"').nth(2)).collect();
    assert!(suffixes.len() > 4, "{suffixes:?}");
    for suffix in suffixes {
        for name in [format!("messages{suffix}"), format!("message_bytes{suffix}")] {
            assert!(is_field(&name), "{name} in {AMOUNTS} is no number of a queue");
        }
    }
}

#[test]
fn metrics_of_the_documentation_are_those_of_the_table() {
    let mut text = read(METRICS);
    for (heading, groups, labels) in FAMILIES {
        let mut rows = String::new();
        for group in groups {
            for row in QUEUE_FIELDS {
                let Some((_, family)) = row.family.filter(|(of, _)| of == group) else { continue };
                let kind = if row.is_count() { "counter" } else { "gauge" };
                let meaning = row.meaning;
                rows += &format!("| `rabbitmq_{family}` | {kind} | {labels} | {meaning} |\n");
            }
        }
        text = with_rows(&text, heading, &rows);
    }
    hold(METRICS, &text);
}

#[test]
fn fields_of_the_documentation_are_those_of_the_table() {
    let mut rows = String::new();
    for row in named() {
        let unit = match row.unit {
            Unit::Messages => "messages",
            Unit::Bytes => "bytes",
            Unit::Consumers => "consumers",
            Unit::Share => "0 to 1",
            Unit::Seconds => "seconds",
            Unit::EpochSeconds => "seconds since 1970",
        };
        let listed = match (row.is_listed, row.is_count()) {
            (false, _) => "",
            (true, false) => "a column",
            (true, true) => "two columns",
        };
        let family = row.family.map_or_else(String::new, |(_, name)| format!("`rabbitmq_{name}`"));
        let cells =
            [format!("`{}`", row.name), row.meaning.into(), unit.into(), listed.into(), family];
        rows += &format!("| {} |\n", cells.join(" | ")).replace("|  |", "| |");
    }
    let text = with_rows(&read(FIELDS), "## Numbers of a queue", &rows);
    let property = |row: &QueueProperty| {
        let listed = if row.is_listed { "a column |" } else { "|" };
        format!("| `{}` | {} | {listed}\n", row.name, row.meaning)
    };
    let rows: String = properties().map(property).collect();
    hold(FIELDS, &with_rows(&text, "## Properties of a queue", &rows));
}

#[test]
fn list_queues_has_the_columns_of_the_table() {
    let source = read(LISTED);
    let (_, source) = source.split_once("COLUMNS: &[Column] = &[").unwrap();
    let (source, _) = source.split_once("\n];").unwrap();
    let of = |kind: &str| quoted(source, &format!("Column::{kind}(\""));
    let (levels, counts, rates) = (of("same"), of("count"), of("rate"));
    for row in named().filter(|row| row.is_listed) {
        let name = row.name;
        match row.is_count() {
            false => assert!(levels.contains(name), "{LISTED} lacks Column::same(\"{name}\")"),
            true => {
                assert!(counts.contains(name), "{LISTED} lacks Column::count(\"{name}\")");
                let rate = format!("{name}_rate");
                assert!(rates.contains(&*rate), "{LISTED} lacks Column::rate(\"{rate}\")");
            }
        }
    }
    let others: BTreeSet<&str> =
        ["same", "atom", "arguments", "new"].into_iter().flat_map(of).collect();
    for row in properties().filter(|row| row.is_listed) {
        assert!(others.contains(row.name), "{LISTED} lacks a column `{}`", row.name);
    }
    let is_level =
        |name: &str| named().any(|row| row.is_listed && !row.is_count() && row.name == name);
    let is_count =
        |name: &str| named().any(|row| row.is_listed && row.is_count() && row.name == name);
    let is_property = |name: &str| properties().any(|row| row.is_listed && row.name == name);
    for name in others.into_iter().filter(|name| !OTHER_COLUMNS.contains(name)) {
        assert!(is_level(name) || is_property(name), "{name} in {LISTED} is not in the table");
    }
    for name in counts.into_iter().chain(rates.iter().map(|rate| rate.trim_end_matches("_rate"))) {
        assert!(is_count(name), "{name} in {LISTED} is not a count of the table");
    }
}

#[test]
fn names_are_unique() {
    let (mut fields, mut families) = (BTreeSet::new(), BTreeSet::new());
    for row in properties() {
        assert!(fields.insert(row.name), "{}", row.name);
    }
    for row in QUEUE_FIELDS {
        assert!(row.name.is_empty() || fields.insert(row.name), "{}", row.name);
        assert!(!row.name.is_empty() || row.family.is_some(), "{} is shown nowhere", row.meaning);
        assert!(row.family.is_none_or(|(_, family)| families.insert(family)), "{:?}", row.family);
    }
}
