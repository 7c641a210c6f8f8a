//! The field types of the method table: how each is read, checked and written.
//!
//! Reading is done in two passes, because RabbitMQ refuses arguments of the wrong size before it
//! looks at what they hold: `read` takes every field off the wire, then `check` looks into strings
//! and tables. Bits share an octet with the bits beside them, the first in the lowest place.

use super::MethodErrorKind;
use crate::primitives::{
    DecodeError, Reader, put_long_str, put_short_bytes, put_short_str, put_u16, put_u32, put_u64,
};
use crate::table::TableRef;

/// The arguments of one method, as `method/define.rs` implements it for each.
pub(super) trait Arguments<'a>: Sized {
    /// Reads all of `arguments`.
    fn decode(arguments: &'a [u8]) -> Result<Self, MethodErrorKind>;
    /// Appends the arguments.
    fn encode(&self, out: &mut Vec<u8>);
}

/// A field type: what it is before and after the check.
pub(super) trait Field<'a> {
    /// As taken off the wire.
    type Raw: Copy;
    /// As it stands in the method's struct.
    type Value: Copy;

    fn read(reader: &mut FieldReader<'a>) -> Result<Self::Raw, DecodeError>;
    fn check(raw: Self::Raw) -> Result<Self::Value, MethodErrorKind>;
    fn write(writer: &mut FieldWriter<'_>, value: Self::Value);
    /// The value of a reserved field: zero or empty.
    fn reserved() -> Self::Value;
}

/// Reads fields one after the other; holds the unread bits of the last octet of bits.
pub(super) struct FieldReader<'a> {
    reader: Reader<'a>,
    bits: u8,
    bits_left: u8,
    /// Failed check of a reserved field, reported when the first pass is over.
    reserved_error: Option<MethodErrorKind>,
}

impl<'a> FieldReader<'a> {
    #[inline]
    pub(super) fn new(arguments: &'a [u8]) -> Self {
        Self { reader: Reader::new(arguments), bits: 0, bits_left: 0, reserved_error: None }
    }

    /// Reads past a reserved field, whose value may be any that its type admits: RabbitMQ 4.3.6
    /// refuses a reserved short string that is not UTF-8 (observed with channel.open).
    #[inline]
    pub(super) fn pass_reserved<F: Field<'a>>(&mut self) -> Result<(), DecodeError> {
        let raw = F::read(self)?;
        if let Err(error) = F::check(raw) {
            self.reserved_error = Some(error);
        }
        Ok(())
    }

    /// Ends the first pass: nothing may be left.
    #[inline]
    pub(super) fn finish(&self) -> Result<(), MethodErrorKind> {
        match (self.reader.remaining(), self.reserved_error) {
            (0, None) => Ok(()),
            (0, Some(error)) => Err(error),
            (left, _) => Err(MethodErrorKind::TrailingBytes(left)),
        }
    }

    /// The reader for anything but a bit, which ends a run of bits.
    #[inline]
    fn whole_bytes(&mut self) -> &mut Reader<'a> {
        self.bits_left = 0;
        &mut self.reader
    }

    #[inline]
    fn bit(&mut self) -> Result<bool, DecodeError> {
        if self.bits_left == 0 {
            self.bits = self.reader.u8()?;
            self.bits_left = 8;
        }
        let bit = self.bits & 1 == 1;
        self.bits >>= 1;
        self.bits_left -= 1;
        Ok(bit)
    }
}

/// Writes fields one after the other; holds bits until their octet is full.
pub(super) struct FieldWriter<'o> {
    out: &'o mut Vec<u8>,
    bits: u8,
    bits_held: u8,
}

impl<'o> FieldWriter<'o> {
    #[inline]
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, bits: 0, bits_held: 0 }
    }

    /// Writes a reserved field as zero or empty.
    #[inline]
    pub(super) fn put_reserved<'a, F: Field<'a>>(&mut self) {
        F::write(self, F::reserved());
    }

    /// Writes the bits that are still held.
    #[inline]
    pub(super) fn finish(&mut self) {
        self.whole_bytes();
    }

    /// The output for anything but a bit, which ends a run of bits.
    #[inline]
    fn whole_bytes(&mut self) -> &mut Vec<u8> {
        if self.bits_held > 0 {
            self.out.push(self.bits);
            self.bits = 0;
            self.bits_held = 0;
        }
        self.out
    }

    #[inline]
    fn bit(&mut self, value: bool) {
        if self.bits_held == 8 {
            self.whole_bytes();
        }
        self.bits |= u8::from(value) << self.bits_held;
        self.bits_held += 1;
    }
}

/// One bit.
pub(super) struct Bit;

impl<'a> Field<'a> for Bit {
    type Raw = bool;
    type Value = bool;

    #[inline]
    fn read(reader: &mut FieldReader<'a>) -> Result<bool, DecodeError> {
        reader.bit()
    }

    #[inline]
    fn check(raw: bool) -> Result<bool, MethodErrorKind> {
        Ok(raw)
    }

    #[inline]
    fn write(writer: &mut FieldWriter<'_>, value: bool) {
        writer.bit(value);
    }

    fn reserved() -> bool {
        false
    }
}

/// A field type that needs no check and is written as it is read.
macro_rules! unchecked_field {
    ($(#[$doc:meta])* $name:ident, $value:ty, $read:ident, $put:ident, $reserved:expr) => {
        $(#[$doc])*
        pub(super) struct $name;

        impl<'a> Field<'a> for $name {
            type Raw = $value;
            type Value = $value;

            #[inline]
            fn read(reader: &mut FieldReader<'a>) -> Result<$value, DecodeError> {
                reader.whole_bytes().$read()
            }

            #[inline]
            fn check(raw: $value) -> Result<$value, MethodErrorKind> {
                Ok(raw)
            }

            #[inline]
            fn write(writer: &mut FieldWriter<'_>, value: $value) {
                $put(writer.whole_bytes(), value);
            }

            #[inline]
            fn reserved() -> $value {
                $reserved
            }
        }
    };
}

unchecked_field!(
    /// 8 bits unsigned.
    Octet, u8, u8, push, 0
);
unchecked_field!(
    /// 16 bits unsigned.
    Short, u16, u16, put_u16, 0
);
unchecked_field!(
    /// 32 bits unsigned.
    Long, u32, u32, put_u32, 0
);
unchecked_field!(
    /// 64 bits unsigned.
    LongLong, u64, u64, put_u64, 0
);
unchecked_field!(
    /// A short string of any bytes.
    ShortBytes, &'a [u8], short_bytes, put_short_bytes, &[]
);
unchecked_field!(
    /// A long string of any bytes.
    LongStr, &'a [u8], long_str, put_long_str, &[]
);

fn push(out: &mut Vec<u8>, value: u8) {
    out.push(value);
}

/// A short string of UTF-8.
pub(super) struct ShortStr;

impl<'a> Field<'a> for ShortStr {
    type Raw = &'a [u8];
    type Value = &'a str;

    #[inline]
    fn read(reader: &mut FieldReader<'a>) -> Result<&'a [u8], DecodeError> {
        reader.whole_bytes().short_bytes()
    }

    #[inline]
    fn check(raw: &'a [u8]) -> Result<&'a str, MethodErrorKind> {
        std::str::from_utf8(raw).map_err(|_| MethodErrorKind::MalformedUtf8)
    }

    #[inline]
    fn write(writer: &mut FieldWriter<'_>, value: &'a str) {
        put_short_str(writer.whole_bytes(), value);
    }

    fn reserved() -> &'a str {
        ""
    }
}

/// A table.
pub(super) struct Table;

impl<'a> Field<'a> for Table {
    type Raw = &'a [u8];
    type Value = TableRef<'a>;

    #[inline]
    fn read(reader: &mut FieldReader<'a>) -> Result<&'a [u8], DecodeError> {
        reader.whole_bytes().long_str()
    }

    #[inline]
    fn check(raw: &'a [u8]) -> Result<TableRef<'a>, MethodErrorKind> {
        Ok(TableRef::from_bytes(raw)?)
    }

    #[inline]
    fn write(writer: &mut FieldWriter<'_>, value: TableRef<'a>) {
        value.write(writer.whole_bytes());
    }

    fn reserved() -> TableRef<'a> {
        TableRef::EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No method of the table has nine bits, or bits on both sides of another field.
    #[test]
    fn bit_runs_use_the_fewest_bytes() {
        let mut out = Vec::new();
        let mut writer = FieldWriter::new(&mut out);
        for place in 0..9 {
            Bit::write(&mut writer, place % 2 == 0);
        }
        Octet::write(&mut writer, 7);
        Bit::write(&mut writer, true);
        writer.finish();
        assert_eq!(out, [0b0101_0101, 1, 7, 1]);

        let mut reader = FieldReader::new(&out);
        for place in 0..9 {
            assert_eq!(Bit::read(&mut reader), Ok(place % 2 == 0));
        }
        assert_eq!(Octet::read(&mut reader), Ok(7));
        assert_eq!(Bit::read(&mut reader), Ok(true));
        assert_eq!(reader.finish(), Ok(()));
    }
}
