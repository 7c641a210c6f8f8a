//! The steps of a history as bytes: short, so that a fuzzer changes one thing at a time, and in both
//! directions, so that seeds can be written.

use arbitrary::{Arbitrary, Result, Unstructured};

/// So many connections there are.
pub const PEERS: usize = 3;

/// Longest run of bytes in one step.
const OCTETS_MAX: usize = 4096;

/// Setup of the broker of a history, bit by bit.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Bits of the options of node and clients.
    pub bits: u8,
    /// In which pieces bytes of clients arrive; the highest bit tells whether the vhost is replicated.
    pub pieces: u8,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// A client sends bytes.
    Bytes { peer: u8, bytes: Vec<u8> },
    /// A client sends a frame, right at both ends.
    Frame { peer: u8, frame_type: u8, channel: u8, payload: Vec<u8> },
    /// A client says something that can be meant well.
    Say(Say),
    /// A connection breaks.
    Cut { peer: u8 },
    /// A client connects, logs in and opens channels.
    Connect { peer: u8 },
    /// Time passes.
    Sleep { time: u16 },
    /// A policy is set or cleared.
    Policy { key: u8, choice: u8 },
    /// The broker is started again with what is in its log.
    Restart,
    /// A client reads, or does not any more.
    Listen { peer: u8, listens: bool },
    /// An operator does something.
    Operate { action: u8, choice: u8 },
    /// The disk is slow, or not any more.
    Disk { is_slow: bool },
}

/// A method of a client: verb, client, channel, and three choices.
#[derive(Clone, Copy, Debug)]
pub struct Say {
    /// Chooses the method.
    pub verb: u8,
    /// Client and channel.
    pub who: u8,
    /// Mostly a name.
    pub a: u8,
    /// Mostly bits.
    pub b: u8,
    /// Mostly arguments.
    pub c: u8,
}

impl<'a> Arbitrary<'a> for Setup {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self { bits: u.arbitrary()?, pieces: u.arbitrary()? })
    }
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let tag: u8 = u.arbitrary()?;
        Ok(match tag % 16 {
            0 => Self::Bytes { peer: u.arbitrary()?, bytes: bytes(u)? },
            1 => Self::Frame {
                peer: u.arbitrary()?,
                frame_type: u.arbitrary()?,
                channel: u.arbitrary()?,
                payload: bytes(u)?,
            },
            2 => Self::Cut { peer: u.arbitrary()? },
            3 => Self::Connect { peer: u.arbitrary()? },
            4 => Self::Sleep { time: u16::from_le_bytes([u.arbitrary()?, u.arbitrary()?]) },
            5 => Self::Policy { key: u.arbitrary()?, choice: u.arbitrary()? },
            6 => Self::Restart,
            7 => Self::Listen { peer: u.arbitrary()?, listens: u.arbitrary()? },
            8 => Self::Operate { action: u.arbitrary()?, choice: u.arbitrary()? },
            9 => Self::Disk { is_slow: u.arbitrary()? },
            _ => {
                let [verb, who, a, b, c] = u.arbitrary()?;
                Self::Say(Say { verb, who, a, b, c })
            }
        })
    }
}

fn bytes(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let len = usize::from(u16::from_le_bytes([u.arbitrary()?, u.arbitrary()?])) % (OCTETS_MAX + 1);
    Ok(u.bytes(len.min(u.len()))?.to_vec())
}

impl Setup {
    /// Length of the pieces in which bytes of clients arrive; 0 for all at once.
    pub fn piece(self) -> usize {
        usize::from(self.pieces & 0x7F)
    }

    /// True if deliveries of quorum queues wait until the log is durable.
    pub fn is_replicated(self) -> bool {
        self.pieces & 0x80 != 0
    }

    /// Appends what is read as this setup.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend([self.bits, self.pieces]);
    }
}

impl Step {
    /// Appends what is read as this step.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes { peer, bytes } => {
                out.extend([0, *peer]);
                write_bytes(out, bytes);
            }
            Self::Frame { peer, frame_type, channel, payload } => {
                out.extend([1, *peer, *frame_type, *channel]);
                write_bytes(out, payload);
            }
            Self::Cut { peer } => out.extend([2, *peer]),
            Self::Connect { peer } => out.extend([3, *peer]),
            Self::Sleep { time } => {
                out.push(4);
                out.extend(time.to_le_bytes());
            }
            Self::Policy { key, choice } => out.extend([5, *key, *choice]),
            Self::Restart => out.push(6),
            Self::Listen { peer, listens } => out.extend([7, *peer, u8::from(*listens)]),
            Self::Operate { action, choice } => out.extend([8, *action, *choice]),
            Self::Disk { is_slow } => out.extend([9, u8::from(*is_slow)]),
            Self::Say(Say { verb, who, a, b, c }) => out.extend([10, *verb, *who, *a, *b, *c]),
        }
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let kept = &bytes[..bytes.len().min(OCTETS_MAX)];
    out.extend(u16::try_from(kept.len()).unwrap_or_default().to_le_bytes());
    out.extend(kept);
}
