//! Routing keys.

use std::fmt;
use std::sync::Arc;

/// A routing key: usually text, but any bytes are allowed, as in RabbitMQ.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoutingKey(Arc<[u8]>);

impl RoutingKey {
    /// The bytes on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key as text, if it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl From<&[u8]> for RoutingKey {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<&str> for RoutingKey {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl fmt::Display for RoutingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for RoutingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}
