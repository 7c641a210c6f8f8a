//! The client's properties in `connection.start-ok`: its name and capabilities.

use amqp::table::{Table, TableRef, Value};

/// Capabilities that a client has announced. Without one, the broker does not send the method.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Capabilities {
    /// `consumer_cancel_notify`: `basic.cancel` when a consumer is gone.
    pub consumer_cancel_notify: bool,
    /// `connection.blocked`: `connection.blocked` and `connection.unblocked`.
    pub connection_blocked: bool,
    /// `authentication_failure_close`: `connection.close` after a refused login.
    pub authentication_failure_close: bool,
}

/// Properties of a client.
#[derive(Clone, Default, Debug)]
pub struct Client {
    /// The whole table that the client sent.
    pub properties: Table,
    /// Capabilities from the table.
    pub capabilities: Capabilities,
    /// `connection_name`, chosen by the application.
    pub connection_name: Option<String>,
}

impl Client {
    pub(crate) fn new(properties: TableRef<'_>) -> Self {
        let capabilities = match properties.get("capabilities") {
            Some(Value::Table(capabilities)) => capabilities,
            _ => TableRef::EMPTY,
        };
        let has = |name: &str| capabilities.get(name) == Some(Value::Bool(true));
        let name = properties.get("connection_name").and_then(|value| value.as_long_str());
        Self {
            properties: properties.to_table(),
            capabilities: Capabilities {
                consumer_cancel_notify: has("consumer_cancel_notify"),
                connection_blocked: has("connection.blocked"),
                authentication_failure_close: has("authentication_failure_close"),
            },
            connection_name: name.map(|name| String::from_utf8_lossy(name).into_owned()),
        }
    }
}
