//! The properties of class basic: which are present, and their values.
//!
//! Only the wire form is decided here. The broker validates expiration, priority and user-id; the
//! strings may be any bytes (RabbitMQ 4.3.6 carries non-UTF-8 in every one of them, observed).
//!
//! ```text
//! flags:short                          the properties whose bit is set, in this order
//! 15 content-type      shortstr         8 expiration  shortstr
//! 14 content-encoding  shortstr         7 message-id  shortstr
//! 13 headers           table            6 timestamp   longlong, seconds
//! 12 delivery-mode     octet            5 type        shortstr
//! 11 priority          octet            4 user-id     shortstr
//! 10 correlation-id    shortstr         3 app-id      shortstr
//!  9 reply-to          shortstr         2 cluster-id  shortstr
//!                                       1 unused   0 another flags word follows
//! ```

use crate::primitives::{DecodeError, Reader, put_short_bytes, put_u16, put_u64};
use crate::table::{TableError, TableRef};

const CONTENT_TYPE: u16 = 1 << 15;
const CONTENT_ENCODING: u16 = 1 << 14;
const HEADERS: u16 = 1 << 13;
const DELIVERY_MODE: u16 = 1 << 12;
const PRIORITY: u16 = 1 << 11;
const CORRELATION_ID: u16 = 1 << 10;
const REPLY_TO: u16 = 1 << 9;
const EXPIRATION: u16 = 1 << 8;
const MESSAGE_ID: u16 = 1 << 7;
const TIMESTAMP: u16 = 1 << 6;
const TYPE: u16 = 1 << 5;
const USER_ID: u16 = 1 << 4;
const APP_ID: u16 = 1 << 3;
const CLUSTER_ID: u16 = 1 << 2;
const UNUSED: u16 = 1 << 1;
const CONTINUATION: u16 = 1;

/// Reason for which bytes are no property list. RabbitMQ 4.3.6 answers every one with 541 INTERNAL_ERROR without
/// an explanation, class and method 0 (observed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PropertiesError {
    /// A property, or the flags, run past the end.
    #[error("the properties run past the end of the content header")]
    Truncated,
    /// Bytes follow the last property.
    #[error("{0} octets follow the properties")]
    TrailingBytes(usize),
    /// The bit that announces another flags word is set; class basic has no further properties.
    #[error("the property flags announce another flags word")]
    ContinuationBit,
    /// The headers are no table.
    #[error(transparent)]
    Headers(TableError),
}

impl From<DecodeError> for PropertiesError {
    fn from(_: DecodeError) -> Self {
        Self::Truncated
    }
}

impl From<TableError> for PropertiesError {
    fn from(error: TableError) -> Self {
        Self::Headers(error)
    }
}

/// The properties of one message; absent ones are `None`, which is not the same as empty.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Properties<'a> {
    /// MIME type of the body.
    pub content_type: Option<&'a [u8]>,
    /// MIME encoding of the body.
    pub content_encoding: Option<&'a [u8]>,
    /// The application's headers. An empty table is delivered as an empty table (observed).
    pub headers: Option<TableRef<'a>>,
    /// 2 is persistent; any value is possible.
    pub delivery_mode: Option<u8>,
    /// Priority of the message; any value is possible.
    pub priority: Option<u8>,
    /// For the application: the request that this message answers.
    pub correlation_id: Option<&'a [u8]>,
    /// For the application: the address for the answer.
    pub reply_to: Option<&'a [u8]>,
    /// Decimal milliseconds; any bytes are possible.
    pub expiration: Option<&'a [u8]>,
    /// The application's id of the message.
    pub message_id: Option<&'a [u8]>,
    /// Seconds since 1970 in UTC.
    pub timestamp: Option<u64>,
    /// The application's name for the kind of message.
    pub type_: Option<&'a [u8]>,
    /// The user who published.
    pub user_id: Option<&'a [u8]>,
    /// The application that published.
    pub app_id: Option<&'a [u8]>,
    /// Without meaning in AMQP 0-9-1, but carried.
    pub cluster_id: Option<&'a [u8]>,
}

impl<'a> Properties<'a> {
    /// Reads flags and properties, which must be all there is.
    ///
    /// RabbitMQ 4.3.6 ignores the two lowest flag bits: `1001` with a delivery mode is accepted and
    /// delivered as `1000`, `1001` followed by a second flags word fails on the bytes left over
    /// (observed). Bit 1 is ignored here too; see [`Properties::needs_normalising`].
    ///
    /// # Errors
    /// [`PropertiesError`].
    // COMPAT: continuation bit: an error; RabbitMQ ignores it and fails on what it announces.
    pub fn parse(input: &'a [u8]) -> Result<Self, PropertiesError> {
        let mut reader = Reader::new(input);
        let flags = reader.u16()?;
        if flags & CONTINUATION != 0 {
            return Err(PropertiesError::ContinuationBit);
        }
        let properties = Self {
            content_type: short_bytes(&mut reader, flags & CONTENT_TYPE)?,
            content_encoding: short_bytes(&mut reader, flags & CONTENT_ENCODING)?,
            headers: match flags & HEADERS {
                0 => None,
                _ => Some(TableRef::parse(&mut reader)?),
            },
            delivery_mode: octet(&mut reader, flags & DELIVERY_MODE)?,
            priority: octet(&mut reader, flags & PRIORITY)?,
            correlation_id: short_bytes(&mut reader, flags & CORRELATION_ID)?,
            reply_to: short_bytes(&mut reader, flags & REPLY_TO)?,
            expiration: short_bytes(&mut reader, flags & EXPIRATION)?,
            message_id: short_bytes(&mut reader, flags & MESSAGE_ID)?,
            timestamp: match flags & TIMESTAMP {
                0 => None,
                _ => Some(reader.u64()?),
            },
            type_: short_bytes(&mut reader, flags & TYPE)?,
            user_id: short_bytes(&mut reader, flags & USER_ID)?,
            app_id: short_bytes(&mut reader, flags & APP_ID)?,
            cluster_id: short_bytes(&mut reader, flags & CLUSTER_ID)?,
        };
        match reader.remaining() {
            0 => Ok(properties),
            left => Err(PropertiesError::TrailingBytes(left)),
        }
    }

    /// True if encoded properties have headers or a message id; reads only the flags.
    #[inline]
    pub fn have_headers_or_message_id(encoded: &[u8]) -> bool {
        let flags = encoded.first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags));
        flags & (HEADERS | MESSAGE_ID) != 0
    }

    /// Appends flags and properties.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u16(out, self.flags());
        put_if_present(out, self.content_type);
        put_if_present(out, self.content_encoding);
        if let Some(headers) = self.headers {
            headers.write(out);
        }
        out.extend(self.delivery_mode);
        out.extend(self.priority);
        put_if_present(out, self.correlation_id);
        put_if_present(out, self.reply_to);
        put_if_present(out, self.expiration);
        put_if_present(out, self.message_id);
        if let Some(timestamp) = self.timestamp {
            put_u64(out, timestamp);
        }
        put_if_present(out, self.type_);
        put_if_present(out, self.user_id);
        put_if_present(out, self.app_id);
        put_if_present(out, self.cluster_id);
    }

    /// True if RabbitMQ would deliver other bytes than `input`, from which these properties were parsed:
    /// because of the headers ([`TableRef::needs_normalising`]) or of the unused flag bit. Otherwise
    /// `input` can be forwarded unchanged.
    #[must_use]
    pub fn needs_normalising(&self, input: &[u8]) -> bool {
        let flags = input.first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags));
        flags & UNUSED != 0 || self.headers.is_some_and(|headers| headers.needs_normalising())
    }

    /// Appends flags and properties as RabbitMQ delivers them: with [`TableRef::normalised`] headers.
    pub fn encode_normalised(&self, out: &mut Vec<u8>) {
        let headers = self.headers.map(|headers| headers.normalised());
        let headers = headers.as_ref().map(crate::table::Table::as_ref);
        Properties { headers, ..*self }.encode(out);
    }

    fn flags(&self) -> u16 {
        let present = |is_some: bool, bit: u16| if is_some { bit } else { 0 };
        present(self.content_type.is_some(), CONTENT_TYPE)
            | present(self.content_encoding.is_some(), CONTENT_ENCODING)
            | present(self.headers.is_some(), HEADERS)
            | present(self.delivery_mode.is_some(), DELIVERY_MODE)
            | present(self.priority.is_some(), PRIORITY)
            | present(self.correlation_id.is_some(), CORRELATION_ID)
            | present(self.reply_to.is_some(), REPLY_TO)
            | present(self.expiration.is_some(), EXPIRATION)
            | present(self.message_id.is_some(), MESSAGE_ID)
            | present(self.timestamp.is_some(), TIMESTAMP)
            | present(self.type_.is_some(), TYPE)
            | present(self.user_id.is_some(), USER_ID)
            | present(self.app_id.is_some(), APP_ID)
            | present(self.cluster_id.is_some(), CLUSTER_ID)
    }
}

#[inline]
fn short_bytes<'a>(reader: &mut Reader<'a>, bit: u16) -> Result<Option<&'a [u8]>, DecodeError> {
    if bit == 0 { Ok(None) } else { reader.short_bytes().map(Some) }
}

#[inline]
fn octet(reader: &mut Reader<'_>, bit: u16) -> Result<Option<u8>, DecodeError> {
    if bit == 0 { Ok(None) } else { reader.u8().map(Some) }
}

#[inline]
fn put_if_present(out: &mut Vec<u8>, value: Option<&[u8]>) {
    if let Some(value) = value {
        put_short_bytes(out, value);
    }
}
