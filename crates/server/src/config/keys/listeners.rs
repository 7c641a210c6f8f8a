//! Keys for listeners.

use crate::config::key::Key;
use crate::config::values::{address, ip, number, number_or, one_of};
use crate::limits::LOGIN_SESSION_MINUTES_MAX;

/// Fifty days, which is as good as unlimited.
const FOR_EVER_MS: u64 = 0xffff_ffff;

pub(super) const KEYS: &[Key] = &[
    Key::new("listeners.tcp", None, |config, _, value| {
        one_of(value, &[("none", ())])?;
        config.amqp_listeners.clear();
        Ok(())
    }),
    Key::new("listeners.tcp.$name", None, |config, _, value| {
        config.amqp_listeners.push(address(value)?);
        Ok(())
    }),
    Key::new("listeners.ssl", None, |config, _, value| {
        one_of(value, &[("none", ())])?;
        config.amqps_listeners.clear();
        Ok(())
    }),
    Key::new("listeners.ssl.$name", None, |config, _, value| {
        config.amqps_listeners.push(address(value)?);
        Ok(())
    }),
    Key::new("management.tcp.ip", Some("::"), |config, _, value| {
        config.http.ip = ip(value)?;
        Ok(())
    }),
    Key::new("management.tcp.port", Some("15672"), |config, _, value| {
        config.http.port = Some(number(value, 0..=65535)?);
        Ok(())
    })
    .or(&["management.listener.port"]),
    Key::new("management.ssl.ip", Some("::"), |config, _, value| {
        config.https.ip = ip(value)?;
        Ok(())
    }),
    Key::new("management.ssl.port", None, |config, _, value| {
        config.https.port = Some(number(value, 0..=65535)?);
        Ok(())
    }),
    Key::new("management.path_prefix", None, |config, _, value| {
        let path = value.trim_end_matches('/');
        let is_segment = |part: &str| {
            !part.trim_matches('.').is_empty()
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b))
        };
        let parts = path.strip_prefix('/').filter(|path| path.split('/').all(is_segment));
        parts.ok_or_else(|| {
            format!("must be a path such as /rabbitmq, of letters, digits and -._~, got '{value}'")
        })?;
        config.path_prefix = Some(path.to_owned());
        Ok(())
    }),
    Key::new("management.login_session_timeout", None, |config, _, value| {
        config.login_session_timeout_minutes = Some(number(value, 1..=LOGIN_SESSION_MINUTES_MAX)?);
        Ok(())
    }),
    Key::new("prometheus.tcp.ip", Some("::"), |config, _, value| {
        config.prometheus.ip = ip(value)?;
        Ok(())
    }),
    Key::new("prometheus.tcp.port", None, |config, _, value| {
        config.prometheus.port = Some(number(value, 0..=65535)?);
        Ok(())
    }),
    Key::new("handshake_timeout", Some("10000"), |config, _, value| {
        let millis = number_or("infinity", value, 1..=FOR_EVER_MS)?;
        config.session.handshake_timeout_ms = millis.unwrap_or(FOR_EVER_MS);
        Ok(())
    }),
];
