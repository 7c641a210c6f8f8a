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
