//! The keys of the configuration, with their types and what they set.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use amqp::limits::{BODY_SIZE_MAX, FRAME_MIN_SIZE};
use broker::access::PermissionPattern;

use crate::limits::STATISTICS_INTERVAL_MIN;

use super::{Config, DiskFreeLimit, Durability, LogFormat, MemoryWatermark};

/// What has been set already, where the first of several lines replaces a default.
#[derive(Default, Debug)]
pub(super) struct Seen {
    listeners: bool,
    loopback_users: bool,
}

/// Sets one key.
pub(super) fn set(
    config: &mut Config,
    seen: &mut Seen,
    key: &str,
    value: &str,
) -> Result<(), String> {
    if set_family(config, seen, key, value)? {
        return Ok(());
    }
    match key {
        "management.tcp.port" => config.http_listener.set_port(number(key, value)?),
        "management.tcp.ip" => config.http_listener.set_ip(ip(key, value)?),
        "heartbeat" => config.session.heartbeat_s = number(key, value)?,
        "channel_max" => config.session.channel_max = number(key, value)?,
        "frame_max" => config.session.frame_max = at_least(key, value, FRAME_MIN_SIZE)?,
        "max_message_size" => {
            let bytes: u64 = number(key, value)?;
            config.session.message_bytes_max = bytes.min(BODY_SIZE_MAX);
        }
        "handshake_timeout" => config.session.handshake_timeout_ms = number(key, value)?,
        "consumer_timeout" => {
            let off = matches!(value, "undefined" | "infinity" | "false");
            let millis = if off { None } else { Some(number(key, value)?) };
            config.vhost.queue_defaults.consumer_timeout_ms = millis;
        }
        "consumer_max_per_channel" => {
            let max = if value == "infinity" { None } else { Some(number(key, value)?) };
            config.vhost.consumers_per_channel_max = max;
        }
        "default_user" => config.default_user.name = value.to_owned(),
        "default_pass" => config.default_user.password = value.to_owned(),
        "default_vhost" => config.default_user.vhost = value.to_owned(),
        "default_permissions.configure" => config.default_user.configure = pattern(key, value)?,
        "default_permissions.write" => config.default_user.write = pattern(key, value)?,
        "default_permissions.read" => config.default_user.read = pattern(key, value)?,
        "load_definitions" | "definitions.local.path" => {
            config.load_definitions = Some(PathBuf::from(value));
        }
        "definitions.import_backend" if value == "local_filesystem" => {}
        "collect_statistics_interval" => {
            config.statistics_interval = Duration::from_millis(number(key, value)?);
            if config.statistics_interval < STATISTICS_INTERVAL_MIN {
                let min_ms = STATISTICS_INTERVAL_MIN.as_millis();
                return Err(format!("{key} must be at least {min_ms}, got {value}"));
            }
        }
        "durability" => config.durability = durability(key, value)?,
        "cluster_name" => config.cluster_name = Some(value.to_owned()),
        "vm_memory_high_watermark.relative" => {
            config.memory_watermark = MemoryWatermark::Relative(fraction(key, value)?);
        }
        "vm_memory_high_watermark.absolute" => {
            config.memory_watermark = MemoryWatermark::Absolute(bytes(key, value)?);
        }
        "vm_memory_high_watermark_paging_ratio" => {
            config.paging_ratio = Some(fraction(key, value)?);
        }
        "disk_free_limit.absolute" => {
            config.disk_free_limit = DiskFreeLimit::Absolute(bytes(key, value)?);
        }
        "disk_free_limit.relative" => {
            config.disk_free_limit = DiskFreeLimit::Relative(multiple(key, value)?);
        }
        "deprecated_features.permit.global_qos" => {
            config.vhost.permits_global_qos = boolean(key, value)?;
        }
        // Permitted anyway.
        "deprecated_features.permit.transient_nonexcl_queues" => {
            boolean(key, value)?;
        }
        "log.level" | "log.console.level" => config.log_level = log_level(key, value)?,
        "log.console.formatter" => config.log_format = log_format(key, value)?,
        "log.console" => {
            boolean(key, value)?;
        }
        _ => return Err(format!("unknown key '{key}'")),
    }
    Ok(())
}

/// Keys whose last part is a name.
fn set_family(
    config: &mut Config,
    seen: &mut Seen,
    key: &str,
    value: &str,
) -> Result<bool, String> {
    if key.starts_with("listeners.tcp.") {
        if !std::mem::replace(&mut seen.listeners, true) {
            config.amqp_listeners.clear();
        }
        config.amqp_listeners.push(address(key, value)?);
    } else if key == "listeners.tcp" && value == "none" {
        seen.listeners = true;
        config.amqp_listeners.clear();
    } else if key == "loopback_users" && value == "none" {
        config.loopback_users.clear();
    } else if let Some(user) = key.strip_prefix("loopback_users.") {
        if boolean(key, value)? {
            if !std::mem::replace(&mut seen.loopback_users, true) {
                config.loopback_users.clear();
            }
            config.loopback_users.push(user.to_owned());
        } else {
            config.loopback_users.retain(|name| name != user);
        }
    } else if let Some(tag) = key.strip_prefix("default_user_tags.") {
        config.default_user.tags.retain(|name| name != tag);
        if boolean(key, value)? {
            config.default_user.tags.push(tag.to_owned());
        }
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{key} must be a number in range, got '{value}'"))
}

fn at_least(key: &str, value: &str, min: u32) -> Result<u32, String> {
    let number: u32 = number(key, value)?;
    if number < min {
        return Err(format!("{key} must be at least {min}, got {number}"));
    }
    Ok(number)
}

fn boolean(key: &str, value: &str) -> Result<bool, String> {
    match value {
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        _ => Err(format!("{key} must be true or false, got '{value}'")),
    }
}

/// The pattern of a permission, as text that is one.
fn pattern(key: &str, value: &str) -> Result<String, String> {
    PermissionPattern::new(value).map_err(|problem| format!("{key}: {problem}"))?;
    Ok(value.to_owned())
}

fn fraction(key: &str, value: &str) -> Result<f64, String> {
    let fraction: f64 = number(key, value)?;
    if (0.0..=1.0).contains(&fraction) {
        Ok(fraction)
    } else {
        Err(format!("{key} must be between 0 and 1, got {value}"))
    }
}

fn multiple(key: &str, value: &str) -> Result<f64, String> {
    let multiple: f64 = number(key, value)?;
    if multiple.is_finite() && multiple >= 0.0 {
        Ok(multiple)
    } else {
        Err(format!("{key} must be a number from 0 on, got {value}"))
    }
}

/// A number of bytes with RabbitMQ's units: `k`, `kB` and so on are powers of 1000, `KiB` and so on of
/// 1024.
fn bytes(key: &str, value: &str) -> Result<u64, String> {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (amount, unit) = value.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "k" | "kB" | "KB" => 1000,
        "ki" | "kiB" | "KiB" => 1 << 10,
        "M" | "MB" => 1_000_000,
        "Mi" | "MiB" => 1 << 20,
        "G" | "GB" => 1_000_000_000,
        "Gi" | "GiB" => 1 << 30,
        other => return Err(format!("{key} has an unknown unit '{other}'")),
    };
    let amount: u64 = number(key, amount)?;
    amount.checked_mul(factor).ok_or_else(|| format!("{key} is too large: {value}"))
}

/// A port, or an address and a port; an IPv6 address may do without brackets.
fn address(key: &str, value: &str) -> Result<SocketAddr, String> {
    let wrong = || format!("{key} must be a port or an address with a port, got '{value}'");
    if let Ok(port) = value.parse() {
        return Ok(SocketAddr::new(IpAddr::from([0_u16; 8]), port));
    }
    if let Ok(address) = value.parse() {
        return Ok(address);
    }
    let (address, port) = value.rsplit_once(':').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    Ok(SocketAddr::new(address, port.parse().map_err(|_| wrong())?))
}

fn ip(key: &str, value: &str) -> Result<IpAddr, String> {
    value.parse().map_err(|_| format!("{key} must be an address, got '{value}'"))
}

fn log_level(key: &str, value: &str) -> Result<String, String> {
    let level = match value {
        "debug" => "debug",
        "info" => "info",
        "warning" => "warn",
        "error" | "critical" => "error",
        "none" => "off",
        other => return Err(format!("{key} must be a log level, got '{other}'")),
    };
    Ok(level.to_owned())
}

fn durability(key: &str, value: &str) -> Result<Durability, String> {
    match value {
        "fsync" => Ok(Durability::Fsync),
        "os" => Ok(Durability::Os),
        other => Err(format!("{key} must be fsync or os, got '{other}'")),
    }
}

fn log_format(key: &str, value: &str) -> Result<LogFormat, String> {
    match value {
        "plaintext" => Ok(LogFormat::Plain),
        "json" => Ok(LogFormat::Json),
        other => Err(format!("{key} must be plaintext or json, got '{other}'")),
    }
}
