//! Every limit of HTTP, with its unit and its reason.

/// Bytes of a request's path and query: vhost, queue and a page of a list fit in many times; 414.
pub const URI_BYTES_MAX: usize = 8 * 1024;

/// Bytes of all headers of a request: a login and what a proxy adds fit in many times; 431.
pub const HEADER_BYTES_MAX: usize = 32 * 1024;

/// Bytes of the body of a request, as RabbitMQ; 400.
pub const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Things on a page of a list, as in RabbitMQ; 400.
pub const PAGE_SIZE_MAX: u64 = 500;

/// Things on a page of a list if the request does not say; RabbitMQ's.
pub(crate) const PAGE_SIZE_DEFAULT: u64 = 100;

/// Octets of a field table that comes as JSON: like one that comes over AMQP it must fit into a frame
/// of the size that clients usually agree on (128 KiB); 400.
pub const TABLE_BYTES_MAX: usize = 128 * 1024 - 1024;

/// Octets that the messages in one answer to `get` take, about; it ends with the message that reaches
/// them. An answer is made in memory.
pub(crate) const GET_BYTES_MAX: usize = 64 * 1024 * 1024;
