//! The frames of the link itself: pings, introductions, facts about the node, counts of clients, refusals, and the end.

use std::collections::BTreeMap;

use crate::auth::user_slots::{ClientCounts, UserCounts};
use crate::cluster::refusal::RefusalCode;
use crate::membership::fields::{FieldWriter, Fields, Malformed};
use crate::membership::ids::{DiskId, NodeId};
use crate::membership::node_list::NodeList;

const PING: u8 = 1;
const INTRODUCTION: u8 = 2;
const FACTS: u8 = 3;
const REFUSED: u8 = 4;
const GOODBYE: u8 = 5;
const FOLLOWED: u8 = 6;
const NODES: u8 = 7;
const USERS: u8 = 8;
/// Users of whom one has a name of more than 255 bytes.
const LONG_USERS: u8 = 9;

/// A sign of life, every 100 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ping {
    /// The sender's monotonic clock just before the frame was written, in microseconds.
    pub(crate) sent_us: u64,
    /// The sender's wall clock, in milliseconds since the Unix epoch.
    pub(crate) wall_ms: u64,
    /// `sent_us` of the newest ping that the sender has received, and the microseconds since then.
    pub(crate) echo: Option<(u64, u64)>,
}

/// Told at the beginning of a link, and again when something in it changes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Introduction {
    pub(crate) is_founded: bool,
    /// The disks of the nodes that the sender has met, its own included.
    pub(crate) disks: BTreeMap<NodeId, DiskId>,
}

/// Facts about a running node, for other nodes to show.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Facts {
    /// Version presented to clients.
    pub(crate) rabbitmq_version: String,
    pub(crate) leveret_version: String,
    pub(crate) os_pid: u64,
    pub(crate) uptime_ms: u64,
    pub(crate) processors: u64,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) memory_watermark_bytes: Option<u64>,
    pub(crate) memory_alarm: bool,
    pub(crate) disk_free_bytes: Option<u64>,
    pub(crate) disk_free_limit_bytes: u64,
    pub(crate) disk_alarm: bool,
    pub(crate) fd_used: Option<u64>,
    pub(crate) fd_total: Option<u64>,
}

/// A frame of the link itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Control {
    Ping(Ping),
    Introduction(Introduction),
    Facts(Facts),
    /// The sender closes the link for this reason.
    Refused(RefusalCode),
    /// The sender stops.
    Goodbye,
    /// The metadata have taken effect at the sender up to this position of their log.
    Followed(u64),
    /// The list of the nodes, as the sender has known it at this position: a node that was away does not know those that
    /// have come since, and perhaps one of them leads.
    Nodes(u64, NodeList),
    /// The clients that the sender counts for users with limits.
    Users(UserCounts),
}

impl Control {
    /// The bytes of the frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = FieldWriter::default();
        match self {
            Self::Ping(Ping { sent_us, wall_ms, echo }) => {
                out.u8(PING).u64(*sent_us).u64(*wall_ms);
                out.maybe_u64(echo.map(|(sent_us, _)| sent_us));
                out.u64(echo.map_or(0, |(_, held_us)| held_us));
            }
            Self::Introduction(Introduction { is_founded, disks }) => {
                out.u8(INTRODUCTION).flag(*is_founded).count(disks.len());
                for (node, disk) in disks {
                    out.u64(node.0).u64(disk.0);
                }
            }
            Self::Facts(facts) => {
                out.u8(FACTS).text(&facts.rabbitmq_version).text(&facts.leveret_version);
                out.u64(facts.os_pid).u64(facts.uptime_ms).u64(facts.processors);
                out.maybe_u64(facts.memory_bytes).maybe_u64(facts.memory_watermark_bytes);
                out.maybe_u64(facts.disk_free_bytes).u64(facts.disk_free_limit_bytes);
                out.maybe_u64(facts.fd_used).maybe_u64(facts.fd_total);
                out.flag(facts.memory_alarm).flag(facts.disk_alarm);
            }
            Self::Refused(code) => {
                out.u8(REFUSED).u8(code.as_u8());
            }
            Self::Goodbye => {
                out.u8(GOODBYE);
            }
            Self::Followed(position) => {
                out.u8(FOLLOWED).u64(*position);
            }
            Self::Nodes(position, nodes) => nodes.encode(out.u8(NODES).u64(*position)),
            Self::Users(users) => {
                // Nodes of version 0.1 know the short form alone, and pass over the other one.
                let are_short = users.keys().all(|user| u8::try_from(user.len()).is_ok());
                out.u8(if are_short { USERS } else { LONG_USERS }).count(users.len());
                for (user, counts) in users {
                    if are_short {
                        out.text(user)
                    } else {
                        out.long_text(user)
                    };
                    out.u64(counts.connections).u64(counts.channels);
                }
            }
        }
        out.into_bytes()
    }

    /// Reads a frame; none for a kind of a later version.
    ///
    /// # Errors
    /// [`Malformed`].
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut fields = Fields(bytes);
        let control = match fields.u8()? {
            PING => {
                let (sent_us, wall_ms) = (fields.u64()?, fields.u64()?);
                let (echo, held_us) = (fields.maybe_u64()?, fields.u64()?);
                let echo = echo.map(|sent_us| (sent_us, held_us));
                Self::Ping(Ping { sent_us, wall_ms, echo })
            }
            INTRODUCTION => Self::Introduction(introduction(&mut fields)?),
            FACTS => Self::Facts(facts(&mut fields)?),
            REFUSED => Self::Refused(RefusalCode::from_u8(fields.u8()?).ok_or(Malformed)?),
            GOODBYE => Self::Goodbye,
            FOLLOWED => Self::Followed(fields.u64()?),
            NODES => Self::Nodes(fields.u64()?, NodeList::decode(&mut fields)?),
            USERS => Self::Users(users(&mut fields, Fields::text)?),
            LONG_USERS => Self::Users(users(&mut fields, Fields::sentence)?),
            _ => return Ok(None),
        };
        Ok(Some(control))
    }
}

fn introduction(fields: &mut Fields<'_>) -> Result<Introduction, Malformed> {
    let mut introduction = Introduction { is_founded: fields.flag()?, ..Introduction::default() };
    for _ in 0..fields.count(16)? {
        introduction.disks.insert(NodeId(fields.u64()?), DiskId(fields.u64()?));
    }
    Ok(introduction)
}

fn users<'a>(
    fields: &mut Fields<'a>,
    name: fn(&mut Fields<'a>) -> Result<String, Malformed>,
) -> Result<UserCounts, Malformed> {
    let mut users = UserCounts::new();
    // The length of a name, and two numbers.
    for _ in 0..fields.count(17)? {
        let user = name(fields)?;
        let counts = ClientCounts { connections: fields.u64()?, channels: fields.u64()? };
        users.insert(user, counts);
    }
    Ok(users)
}

fn facts(fields: &mut Fields<'_>) -> Result<Facts, Malformed> {
    Ok(Facts {
        rabbitmq_version: fields.text()?,
        leveret_version: fields.text()?,
        os_pid: fields.u64()?,
        uptime_ms: fields.u64()?,
        processors: fields.u64()?,
        memory_bytes: fields.maybe_u64()?,
        memory_watermark_bytes: fields.maybe_u64()?,
        disk_free_bytes: fields.maybe_u64()?,
        disk_free_limit_bytes: fields.u64()?,
        fd_used: fields.maybe_u64()?,
        fd_total: fields.maybe_u64()?,
        memory_alarm: fields.flag()?,
        disk_alarm: fields.flag()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{CONTROL_FRAME_BYTES_MAX, USER_NAME_BYTES_MAX, USERS_TOLD_MAX};
    use crate::membership::fields::hex;
    use crate::membership::node_list::ListedNode;

    fn all() -> Vec<Control> {
        let introduction = Introduction {
            is_founded: true,
            disks: BTreeMap::from([(NodeId(1), DiskId(2)), (NodeId(3), DiskId(u64::MAX))]),
        };
        let facts = Facts {
            rabbitmq_version: "4.3.6".to_owned(),
            memory_bytes: Some(7),
            disk_alarm: true,
            ..Facts::default()
        };
        let counts = ClientCounts { connections: 1, channels: u64::MAX };
        let (host, disk) = ("h".to_owned(), DiskId(3));
        let node = ListedNode { host, port: 1, disk, joins: 2, is_forgotten: true };
        vec![
            Control::Ping(Ping { sent_us: 1, wall_ms: 2, echo: None }),
            Control::Ping(Ping { sent_us: u64::MAX, wall_ms: 2, echo: Some((3, 4)) }),
            Control::Introduction(Introduction::default()),
            Control::Introduction(introduction),
            Control::Facts(facts),
            Control::Refused(RefusalCode::OwnDisk),
            Control::Goodbye,
            Control::Followed(7),
            Control::Users(UserCounts::new()),
            Control::Users([("anna".to_owned(), counts)].into()),
            Control::Users([("anna".to_owned(), counts), ("b".repeat(256), counts)].into()),
            Control::Nodes(8, NodeList([("a@h".to_owned(), node)].into())),
        ]
    }

    #[test]
    fn longest_names_of_all_users_that_are_told_fit_in_a_frame() {
        let counts = ClientCounts { connections: 1, channels: 1 };
        let name = |number| format!("{number:0>width$}", width = USER_NAME_BYTES_MAX);
        let users = (0..USERS_TOLD_MAX).map(|number| (name(number), counts));
        let users = Control::Users(users.collect());
        let bytes = users.encode();
        assert!(bytes.len() <= CONTROL_FRAME_BYTES_MAX, "{} bytes", bytes.len());
        assert_eq!(Control::decode(&bytes), Ok(Some(users)));
    }

    #[test]
    fn control_frames_have_the_octets_of_earlier_builds() {
        let all: Vec<String> = all().iter().map(|control| hex(&control.encode())).collect();
        let long_user = format!(
            "0902000000{}{}{}",
            "0400616e6e610100000000000000ffffffffffffffff0001",
            "62".repeat(256),
            "0100000000000000ffffffffffffffff"
        );
        let expected = [
            "01010000000000000002000000000000000000000000000000000000000000000000",
            "01ffffffffffffffff02000000000000000103000000000000000400000000000000",
            "020000000000",
            "020102000000010000000000000002000000000000000300000000000000ffffffffffffffff",
            "0305342e332e360000000000000000000000000000000000000000000000000001070000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
            "040a",
            "05",
            "060700000000000000",
            "0800000000",
            "080100000004616e6e610100000000000000ffffffffffffffff",
            &long_user,
            "0708000000000000000100000003614068016801000300000000000000020001",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn control_frames_read_back_and_are_refused_when_cut() {
        for control in all() {
            let bytes = control.encode();
            assert_eq!(Control::decode(&bytes), Ok(Some(control)));
            for length in 0..bytes.len() {
                assert_eq!(Control::decode(&bytes[..length]), Err(Malformed), "{length}");
            }
        }
        assert_eq!(Control::decode(&[99, 1, 2]), Ok(None));
        // A count that no frame can hold takes no memory.
        let many = [&[INTRODUCTION, 0][..], &u32::MAX.to_le_bytes()].concat();
        assert_eq!(Control::decode(&many), Err(Malformed));
    }
}
