//! What a channel's next frame must be: a method, or the header or a part of the body of a publish.

use bytes::Bytes;

use crate::methods::PublishMethod;

/// Where a channel stands between methods and contents. What few channels need is boxed: a connection
/// has room for several even if there is one.
#[derive(Debug)]
pub(crate) enum ChannelContent {
    /// A method comes next.
    Method,
    /// The header of this publish comes next.
    Header(Box<PublishMethod<'static>>),
    /// A part of this body comes next.
    Body(Box<Assembly>),
    /// The publish was refused; what is left of it is ignored until the channel closes.
    Refused,
}

/// A body that comes in several frames.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) publish: PublishMethod<'static>,
    pub(crate) properties: Bytes,
    pub(crate) body: Vec<u8>,
    pub(crate) body_size: u64,
    pub(crate) empty_frames: u16,
}

impl Assembly {
    /// Bytes that are still to come.
    pub(crate) fn missing(&self) -> u64 {
        self.body_size.saturating_sub(self.body.len() as u64)
    }
}
