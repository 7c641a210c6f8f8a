//! Keys for limits of connections, messages, queues, memory and disk; for durability; for names.

use std::ops::RangeInclusive;
use std::time::Duration;

use amqp::limits::{BODY_SIZE_MAX, FRAME_MIN_SIZE};
use broker::limits::{DEATHS_KEPT_AGE_MS_MAX, DEATHS_KEPT_LIMIT_MAX};

use crate::config::key::Key;
use crate::config::values::{
    boolean, bytes, fraction, multiple, node_name, number, number_or, one_of, product, version,
};
use crate::config::{DiskFreeLimit, Durability, MemoryWatermark};
use crate::limits::{LOCAL_BODY_BYTES_MAX, STATISTICS_INTERVAL_MIN_MS};
use crate::snapshot::node::RABBITMQ_VERSION;

/// Valid intervals of statistics samples, in milliseconds.
const INTERVAL_MS: RangeInclusive<u64> = STATISTICS_INTERVAL_MIN_MS..=86_400_000;

pub(super) const KEYS: &[Key] = &[
    Key::new("heartbeat", Some("60"), |config, _, value| {
        config.session.heartbeat_s = number(value, 0..=65535)?;
        Ok(())
    }),
    Key::new("channel_max", Some("2047"), |config, _, value| {
        config.session.channel_max = number(value, 0..=65535)?;
        Ok(())
    })
    .or(&["max_channels_per_connection"]),
    Key::new("frame_max", Some("131072"), |config, _, value| {
        config.session.frame_max = number(value, FRAME_MIN_SIZE..=u32::MAX)?;
        Ok(())
    }),
    Key::new("max_message_size", Some("16777216"), |config, _, value| {
        config.session.message_bytes_max = number(value, 1..=BODY_SIZE_MAX)?;
        Ok(())
    }),
    Key::new("connection_max", Some("infinity"), |config, _, value| {
        config.connections_max = number_or("infinity", value, 0..=u64::from(u32::MAX))?;
        Ok(())
    })
    .or(&["max_connections"]),
    Key::new("management.http.max_body_size", Some("10485760"), |config, _, value| {
        config.http_body_bytes_max = number(value, 0..=LOCAL_BODY_BYTES_MAX)?;
        Ok(())
    }),
    Key::new("durability", Some("fsync"), |config, _, value| {
        config.storage.durability =
            one_of(value, &[("fsync", Durability::Fsync), ("os", Durability::Os)])?;
        Ok(())
    }),
    Key::new("consumer_timeout", Some("1800000"), |config, _, value| {
        let off = matches!(value, "undefined" | "infinity" | "false");
        let millis = (!off).then(|| number_or("infinity", value, 1..=u64::from(u32::MAX)));
        config.vhost.queue_defaults.consumer_timeout_ms = millis.transpose()?.flatten();
        Ok(())
    }),
    Key::new("consumer_max_per_channel", Some("infinity"), |config, _, value| {
        config.vhost.consumers_per_channel_max = number_or("infinity", value, 1..=u32::MAX)?;
        Ok(())
    }),
    Key::new("dead_letter_history.max_entries", Some("20000"), |config, _, value| {
        config.vhost.dead_letter_history.entries_max = number(value, 0..=DEATHS_KEPT_LIMIT_MAX)?;
        Ok(())
    }),
    Key::new("dead_letter_history.max_bytes", Some("16MiB"), |config, _, value| {
        config.vhost.dead_letter_history.bytes_max = bytes(value)?;
        Ok(())
    }),
    Key::new("dead_letter_history.max_age", Some("604800000"), |config, _, value| {
        let age_max_ms = number(value, 1..=DEATHS_KEPT_AGE_MS_MAX)?;
        config.vhost.dead_letter_history.age_max_ms = age_max_ms;
        Ok(())
    }),
    Key::new("file_check.interval", Some("604800000"), |config, _, value| {
        let off = value == "infinity";
        let millis = (!off).then(|| number_or("infinity", value, 1000..=u64::from(u32::MAX)));
        config.storage.file_check.interval =
            millis.transpose()?.flatten().map(Duration::from_millis);
        Ok(())
    }),
    Key::new("file_check.bytes_per_second", Some("8MiB"), |config, _, value| {
        let rate = Some(bytes(value)?).filter(|rate| *rate > 0);
        config.storage.file_check.bytes_per_second = rate.ok_or("must be above 0")?;
        Ok(())
    }),
    Key::new("deprecated_features.permit.global_qos", Some("true"), |config, _, value| {
        config.vhost.permits_global_qos = boolean(value)?;
        Ok(())
    }),
    Key::new("vm_memory_high_watermark.relative", Some("0.6"), |config, _, value| {
        config.memory_watermark = MemoryWatermark::Relative(fraction(value)?);
        Ok(())
    }),
    Key::new("vm_memory_high_watermark.absolute", None, |config, _, value| {
        config.memory_watermark = MemoryWatermark::Absolute(bytes(value)?);
        Ok(())
    }),
    Key::new("vm_memory_high_watermark_paging_ratio", None, |config, _, value| {
        config.paging_ratio = Some(fraction(value)?);
        Ok(())
    }),
    Key::new("total_memory_available_override_value", None, |config, _, value| {
        config.total_memory_bytes = Some(bytes(value)?);
        Ok(())
    }),
    Key::new("disk_free_limit.absolute", Some("50MB"), |config, _, value| {
        config.disk_free_limit = DiskFreeLimit::Absolute(bytes(value)?);
        Ok(())
    }),
    Key::new("disk_free_limit.relative", None, |config, _, value| {
        config.disk_free_limit = DiskFreeLimit::Relative(multiple(value)?);
        Ok(())
    }),
    Key::new("data_dir", Some("data"), |config, _, value| {
        config.data_dir = value.into();
        Ok(())
    }),
    Key::new("collect_statistics_interval", Some("5000"), |config, _, value| {
        config.statistics_interval = Duration::from_millis(number(value, INTERVAL_MS)?);
        Ok(())
    }),
    Key::new("nodename", None, |config, _, value| {
        config.node_name = Some(node_name(value)?);
        Ok(())
    }),
    Key::new("identity.product", Some("RabbitMQ"), |config, _, value| {
        config.identity.product = product(value)?;
        Ok(())
    }),
    Key::new("identity.version", Some(RABBITMQ_VERSION), |config, _, value| {
        config.identity.version = version(value)?;
        Ok(())
    }),
    Key::new("cluster_name", None, |config, _, value| {
        config.cluster_name = Some(value.to_owned());
        Ok(())
    }),
];
