//! One value of a table or array, and its type octets as RabbitMQ reads them.
//!
//! RabbitMQ departs from the AMQP 0-9-1 grammar: `s` is a 16-bit integer, `l` is signed, `U` is not
//! known, `x` is an octet array. Checked octet by octet on RabbitMQ 4.3.6: the eighteen here are
//! accepted, for the other 238 it drops the connection.

use std::fmt;

use super::validate::TableError;
use super::{ArrayRef, TableRef};
use crate::primitives::{Reader, put_long_str};

/// A value with its wire type.
///
/// Two are equal when type and value are; the floats compare as floats (they are never NaN).
#[derive(Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `t`. Any octet but 0 is true; RabbitMQ delivers true as 1 (sent 2, 7 and 255, observed).
    Bool(bool),
    /// `b`
    I8(i8),
    /// `B`
    U8(u8),
    /// `s`, not the short string of the AMQP grammar.
    I16(i16),
    /// `u`
    U16(u16),
    /// `I`
    I32(i32),
    /// `i`
    U32(u32),
    /// `l` or `L`, signed either way; written as `l`.
    I64(i64),
    /// `f`, finite.
    F32(f32),
    /// `d`, finite.
    F64(f64),
    /// `D`
    Decimal {
        /// How many decimal digits of `value` stand after the point, 0..=255.
        scale: u8,
        /// The digits.
        value: u32,
    },
    /// `S`, any octets.
    LongStr(&'a [u8]),
    /// `x`, any octets.
    Binary(&'a [u8]),
    /// `T`, seconds since 1970 in UTC.
    Timestamp(u64),
    /// `F`
    Table(TableRef<'a>),
    /// `A`
    Array(ArrayRef<'a>),
    /// `V`
    Void,
}

impl<'a> Value<'a> {
    /// RabbitMQ's name of the type, as its texts have it: `expected integer, got longstr`,
    /// `invalid type 'signedint' for arg 'x-dead-letter-exchange'`. Observed for every type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::I8(_) => "byte",
            Self::U8(_) => "unsignedbyte",
            Self::I16(_) => "short",
            Self::U16(_) => "unsignedshort",
            Self::I32(_) => "signedint",
            Self::U32(_) => "unsignedint",
            Self::I64(_) => "long",
            Self::F32(_) => "float",
            Self::F64(_) => "double",
            Self::Decimal { .. } => "decimal",
            Self::LongStr(_) => "longstr",
            Self::Binary(_) => "binary",
            Self::Timestamp(_) => "timestamp",
            Self::Table(_) => "table",
            Self::Array(_) => "array",
            Self::Void => "void",
        }
    }

    /// The value where RabbitMQ takes an integer: the seven integer types, not timestamps
    /// (`x-message-ttl` as `T` is `expected integer, got timestamp`, observed).
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match *self {
            Self::I8(value) => Some(value.into()),
            Self::U8(value) => Some(value.into()),
            Self::I16(value) => Some(value.into()),
            Self::U16(value) => Some(value.into()),
            Self::I32(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            Self::I64(value) => Some(value),
            Self::Bool(_)
            | Self::F32(_)
            | Self::F64(_)
            | Self::Decimal { .. }
            | Self::LongStr(_)
            | Self::Binary(_)
            | Self::Timestamp(_)
            | Self::Table(_)
            | Self::Array(_)
            | Self::Void => None,
        }
    }

    /// The octets of a long string; a binary is none (refused as `x-dead-letter-exchange`, observed).
    #[must_use]
    pub fn as_long_str(&self) -> Option<&'a [u8]> {
        if let Self::LongStr(bytes) = *self { Some(bytes) } else { None }
    }

    /// Appends the type octet and the value.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Bool(value) => out.extend_from_slice(&[b't', u8::from(value)]),
            Self::I8(value) => put_tagged(out, b'b', value.to_be_bytes()),
            Self::U8(value) => put_tagged(out, b'B', value.to_be_bytes()),
            Self::I16(value) => put_tagged(out, b's', value.to_be_bytes()),
            Self::U16(value) => put_tagged(out, b'u', value.to_be_bytes()),
            Self::I32(value) => put_tagged(out, b'I', value.to_be_bytes()),
            Self::U32(value) => put_tagged(out, b'i', value.to_be_bytes()),
            Self::I64(value) => put_tagged(out, b'l', value.to_be_bytes()),
            Self::F32(value) => put_tagged(out, b'f', value.to_be_bytes()),
            Self::F64(value) => put_tagged(out, b'd', value.to_be_bytes()),
            Self::Decimal { scale, value } => {
                put_tagged(out, b'D', [scale]);
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::LongStr(bytes) => put_tagged_bytes(out, b'S', bytes),
            Self::Binary(bytes) => put_tagged_bytes(out, b'x', bytes),
            Self::Timestamp(value) => put_tagged(out, b'T', value.to_be_bytes()),
            Self::Table(table) => put_tagged_bytes(out, b'F', table.as_bytes()),
            Self::Array(array) => put_tagged_bytes(out, b'A', array.as_bytes()),
            Self::Void => out.push(b'V'),
        }
    }
}

fn put_tagged<const N: usize>(out: &mut Vec<u8>, tag: u8, value: [u8; N]) {
    out.push(tag);
    out.extend_from_slice(&value);
}

fn put_tagged_bytes(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    out.push(tag);
    put_long_str(out, value);
}

impl fmt::Debug for Value<'_> {
    /// As derived, but with octets as text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "Bool({value})"),
            Self::I8(value) => write!(f, "I8({value})"),
            Self::U8(value) => write!(f, "U8({value})"),
            Self::I16(value) => write!(f, "I16({value})"),
            Self::U16(value) => write!(f, "U16({value})"),
            Self::I32(value) => write!(f, "I32({value})"),
            Self::U32(value) => write!(f, "U32({value})"),
            Self::I64(value) => write!(f, "I64({value})"),
            Self::F32(value) => write!(f, "F32({value:?})"),
            Self::F64(value) => write!(f, "F64({value:?})"),
            Self::Decimal { scale, value } => write!(f, "Decimal({value}e-{scale})"),
            Self::LongStr(bytes) => write!(f, "LongStr(\"{}\")", bytes.escape_ascii()),
            Self::Binary(bytes) => write!(f, "Binary(\"{}\")", bytes.escape_ascii()),
            Self::Timestamp(value) => write!(f, "Timestamp({value})"),
            Self::Table(table) => write!(f, "Table({table:?})"),
            Self::Array(array) => write!(f, "Array({array:?})"),
            Self::Void => f.write_str("Void"),
        }
    }
}

/// Takes one value off the front of `reader`.
///
/// Does not look into a nested table or array: the reference that is returned is only sound to hand
/// out if the octets around it have been validated.
pub(super) fn read_value<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, TableError> {
    Ok(match reader.u8()? {
        b't' => Value::Bool(reader.u8()? != 0),
        b'b' => Value::I8(reader.i8()?),
        b'B' => Value::U8(reader.u8()?),
        b's' => Value::I16(reader.i16()?),
        b'u' => Value::U16(reader.u16()?),
        b'I' => Value::I32(reader.i32()?),
        b'i' => Value::U32(reader.u32()?),
        b'l' | b'L' => Value::I64(reader.i64()?),
        b'f' => Value::F32(reader.f32()?),
        b'd' => Value::F64(reader.f64()?),
        b'D' => Value::Decimal { scale: reader.u8()?, value: reader.u32()? },
        b'S' => Value::LongStr(reader.long_str()?),
        b'x' => Value::Binary(reader.long_str()?),
        b'T' => Value::Timestamp(reader.u64()?),
        b'F' => Value::Table(TableRef { bytes: reader.long_str()? }),
        b'A' => Value::Array(ArrayRef { bytes: reader.long_str()? }),
        b'V' => Value::Void,
        unknown => return Err(TableError::UnknownFieldType(unknown)),
    })
}
