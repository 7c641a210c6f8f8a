//! What a client says of itself in `connection.start-ok`.

use amqp::table::{Table, TableRef, Value};

/// What a client can be told (spec 7.6).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Capabilities {
    /// `consumer_cancel_notify`: `basic.cancel` when a consumer is gone.
    pub consumer_cancel_notify: bool,
    /// `connection.blocked`: that the broker does not read publishes.
    pub connection_blocked: bool,
    /// `authentication_failure_close`: a refused login by `connection.close`.
    pub authentication_failure_close: bool,
}

/// A client as it describes itself.
#[derive(Clone, Default, Debug)]
pub struct Client {
    /// Everything it said.
    pub properties: Table,
    /// What it can be told.
    pub capabilities: Capabilities,
    /// `connection_name`, as given by its user.
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
