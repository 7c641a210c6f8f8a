//! Checks of argument values, with RabbitMQ's refusal texts.
//!
//! A text completes `invalid arg 'x-...' for queue 'q' in vhost '/': `; clients match on it.

use amqp::limits::SHORT_STRING_BYTES_MAX;
use amqp::table::{TableRef, Value};

use super::ratio::number;
use super::retry_schedule::RetrySchedule;
use super::value::is_max_age;
use super::words::{DelayedRetryOrder, WordList};
use crate::erlang_term;

/// The text of a refusal, as RabbitMQ prints it.
pub(crate) type RefusalText = String;

/// A check of the value of one argument; the table has all arguments.
pub(super) type ArgumentCheck = fn(&Value<'_>, TableRef<'_>) -> Result<(), RefusalText>;

pub(crate) fn unacceptable(value: &Value<'_>) -> RefusalText {
    format!("{{unacceptable_type,{}}}", value.type_name())
}

fn integer(value: &Value<'_>) -> Result<i64, RefusalText> {
    let wrong = || format!("\"expected integer, got {}\"", value.type_name());
    value.as_integer().ok_or_else(wrong)
}

fn text<'a>(value: &Value<'a>) -> Result<&'a [u8], RefusalText> {
    value.as_long_str().ok_or_else(|| unacceptable(value))
}

pub(super) fn any(_: &Value<'_>, _: TableRef<'_>) -> Result<(), RefusalText> {
    Ok(())
}

pub(super) fn not_negative(value: &Value<'_>, _: TableRef<'_>) -> Result<(), RefusalText> {
    in_range(value, 0, u64::MAX)
}

pub(super) fn positive(value: &Value<'_>, _: TableRef<'_>) -> Result<(), RefusalText> {
    in_range(value, 1, u64::MAX)
}

pub(super) fn in_range(value: &Value<'_>, min: u64, max: u64) -> Result<(), RefusalText> {
    let number = integer(value)?;
    match u64::try_from(number) {
        Err(_) => Err(format!("{{value_negative,{number}}}")),
        Ok(number) if number < min => Err(format!("{{value_zero,{number}}}")),
        Ok(number) if number > max => Err(format!("{{value_too_large,{number}}}")),
        Ok(_) => Ok(()),
    }
}

pub(super) fn one_of(
    value: &Value<'_>,
    list: WordList,
    otherwise: &str,
) -> Result<(), RefusalText> {
    list.parse(text(value)?).map(|_| ()).ok_or_else(|| otherwise.to_owned())
}

/// A number from `min` to `max`, with or without a fraction.
pub(super) fn ratio(value: &Value<'_>, min: u32, max: u32) -> Result<(), RefusalText> {
    let number =
        number(value).ok_or_else(|| format!("\"expected number, got {}\"", value.type_name()))?;
    if number < f64::from(min) {
        return Err(format!("{{value_too_small,{}}}", erlang_term::value(value)));
    }
    if number > f64::from(max) || number.is_nan() {
        return Err(format!("{{value_too_large,{}}}", erlang_term::value(value)));
    }
    Ok(())
}

pub(super) fn retry_schedule(value: &Value<'_>, _: TableRef<'_>) -> Result<(), RefusalText> {
    let schedule = RetrySchedule::of_argument(value);
    schedule.map(|_| ()).ok_or_else(|| "invalid_delayed_retry_schedule".to_owned())
}

/// The order `strict` needs a single active consumer, which no policy can give.
pub(super) fn delayed_retry_order(
    value: &Value<'_>,
    table: TableRef<'_>,
) -> Result<(), RefusalText> {
    one_of(value, DelayedRetryOrder::LIST, "invalid_delayed_retry_order")?;
    let order = value.as_long_str().and_then(DelayedRetryOrder::parse);
    let is_single_active = table.get("x-single-active-consumer") == Some(Value::Bool(true));
    if order == Some(DelayedRetryOrder::Strict) && !is_single_active {
        return Err("strict_delayed_retry_order_but_no_single_active_consumer".to_owned());
    }
    Ok(())
}

pub(super) fn boolean(value: &Value<'_>, _: TableRef<'_>) -> Result<(), RefusalText> {
    if matches!(value, Value::Bool(_)) { Ok(()) } else { Err(unacceptable(value)) }
}

/// COMPAT: long routing keys: as in a policy.
pub(super) fn dead_letter_routing_key(
    value: &Value<'_>,
    table: TableRef<'_>,
) -> Result<(), RefusalText> {
    let key = text(value)?;
    if table.get("x-dead-letter-exchange").is_none() {
        return Err("routing_key_but_no_dlx_defined".to_owned());
    }
    if key.len() > SHORT_STRING_BYTES_MAX {
        return Err(format!("{{max_length_exceeded,{}}}", key.len()));
    }
    Ok(())
}

pub(super) fn max_priority(value: &Value<'_>, _: TableRef<'_>) -> Result<(), RefusalText> {
    let number = integer(value)?;
    if number > i64::from(u8::MAX) {
        return Err(format!("{{max_value_exceeded,{number}}}"));
    }
    in_range(value, 0, u64::MAX)
}

pub(super) fn queue_version(value: &Value<'_>, _: TableRef<'_>) -> Result<(), RefusalText> {
    match integer(value)? {
        2 => Ok(()),
        other => Err(format!("\"unsupported queue version '{other}'\"")),
    }
}

pub(super) fn max_age(value: &Value<'_>, _: TableRef<'_>) -> Result<(), RefusalText> {
    if is_max_age(text(value)?) { Ok(()) } else { Err("invalid_max_age".to_owned()) }
}

pub(super) fn segment_size(value: &Value<'_>, _: TableRef<'_>) -> Result<(), RefusalText> {
    if integer(value)? > 3_000_000_000 {
        return Err("Exceeded max value for x-stream-max-segment-size-bytes".to_owned());
    }
    in_range(value, 0, u64::MAX)
}

pub(super) fn leader_locator(value: &Value<'_>, _: TableRef<'_>) -> Result<(), RefusalText> {
    let text = text(value)?;
    let known = matches!(text, b"client-local" | b"balanced" | b"random" | b"least-leaders");
    if known { Ok(()) } else { Err("invalid_queue_locator_arg".to_owned()) }
}
