//! Messages of the dialogue in which a node fetches the files of a vhost.
//!
//! ```text
//! receiver -> sender   Ask: vhost, need
//! sender -> receiver   Refused, or Plan: member, hard state, files
//! receiver -> sender   From: file and offset of the first octets that it lacks
//! sender -> receiver   Chunk, Chunk, ... End
//! receiver -> sender   Installed
//! ```
//!
//! A message is its length (four octets), its kind (one), its checksum (four), and its content.

use std::io;

use crc32c::crc32c;
use replication::MemberId;
use storage::{EntryIndex, HardState, SavedClock, ShipmentPlan, Term};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::limits::{SHIPMENT_CHUNK_BYTES, SHIPMENT_MESSAGE_BYTES_MAX};
use crate::replicas::ShipmentNeed;

/// Version of the dialogue.
const VERSION: u8 = 1;

/// Members that a plan lists: more than a group has.
const MEMBERS_MAX: usize = 64;

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    /// The receiver asks for the files of a vhost.
    Ask { vhost: u64, need: ShipmentNeed },
    /// The sender has none; the reason, and the node that leads, if it knows one.
    Refused { leader: u64, reason: String },
    /// The files that the sender has, and the member that they are for.
    Plan { member: MemberId, state: HardState, plan: ShipmentPlan },
    /// The receiver lacks the octets from here on.
    From { file: u64, offset: u64 },
    /// Octets of a file.
    Chunk { file: u64, offset: u64, bytes: Vec<u8> },
    /// All octets have been sent.
    End,
    /// The receiver has the files, and is a member with them.
    Installed,
}

impl Message {
    fn kind(&self) -> u8 {
        match self {
            Self::Ask { .. } => 1,
            Self::Refused { .. } => 2,
            Self::Plan { .. } => 3,
            Self::From { .. } => 4,
            Self::Chunk { .. } => 5,
            Self::End => 6,
            Self::Installed => 7,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Ask { vhost, need } => {
                out.extend([VERSION, u8::from(*need == ShipmentNeed::Replacement)]);
                put(&mut out, *vhost);
            }
            Self::Refused { leader, reason } => {
                put(&mut out, *leader);
                out.extend(reason.as_bytes());
            }
            Self::Plan { member, state, plan } => {
                let clock = state.clock.unwrap_or(SavedClock { term: 0, wall_ahead_us: 0 });
                for number in [member.get(), state.term.0, state.commit.0, clock.term] {
                    put(&mut out, number);
                }
                out.extend(clock.wall_ahead_us.to_le_bytes());
                for members in [&state.voters, &state.learners] {
                    put(&mut out, members.len() as u64);
                    members.iter().for_each(|member| put(&mut out, *member));
                }
                for number in [plan.sender, plan.index.0, plan.term.0, plan.files.len() as u64] {
                    put(&mut out, number);
                }
                for (file, bytes) in &plan.files {
                    put(&mut out, *file);
                    put(&mut out, *bytes);
                }
                out.extend(&plan.manifest);
            }
            Self::From { file, offset } => {
                put(&mut out, *file);
                put(&mut out, *offset);
            }
            Self::Chunk { file, offset, bytes } => {
                put(&mut out, *file);
                put(&mut out, *offset);
                out.extend(bytes);
            }
            Self::End | Self::Installed => {}
        }
        out
    }

    /// Reads the content of a message. None if it is no possible one.
    fn decode(kind: u8, content: &[u8]) -> Option<Self> {
        let mut rest = content;
        let message = match kind {
            1 => {
                let [version, is_replacement] = *take::<2>(&mut rest)?;
                let need = match (version, is_replacement) {
                    (VERSION, 0) => ShipmentNeed::Behind,
                    (VERSION, 1) => ShipmentNeed::Replacement,
                    _ => return None,
                };
                Self::Ask { vhost: number(&mut rest)?, need }
            }
            2 => {
                let leader = number(&mut rest)?;
                let reason = String::from_utf8_lossy(std::mem::take(&mut rest)).into_owned();
                Self::Refused { leader, reason }
            }
            3 => return plan(rest),
            4 => Self::From { file: number(&mut rest)?, offset: number(&mut rest)? },
            5 => {
                let (file, offset) = (number(&mut rest)?, number(&mut rest)?);
                Self::Chunk { file, offset, bytes: std::mem::take(&mut rest).to_vec() }
            }
            6 => Self::End,
            7 => Self::Installed,
            _ => return None,
        };
        rest.is_empty().then_some(message)
    }
}

fn plan(mut rest: &[u8]) -> Option<Message> {
    let member = MemberId::new(number(&mut rest)?)?;
    let (term, commit, clock_term) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
    let wall_ahead_us = i64::from_le_bytes(*take::<8>(&mut rest)?);
    let clock = (clock_term > 0).then_some(SavedClock { term: clock_term, wall_ahead_us });
    let mut members = || -> Option<Vec<u64>> {
        let count = usize::try_from(number(&mut rest)?).ok()?;
        (count <= MEMBERS_MAX).then_some(())?;
        (0..count).map(|_| number(&mut rest)).collect()
    };
    let (voters, learners) = (members()?, members()?);
    let (sender, index, index_term) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
    let count = usize::try_from(number(&mut rest)?).ok()?;
    // Each file has two numbers, so that a count beyond the content ends here.
    (count <= rest.len() / 16).then_some(())?;
    let files = (0..count).map(|_| Some((number(&mut rest)?, number(&mut rest)?)));
    let files: Vec<(u64, u64)> = files.collect::<Option<_>>()?;
    let state = HardState {
        term: Term(term),
        vote: 0,
        commit: EntryIndex(commit),
        voters,
        learners,
        clock,
    };
    let plan = ShipmentPlan {
        sender,
        index: EntryIndex(index),
        term: Term(index_term),
        manifest: rest.to_vec(),
        files,
    };
    Some(Message::Plan { member, state, plan })
}

fn put(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    take::<8>(rest).map(|bytes| u64::from_le_bytes(*bytes))
}

/// Writes a message.
pub(super) async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &Message,
) -> io::Result<()> {
    let content = message.encode();
    let length = u32::try_from(content.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut head = length.to_le_bytes().to_vec();
    head.push(message.kind());
    head.extend(crc32c(&content).to_le_bytes());
    stream.write_all(&head).await?;
    stream.write_all(&content).await?;
    stream.flush().await
}

/// Reads a message. What is larger than a plan can be, damaged or impossible is an error.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Message> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await?;
    let [l0, l1, l2, l3, kind, c0, c1, c2, c3] = head;
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let most = match kind {
        5 => SHIPMENT_CHUNK_BYTES + 16,
        _ => SHIPMENT_MESSAGE_BYTES_MAX,
    };
    if length > most {
        return Err(invalid("a message is too long"));
    }
    let mut content = vec![0; length];
    stream.read_exact(&mut content).await?;
    if crc32c(&content) != u32::from_le_bytes([c0, c1, c2, c3]) {
        return Err(invalid("a message has arrived damaged"));
    }
    Message::decode(kind, &content).ok_or_else(|| invalid("a message cannot be read"))
}

/// An error of a dialogue.
pub(super) fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::fields::hex;

    fn messages() -> Vec<Message> {
        let state = HardState {
            term: Term(7),
            vote: 0,
            commit: EntryIndex(90),
            voters: vec![0x1_0001, 0x2_0001],
            learners: vec![0x3_0002],
            clock: Some(SavedClock { term: 6, wall_ahead_us: -4 }),
        };
        let plan = ShipmentPlan {
            sender: 0x1_0001,
            index: EntryIndex(90),
            term: Term(6),
            manifest: vec![1, 2, 3],
            files: vec![(4, 1000), (9, 20)],
        };
        let member = MemberId::new(0x3_0002).unwrap();
        vec![
            Message::Ask { vhost: 3, need: ShipmentNeed::Behind },
            Message::Ask { vhost: 3, need: ShipmentNeed::Replacement },
            Message::Refused { leader: 5, reason: "no".to_owned() },
            Message::Plan { member, state, plan },
            Message::From { file: 4, offset: 77 },
            Message::Chunk { file: 4, offset: 77, bytes: vec![5; 100] },
            Message::End,
            Message::Installed,
        ]
    }

    #[tokio::test]
    async fn messages_have_the_octets_of_earlier_builds() {
        let mut all = Vec::new();
        for message in messages() {
            let mut octets = Vec::new();
            write(&mut octets, &message).await.unwrap();
            all.push(hex(&octets));
        }
        let chunk =
            format!("7400000005704509ea04000000000000004d00000000000000{}", "05".repeat(100));
        let expected = [
            "0a00000001a70ccff301000300000000000000",
            "0a00000001efdaf10701010300000000000000",
            "0a0000000283e6744005000000000000006e6f",
            "9300000003b2da1d5f020003000000000007000000000000005a000000000000000600000000000000fcffffffffffffff0200000000000000010001000000000001000200000000000100000000000000020003000000000001000100000000005a00000000000000060000000000000002000000000000000400000000000000e80300000000000009000000000000001400000000000000010203",
            "1000000004a3066eb404000000000000004d00000000000000",
            &chunk,
            "000000000600000000",
            "000000000700000000",
        ];
        assert_eq!(all, expected);
    }

    #[tokio::test]
    async fn message_is_read_as_it_was_written() {
        for message in messages() {
            let mut bytes = Vec::new();
            write(&mut bytes, &message).await.unwrap();
            assert_eq!(read(&mut bytes.as_slice()).await.unwrap(), message);
            for changed in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[changed] ^= 0x11;
                let is_read = read(&mut damaged.as_slice()).await;
                assert!(is_read.is_err() || changed == 4, "octet {changed} of {message:?}");
            }
            for cut in 0..bytes.len() {
                assert!(read(&mut &bytes[..cut]).await.is_err());
            }
        }
    }

    #[test]
    fn count_beyond_the_content_is_refused() {
        for message in messages() {
            let content = message.encode();
            for at in 0..content.len() {
                let mut changed = content.clone();
                changed[at] = 0xff;
                // Whatever comes of it, no memory is taken for what is not there.
                let _ = Message::decode(message.kind(), &changed);
            }
        }
    }
}
