//! Commands and policies that several tests give.

use std::sync::Arc;

use amqp::table::Table;
use broker::access::Access;
use broker::{
    ApplyTo, Command, ConnectionId, DeclareQueue, Definition, Pattern, Policy, PolicyKind,
    PolicyValue, Vhost, VhostOptions,
};

/// A vhost with the connection of a client that may do everything.
pub(crate) fn vhost_with_client() -> (Vhost, ConnectionId) {
    let mut vhost = Vhost::new("/", [3; 32], VhostOptions::default());
    let access = Access::matching("guest".into(), ".*").unwrap();
    let connection = vhost.open_connection(Arc::new(access), true);
    (vhost, connection)
}

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

/// A policy of queues with one key, whose value is a number.
pub(crate) fn queue_policy(name: &str, pattern: &str, key: &str, value: i64) -> Policy {
    let entries = vec![(key.to_owned(), PolicyValue::Integer(value))];
    Policy {
        name: name.into(),
        pattern: Pattern::new(pattern).unwrap(),
        apply_to: ApplyTo::Queues,
        priority: 0.0,
        definition: Definition::parse(entries, PolicyKind::User).unwrap(),
    }
}
