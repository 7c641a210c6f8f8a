//! AMQP 0-9-1 bytes, exactly as RabbitMQ 4.3 reads and writes them.
//!
//! Decoding is zero-copy: values borrow from the input. Encoding appends to the caller's `Vec<u8>`. The
//! crate has no state, no clock and no socket; it does not know the order of frames (the session does)
//! nor what a queue is (the broker does).
//!
//! Input from the wire is hostile: no function panics on it, recurses deeper than
//! [`limits::TABLE_DEPTH_MAX`], or allocates because a length was announced.
//!
//! ```text
//! protocol header   "AMQP" 0 0 9 1                        protocol_header
//! frame             type channel size payload 0xCE        frame
//!   method          class-id method-id arguments          method
//!   content header  class-id weight body-size properties  content_header, properties
//!   content body    bytes
//! field table       size (key type value)*                table
//! ```
//!
//! "Observed" in a comment means: seen on a live RabbitMQ 4.3.6.

#![deny(clippy::indexing_slicing)]

pub mod content_header;
pub mod erlang_binary;
pub mod frame;
pub mod limits;
pub mod method;
pub mod primitives;
pub mod properties;
pub mod protocol_header;
pub mod reply_code;
pub mod sasl;
pub mod table;
