//! AMQP's elementary types on the wire: integers in network order, short and long strings.
//!
//! [`Reader`] takes them off the front of a slice without copying; the `put_` functions append them
//! to a `Vec<u8>`. Bits that share an octet are packed in `method/fields.rs`.

use crate::limits::SHORT_STRING_BYTES_MAX;

/// Reason for which an elementary value could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The value, or the length in front of it, runs past the end of the bytes at hand.
    #[error("the value runs past the end")]
    Truncated,
    /// A short string that must be UTF-8 is not.
    #[error("malformed UTF-8 in shortstr")]
    MalformedUtf8,
}

/// Reads values off the front of a slice.
///
/// A read that fails consumes an unspecified number of bytes; the reader is of no use then.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `input`.
    #[must_use]
    pub fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// The bytes that have not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number of bytes that have not been read.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// True if all bytes have been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes `N` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`], as with every read below.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// Takes `length` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    #[inline]
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Takes an octet.
    ///
    /// # Errors
    /// When none is left.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_be_bytes)
    }

    /// Takes AMQP's `short`, 16 bits unsigned.
    ///
    /// # Errors
    /// When fewer than two bytes are left.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Takes AMQP's `long`, 32 bits unsigned.
    ///
    /// # Errors
    /// When fewer than four bytes are left.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Takes AMQP's `longlong`, 64 bits unsigned.
    ///
    /// # Errors
    /// When fewer than eight bytes are left.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Takes 8 bits signed.
    ///
    /// # Errors
    /// When none is left.
    #[inline]
    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        self.array().map(i8::from_be_bytes)
    }

    /// Takes 16 bits signed.
    ///
    /// # Errors
    /// When fewer than two bytes are left.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        self.array().map(i16::from_be_bytes)
    }

    /// Takes 32 bits signed.
    ///
    /// # Errors
    /// When fewer than four bytes are left.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_be_bytes)
    }

    /// Takes 64 bits signed.
    ///
    /// # Errors
    /// When fewer than eight bytes are left.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_be_bytes)
    }

    /// Takes a 32-bit float.
    ///
    /// # Errors
    /// When fewer than four bytes are left.
    #[inline]
    pub fn f32(&mut self) -> Result<f32, DecodeError> {
        self.array().map(f32::from_be_bytes)
    }

    /// Takes a 64-bit float.
    ///
    /// # Errors
    /// When fewer than eight bytes are left.
    #[inline]
    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        self.array().map(f64::from_be_bytes)
    }

    /// Takes a short string of any bytes: a table key, a property, the routing key
    /// of a publish.
    ///
    /// # Errors
    /// When it runs past the end.
    #[inline]
    pub fn short_bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.u8()?;
        self.bytes(usize::from(length))
    }

    /// Takes a short string that must be UTF-8.
    ///
    /// RabbitMQ 4.3.6 refuses overlong forms, surrogates and code points above U+10FFFF and accepts
    /// U+FFFF and NUL (observed), which is what Rust's `str` does.
    ///
    /// # Errors
    /// When it runs past the end, or [`DecodeError::MalformedUtf8`].
    #[inline]
    pub fn short_str(&mut self) -> Result<&'a str, DecodeError> {
        let bytes = self.short_bytes()?;
        std::str::from_utf8(bytes).map_err(|_| DecodeError::MalformedUtf8)
    }

    /// Takes a long string: 32 bits of length, then that many bytes.
    ///
    /// # Errors
    /// When it runs past the end.
    #[inline]
    pub fn long_str(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.u32()?;
        self.bytes(usize::try_from(length).map_err(|_| DecodeError::Truncated)?)
    }
}

/// Appends an octet.
#[inline]
pub fn put_u8(out: &mut Vec<u8>, value: u8) {
    out.push(value);
}

/// Appends AMQP's `short`, 16 bits unsigned.
#[inline]
pub fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends AMQP's `long`, 32 bits unsigned.
#[inline]
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends AMQP's `longlong`, 64 bits unsigned.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends a short string of any bytes.
///
/// A value from the wire is never longer than [`SHORT_STRING_BYTES_MAX`]. A longer one is a mistake of
/// the caller. It is cut, because a length octet that disagreed with the bytes behind it would break
/// the frame.
#[inline]
pub fn put_short_bytes(out: &mut Vec<u8>, value: &[u8]) {
    debug_assert!(value.len() <= SHORT_STRING_BYTES_MAX, "a short string of {}", value.len());
    let (kept, length) = match u8::try_from(value.len()) {
        Ok(length) => (value, length),
        Err(_) => (value.get(..SHORT_STRING_BYTES_MAX).unwrap_or_default(), u8::MAX),
    };
    out.push(length);
    out.extend_from_slice(kept);
}

/// Appends a short string of UTF-8. One that is too long is cut as in [`put_short_bytes`], but between
/// two characters.
#[inline]
pub fn put_short_str(out: &mut Vec<u8>, value: &str) {
    debug_assert!(value.len() <= SHORT_STRING_BYTES_MAX, "a short string of {}", value.len());
    let kept = value.floor_char_boundary(SHORT_STRING_BYTES_MAX);
    put_short_bytes(out, value.get(..kept).unwrap_or_default().as_bytes());
}

/// Appends a long string of any bytes; tables and arrays have the same form.
///
/// # Panics
/// When `value` is 4 GiB or longer, which no frame can hold.
#[inline]
pub fn put_long_str(out: &mut Vec<u8>, value: &[u8]) {
    let length = u32::try_from(value.len()).expect("nothing that goes into a frame has 4 GiB");
    put_u32(out, length);
    out.extend_from_slice(value);
}

/// A 32-bit size in the output whose content is still being appended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingSize {
    content_at: usize,
}

/// Appends room for a size, which counts the bytes appended until [`end_size`].
#[inline]
pub(crate) fn begin_size(out: &mut Vec<u8>) -> PendingSize {
    out.extend_from_slice(&[0; 4]);
    PendingSize { content_at: out.len() }
}

/// Writes the size that [`begin_size`] left room for.
///
/// # Panics
/// When `out` was cut in between, or 4 GiB were appended: mistakes of the caller.
#[inline]
pub(crate) fn end_size(out: &mut [u8], pending: PendingSize) {
    let PendingSize { content_at } = pending;
    let (before, content) = out.split_at_mut(content_at);
    let size = u32::try_from(content.len()).expect("nothing that goes into a frame has 4 GiB");
    let field = before.last_chunk_mut().expect("begin_size appended four octets");
    *field = size.to_be_bytes();
}
