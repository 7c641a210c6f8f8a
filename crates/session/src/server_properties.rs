//! The server's properties in `connection.start`: its name, version and capabilities.

use amqp::table::{Table, TableBuilder, Value};

/// Names and versions that the broker reports to clients. Clients choose their features by them.
///
/// COMPAT: identity: clients are told RabbitMQ and its version, and Leveret's version beside them.
#[derive(Clone, Copy, Debug)]
pub struct ServerIdentity<'a> {
    /// Name of the product.
    pub product: &'a str,
    /// Version of the product.
    pub version: &'a str,
    /// Leveret's own version.
    pub leveret_version: &'a str,
    /// Name of the cluster.
    pub cluster_name: &'a str,
}

/// `server-properties` of `connection.start`.
pub fn server_properties(identity: ServerIdentity<'_>) -> Table {
    let ServerIdentity { product, version, leveret_version, cluster_name } = identity;
    let information = format!("Leveret {leveret_version}, licensed under MIT or Apache-2.0");
    let mut properties = TableBuilder::new();
    properties.table("capabilities", |capabilities| {
        for name in [
            "publisher_confirms",
            "exchange_exchange_bindings",
            "basic.nack",
            "consumer_cancel_notify",
            "connection.blocked",
            "consumer_priorities",
            "authentication_failure_close",
            "per_consumer_qos",
            "direct_reply_to",
        ] {
            capabilities.insert(name, Value::Bool(true));
        }
    });
    for (key, text) in [
        ("cluster_name", cluster_name),
        ("copyright", "Copyright the Leveret authors"),
        ("information", &information),
        ("leveret_version", leveret_version),
        ("platform", "Rust"),
        ("product", product),
        ("version", version),
    ] {
        properties.insert(key, Value::LongStr(text.as_bytes()));
    }
    properties.finish()
}
