//! Delivery times that publishers ask for in headers: `x-opt-delivery-time` and `x-opt-delivery-delay` on any
//! publish, `x-delay` through an exchange of type `x-delayed-message`.
//!
//! A header of a type that names no time is ignored, as RabbitMQ ignores it.

use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, TableRef, Value};

use crate::limits::DELIVERY_DELAY_MS_MAX;
use crate::message::Message;
use crate::refusal::Refusal;
use crate::time::{Now, Time};

const PREFIX: &str = "x-opt-delivery-";
const TIME: &str = "x-opt-delivery-time";
const DELAY: &str = "x-opt-delivery-delay";
/// The headers that name a delivery time.
pub(super) const HEADERS: [&str; 2] = [TIME, DELAY];
const SCHEDULED_FOR: &str = "x-scheduled-for";
const EXCHANGE_DELAY: &str = "x-delay";

/// The delivery time in the headers `x-opt-delivery-time` and `x-opt-delivery-delay`. If both are given, the
/// later one counts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct DeliveryTime {
    /// Milliseconds since the Unix epoch.
    at_ms: u64,
    /// Milliseconds after the arrival at the broker.
    delay_ms: u64,
    /// True if a header is a number of milliseconds, or a timestamp.
    is_given: bool,
    /// True if a header is ignored because of its type.
    is_ignored: bool,
}

impl DeliveryTime {
    /// Reads the headers of a publish; none if they name no delivery time.
    pub(crate) fn of(headers: TableRef<'_>) -> Option<Self> {
        let mut found = Self::default();
        headers.iter().for_each(|(key, value)| found.read(key, &value));
        found.is_given.then_some(found)
    }

    /// Reads one header of a publish.
    #[inline]
    pub(crate) fn read(&mut self, key: &[u8], value: &Value<'_>) {
        if key.starts_with(PREFIX.as_bytes()) {
            self.read_value(key, value);
        }
    }

    fn read_value(&mut self, key: &[u8], value: &Value<'_>) {
        if key == TIME.as_bytes() {
            self.at_ms = if let Value::Timestamp(seconds) = value {
                self.is_given = true;
                seconds.saturating_mul(1000)
            } else {
                self.millis(value)
            };
        } else if key == DELAY.as_bytes() {
            self.delay_ms = self.millis(value);
        }
    }

    fn millis(&mut self, value: &Value<'_>) -> u64 {
        let is_integer = value.as_integer().is_some();
        self.is_given |= is_integer;
        self.is_ignored |= !is_integer;
        integer(value)
    }

    /// The delivery time; none if no header asks for one, not even for one that is ignored.
    pub(crate) fn if_any(self) -> Option<Self> {
        (self.is_given || self.is_ignored).then_some(self)
    }

    /// True if a header asks for a delivery time in a type that is ignored.
    pub(crate) fn is_ignored(self) -> bool {
        self.is_ignored
    }

    /// True if a header names a delivery time, which may have passed.
    pub(crate) fn is_given(self) -> bool {
        self.is_given
    }

    /// The delivery time of a message that arrived at `arrived` on the broker's axis; none if it has come.
    pub(crate) fn ready_at(self, arrived: Time, now: Now) -> Option<Time> {
        let ready_at = now.time_at(self.at_ms).max(arrived.plus_ms(self.delay_ms));
        (ready_at > now.time).then_some(ready_at)
    }

    /// The delivery time on the wall clock, in milliseconds since the Unix epoch; it may have passed.
    pub(super) fn wall_ms(self, now: Now) -> u64 {
        self.at_ms.max(now.wall_ms_after(self.delay_ms))
    }

    /// The time until the delivery time, in milliseconds, for a delay that begins now; 0 if the time has come.
    pub(crate) fn delay_ms(self, now: Now) -> u64 {
        self.at_ms.saturating_sub(now.wall_ms()).max(self.delay_ms)
    }

    /// Checks that the delivery time is not further away than [`DELIVERY_DELAY_MS_MAX`].
    ///
    /// # Errors
    /// 406 if it is.
    pub(crate) fn check(self, now: Now) -> Result<(), Refusal> {
        let checked = [(TIME, self.at_ms, now.wall_ms()), (DELAY, self.delay_ms, 0)];
        checked.into_iter().try_for_each(|(header, value, from_ms)| {
            check_distance(header, value, value.saturating_sub(from_ms))
        })
    }
}

/// True if the header `x-delay` has a type that is ignored.
pub(crate) fn has_ignored_delay(properties: &[u8]) -> bool {
    let properties = Properties::parse(properties).expect("a message has valid properties");
    let value = properties.headers.and_then(|headers| headers.get(EXCHANGE_DELAY));
    value.is_some_and(|value| {
        let is_number = matches!(value, Value::F32(_) | Value::F64(_));
        !is_number && value.as_integer().is_none() && value.as_long_str().is_none()
    })
}

/// Checks that a delivery time on the wall clock, in milliseconds, is not further away than
/// [`DELIVERY_DELAY_MS_MAX`].
///
/// # Errors
/// 406 if it is.
pub(crate) fn check_wall_ms(delivery_time_ms: u64, now: Now) -> Result<(), Refusal> {
    check_distance(TIME, delivery_time_ms, delivery_time_ms.saturating_sub(now.wall_ms()))
}

fn check_distance(header: &str, value: u64, delay_ms: u64) -> Result<(), Refusal> {
    if delay_ms > DELIVERY_DELAY_MS_MAX { Err(too_far(header, value)) } else { Ok(()) }
}

/// A message as it waits in a queue for its delivery time, in milliseconds since the Unix epoch.
pub(crate) fn scheduled_message(message: &Message, scheduled_for_ms: u64) -> Message {
    let headers = message.decoded_properties().headers.unwrap_or_default();
    message.with_headers(scheduled_headers(headers, scheduled_for_ms).as_ref())
}

/// The headers of a message that waits for its delivery time in a queue: `x-scheduled-for`, in milliseconds since the
/// Unix epoch, instead of the request, so that a copy of the message is not delayed once more.
fn scheduled_headers(headers: TableRef<'_>, scheduled_for_ms: u64) -> Table {
    let mut kept = TableBuilder::with_capacity(headers.as_bytes().len() + SCHEDULED_FOR.len() + 10);
    for (key, value) in headers.iter() {
        if ![TIME, DELAY, SCHEDULED_FOR].iter().any(|header| key == header.as_bytes()) {
            kept.insert(key, value);
        }
    }
    let at_ms = i64::try_from(scheduled_for_ms).unwrap_or(i64::MAX);
    kept.insert(SCHEDULED_FOR, Value::I64(at_ms));
    kept.as_ref().normalised()
}

/// The header `x-delay`, as an exchange of type `x-delayed-message` reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExchangeDelay<'a> {
    /// The message is routed at once.
    None,
    /// The message waits for so many milliseconds, at least one.
    Milliseconds(u64),
    /// The value is text, and the text is no integer.
    NoInteger(&'a [u8]),
    /// The delay is longer than [`DELIVERY_DELAY_MS_MAX`].
    TooFar(u64),
}

impl<'a> ExchangeDelay<'a> {
    /// Reads the header from encoded properties.
    pub(crate) fn of(properties: &'a [u8]) -> Self {
        let properties = Properties::parse(properties).expect("a message has valid properties");
        let Some(value) = properties.headers.and_then(|headers| headers.get(EXCHANGE_DELAY)) else {
            return Self::None;
        };
        let millis = match value.as_long_str() {
            None => number(&value),
            Some(text) => {
                let number =
                    std::str::from_utf8(text).ok().and_then(|text| text.parse::<i128>().ok());
                let Some(number) = number else { return Self::NoInteger(text) };
                u64::try_from(number.max(0)).unwrap_or(u64::MAX)
            }
        };
        match millis {
            0 => Self::None,
            1..=DELIVERY_DELAY_MS_MAX => Self::Milliseconds(millis),
            _ => Self::TooFar(millis),
        }
    }

    /// The delay in milliseconds; none if the message is routed at once.
    pub(crate) fn millis(self) -> Option<u64> {
        match self {
            Self::Milliseconds(millis) => Some(millis),
            Self::None | Self::NoInteger(_) | Self::TooFar(_) => None,
        }
    }

    /// Checks the header of a publish.
    ///
    /// # Errors
    /// 406 if the value is not a delay.
    pub(crate) fn check(self) -> Result<(), Refusal> {
        match self {
            Self::None | Self::Milliseconds(_) => Ok(()),
            Self::NoInteger(text) => Err(Refusal::precondition_failed(format!(
                "invalid {EXCHANGE_DELAY} '{}'",
                String::from_utf8_lossy(text)
            ))),
            Self::TooFar(millis) => Err(too_far(EXCHANGE_DELAY, millis)),
        }
    }
}

/// The headers of a message that an exchange has held: `x-delay` is negative, as the plugin of RabbitMQ delivers it, so
/// that no exchange delays the message once more.
pub(crate) fn released_headers(headers: TableRef<'_>, delay_ms: u64) -> Table {
    let mut released = TableBuilder::new();
    for (key, value) in headers.iter() {
        if key == EXCHANGE_DELAY.as_bytes() {
            let delay_ms = i64::try_from(delay_ms).expect("a delay is at most ten years");
            released.insert(key, Value::I64(-delay_ms));
        } else {
            released.insert(key, value);
        }
    }
    released.finish()
}

fn too_far(header: &str, value: u64) -> Refusal {
    let text = format!("invalid {header} '{value}': further away than {DELIVERY_DELAY_MS_MAX} ms");
    Refusal::precondition_failed(text)
}

/// A number of milliseconds; 0 for a negative one and for a value that is no number. Fractions are cut off.
fn number(value: &Value<'_>) -> u64 {
    if let Value::F32(number) = *value {
        whole(f64::from(number))
    } else if let Value::F64(number) = *value {
        whole(number)
    } else {
        integer(value)
    }
}

/// An integer number of milliseconds; 0 for a negative one and for a value that is no integer.
fn integer(value: &Value<'_>) -> u64 {
    value.as_integer().and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut off on purpose")]
fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}
