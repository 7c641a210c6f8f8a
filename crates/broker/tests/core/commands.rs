//! Commands that several tests give.

use amqp::table::Table;
use broker::{Command, DeclareQueue};

/// Declares a durable queue that other connections may use, without an answer.
pub(crate) fn declare_queue<'a>(queue: &'a str, arguments: &'a Table) -> Command<'a> {
    Command::DeclareQueue(DeclareQueue {
        queue,
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: false,
        nowait: true,
        arguments: arguments.as_ref(),
    })
}
