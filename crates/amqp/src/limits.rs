//! Every size that AMQP 0-9-1, RabbitMQ or this crate sets, with its unit and its reason.
//!
//! Configurable limits (frame_max, max_message_size) are arguments, not constants; only their bounds
//! are here.

/// Bytes of a frame before its payload: type (1), channel (2), payload size (4).
pub const FRAME_HEADER_SIZE: usize = 7;

/// Bytes of a frame that are not payload: the header and the frame-end octet.
pub const FRAME_OVERHEAD: usize = FRAME_HEADER_SIZE + 1;

/// The octet that ends every frame.
pub const FRAME_END: u8 = 0xCE;

/// The smallest frame_max that the AMQP 0-9-1 specification lets a peer ask for, in bytes.
///
/// Only clients of other servers may use it: RabbitMQ 4.3 requires [`FRAME_MIN_SIZE`].
pub const FRAME_MIN_SIZE_AMQP: u32 = 4096;

/// The smallest frame_max that RabbitMQ 4.3 accepts in tune-ok, in bytes, and its limit for frames
/// before the tuning.
///
/// RabbitMQ 4.3.6 accepts 8192 and drops the connection at 8191 and at 4096, observed.
pub const FRAME_MIN_SIZE: u32 = 8192;

/// Longest short string, in bytes: its length is one octet.
pub const SHORT_STRING_BYTES_MAX: usize = u8::MAX as usize;

/// Deepest nesting of tables and arrays; the outermost table is depth 1.
///
/// RabbitMQ 4.3.6 has no such limit (5,000 levels accepted, observed). The limit bounds the stack of
/// each function that walks a table; no client is known to nest deeper than four.
// COMPAT: table depth: tables nested deeper than 32 are refused; RabbitMQ has no limit.
pub const TABLE_DEPTH_MAX: usize = 32;

/// Longest reply text, in bytes: it is a short string.
pub const REPLY_TEXT_BYTES_MAX: usize = SHORT_STRING_BYTES_MAX;

/// Bytes of a method frame's payload before the arguments: class id (2), method id (2).
pub const METHOD_ID_SIZE: usize = 4;

/// Bytes of a content header before the properties: class id (2), weight (2), body size (8).
pub const CONTENT_HEADER_SIZE: usize = 12;

/// Largest body that a content header may announce, in bytes (512 MiB).
///
/// RabbitMQ 4.3.6 answers one byte more with 501 and the text
/// `content body size 536870913 exceeds maximum allowed size 536870912`, observed. max_message_size
/// may be set lower, not higher.
pub const BODY_SIZE_MAX: u64 = 512 * 1024 * 1024;

/// Bytes of an offending frame that an error keeps for its text, as many as RabbitMQ prints.
pub const FRAME_ERROR_BYTES_MAX: usize = 16;

/// Bytes of undecodable method arguments that an error text is made of.
///
/// Each is printed with at least two characters, so that more would not fit into a reply text.
pub const METHOD_ERROR_BYTES_MAX: usize = REPLY_TEXT_BYTES_MAX / 2 + 1;
