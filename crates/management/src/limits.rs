//! Every limit of HTTP, with its unit and its reason.

/// Bytes of a request's path and query: vhost, queue and a page of a list fit in many times; 414.
pub const URI_BYTES_MAX: usize = 8 * 1024;

/// Bytes of all headers of a request: a login and what a proxy adds fit in many times; 431.
pub const HEADER_BYTES_MAX: usize = 32 * 1024;

/// Bytes of the body of a request, as RabbitMQ; 400.
pub const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Values in the body of a request: any list of names and any field table fits; 400.
pub const BODY_VALUES_MAX: usize = 64 * 1024;

/// Values in definitions: a document of [`BODY_BYTES_MAX`] with things that are named fits; 400.
pub const DEFINITIONS_VALUES_MAX: usize = 1024 * 1024;

/// Bytes of the form that logs somebody in, who is a stranger until then, as RabbitMQ; 413.
pub const LOGIN_BYTES_MAX: usize = 64 * 1024;

/// Things on a page of a list, as in RabbitMQ; 400.
pub const PAGE_SIZE_MAX: u64 = 500;

/// Things on a page of a list if the request does not say; RabbitMQ's.
pub(crate) const PAGE_SIZE_DEFAULT: u64 = 100;

/// Queues that are named where one leads to many, as a dead-letter exchange may, or comes from many.
pub(crate) const NAMED_TOGETHER_MAX: usize = 32;

/// Warnings in one answer about the dead-letter map, the worst ones; a page of edges tells of more than
/// anybody mends at a time.
pub(crate) const MAP_WARNINGS_MAX: usize = 200;

/// Octets of a field table that comes as JSON: like one that comes over AMQP it must fit into a frame
/// of the size that clients usually agree on (128 KiB); 400.
pub const TABLE_BYTES_MAX: usize = 128 * 1024 - 1024;

/// Octets that the messages in one answer to `get` take, about; it ends with the message that reaches
/// them. An answer is made in memory and in one go, for which clients of AMQP wait too where processors are few.
pub(crate) const GET_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Messages in one answer about what is in a queue, as on a page of a list; 400.
pub const BROWSE_COUNT_MAX: usize = 500;

/// The same if the request does not say.
pub(crate) const BROWSE_COUNT_DEFAULT: usize = 50;

/// Octets of a body that are shown if the request does not say.
pub(crate) const BROWSE_TRUNCATE_DEFAULT: usize = 50_000;

/// Looks at a queue that one request takes, each at no more messages than a page on disk has; who wants
/// more goes on at the cursor.
pub(crate) const BROWSE_LOOKS_MAX: usize = 16;

/// Buckets in an answer about when messages expire; 400.
pub const EXPIRY_BUCKETS_MAX: usize = 200;

/// The same if the request does not say.
pub(crate) const EXPIRY_BUCKETS_DEFAULT: usize = 40;

/// Bins that deadlines are counted in before these become longer: many times the buckets, so that buckets
/// end where bins do.
pub(crate) const EXPIRY_BINS_MAX: usize = 4096;

/// Redrives of a message that are shown.
pub(crate) const REDRIVES_SHOWN_MAX: usize = 32;

/// Bytes that samples of queues, exchanges, connections and channels take, as long as there are no more
/// than a hundred thousand of these: a history of ten minutes for two thousand busy queues.
pub(crate) const HISTORY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Samples that each thing keeps at most, at each distance: ten minutes at the usual interval.
pub(crate) const HISTORY_SAMPLES_MAX: usize = 122;

/// Samples that each thing keeps at least: a rate is made of two.
pub(crate) const HISTORY_SAMPLES_MIN: usize = 2;

/// Seconds that a request may look back: a year; 400.
pub(crate) const AGE_S_MAX: u64 = 31_536_000;

/// Moments that a request may want to see of each number, as in RabbitMQ; 400.
pub(crate) const MOMENTS_MAX: u64 = 500;

/// Bytes of the prefix that a request may want names of metrics to begin with.
pub(crate) const METRICS_PREFIX_BYTES_MAX: usize = 64;

/// Octets of a body that are shown of a message that a dry run of a redrive has chosen.
pub(crate) const REDRIVE_SAMPLE_TRUNCATE: usize = 5_000;
