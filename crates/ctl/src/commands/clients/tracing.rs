//! The firehose: copies of all messages of a vhost to `amq.rabbitmq.trace`.

use serde_json::json;

use crate::command::{Call, Command, Section};
use crate::commands::access::vhosts::write;
use crate::failure::Failure;
use crate::format::Output;
use crate::http::path;
use crate::printable::in_line;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::VirtualHosts,
        "trace_on",
        "trace_on [--vhost <vhost>]",
        "Starts tracing: copies the messages of a vhost to amq.rabbitmq.trace",
        |call| set(call, true),
    )
    .banner(|call| format!("Starting tracing for vhost \"{}\" ...", call.vhost())),
    Command::new(
        Section::VirtualHosts,
        "trace_off",
        "trace_off [--vhost <vhost>]",
        "Stops tracing of a vhost",
        |call| set(call, false),
    )
    .banner(|call| format!("Stopping tracing for vhost \"{}\" ...", call.vhost())),
];

// COMPAT: tracing of no vhost: a vhost that is not there is an error, where RabbitMQ's tool says that
// its messages are traced.
fn set(call: &Call<'_>, is_on: bool) -> Result<Output, Failure> {
    let vhost = call.vhost();
    let found = call.node.api.find(&path(&["vhosts", vhost]))?;
    let found = found.ok_or_else(|| Failure::no_such_vhost(vhost))?;
    write(call, vhost, &found, &[("tracing", json!(is_on))])?;
    let state = if is_on { "enabled" } else { "disabled" };
    Ok(Output::Text(format!("Trace {state} for vhost {}", in_line(vhost))))
}
