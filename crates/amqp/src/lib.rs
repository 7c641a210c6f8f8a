//! AMQP 0-9-1 bytes, exactly as RabbitMQ 4.3 reads and writes them.
//!
//! Zero-copy in, append out: what is decoded borrows from the octets it was decoded from, what is
//! encoded is appended to the caller's `Vec<u8>`. The crate has no state, no clock and no socket; it
//! does not know what a connection may send when (that is the session's knowledge) nor what a queue
//! is (the broker's).
//!
//! Everything that comes from the wire is hostile until decoded: nothing here panics on it, recurses
//! deeper than [`limits::TABLE_DEPTH_MAX`], or allocates because a length was announced.
//!
//! ```text
//! protocol header   "AMQP" 0 0 9 1                        protocol_header
//! frame             type channel size payload 0xCE        frame
//!   method          class-id method-id arguments          method
//!   content header  class-id weight body-size properties  content_header, properties
//!   content body    octets
//! field table       size (key type value)*                table
//! ```
//!
//! Where a comment says "observed", the fact was seen on a live RabbitMQ 4.3.6.

#![deny(clippy::indexing_slicing)]

pub mod limits;

pub mod protocol_header;

pub mod frame;

pub mod primitives;

pub mod table;

pub mod properties;

pub mod content_header;

pub mod method;

pub mod reply_code;

pub mod erlang_binary;

pub mod sasl;
