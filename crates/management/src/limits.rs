//! Limits of the HTTP API, each with its unit, its reason and the status of a refusal.

use std::time::Duration;

use server::limits::{JSON_DEPTH_MAX, LOCAL_BODY_BYTES_MAX};

/// Bytes of a request's path and query: room for vhost, queue and paging parameters many times over; 414.
pub const URI_BYTES_MAX: usize = 8 * 1024;

/// Bytes of all headers of a request: room for a login and a proxy's headers many times over; 431.
pub const HEADER_BYTES_MAX: usize = 32 * 1024;

/// Bytes of a body that are read and dropped before an answer that needs none of them: a client that still sends sees a
/// broken connection instead of the answer.
pub(crate) const UNREAD_BODY_BYTES_MAX: usize = LOCAL_BODY_BYTES_MAX;

/// Time for the next piece of such a body. The answer is sent without the rest after it.
pub(crate) const UNREAD_PIECE_TIMEOUT: Duration = Duration::from_secs(1);

/// Time for all of such a body.
pub(crate) const UNREAD_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes taken for a request as long as it lasts: headers, and an answer that is not larger.
pub(crate) const HTTP_REQUEST_BYTES: usize = 64 * 1024;

/// Bytes taken for a value in the JSON of a body.
pub(crate) const HTTP_VALUE_BYTES: usize = 128;

/// Memory of a part of another node while it is put together with others, in multiples of its text.
pub(crate) const HTTP_TREE_TIMES: usize = 6;

/// Bytes of an answer given to the connection at once. It keeps sixteen such pieces for a client that does not read.
pub(crate) const HTTP_SENT_AT_ONCE: usize = 16 * 1024;

/// Speed of a transfer below which it gives way to requests that wait for memory, in bytes a second: two megabits.
pub(crate) const HTTP_BYTES_PER_S_MIN: u32 = 256 * 1024;

/// Time for which a transfer may rest.
pub(crate) const HTTP_TRANSFER_GRACE: Duration = Duration::from_secs(1);

/// Rows of a list made at once: a millisecond of work.
pub(crate) const LIST_ROWS_AT_ONCE: usize = 16;

/// Rows of a list whose keys are made at once, to sort it.
pub(crate) const LIST_KEYS_AT_ONCE: usize = 128;

/// Bytes of a list that are made before they are sent.
pub(crate) const LIST_BYTES_AT_ONCE: usize = 32 * 1024;

/// Bytes of a row in the part of another node in a list.
pub(crate) const LIST_LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Time for the answer of another node of the cluster to a request that was passed on; 503 after it.
pub const PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for the part of another node of the cluster in a list of all; the list is incomplete after it.
pub const PART_TIMEOUT: Duration = Duration::from_secs(2);

/// Values in the body of a request: room for any list of names and any field table; 400.
pub const BODY_VALUES_MAX: usize = 64 * 1024;

/// Lists and objects inside each other in definitions, in which a value lies inside an item, a list and the document; 400.
pub const DEFINITIONS_DEPTH_MAX: usize = JSON_DEPTH_MAX + 3;

/// Values in definitions: room for a document of [`server::limits::BODY_BYTES_MAX`] with named objects. In longer documents, one for each
/// ten bytes; 400.
pub const DEFINITIONS_VALUES_MAX: usize = 1024 * 1024;

/// Values that definitions of so many bytes may have.
pub(crate) fn definitions_values_max(bytes: usize) -> usize {
    DEFINITIONS_VALUES_MAX.max(bytes / 10)
}

/// Bytes of a login form, whose sender is not authenticated yet; as in RabbitMQ; 413.
pub const LOGIN_BYTES_MAX: usize = 64 * 1024;

/// Items on a page of a list, as in RabbitMQ; 400.
pub const PAGE_SIZE_MAX: u64 = 500;

/// Items on a page of a list without `page_size`, as in RabbitMQ.
pub(crate) const PAGE_SIZE_DEFAULT: u64 = 100;

/// Queues named beside one edge or queue of the dead-letter map: a dead-letter exchange may lead to many.
pub(crate) const NAMED_TOGETHER_MAX: usize = 32;

/// Warnings in one answer about the dead-letter map, the most severe first: more than an operator fixes at a
/// time.
pub(crate) const MAP_WARNINGS_MAX: usize = 200;

/// Delays in one answer about the dead-letter map, those with the most messages first: as many as a picture shows.
pub(crate) const MAP_DELAYS_MAX: usize = 200;

/// Bytes of a field table in JSON. Like a table over AMQP, it must fit into a frame of the usual size (128
/// KiB); 400.
pub const TABLE_BYTES_MAX: usize = 128 * 1024 - 1024;

/// Approximate bytes of the messages in one answer to `get`, which ends with the message that reaches the
/// limit. The answer is built in memory in one step, for which AMQP clients wait, too, where processors are
/// few.
pub(crate) const GET_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Messages in one answer to a browse, as on a page of a list; 400.
pub const BROWSE_COUNT_MAX: usize = 500;

/// The default of the limit above.
pub(crate) const BROWSE_COUNT_DEFAULT: usize = 50;

/// Bytes shown of a body without `truncate`.
pub(crate) const BROWSE_TRUNCATE_DEFAULT: usize = 50_000;

/// Reads of a queue per browse request, each of at most one page on disk. The cursor continues.
pub(crate) const BROWSE_READS_MAX: usize = 16;

/// Buckets in an answer about expiry; 400.
pub const EXPIRY_BUCKETS_MAX: usize = 200;

/// The default of the limit above.
pub(crate) const EXPIRY_BUCKETS_DEFAULT: usize = 40;

/// Bins that deadlines are counted in before the bins get longer: many times the buckets, so that buckets
/// end where bins end.
pub(crate) const EXPIRY_BINS_MAX: usize = 4096;

/// Scheduled messages in one answer; 400.
pub const SCHEDULED_COUNT_MAX: usize = 500;

/// The default of the limit above.
pub(crate) const SCHEDULED_COUNT_DEFAULT: usize = 100;

/// Scheduled messages that one request counts; the answer says that there are more.
pub(crate) const SCHEDULED_COUNTED_MAX: u64 = 100_000;

/// Scheduled messages counted before the vhost's lock is released: less than a millisecond.
pub(crate) const SCHEDULED_COUNTED_AT_ONCE: usize = 512;

/// Buckets in an answer about numbers of scheduled messages; 400.
pub const SCHEDULED_BUCKETS_MAX: usize = 200;

/// The default of the limit above: an hour of minutes.
pub(crate) const SCHEDULED_BUCKETS_DEFAULT: usize = 60;

/// Reasons in one answer about the reasons that consumers gave; 400.
pub const GIVEN_REASONS_COUNT_MAX: usize = 100;

/// The default of the limit above.
pub(crate) const GIVEN_REASONS_COUNT_DEFAULT: usize = 20;

/// Different reasons that are counted apart while a queue is read; messages with further ones count as other.
pub(crate) const GIVEN_REASONS_KEPT_MAX: usize = 1024;

/// Bytes shown of a reason; the rest is cut.
pub(crate) const GIVEN_REASON_SHOWN_BYTES_MAX: usize = 256;

/// Messages from which no more are read to count reasons: as many as a dry run of a redrive examines.
pub(crate) const GIVEN_REASONS_SCANNED_MAX: u64 = 100_000;

/// Deaths in one answer about the history of dead letters, as on a page of a list; 400.
pub const DEATHS_COUNT_MAX: usize = 500;

/// The default of the limit above.
pub(crate) const DEATHS_COUNT_DEFAULT: usize = 100;

/// Slices of the history of dead letters that one request reads: more than the default number of deaths. The cursor
/// continues.
pub(crate) const DEATHS_READS_MAX: usize = 32;

/// Deaths shown of a message, the latest; the others are only counted.
pub(crate) const DEATHS_SHOWN_MAX: usize = 256;

/// Routing keys shown of a death; the others are only counted.
pub(crate) const DEATH_KEYS_SHOWN_MAX: usize = 32;

/// Redrives shown of a message.
pub(crate) const REDRIVES_SHOWN_MAX: usize = 32;

/// Seconds of history that a request may ask for: a year; 400.
pub(crate) const AGE_S_MAX: u64 = 31_536_000;

/// Samples per number in an answer, as in RabbitMQ; 400.
pub(crate) const MOMENTS_MAX: u64 = 500;

/// Bytes of metrics that are written before they are sent.
pub(crate) const METRICS_BYTES_AT_ONCE: usize = 32 * 1024;

/// Bytes of the prefix of metric names that a request may set.
pub(crate) const METRICS_PREFIX_BYTES_MAX: usize = 64;

/// Bytes shown of a body in a dry run of a redrive.
pub(crate) const REDRIVE_SAMPLE_TRUNCATE: usize = 5_000;

/// Names in one finding of the health check; the others are only counted.
pub(crate) const FINDING_NAMES_MAX: usize = 5;

/// Names in one group of warnings of the dead-letter map; the others are only counted.
pub(crate) const WARNING_GROUP_NAMES_MAX: usize = 5;

/// Microseconds behind a deadline from which an expiry is reported as late: a thousand times the usual lateness.
pub(crate) const LATE_DEADLINE_US: u64 = 1_000_000;

/// Microseconds of a write to a log from which the disk is reported as slow: publishers wait for their confirms
/// as long.
pub(crate) const SLOW_WRITE_US: u64 = 1_000_000;

/// Seconds before its end in which a certificate is reported: a month is time to renew it.
pub(crate) const CERTIFICATE_EXPIRES_SOON_S: i64 = 30 * 24 * 3600;

/// Milliseconds for which a step of the system's clock is reported.
pub(crate) const CLOCK_STEP_SHOWN_MS: u64 = 3600 * 1000;

/// Logins refused within the last minutes from which a finding reports them: more than a person mistypes.
pub(crate) const REFUSED_LOGINS_SHOWN_MIN: u64 = 10;

/// Percent of a limit of memory or disk space from which a shortage is reported, before the alarm.
pub(crate) const SHORT_PERCENT: u64 = 90;

/// Percent of the file descriptors from which a shortage is reported.
pub(crate) const SHORT_DESCRIPTORS_PERCENT: u64 = 90;

/// Consumer capacity in parts per million below which consumers are reported to be at their prefetch limit: half of
/// the recent past.
pub(crate) const SHORT_CAPACITY_PPM: u64 = 500_000;

/// Unacknowledged messages of a queue below which its consumers are never reported as slow.
pub(crate) const SLOW_UNACKED_MIN: u64 = 100;

/// Seconds that the acknowledgement of all unacknowledged messages would take, at the present rate, from which the
/// consumers of a queue are reported as slow.
pub(crate) const SLOW_UNACKED_S: u32 = 30;
