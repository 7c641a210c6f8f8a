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
use crate::membership::fields::{FieldWriter, Fields, Malformed};
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
        let mut out = FieldWriter::default();
        match self {
            Self::Ask { vhost, need } => {
                out.u8(VERSION).flag(*need == ShipmentNeed::Replacement).u64(*vhost);
            }
            Self::Refused { leader, reason } => {
                out.u64(*leader).bytes(reason.as_bytes());
            }
            Self::Plan { member, state, plan } => {
                let clock = state.clock.unwrap_or(SavedClock { term: 0, wall_ahead_us: 0 });
                out.u64(member.get()).u64(state.term.0).u64(state.commit.0);
                out.u64(clock.term).i64(clock.wall_ahead_us);
                for members in [&state.voters, &state.learners] {
                    out.u64(members.len() as u64);
                    for member in members {
                        out.u64(*member);
                    }
                }
                out.u64(plan.sender).u64(plan.index.0).u64(plan.term.0);
                out.u64(plan.files.len() as u64);
                for (file, bytes) in &plan.files {
                    out.u64(*file).u64(*bytes);
                }
                out.bytes(&plan.manifest);
            }
            Self::From { file, offset } => {
                out.u64(*file).u64(*offset);
            }
            Self::Chunk { file, offset, bytes } => {
                out.u64(*file).u64(*offset).bytes(bytes);
            }
            Self::End | Self::Installed => {}
        }
        out.into_bytes()
    }

    /// Reads the content of a message.
    ///
    /// # Errors
    /// [`Malformed`].
    fn decode(kind: u8, content: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(content);
        let message = match kind {
            1 => {
                let need = match (fields.u8()?, fields.flag()?) {
                    (VERSION, false) => ShipmentNeed::Behind,
                    (VERSION, true) => ShipmentNeed::Replacement,
                    _ => return Err(Malformed),
                };
                Self::Ask { vhost: fields.u64()?, need }
            }
            2 => {
                let leader = fields.u64()?;
                let reason = String::from_utf8_lossy(fields.rest()).into_owned();
                Self::Refused { leader, reason }
            }
            3 => plan(&mut fields)?,
            4 => Self::From { file: fields.u64()?, offset: fields.u64()? },
            5 => {
                let (file, offset) = (fields.u64()?, fields.u64()?);
                Self::Chunk { file, offset, bytes: fields.rest().to_vec() }
            }
            6 => Self::End,
            7 => Self::Installed,
            _ => return Err(Malformed),
        };
        fields.rest().is_empty().then_some(message).ok_or(Malformed)
    }
}

fn plan(fields: &mut Fields<'_>) -> Result<Message, Malformed> {
    let member = MemberId::new(fields.u64()?).ok_or(Malformed)?;
    let (term, commit) = (Term(fields.u64()?), EntryIndex(fields.u64()?));
    let clock = SavedClock { term: fields.u64()?, wall_ahead_us: fields.i64()? };
    let clock = (clock.term > 0).then_some(clock);
    let (voters, learners) = (members(fields)?, members(fields)?);
    let state = HardState { term, vote: 0, commit, voters, learners, clock };
    let sender = fields.u64()?;
    let (index, term) = (EntryIndex(fields.u64()?), Term(fields.u64()?));
    let count = usize::try_from(fields.u64()?).map_err(|_| Malformed)?;
    // Each file has two numbers, so that a count beyond the content ends here.
    (count <= fields.0.len() / 16).then_some(()).ok_or(Malformed)?;
    let files = (0..count).map(|_| Ok((fields.u64()?, fields.u64()?)));
    let files: Vec<(u64, u64)> = files.collect::<Result<_, _>>()?;
    let plan = ShipmentPlan { sender, index, term, manifest: fields.rest().to_vec(), files };
    Ok(Message::Plan { member, state, plan })
}

fn members(fields: &mut Fields<'_>) -> Result<Vec<u64>, Malformed> {
    let count = usize::try_from(fields.u64()?).map_err(|_| Malformed)?;
    (count <= MEMBERS_MAX).then_some(()).ok_or(Malformed)?;
    (0..count).map(|_| fields.u64()).collect()
}

/// Writes a message.
pub(super) async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &Message,
) -> io::Result<()> {
    let content = message.encode();
    let length = u32::try_from(content.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut head = FieldWriter::default();
    head.u32(length).u8(message.kind()).u32(crc32c(&content));
    stream.write_all(&head.into_bytes()).await?;
    stream.write_all(&content).await?;
    stream.flush().await
}

/// Reads a message. What is larger than a plan can be, damaged or impossible is an error.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Message> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await?;
    let mut head = Fields(&head);
    let cut = |Malformed| invalid("a message cannot be read");
    let (length, kind, checksum) =
        (head.u32().map_err(cut)?, head.u8().map_err(cut)?, head.u32().map_err(cut)?);
    let most = match kind {
        5 => SHIPMENT_CHUNK_BYTES + 16,
        _ => SHIPMENT_MESSAGE_BYTES_MAX,
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= most);
    let mut content = vec![0; length.ok_or_else(|| invalid("a message is too long"))?];
    stream.read_exact(&mut content).await?;
    if crc32c(&content) != checksum {
        return Err(invalid("a message has arrived damaged"));
    }
    Message::decode(kind, &content).map_err(cut)
}

/// An error of a dialogue.
pub(super) fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::fields::hex;

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
