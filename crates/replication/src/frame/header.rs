//! The header of a frame.

use super::error::FrameError;
use super::fields::Fields;
use crate::ids::{ClusterId, GroupId, MemberId};
use crate::limits::FRAME_BYTES_MAX;

/// Newest version of the protocol.
pub const PROTOCOL_VERSION: u8 = 1;

/// Octets of a header.
pub const FRAME_HEADER_BYTES: usize = 56;

const MAGIC: [u8; 4] = *b"LVRM";

/// Kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum FrameKind {
    Part = 1,
    AppendAnswer = 2,
    Heartbeat = 3,
    HeartbeatAnswer = 4,
    Vote = 5,
    VoteAnswer = 6,
    TimeoutNow = 7,
    SnapshotOffer = 8,
    ClockPing = 9,
    Leads = 10,
}

impl FrameKind {
    const ALL: [Self; 10] = [
        Self::Part,
        Self::AppendAnswer,
        Self::Heartbeat,
        Self::HeartbeatAnswer,
        Self::Vote,
        Self::VoteAnswer,
        Self::TimeoutNow,
        Self::SnapshotOffer,
        Self::ClockPing,
        Self::Leads,
    ];
}

/// The header of a frame:
///
/// | Offset | Field |
/// | --- | --- |
/// | 0 | `LVRM` |
/// | 4 | version of the protocol, u8 |
/// | 5 | kind, u8 |
/// | 6 | 0, u16 |
/// | 8 | octets of the payload, u32 |
/// | 12 | octets at its end that the checksum does not cover, because entries have their own, u32 |
/// | 16 | cluster, u64 |
/// | 24 | group, u64 |
/// | 32 | sender: node << 16 \| incarnation, u64 |
/// | 40 | receiver, u64 |
/// | 48 | CRC-32C of the header, with 0 in this place, and of the payload, u32 |
/// | 52 | 0, u32 |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    pub(crate) kind: FrameKind,
    pub(crate) length: u32,
    pub(crate) bare: u32,
    pub(crate) crc: u32,
    /// Cluster of both members.
    pub cluster: ClusterId,
    /// Group of both members.
    pub group: GroupId,
    /// The sender.
    pub from: MemberId,
    /// The receiver.
    pub to: MemberId,
}

impl FrameHeader {
    /// Reads the header at the front of `bytes`. The checksum is compared when the frame is whole.
    ///
    /// # Errors
    /// [`FrameError`]; after any but [`FrameError::Cut`] the link is of no use any more.
    pub fn read(bytes: &[u8]) -> Result<Self, FrameError> {
        let header =
            bytes.get(..FRAME_HEADER_BYTES).ok_or(FrameError::Cut { bytes: bytes.len() })?;
        let mut fields = Fields::new(header);
        if fields.bytes()? != MAGIC {
            return Err(FrameError::Malformed("no frame of a member"));
        }
        let version = fields.u8()?;
        if version > PROTOCOL_VERSION {
            return Err(FrameError::NewerVersion { version });
        }
        if version == 0 {
            return Err(FrameError::Malformed("version 0"));
        }
        let kind = fields.u8()?;
        let kind = FrameKind::ALL.into_iter().find(|known| *known as u8 == kind);
        let kind = kind.ok_or(FrameError::Malformed("unknown kind"))?;
        let zero: [u8; 2] = fields.bytes()?;
        let (length, bare) = (fields.u32()?, fields.u32()?);
        let max = FRAME_BYTES_MAX - FRAME_HEADER_BYTES;
        if length as usize > max {
            return Err(FrameError::TooLong { bytes: length.into(), max });
        }
        if zero != [0; 2] || bare > length || (bare > 0 && kind != FrameKind::Part) {
            return Err(FrameError::Malformed("contradictory header"));
        }
        let (cluster, group) = (ClusterId(fields.u64()?), GroupId(fields.u64()?));
        let (from, to) = (MemberId::new(fields.u64()?), MemberId::new(fields.u64()?));
        let (Some(from), Some(to)) = (from, to) else {
            return Err(FrameError::Malformed("node 0"));
        };
        let crc = fields.u32()?;
        if fields.u32()? != 0 {
            return Err(FrameError::Malformed("contradictory header"));
        }
        Ok(Self { kind, length, bare, crc, cluster, group, from, to })
    }

    /// Octets of the whole frame.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.length as usize
    }

    /// The payload of the frame `bytes`, whose header this is.
    pub(crate) fn payload<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], FrameError> {
        let cut = FrameError::Cut { bytes: bytes.len() };
        let payload = bytes.get(FRAME_HEADER_BYTES..self.frame_bytes()).ok_or(cut)?;
        if bytes.len() > self.frame_bytes() {
            return Err(FrameError::Malformed("octets behind the end"));
        }
        let covered = (self.length - self.bare) as usize;
        let covered = payload.get(..covered).unwrap_or_default();
        if self.checksum(covered) != self.crc {
            return Err(FrameError::Malformed("wrong checksum"));
        }
        Ok(payload)
    }

    /// The header's octets, for a payload that begins with `covered`.
    pub(crate) fn encode(&self, covered: &[u8]) -> [u8; FRAME_HEADER_BYTES] {
        self.octets(self.checksum(covered))
    }

    fn checksum(&self, covered: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.octets(0)), covered)
    }

    /// The octets with this checksum.
    fn octets(&self, crc: u32) -> [u8; FRAME_HEADER_BYTES] {
        let words = [
            u64::from(u32::from_le_bytes(MAGIC))
                | u64::from(PROTOCOL_VERSION) << 32
                | u64::from(self.kind as u8) << 40,
            u64::from(self.length) | u64::from(self.bare) << 32,
            self.cluster.0,
            self.group.0,
            self.from.get(),
            self.to.get(),
            u64::from(crc),
        ];
        let mut out = [0; FRAME_HEADER_BYTES];
        for (to, word) in out.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        out
    }
}

/// A frame of any kind with a right header, for tests that make up payloads: `kind` is the octet of the header. The
/// checksum covers the whole payload.
#[must_use]
pub fn check_frame(
    cluster: ClusterId,
    group: GroupId,
    (from, to): (MemberId, MemberId),
    kind: u8,
    payload: &[u8],
) -> Vec<u8> {
    let known = FrameKind::ALL.into_iter().find(|known| *known as u8 == kind);
    let kind = known.unwrap_or(FrameKind::Part);
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let header = FrameHeader { kind, length, bare: 0, crc: 0, cluster, group, from, to };
    [header.encode(payload).as_slice(), payload].concat()
}
