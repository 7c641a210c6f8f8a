//! The properties of a publish: the facts that the broker reads, and the changes that it makes.
//!
//! Read once, at publish: persistence, priority, expiration, the keys of the `CC` and `BCC` headers, and the
//! delivery time.
//! Changed at publish, because RabbitMQ delivers them so: header tables are sorted by key without duplicates,
//! `BCC` is removed, and `expiration` is canonical. Properties that need none of these changes are delivered
//! byte by byte as received.

pub(crate) mod delivery_time;
pub(crate) mod schedule_headers;
pub(crate) mod settle_headers;

use amqp::properties::Properties;
use amqp::reply_code::ReplyCode;
use amqp::table::{TableBuilder, TableRef, Value};

use self::delivery_time::DeliveryTime;
use crate::expiration;
use crate::limits::SENDER_SELECTED_KEYS_MAX;
use crate::message::{MessageMeta, RoutingKey};
use crate::refusal::Refusal;

/// The `reply_to` address by which a client asks for direct replies, without a queue.
pub(crate) const DIRECT_REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// The facts that the broker needs from the properties of one publish.
#[derive(PartialEq, Eq, Default, Debug)]
pub(crate) struct Prepared {
    pub(crate) meta: MessageMeta,
    pub(crate) cc: Box<[RoutingKey]>,
    pub(crate) bcc: Box<[RoutingKey]>,
    /// The delivery time that the publisher asks for.
    pub(crate) delivery_time: Option<Box<DeliveryTime>>,
    /// The properties to deliver, if they differ from those received.
    pub(crate) rewritten: Option<Vec<u8>>,
}

/// The headers that have a meaning for the broker, found in one walk.
#[derive(Default)]
struct KnownHeaders<'a> {
    cc: Option<Value<'a>>,
    bcc: Option<Value<'a>>,
    delivery_time: DeliveryTime,
}

impl<'a> KnownHeaders<'a> {
    fn of(headers: TableRef<'a>) -> Self {
        let mut known = Self::default();
        for (key, value) in headers.iter() {
            match key {
                b"CC" => known.cc = known.cc.or(Some(value)),
                b"BCC" => known.bcc = known.bcc.or(Some(value)),
                _ => known.delivery_time.read(key, &value),
            }
        }
        known
    }
}

/// Decodes the properties of a publish.
///
/// # Errors
/// 502 `SYNTAX_ERROR`, which closes the connection, if the properties cannot be decoded.
#[inline]
pub(crate) fn parse(raw: &[u8]) -> Result<Properties<'_>, Refusal> {
    Properties::parse(raw).map_err(|error| {
        Refusal::new(ReplyCode::SyntaxError, format!("cannot decode content properties: {error}"))
    })
}

/// Prepares `properties`, which were parsed from `raw`. `reply_to` replaces the property of that name, if
/// given.
///
/// # Errors
/// 406 for an invalid expiration, `CC` header or `BCC` header.
#[inline]
pub(crate) fn prepare(
    properties: &Properties<'_>,
    raw: &[u8],
    reply_to: Option<&str>,
) -> Result<Prepared, Refusal> {
    let mut out = *properties;
    let mut rewrite = properties.needs_normalising(raw);
    let meta = meta(properties)?;
    let expiration_ms = meta.expiration_ms;
    let canonical = expiration_ms.map(|millis| millis.to_string());
    if let (Some(text), Some(millis)) = (properties.expiration, expiration_ms)
        && !expiration::is_canonical(text, millis)
    {
        out.expiration = canonical.as_deref().map(str::as_bytes);
        rewrite = true;
    }
    if let Some(reply_to) = reply_to {
        out.reply_to = Some(reply_to.as_bytes());
        rewrite = true;
    }
    let mut cc = Box::default();
    let mut bcc = Box::default();
    let mut delivery_time = None;
    let mut headers = None;
    if let Some(table) = properties.headers {
        let known = KnownHeaders::of(table);
        cc = sender_selected_keys(known.cc, "CC")?;
        bcc = sender_selected_keys(known.bcc, "BCC")?;
        delivery_time = known.delivery_time.if_any().map(Box::new);
        if known.bcc.is_some() || rewrite {
            headers = Some(without_bcc(table));
            rewrite = true;
        }
    }
    if let Some(headers) = &headers {
        out.headers = Some(headers.as_ref());
    }
    let rewritten = rewrite.then(|| {
        let mut bytes = Vec::new();
        out.encode(&mut bytes);
        bytes
    });
    Ok(Prepared { meta, cc, bcc, delivery_time, rewritten })
}

/// Reads the facts that the core needs from the properties.
///
/// # Errors
/// 406 for an invalid expiration.
#[inline]
pub(crate) fn meta(properties: &Properties<'_>) -> Result<MessageMeta, Refusal> {
    Ok(MessageMeta {
        persistent: properties.delivery_mode == Some(2),
        priority: properties.priority,
        expiration_ms: properties.expiration.map(expiration::parse).transpose()?,
    })
}

fn without_bcc(table: TableRef<'_>) -> amqp::table::Table {
    let sorted = table.normalised();
    let mut kept = TableBuilder::new();
    for (key, value) in sorted.as_ref().iter() {
        if key != b"BCC" {
            kept.insert(key, value);
        }
    }
    kept.finish()
}

/// The string elements of the array header `header`; other elements are ignored, as in RabbitMQ.
fn sender_selected_keys(
    value: Option<Value<'_>>,
    header: &str,
) -> Result<Box<[RoutingKey]>, Refusal> {
    let keys = match value {
        None => return Ok(Box::default()),
        Some(Value::Array(keys)) => keys,
        Some(other) => {
            return Err(Refusal::precondition_failed(format!(
                "invalid message: {{unacceptable_type_in_header,\"{header}\",{}}}",
                other.type_name()
            )));
        }
    };
    let mut names = Vec::new();
    for key in keys.iter() {
        let Some(key) = key.as_long_str() else {
            continue;
        };
        if names.len() == SENDER_SELECTED_KEYS_MAX {
            return Err(Refusal::precondition_failed(format!(
                "invalid message: more than {SENDER_SELECTED_KEYS_MAX} keys in header '{header}'"
            )));
        }
        names.push(RoutingKey::from(key));
    }
    Ok(names.into())
}
