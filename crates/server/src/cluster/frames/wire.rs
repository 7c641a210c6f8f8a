//! Frames of an open link: split into chunks, so that a short frame never waits for a long one, and joined again.
//!
//! A chunk is a header of 12 bytes and up to [`CHUNK_BYTES_MAX`] bytes: length, channel, flags, two zero bytes, and a
//! CRC-32C over everything else. Each channel is a stream of frames of its own, in order. The checksum is there with TLS,
//! too: a flipped bit in a term or a commit index would make two leaders, TCP's sum misses one in 65,536, and the
//! processor computes the CRC faster than memory delivers the bytes.

use bytes::{Buf, Bytes, BytesMut};

use crate::limits::{CHUNK_BYTES_MAX, CONTROL_FRAME_BYTES_MAX, LINK_FRAME_BYTES_MAX};

/// Bytes of a chunk's header.
pub(crate) const CHUNK_HEADER_BYTES: usize = 12;
/// Bytes of the header that its checksum covers.
const CHECKED_BYTES: usize = 8;

/// The flag of the last chunk of a frame.
const LAST: u8 = 1;

/// A stream of frames within a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Channel {
    /// The link's own frames: pings and facts.
    Control,
    /// Frames whose order counts.
    Ordered,
    /// Long frames that give way to others.
    Bulk,
}

impl Channel {
    /// All channels.
    pub(crate) const ALL: [Self; 3] = [Self::Control, Self::Ordered, Self::Bulk];

    const fn as_u8(self) -> u8 {
        match self {
            Self::Control => 0,
            Self::Ordered => 1,
            Self::Bulk => 2,
        }
    }

    fn from_u8(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Longest frame of the channel, in bytes.
    pub(crate) const fn frame_bytes_max(self) -> usize {
        match self {
            Self::Control => CONTROL_FRAME_BYTES_MAX,
            Self::Ordered | Self::Bulk => LINK_FRAME_BYTES_MAX,
        }
    }
}

/// The reason why the bytes of a link are not chunks. The link is closed: nothing behind it can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a chunk of {0} bytes")]
    ChunkTooLong(u32),
    #[error("a frame that is too long")]
    FrameTooLong,
    #[error("a chunk of an unknown channel or with unknown flags")]
    Unknown,
    #[error("a chunk with a wrong checksum")]
    Checksum,
    #[error("an unknown or damaged frame of the link itself")]
    Control,
}

/// Appends a chunk.
///
/// # Panics
/// For a chunk of more than [`CHUNK_BYTES_MAX`] bytes.
pub(crate) fn put_chunk(out: &mut BytesMut, channel: Channel, is_last: bool, content: &[u8]) {
    assert!(content.len() <= CHUNK_BYTES_MAX, "a chunk of {} bytes", content.len());
    let length = u32::try_from(content.len()).expect("a chunk is short");
    let [a, b, c, d] = length.to_le_bytes();
    let header = [a, b, c, d, channel.as_u8(), if is_last { LAST } else { 0 }, 0, 0];
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&header), content);
    out.extend_from_slice(&header);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(content);
}

/// Joins the bytes of a link to frames.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    /// Bytes from the socket that are not split yet.
    pub(crate) bytes: BytesMut,
    /// The begun frame of each channel.
    begun: [BytesMut; Channel::ALL.len()],
}

impl FrameReader {
    /// The next whole frame, if there is one.
    ///
    /// # Errors
    /// [`WireError`], after which the reader must not be used again.
    pub(crate) fn next(&mut self) -> Result<Option<(Channel, Bytes)>, WireError> {
        while let Some((channel, is_last, content)) = self.chunk()? {
            let begun = &mut self.begun[usize::from(channel.as_u8())];
            if content.len() > channel.frame_bytes_max() - begun.len() {
                return Err(WireError::FrameTooLong);
            }
            if is_last && begun.is_empty() {
                return Ok(Some((channel, content)));
            }
            begun.extend_from_slice(&content);
            if is_last {
                return Ok(Some((channel, std::mem::take(begun).freeze())));
            }
        }
        Ok(None)
    }

    fn chunk(&mut self) -> Result<Option<(Channel, bool, Bytes)>, WireError> {
        let Some(header) = self.bytes.first_chunk::<CHUNK_HEADER_BYTES>() else { return Ok(None) };
        let [a, b, c, d, channel, flags, zero, zero_too, checksum @ ..] = *header;
        let length = u32::from_le_bytes([a, b, c, d]);
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        if bytes > CHUNK_BYTES_MAX {
            return Err(WireError::ChunkTooLong(length));
        }
        let channel = Channel::from_u8(channel).ok_or(WireError::Unknown)?;
        if flags & !LAST != 0 || zero != 0 || zero_too != 0 {
            return Err(WireError::Unknown);
        }
        if self.bytes.len() < CHUNK_HEADER_BYTES + bytes {
            return Ok(None);
        }
        let checked = self.bytes.get(..CHECKED_BYTES).unwrap_or_default();
        let begin = crc32c::crc32c(checked);
        self.bytes.advance(CHUNK_HEADER_BYTES);
        let content = self.bytes.split_to(bytes).freeze();
        if crc32c::crc32c_append(begin, &content) != u32::from_le_bytes(checksum) {
            return Err(WireError::Checksum);
        }
        Ok(Some((channel, flags & LAST != 0, content)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::membership::fields::hex;

    fn written(frames: &[(Channel, Vec<u8>)]) -> BytesMut {
        let mut out = BytesMut::new();
        for (channel, frame) in frames {
            let chunks: Vec<&[u8]> = frame.chunks(CHUNK_BYTES_MAX).collect();
            if chunks.is_empty() {
                put_chunk(&mut out, *channel, true, &[]);
            }
            for (at, chunk) in chunks.iter().enumerate() {
                put_chunk(&mut out, *channel, at + 1 == chunks.len(), chunk);
            }
        }
        out
    }

    fn read(reader: &mut FrameReader) -> Result<Vec<(Channel, Vec<u8>)>, WireError> {
        let mut all = Vec::new();
        while let Some((channel, frame)) = reader.next()? {
            all.push((channel, frame.to_vec()));
        }
        Ok(all)
    }

    proptest! {
        #[test]
        fn frames_are_read_in_any_pieces(
            lengths in proptest::collection::vec((0_usize..3, 0_usize..200_000), 0..5),
            cuts in proptest::collection::vec(0_usize..100_000, 0..5),
        ) {
            let frames: Vec<(Channel, Vec<u8>)> = lengths
                .iter()
                .map(|(channel, length)| {
                    let content = (0..*length).map(|at| u8::try_from(at % 251).unwrap());
                    (Channel::ALL[*channel], content.collect())
                })
                .collect();
            let mut bytes = written(&frames);
            let (mut reader, mut all) = (FrameReader::default(), Vec::new());
            for cut in cuts {
                let piece = bytes.split_to(cut.min(bytes.len()));
                reader.bytes.extend_from_slice(&piece);
                all.extend(read(&mut reader).unwrap());
            }
            reader.bytes.extend_from_slice(&bytes);
            all.extend(read(&mut reader).unwrap());
            prop_assert_eq!(all, frames);
        }

        #[test]
        fn changed_byte_is_noticed(length in 0_usize..300, at in 0_usize..312, bit in 0_u8..8) {
            let frame = vec![7; length];
            let mut bytes = written(&[(Channel::Ordered, frame)]);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let mut reader = FrameReader { bytes, ..FrameReader::default() };
            // A greater length waits for more bytes, and then the checksum is wrong.
            reader.bytes.extend_from_slice(&vec![0; CHUNK_BYTES_MAX]);
            prop_assert!(read(&mut reader).is_err());
        }
    }

    #[test]
    fn chunk_has_the_octets_of_earlier_builds() {
        let mut octets = BytesMut::new();
        put_chunk(&mut octets, Channel::Bulk, true, b"octets");
        assert_eq!(hex(&octets), "060000000201000017bbff856f6374657473");
    }

    #[test]
    fn chunks_of_channels_interleave() {
        let mut bytes = BytesMut::new();
        put_chunk(&mut bytes, Channel::Bulk, false, b"lo");
        put_chunk(&mut bytes, Channel::Ordered, false, b"a");
        put_chunk(&mut bytes, Channel::Control, true, b"ping");
        put_chunk(&mut bytes, Channel::Ordered, true, b"b");
        put_chunk(&mut bytes, Channel::Bulk, true, b"ng");
        let mut reader = FrameReader { bytes, ..FrameReader::default() };
        let frame = |channel, bytes: &[u8]| (channel, bytes.to_vec());
        assert_eq!(
            read(&mut reader).unwrap(),
            [
                frame(Channel::Control, b"ping"),
                frame(Channel::Ordered, b"ab"),
                frame(Channel::Bulk, b"long")
            ]
        );
    }

    #[test]
    fn lengths_are_checked_before_memory_is_taken() {
        let mut reader = FrameReader::default();
        reader.bytes.extend_from_slice(&[0xff; CHUNK_HEADER_BYTES]);
        assert_eq!(reader.next(), Err(WireError::ChunkTooLong(u32::MAX)));
        let mut bytes = BytesMut::new();
        for _ in 0..=CONTROL_FRAME_BYTES_MAX / CHUNK_BYTES_MAX {
            put_chunk(&mut bytes, Channel::Control, false, &vec![0; CHUNK_BYTES_MAX]);
        }
        let mut reader = FrameReader { bytes, ..FrameReader::default() };
        assert_eq!(reader.next(), Err(WireError::FrameTooLong));
    }
}
