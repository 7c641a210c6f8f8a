//! Messages: envelope, encoded properties and body.
//!
//! A `Message` is a handle of one word, shared by queues, unacknowledged deliveries and effects. A message
//! never changes: a dead letter is a new message. Properties and body are in one allocation, copied once from
//! the socket's buffer; dead letters share long bodies instead of copying them. Facts that a queue adds
//! (arrival, deadline, delivery counts) belong to the queue's entry.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use amqp::properties::Properties;
use amqp::table::TableRef;
use bytes::Bytes;
use triomphe::ThinArc;

use crate::death_headers;
use crate::death_history::DeathHistory;
pub use crate::ids::Name;
use crate::limits::SHARED_BODY_BYTES_MIN;
pub use crate::routing_key::RoutingKey;

/// The part of a publish that decides the destination; shared by consecutive messages of a channel with the
/// same destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The exchange that the message was published to, or the dead-letter exchange.
    pub exchange: Name,
    /// The routing key, as shown on delivery.
    pub routing_key: RoutingKey,
    /// Further keys from the `CC` header.
    pub cc: Box<[RoutingKey]>,
    /// Further keys from the `BCC` header, which is removed from the properties.
    pub bcc: Box<[RoutingKey]>,
}

impl Envelope {
    /// Creates an envelope without sender-selected keys.
    pub fn new(exchange: Name, routing_key: RoutingKey) -> Self {
        Self { exchange, routing_key, cc: Box::default(), bcc: Box::default() }
    }

    /// All keys that the message is routed by: the routing key, then `CC`, then `BCC`.
    pub fn routing_keys(&self) -> impl Iterator<Item = &RoutingKey> {
        std::iter::once(&self.routing_key).chain(&self.cc).chain(&self.bcc)
    }

    /// True if the message has only its routing key.
    pub fn has_one_key(&self) -> bool {
        self.cc.is_empty() && self.bcc.is_empty()
    }
}

/// Properties and body of a message as received.
#[derive(Clone)]
pub enum Content<'a> {
    /// Both in one slice of the socket's buffer, separated by a frame boundary.
    Framed {
        /// The encoded properties, the frame boundary and the body.
        bytes: &'a [u8],
        /// Length of the properties at the start of `bytes`.
        properties_len: usize,
        /// Offset of the body in `bytes`.
        body_start: usize,
    },
    /// A body received in several frames.
    Assembled {
        /// The encoded properties.
        properties: Bytes,
        /// The whole body.
        body: Bytes,
    },
}

impl Content<'_> {
    /// The encoded properties: flags, then values.
    pub fn properties(&self) -> &[u8] {
        match self {
            Self::Framed { bytes, properties_len, .. } => &bytes[..*properties_len],
            Self::Assembled { properties, .. } => properties,
        }
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        match self {
            Self::Framed { bytes, body_start, .. } => &bytes[*body_start..],
            Self::Assembled { body, .. } => body,
        }
    }
}

impl fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {} bytes", self.properties().len(), self.body().len())
    }
}

/// The facts that the core reads from the properties, once, at publish.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MessageMeta {
    /// `delivery_mode` 2.
    pub persistent: bool,
    /// `priority`, as given.
    pub priority: Option<u8>,
    /// `expiration`, in milliseconds.
    pub expiration_ms: Option<u64>,
}

/// The sizes of the parts of a message, kept where many messages wait: a message that has left the processor's caches is
/// not read only to be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MessageSizes {
    /// Bytes of the encoded properties.
    pub(crate) properties: u32,
    /// Bytes of the body.
    pub(crate) body: u32,
}

impl MessageSizes {
    /// See [`Message::memory_bytes`].
    pub(crate) fn memory_bytes(self) -> u64 {
        u64::from(self.properties) + u64::from(self.body) + crate::limits::MESSAGE_MEMORY_BYTES
    }
}

/// Properties and body of a message on a disk, where the body follows the properties.
#[derive(Clone, Copy)]
pub(crate) struct StoredContent<'a> {
    pub(crate) bytes: &'a [u8],
    /// The number of bytes that are properties.
    pub(crate) properties_len: usize,
}

/// A message. Clones share the contents.
#[derive(Clone)]
pub struct Message(ThinArc<Header, u8>);

struct Header {
    envelope: Arc<Envelope>,
    meta: MessageMeta,
    deaths: Option<Arc<DeathHistory>>,
    maybe_seen: bool,
    properties: PropertiesAt,
    body: BodyAt,
}

enum PropertiesAt {
    /// At the start of the message's own allocation, up to this offset.
    Inline(u32),
    /// In an allocation shared by messages that died together.
    Shared(SharedProperties),
}

enum BodyAt {
    /// In the message's own allocation, from this offset on.
    Inline(u32),
    /// In an allocation of its own.
    Bytes(Box<Bytes>),
    /// In the message that this one is a dead letter of.
    Of(Message),
}

/// Encoded properties that several messages share. Clones share the contents.
#[derive(Clone)]
pub(crate) struct SharedProperties(ThinArc<(), u8>);

impl SharedProperties {
    /// Copies encoded properties into a shared allocation.
    pub(crate) fn new(properties: &[u8]) -> Self {
        Self(ThinArc::from_header_and_slice((), properties))
    }

    /// The encoded properties: flags, then values.
    #[inline]
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.0.slice
    }

    /// True if both are clones of the same value.
    #[inline]
    pub(crate) fn is_same_allocation(&self, other: &Self) -> bool {
        std::ptr::eq(self.0.ptr(), other.0.ptr())
    }
}

impl fmt::Debug for SharedProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.slice.len())
    }
}

impl Message {
    /// Creates a published message. `rewritten` replaces the properties of `content`, if the broker had to
    /// change them.
    pub fn new(
        envelope: Arc<Envelope>,
        meta: MessageMeta,
        content: Content<'_>,
        rewritten: Option<&[u8]>,
    ) -> Self {
        match (content, rewritten) {
            (Content::Framed { bytes, properties_len, body_start }, None) => Self::build(
                Header {
                    envelope,
                    meta,
                    deaths: None,
                    maybe_seen: false,
                    properties: PropertiesAt::Inline(offset(properties_len)),
                    body: BodyAt::Inline(offset(body_start)),
                },
                bytes,
            ),
            (Content::Framed { bytes, body_start, .. }, Some(properties)) => {
                let body = &bytes[body_start..];
                Self::copied(envelope, meta, properties, body)
            }
            (Content::Assembled { properties, body }, rewritten) => {
                let properties = rewritten.unwrap_or(&properties);
                if body.len() < SHARED_BODY_BYTES_MIN {
                    Self::copied(envelope, meta, properties, &body)
                } else {
                    Self::build(
                        Header {
                            envelope,
                            meta,
                            deaths: None,
                            maybe_seen: false,
                            properties: PropertiesAt::Inline(offset(properties.len())),
                            body: BodyAt::Bytes(Box::new(body)),
                        },
                        properties,
                    )
                }
            }
        }
    }

    /// Creates a message from bytes of a disk, where the body follows the properties.
    pub(crate) fn read_back(
        envelope: Arc<Envelope>,
        meta: MessageMeta,
        deaths: Option<Arc<DeathHistory>>,
        maybe_seen: bool,
        stored: StoredContent<'_>,
    ) -> Self {
        let StoredContent { bytes, properties_len } = stored;
        let at = offset(properties_len);
        let (properties, body) = (PropertiesAt::Inline(at), BodyAt::Inline(at));
        Self::build(Header { envelope, meta, deaths, maybe_seen, properties, body }, bytes)
    }

    /// The dead letter of `self`: the same body with a new envelope, new properties and the history of its
    /// deaths. As in RabbitMQ, a dead letter has no expiration.
    pub(crate) fn dead_letter(
        &self,
        envelope: Arc<Envelope>,
        properties: SharedProperties,
        deaths: Arc<DeathHistory>,
        maybe_seen: bool,
    ) -> Self {
        let meta = MessageMeta { expiration_ms: None, ..self.meta() };
        let properties = PropertiesAt::Shared(properties);
        let (body, copied) = match self.shared_body() {
            Some(shared) => (shared, &[][..]),
            None => (BodyAt::Inline(0), self.body()),
        };
        let deaths = Some(deaths);
        Self::build(Header { envelope, meta, deaths, maybe_seen, properties, body }, copied)
    }

    /// Creates a message with the same body that has never died.
    pub(crate) fn republished(
        &self,
        envelope: Arc<Envelope>,
        meta: MessageMeta,
        properties: &[u8],
        maybe_seen: bool,
    ) -> Self {
        let at = offset(properties.len());
        let (body, bytes) = match self.shared_body() {
            Some(shared) => (shared, Cow::Borrowed(properties)),
            None => (BodyAt::Inline(at), Cow::Owned([properties, self.body()].concat())),
        };
        let (deaths, properties) = (None, PropertiesAt::Inline(at));
        Self::build(Header { envelope, meta, deaths, maybe_seen, properties, body }, &bytes)
    }

    /// The same message without its expiration.
    pub(crate) fn without_expiration(&self) -> Self {
        if self.meta().expiration_ms.is_none() {
            return self.clone();
        }
        let meta = MessageMeta { expiration_ms: None, ..self.meta() };
        let properties = Properties { expiration: None, ..self.decoded_properties() };
        self.changed(properties, meta)
    }

    /// The same message with these headers.
    pub(crate) fn with_headers(&self, headers: TableRef<'_>) -> Self {
        let properties = Properties { headers: Some(headers), ..self.decoded_properties() };
        self.changed(properties, self.meta())
    }

    /// The same message, which may have been delivered before a crash.
    pub(crate) fn maybe_seen(&self) -> Self {
        let bytes = [self.properties(), self.body()].concat();
        let at = offset(self.properties().len());
        let Header { envelope, deaths, .. } = self.header();
        let (properties, body) = (PropertiesAt::Inline(at), BodyAt::Inline(at));
        let (envelope, deaths) = (Arc::clone(envelope), deaths.clone());
        let meta = self.meta();
        Self::build(Header { envelope, meta, deaths, maybe_seen: true, properties, body }, &bytes)
    }

    /// The same message with other properties.
    fn changed(&self, properties: Properties<'_>, meta: MessageMeta) -> Self {
        let shared = self.shared_body();
        let headers = properties.headers.map_or(0, |headers| headers.as_bytes().len());
        let copied = if shared.is_some() { 0 } else { self.body().len() };
        let mut bytes = Vec::with_capacity(self.properties().len() + headers + copied + 8);
        properties.encode(&mut bytes);
        let at = offset(bytes.len());
        let body = shared.unwrap_or_else(|| {
            bytes.extend_from_slice(self.body());
            BodyAt::Inline(at)
        });
        let Header { envelope, deaths, maybe_seen, .. } = self.header();
        let header = Header {
            envelope: Arc::clone(envelope),
            meta,
            deaths: deaths.clone(),
            maybe_seen: *maybe_seen,
            properties: PropertiesAt::Inline(at),
            body,
        };
        Self::build(header, &bytes)
    }

    /// The body for another message, if it is long enough to be shared.
    fn shared_body(&self) -> Option<BodyAt> {
        (self.body().len() >= SHARED_BODY_BYTES_MIN).then(|| match &self.header().body {
            BodyAt::Inline(_) => BodyAt::Of(self.clone()),
            BodyAt::Bytes(bytes) => BodyAt::Bytes(bytes.clone()),
            BodyAt::Of(origin) => BodyAt::Of(origin.clone()),
        })
    }

    fn copied(envelope: Arc<Envelope>, meta: MessageMeta, properties: &[u8], body: &[u8]) -> Self {
        let at = offset(properties.len());
        let bytes = [properties, body].concat();
        let (properties, body) = (PropertiesAt::Inline(at), BodyAt::Inline(at));
        let (deaths, maybe_seen) = (None, false);
        Self::build(Header { envelope, meta, deaths, maybe_seen, properties, body }, &bytes)
    }

    fn build(header: Header, bytes: &[u8]) -> Self {
        Self(ThinArc::from_header_and_slice(header, bytes))
    }

    #[inline]
    fn header(&self) -> &Header {
        &self.0.header.header
    }

    /// The exchange and the keys that the message was published with.
    #[inline]
    pub fn envelope(&self) -> &Arc<Envelope> {
        &self.header().envelope
    }

    /// The facts that the core read from the properties.
    #[inline]
    pub fn meta(&self) -> MessageMeta {
        self.header().meta
    }

    /// True if the message may have been delivered before a crash without a record of it: it was made from a
    /// message that existed when the broker was killed, and may have been made a second time.
    #[inline]
    pub fn is_maybe_seen(&self) -> bool {
        self.header().maybe_seen
    }

    /// The deaths so far, if the message is a dead letter.
    pub fn deaths(&self) -> Option<&Arc<DeathHistory>> {
        self.header().deaths.as_ref()
    }

    /// The encoded properties: flags, then values.
    #[inline]
    pub fn properties(&self) -> &[u8] {
        match &self.header().properties {
            PropertiesAt::Inline(end) => &self.0.slice[..*end as usize],
            PropertiesAt::Shared(properties) => &properties.0.slice,
        }
    }

    /// The properties, if the message shares them with others that died together.
    #[inline]
    pub(crate) fn shared_properties(&self) -> Option<&SharedProperties> {
        match &self.header().properties {
            PropertiesAt::Inline(_) => None,
            PropertiesAt::Shared(properties) => Some(properties),
        }
    }

    /// The decoded properties.
    ///
    /// # Panics
    /// Never for a message that a client published or that was read from the log: both decode the
    /// properties before they make a message.
    pub(crate) fn decoded_properties(&self) -> Properties<'_> {
        Properties::parse(self.properties()).expect("a message has valid properties")
    }

    /// The body.
    #[inline]
    pub fn body(&self) -> &[u8] {
        match &self.header().body {
            BodyAt::Inline(start) => &self.0.slice[*start as usize..],
            BodyAt::Bytes(bytes) => bytes,
            BodyAt::Of(origin) => origin.body(),
        }
    }

    /// Bytes that a delivery of the message counts against a connection's outbox.
    #[inline]
    pub fn delivery_bytes(&self) -> u64 {
        (self.properties().len() + self.body().len()) as u64
            + crate::limits::DELIVERY_OVERHEAD_BYTES
    }
}

impl Message {
    /// The properties to deliver in a frame with room for `bytes_max` bytes: the broker's death headers are
    /// shortened if necessary. Properties that a client made too long stay as they are.
    pub fn properties_within<'a>(&self, properties: &'a [u8], bytes_max: usize) -> Cow<'a, [u8]> {
        match self.deaths().filter(|_| properties.len() > bytes_max) {
            None => Cow::Borrowed(properties),
            Some(deaths) => {
                Cow::Owned(death_headers::render(properties, deaths, bytes_max).properties)
            }
        }
    }

    /// Approximate size of the message's record in the log, in bytes.
    pub(crate) fn log_bytes(&self) -> u64 {
        let keys = |keys: &[RoutingKey]| keys.iter().map(|key| key.as_bytes().len()).sum::<usize>();
        let envelope = self.envelope();
        let deaths = self.deaths().map_or(0, |deaths| death_headers::history_bytes(deaths));
        self.delivery_bytes() + (keys(&envelope.cc) + keys(&envelope.bcc) + deaths) as u64
    }

    /// Approximate memory of the message while it waits in a queue, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.sizes().memory_bytes()
    }

    /// The sizes of the parts of the message.
    #[inline]
    pub(crate) fn sizes(&self) -> MessageSizes {
        MessageSizes {
            properties: offset(self.properties().len()),
            body: offset(self.body().len()),
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("exchange", &self.envelope().exchange)
            .field("routing_key", &self.envelope().routing_key)
            .field("meta", &self.meta())
            .field("body_bytes", &self.body().len())
            .finish()
    }
}

/// Converts an offset; offsets fit because properties come in one frame and bodies are capped far below 4
/// GiB.
fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a message is far shorter than 4 GiB")
}
