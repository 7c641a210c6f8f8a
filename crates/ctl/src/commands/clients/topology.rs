//! Exchanges and bindings.

use serde_json::Value;

use crate::columns::{Column, selected};
use crate::command::{Call, Command, Section};
use crate::failure::Failure;
use crate::format::{Empty, Output, Rows};
use crate::http::path;
use crate::pids::Pids;
use crate::rows::{rows_of, text};
use crate::term::Term;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Monitoring,
        "list_exchanges",
        "list_exchanges [--vhost <vhost>] [--no-table-headers] [<column> ...] \
         [--timeout <timeout>]",
        "Lists the exchanges of a vhost",
        |call| list(call, "exchanges", EXCHANGE, &["name", "type"]),
    )
    .everywhere()
    .words(0, usize::MAX)
    .columns(EXCHANGE)
    .banner(|call| format!("Listing exchanges for vhost {} ...", call.vhost())),
    Command::new(
        Section::Monitoring,
        "list_bindings",
        "list_bindings [--vhost <vhost>] [--no-table-headers] [<column> ...] \
         [--timeout <timeout>]",
        "Lists the bindings of a vhost",
        |call| {
            let all: Vec<&str> = BINDING.iter().map(|column| column.name).collect();
            list(call, "bindings", BINDING, &all)
        },
    )
    .everywhere()
    .words(0, usize::MAX)
    .columns(BINDING)
    .banner(|call| format!("Listing bindings for vhost {}...", call.vhost())),
];

const EXCHANGE: &[Column] = &[
    Column::same("name"),
    Column::atom("type"),
    Column::atom("durable"),
    Column::atom("auto_delete"),
    Column::atom("internal"),
    Column::arguments("arguments"),
    Column::same("policy"),
];

const BINDING: &[Column] = &[
    Column::new("source_name", |binding, _| text(binding, "source")),
    Column::new("source_kind", |_, _| Term::atom("exchange")),
    Column::new("destination_name", |binding, _| text(binding, "destination")),
    Column::new("destination_kind", |binding, _| Term::atom_of(binding.get("destination_type"))),
    Column::same("routing_key"),
    Column::arguments("arguments"),
];

fn list(
    call: &Call<'_>,
    resource: &str,
    columns: &[Column],
    usual: &[&str],
) -> Result<Output, Failure> {
    let columns = selected(call.words, columns, usual);
    let nobody = Pids::default();
    // As in RabbitMQ's tool, a missing vhost counts as empty.
    let all: Value = call.node.api.find(&path(&[resource, call.vhost()]))?.unwrap_or_default();
    let rows = rows_of(&all, |one| columns.iter().map(|c| c.cell(one, &nobody)).collect());
    Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }))
}
