//! Commands of `rabbitmq-upgrade`: what scripts do before and after the upgrade of a node.

use std::time::Duration;

use super::diagnostics::quorum;
use super::lifecycle::{act, deadline, poll};
use crate::command::{Command, Section, Tools};
use crate::commands::clients::connections::close_everyone;
use crate::failure::Failure;
use crate::format::Output;
use crate::http::HttpError;

/// Time for which a node waits for others, as in RabbitMQ.
const QUORUM_TIMEOUT: Duration = Duration::from_secs(120);

/// The reason that clients are told.
const REASON: &str = "Node is put into maintenance mode";

pub(in crate::commands) const COMMANDS: &[Command] = &[
    upgrade(
        "await_online_quorum_plus_one",
        "Waits until every vhost would have a majority of its nodes without this one",
        |call| {
            (call.find)()?;
            // Nobody waits for a node that refuses the login.
            let told = || match quorum(call) {
                Ok(()) => Some(Ok(())),
                Err(refused @ Failure::Http(HttpError::Refused { status: 401 | 403, .. })) => {
                    Some(Err(refused))
                }
                Err(_) => None,
            };
            let waited = poll(deadline(call, QUORUM_TIMEOUT), told);
            waited.unwrap_or_else(|| quorum(call)).map(|()| Output::Done)
        },
    )
    .banner(|call| {
        let usual = i64::try_from(QUORUM_TIMEOUT.as_secs()).unwrap_or(i64::MAX);
        let seconds = call.options.integer("timeout").unwrap_or(usual);
        format!(
            "Will wait for a quorum + 1 of nodes to be online for all quorum queues and streams for \
             {seconds} seconds..."
        )
    })
    .waits(),
    upgrade(
        "drain",
        "Stops accepting AMQP clients, lets other nodes lead the vhosts, and closes all connections",
        |call| {
            act(call, "drain")?;
            close_everyone(call, REASON)?;
            Ok(Output::Done)
        },
    )
    .slow()
    .banner(|call| {
        let node = call.node.name();
        format!(
            "Will put node {node} into maintenance mode. The node will no longer serve any client \
             traffic!"
        )
    }),
    upgrade("revive", "Accepts AMQP clients and leads again, after `drain`", |call| {
        act(call, "revive")
    })
    .banner(|call| {
        let node = call.node.name();
        format!(
            "Will put node {node} back into regular operating mode. The node will again serve client \
             traffic and host primary queue replicas."
        )
    }),
    upgrade("post_upgrade", "Does nothing: a start does what an upgrade needs", |_| {
        Ok(Output::Done)
    })
    .banner(|_| "Executing post upgrade tasks...".to_owned()),
];

/// A command of `rabbitmq-upgrade`, without words.
const fn upgrade(
    name: &'static str,
    about: &'static str,
    run: fn(&crate::command::Call<'_>) -> Result<Output, Failure>,
) -> Command {
    Command::new(Section::Upgrade, name, name, about, run).of(Tools::UPGRADE)
}
