//! Values of settings: as a policy definition has them, checked and typed, and the kinds of them.

use std::fmt;

use amqp::erlang_binary::PrintedBinary;
use amqp::limits::SHORT_STRING_BYTES_MAX;
use amqp::table::Value;

use super::ratio::{self, Ratio};
use super::retry_schedule::RetrySchedule;
use super::words::{Word, WordList};
use crate::erlang_term;
use crate::ids::Name;
use crate::routing_key::RoutingKey;

/// A value in a policy definition, not checked yet.
#[derive(Clone, PartialEq, Debug)]
pub enum PolicyValue {
    /// An integer.
    Integer(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A string.
    Text(String),
    /// Any other JSON value, as its text; valid for no key.
    Other(String),
}

impl PolicyValue {
    /// The integer, if it is one.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Float(_) | Self::Text(_) | Self::Other(_) => None,
        }
    }

    /// The number, if it is one.
    #[expect(clippy::cast_precision_loss, reason = "ratios are small")]
    fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Text(_) | Self::Other(_) => None,
        }
    }

    /// The string, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(value) => Some(value),
            Self::Integer(_) | Self::Float(_) | Self::Other(_) => None,
        }
    }
}

impl fmt::Display for PolicyValue {
    /// Prints the value as RabbitMQ does in an error text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => f.write_str(&erlang_term::float(*value)),
            Self::Text(value) => PrintedBinary(value.as_bytes()).fmt(f),
            Self::Other(value) => f.write_str(value),
        }
    }
}

/// A valid value of a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SettingValue {
    Number(i64),
    /// The name of an exchange, or text without an effect.
    Name(Name),
    RoutingKey(RoutingKey),
    Word(Word),
    Ratio(Ratio),
    Schedule(RetrySchedule),
}

impl SettingValue {
    /// A number that is not negative; a number that AMQP cannot express becomes the highest that it can.
    pub(crate) fn number(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// The number by which values of one setting are compared.
    pub(crate) fn as_number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Ratio(ratio) => Some(ratio.as_number()),
            Self::Name(_) | Self::RoutingKey(_) | Self::Word(_) | Self::Schedule(_) => None,
        }
    }

    /// The value as a policy definition would have it.
    pub(crate) fn to_policy_value(&self) -> PolicyValue {
        match self {
            Self::Number(number) => PolicyValue::Integer(*number),
            Self::Name(name) => PolicyValue::Text((**name).to_owned()),
            Self::RoutingKey(key) => PolicyValue::Text(key.to_string()),
            Self::Word(word) => PolicyValue::Text(word.as_str().to_owned()),
            Self::Ratio(ratio) => ratio.as_whole().map_or_else(
                || PolicyValue::Float(ratio.as_f64()),
                |whole| PolicyValue::Integer(i64::from(whole)),
            ),
            Self::Schedule(schedule) => PolicyValue::Text(schedule.as_str().to_owned()),
        }
    }
}

/// The unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Time in milliseconds.
    Milliseconds,
    /// Size in bytes.
    Bytes,
    /// No unit.
    Count,
}

/// The kind of value that a setting has, with the bounds that policies must keep to.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// A whole number.
    Number {
        /// The lowest that a policy may give. Below zero, arguments may be negative, too.
        min: i64,
        /// The highest that a policy may give.
        max: i64,
        /// The unit.
        unit: Unit,
    },
    /// A number that may have a fraction of six digits.
    Ratio {
        /// The lowest.
        min: u32,
        /// The highest.
        max: u32,
    },
    /// Delays such as `1s,10s,5m`.
    Schedule,
    /// The name of an exchange.
    ExchangeName,
    /// A routing key.
    RoutingKey,
    /// One word of a list.
    Word(WordList),
    /// One of these texts, without an effect.
    OneOf(&'static [&'static str]),
    /// A duration such as `7D`, without an effect.
    Age,
    /// True or false; only arguments have such values.
    Flag,
}

impl ValueKind {
    pub(super) const fn number(min: i64, unit: Unit) -> Self {
        Self::Number { min, max: i64::MAX, unit }
    }

    /// The typed value of one in a policy definition; none if the value is not valid.
    pub(crate) fn parse_policy_value(self, value: &PolicyValue) -> Option<SettingValue> {
        if let Self::Number { min, max, .. } = self {
            let number = value.as_integer().filter(|number| (min..=max).contains(number));
            return number.map(SettingValue::Number);
        }
        if let Self::Ratio { min, max } = self {
            return ratio_within(value.as_f64()?, min, max).map(SettingValue::Ratio);
        }
        let text = value.as_text()?;
        let name = || SettingValue::Name(text.into());
        match self {
            Self::ExchangeName => Some(name()),
            // COMPAT: long routing keys: a message with such a key could not be delivered.
            Self::RoutingKey => (text.len() <= SHORT_STRING_BYTES_MAX)
                .then(|| SettingValue::RoutingKey(text.into())),
            Self::Word(list) => list.parse(text.as_bytes()).map(SettingValue::Word),
            Self::OneOf(words) => words.contains(&text).then(name),
            Self::Age => is_max_age(text.as_bytes()).then(name),
            Self::Schedule => RetrySchedule::parse(text).map(SettingValue::Schedule),
            Self::Number { .. } | Self::Ratio { .. } | Self::Flag => None,
        }
    }

    /// The typed value of an argument that has been checked; none for a value that has no effect.
    pub(crate) fn parse_argument(self, value: Value<'_>) -> Option<SettingValue> {
        match self {
            Self::Number { min, .. } => {
                let is_known = |number: &i64| *number >= 0 || min < 0;
                value.as_integer().filter(is_known).map(SettingValue::Number)
            }
            Self::Ratio { min, max } => {
                ratio_within(ratio::number(&value)?, min, max).map(SettingValue::Ratio)
            }
            Self::Schedule => RetrySchedule::of_argument(&value).map(SettingValue::Schedule),
            Self::ExchangeName => {
                let text = value.as_long_str()?;
                Some(SettingValue::Name(String::from_utf8_lossy(text).into()))
            }
            Self::RoutingKey => Some(SettingValue::RoutingKey(value.as_long_str()?.into())),
            Self::Word(list) => list.parse(value.as_long_str()?).map(SettingValue::Word),
            Self::OneOf(_) | Self::Age | Self::Flag => None,
        }
    }
}

impl fmt::Display for ValueKind {
    /// Describes the values that a policy may give, as the documentation does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { min: i64::MIN, .. } => f.write_str("integer"),
            Self::Number { min, max, unit } => {
                if *unit == Unit::Milliseconds {
                    f.write_str("ms, ")?;
                }
                if *max == i64::MAX {
                    write!(f, "{min} and up")
                } else {
                    write!(f, "{min} to {max}")
                }
            }
            Self::Ratio { min, max } if *max == Ratio::MAX => write!(f, "number, {min} and up"),
            Self::Ratio { min, max } => write!(f, "number, {min} to {max}"),
            Self::Schedule => f.write_str("delays such as `1s,10s,5m`"),
            Self::ExchangeName => f.write_str("text"),
            Self::RoutingKey => write!(f, "text of at most {SHORT_STRING_BYTES_MAX} bytes"),
            Self::Word(list) => write!(f, "`{}`", list.words().join("`, `")),
            Self::OneOf(words) => write!(f, "`{}`", words.join("`, `")),
            Self::Age => f.write_str("number and unit"),
            Self::Flag => f.write_str("true or false"),
        }
    }
}

/// The ratio of a number within the bounds, both included.
fn ratio_within(number: f64, min: u32, max: u32) -> Option<Ratio> {
    let is_within = (f64::from(min)..=f64::from(max)).contains(&number);
    if is_within { Ratio::of(number) } else { None }
}

/// Reports if `text` is a positive number with one unit of `Y M D h m s`.
pub(super) fn is_max_age(text: &[u8]) -> bool {
    let Some((unit, digits)) = text.split_last() else {
        return false;
    };
    b"YMDhms".contains(unit)
        && digits.iter().all(u8::is_ascii_digit)
        && digits.iter().any(|digit| *digit != b'0')
}
