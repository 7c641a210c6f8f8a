//! Assembly of a publish from several frames: the state of each channel between frames.

use bytes::Bytes;

use crate::methods::PublishMethod;

/// The frame that a channel expects next. Rare states are boxed, because the map of channels reserves
/// room for several entries.
#[derive(Debug)]
pub(crate) enum ChannelContent {
    /// A method.
    Method,
    /// The content header of this publish.
    Header(Box<PublishMethod<'static>>),
    /// A part of this body.
    Body(Box<Assembly>),
    /// Any frame: the publish was refused, and its rest is ignored until the channel closes.
    Refused,
}

/// A publish whose body comes in several frames.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) publish: PublishMethod<'static>,
    pub(crate) properties: Bytes,
    pub(crate) body: Vec<u8>,
    pub(crate) body_size: u64,
    pub(crate) empty_frames: u16,
}

impl Assembly {
    /// Bytes of the body that have not come yet.
    pub(crate) fn missing(&self) -> u64 {
        self.body_size.saturating_sub(self.body.len() as u64)
    }
}
