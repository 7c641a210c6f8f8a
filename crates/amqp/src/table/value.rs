//! One value of a table or array, and the type octets as RabbitMQ reads them.
//!
//! RabbitMQ departs from the AMQP 0-9-1 grammar: `s` is a 16-bit integer, `l` is signed, `U` is not
//! known, `x` is a byte array. All 256 type octets were tried on RabbitMQ 4.3.6: it accepts the
//! eighteen here and drops the connection for the other 238.

use std::fmt;

use super::error::TableError;
use crate::primitives::{Reader, put_long_str};

/// A well-formed table somewhere in memory, without its size.
///
/// Two tables are equal when their bytes are: same fields, same order, same types.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TableRef<'a> {
    pub(super) bytes: &'a [u8],
}

/// A well-formed array somewhere in memory, without its size.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ArrayRef<'a> {
    pub(super) bytes: &'a [u8],
}

/// A value with its wire type.
///
/// Two values are equal when their types and contents are. Floats compare as floats; none is NaN.
#[derive(Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `t`. Any octet but 0 is true; RabbitMQ delivers true as 1 (sent 2, 7 and 255, observed).
    Bool(bool),
    /// Type octet `b`.
    I8(i8),
    /// Type octet `B`.
    U8(u8),
    /// `s`, not the short string of the AMQP grammar.
    I16(i16),
    /// Type octet `u`.
    U16(u16),
    /// Type octet `I`.
    I32(i32),
    /// Type octet `i`.
    U32(u32),
    /// `l` or `L`, signed either way; written as `l`.
    I64(i64),
    /// `f`, finite.
    F32(f32),
    /// `d`, finite.
    F64(f64),
    /// Type octet `D`.
    Decimal {
        /// Number of decimal digits of `value` after the point, 0..=255.
        scale: u8,
        /// The digits.
        value: u32,
    },
    /// `S`, any bytes.
    LongStr(&'a [u8]),
    /// `x`, any bytes.
    Binary(&'a [u8]),
    /// `T`, seconds since 1970 in UTC.
    Timestamp(u64),
    /// Type octet `F`.
    Table(TableRef<'a>),
    /// Type octet `A`.
    Array(ArrayRef<'a>),
    /// Type octet `V`.
    Void,
}

/// A value that contains values.
pub(super) enum Nested<'a> {
    Table(TableRef<'a>),
    Array(ArrayRef<'a>),
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

    /// The bytes of a long string. A binary is none: RabbitMQ refuses it as `x-dead-letter-exchange`
    /// (observed).
    #[must_use]
    pub fn as_long_str(&self) -> Option<&'a [u8]> {
        if let Self::LongStr(bytes) = *self { Some(bytes) } else { None }
    }

    /// The table or array that this value is, if it is one.
    #[inline]
    pub(super) fn nested(&self) -> Option<Nested<'a>> {
        match *self {
            Self::Table(table) => Some(Nested::Table(table)),
            Self::Array(array) => Some(Nested::Array(array)),
            Self::Bool(_)
            | Self::I8(_)
            | Self::U8(_)
            | Self::I16(_)
            | Self::U16(_)
            | Self::I32(_)
            | Self::U32(_)
            | Self::I64(_)
            | Self::F32(_)
            | Self::F64(_)
            | Self::Decimal { .. }
            | Self::LongStr(_)
            | Self::Binary(_)
            | Self::Timestamp(_)
            | Self::Void => None,
        }
    }

    /// False for a float that is NaN or infinite.
    #[inline]
    pub(super) fn is_finite(&self) -> bool {
        if let Self::F32(value) = *self {
            value.is_finite()
        } else if let Self::F64(value) = *self {
            value.is_finite()
        } else {
            true
        }
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
    /// Prints as the derived implementation does, but bytes as text.
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
/// A nested table or array is not validated: the caller may hand out the reference only if its
/// container has been validated.
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
