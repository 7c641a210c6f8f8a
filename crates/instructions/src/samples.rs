//! The messages that cases send: small without properties, and larger with headers.

use amqp::frame::write_body_frames;
use amqp::limits::FRAME_OVERHEAD;
use amqp::method::{BasicPublish, write_method};
use amqp::properties::Properties;
use amqp::table::{TableBuilder, Value};
use broker::Content;

/// Largest frame, in bytes, as most clients agree on.
pub(crate) const FRAME_MAX: u32 = 131_072;

/// A message as it comes.
pub(crate) struct Sample {
    /// Properties, the frame boundary, the body.
    bytes: Vec<u8>,
    properties_len: usize,
}

impl Sample {
    /// 16 bytes and no properties.
    pub(crate) fn small() -> Self {
        Self::new(&Properties::default(), 16)
    }

    /// 1 KB with two headers.
    pub(crate) fn large() -> Self {
        let headers = TableBuilder::new()
            .insert("attempt", Value::I32(3))
            .insert("trace-id", Value::LongStr(b"4bf92f3577b34da6a3ce929d0e0e4736"))
            .finish();
        let properties = Properties {
            content_type: Some(b"application/json"),
            headers: Some(headers.as_ref()),
            ..Properties::default()
        };
        Self::new(&properties, 1024)
    }

    /// 16 bytes that are to be written to disk.
    pub(crate) fn persistent() -> Self {
        Self::new(&Properties { delivery_mode: Some(2), ..Properties::default() }, 16)
    }

    /// 16 bytes that expire after so long.
    pub(crate) fn expiring(milliseconds: u64) -> Self {
        let text = milliseconds.to_string();
        let expiration = Some(text.as_bytes());
        Self::new(&Properties { expiration, ..Properties::default() }, 16)
    }

    /// 16 bytes that wait before they are delivered.
    pub(crate) fn delayed() -> Self {
        let headers = TableBuilder::new().insert("x-opt-delivery-delay", Value::I64(1)).finish();
        Self::new(&Properties { headers: Some(headers.as_ref()), ..Properties::default() }, 16)
    }

    /// Sets the wait of a message that waits: the value of its last header, which ends the properties.
    pub(crate) fn set_delay(&mut self, milliseconds: i64) {
        if let Some((properties, _)) = self.bytes.split_at_mut_checked(self.properties_len)
            && let Some(delay) = properties.last_chunk_mut()
        {
            *delay = milliseconds.to_be_bytes();
        }
    }

    /// 16 bytes with a `message_id`.
    pub(crate) fn with_id() -> Self {
        let message_id = Some(b"order-7f3c2a9e".as_slice());
        Self::new(&Properties { message_id, ..Properties::default() }, 16)
    }

    fn new(properties: &Properties<'_>, body_len: usize) -> Self {
        let mut bytes = Vec::new();
        properties.encode(&mut bytes);
        let properties_len = bytes.len();
        bytes.resize(properties_len + FRAME_OVERHEAD, 0);
        bytes.resize(bytes.len() + body_len, 7);
        Self { bytes, properties_len }
    }

    /// The properties as they are encoded.
    pub(crate) fn properties(&self) -> &[u8] {
        self.content_slices().0
    }

    /// The body.
    pub(crate) fn body(&self) -> &[u8] {
        self.content_slices().1
    }

    fn content_slices(&self) -> (&[u8], &[u8]) {
        let (properties, rest) = self.bytes.split_at(self.properties_len);
        (properties, rest.split_at(FRAME_OVERHEAD).1)
    }

    /// As the session hands it to the core.
    pub(crate) fn content(&self) -> Content<'_> {
        Content::Framed {
            bytes: &self.bytes,
            properties_len: self.properties_len,
            body_start: self.properties_len + FRAME_OVERHEAD,
        }
    }

    /// The three frames of its publish.
    pub(crate) fn publish(&self, exchange: &str, routing_key: &str) -> Vec<u8> {
        let method = BasicPublish {
            exchange: exchange.as_bytes(),
            routing_key: routing_key.as_bytes(),
            mandatory: false,
            immediate: false,
        };
        let mut out = Vec::new();
        write_method(&mut out, 1, &method.into());
        let body = self.body();
        let size = body.len() as u64;
        amqp::content_header::write_content_header(&mut out, 1, size, self.properties());
        write_body_frames(&mut out, 1, body, FRAME_MAX - 8);
        out
    }
}
