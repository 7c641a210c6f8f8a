//! The dialogue in which a node asks to join a cluster: one question and one answer, on a stream of its own.
//!
//! The hello of the stream has proved the name and the disk of the node that asks, and that both sides know the secret.
//! A message is its length (four octets) and its content.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::cluster::links::dial::DialError;
use crate::cluster::links::registry::Links;
use crate::cluster::peer::Peer;
use crate::cluster::purpose::Purpose;
use crate::config::ClusterNode;
use crate::limits::{JOIN_ANSWER_TIMEOUT, JOIN_MESSAGE_BYTES_MAX};
use crate::membership::fields::{FieldWriter, Fields, Malformed, read_message, write_message};
use crate::membership::ids::{ClusterId, DiskId};
use crate::membership::node_list::{NodeList, place, put_place};

/// The question of a node, and the facts that it tells of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct JoinQuestion {
    /// Host and port at which other nodes reach it.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// A description of the content that the node would give up, if it has any.
    pub(crate) content: Option<String>,
}

/// The cluster that a node belongs to from now on, or has belonged to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct JoinedCluster {
    pub(crate) cluster: ClusterId,
    /// Position of the log of the metadata at which this list was known.
    pub(crate) position: u64,
    pub(crate) nodes: NodeList,
}

/// The answer to a node that asks to join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum JoinAnswer {
    /// The node that was asked belongs to no founded cluster.
    NotFounded,
    /// The named node decides.
    Ask(ClusterNode),
    /// The node is one of the cluster, with this disk.
    Admitted(JoinedCluster, DiskId),
    /// The node has been one of the cluster, and has lost its disk.
    LostDisk(JoinedCluster),
    /// A decision is not possible now, for this reason.
    NotNow(String),
    /// The node cannot join, for this reason.
    Refused(String),
}

impl JoinQuestion {
    /// The bytes of the message.
    pub(in crate::cluster) fn encode(&self) -> Vec<u8> {
        let mut out = FieldWriter::default();
        put_place(&mut out, &self.host, self.port);
        out.flag(self.content.is_some()).sentence(self.content.as_deref().unwrap_or_default());
        out.into_bytes()
    }

    /// Reads a message. Bytes behind it are of later versions, and are not read.
    ///
    /// # Errors
    /// [`Malformed`].
    pub(in crate::cluster) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let (host, port) = place(&mut fields)?;
        let (has_content, content) = (fields.flag()?, fields.sentence()?);
        Ok(Self { host, port, content: has_content.then_some(content) })
    }
}

const NOT_FOUNDED: u8 = 1;
const ASK: u8 = 2;
const ADMITTED: u8 = 3;
const LOST_DISK: u8 = 4;
const NOT_NOW: u8 = 5;
const REFUSED: u8 = 6;

impl JoinAnswer {
    /// The bytes of the message.
    pub(in crate::cluster) fn encode(&self) -> Vec<u8> {
        let mut out = FieldWriter::default();
        match self {
            Self::NotFounded => {
                out.u8(NOT_FOUNDED);
            }
            Self::Ask(ClusterNode { name, host, port, .. }) => {
                put_place(out.u8(ASK).text(name), host, *port);
            }
            Self::Admitted(cluster, disk) => put_cluster(out.u8(ADMITTED).u64(disk.0), cluster),
            Self::LostDisk(cluster) => put_cluster(out.u8(LOST_DISK), cluster),
            Self::NotNow(reason) => {
                out.u8(NOT_NOW).sentence(reason);
            }
            Self::Refused(reason) => {
                out.u8(REFUSED).sentence(reason);
            }
        }
        out.into_bytes()
    }

    /// Reads a message. Bytes behind it are of later versions, and are not read.
    ///
    /// # Errors
    /// [`Malformed`], also for an answer of a later version.
    pub(in crate::cluster) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        Ok(match fields.u8()? {
            NOT_FOUNDED => Self::NotFounded,
            ASK => {
                let name = fields.text()?;
                let (host, port) = place(&mut fields)?;
                if !ClusterNode::is_name(&name) {
                    return Err(Malformed);
                }
                let key = "the answer of another node".to_owned();
                Self::Ask(ClusterNode { name, host, port, key })
            }
            ADMITTED => {
                let disk = DiskId(fields.u64()?);
                Self::Admitted(cluster(&mut fields)?, disk)
            }
            LOST_DISK => Self::LostDisk(cluster(&mut fields)?),
            NOT_NOW => Self::NotNow(fields.sentence()?),
            REFUSED => Self::Refused(fields.sentence()?),
            _ => return Err(Malformed),
        })
    }
}

fn put_cluster(out: &mut FieldWriter, JoinedCluster { cluster, position, nodes }: &JoinedCluster) {
    nodes.encode(out.u64(cluster.0).u64(*position));
}

fn cluster(fields: &mut Fields<'_>) -> Result<JoinedCluster, Malformed> {
    let (cluster, position) = (ClusterId(fields.u64()?), fields.u64()?);
    Ok(JoinedCluster { cluster, position, nodes: NodeList::decode(fields)? })
}

/// Reads the question of a node that asks to join.
///
/// # Errors
/// If the stream fails, or has something else.
pub(crate) async fn read_question(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<JoinQuestion> {
    JoinQuestion::decode(&read(stream).await?).map_err(|_| malformed())
}

/// Answers a node that asks to join, and closes the stream.
///
/// # Errors
/// If the stream fails.
pub(crate) async fn write_answer(
    stream: &mut (impl AsyncWrite + Unpin),
    answer: &JoinAnswer,
) -> io::Result<()> {
    write_message(stream, &answer.encode()).await?;
    stream.shutdown().await
}

/// Asks a node whether this one may join its cluster.
///
/// # Errors
/// A sentence without a subject about the node.
pub(crate) async fn ask(
    links: &Links,
    node: &ClusterNode,
    question: &JoinQuestion,
) -> Result<JoinAnswer, DialError> {
    let peer = Arc::new(Peer::new(node.clone(), 0));
    let mut stream = links.dial_peer(&peer, Purpose::Join).await?;
    write_message(&mut stream, &question.encode()).await.map_err(DialError::Io)?;
    let answer = read(&mut stream).await.map_err(DialError::Io)?;
    JoinAnswer::decode(&answer).map_err(|_| DialError::Io(malformed()))
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    timeout(JOIN_ANSWER_TIMEOUT, read_message(stream, JOIN_MESSAGE_BYTES_MAX)).await?
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message about joining cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::fields::hex;
    use crate::membership::node_list::ListedNode;

    fn answers() -> Vec<JoinAnswer> {
        let (host, disk) = ("h".to_owned(), DiskId(7));
        let node = ListedNode { host: host.clone(), port: 5, disk, joins: 2, is_forgotten: true };
        let nodes = NodeList([("a@h".to_owned(), node)].into());
        let cluster = JoinedCluster { cluster: ClusterId(u64::MAX), position: 3, nodes };
        let key = "the answer of another node".to_owned();
        vec![
            JoinAnswer::NotFounded,
            JoinAnswer::Ask(ClusterNode { name: "a@h".to_owned(), host, port: 1, key }),
            JoinAnswer::Admitted(cluster.clone(), disk),
            JoinAnswer::LostDisk(cluster),
            JoinAnswer::NotNow("why".to_owned()),
            JoinAnswer::Refused("why".to_owned()),
        ]
    }

    #[test]
    fn messages_have_the_octets_of_earlier_builds() {
        let all: Vec<String> = answers().iter().map(|answer| hex(&answer.encode())).collect();
        let expected = [
            "01",
            "020361406801680100",
            "030700000000000000ffffffffffffffff03000000000000000100000003614068016805000700000000000000020001",
            "04ffffffffffffffff03000000000000000100000003614068016805000700000000000000020001",
            "050300776879",
            "060300776879",
        ];
        assert_eq!(all, expected);
        let question = |content| JoinQuestion { host: "h".to_owned(), port: 9, content };
        let all = [None, Some("vhost".to_owned())].map(|content| hex(&question(content).encode()));
        assert_eq!(all, ["01680900000000", "0168090001050076686f7374"]);
    }

    #[tokio::test]
    async fn answers_read_back_and_are_refused_when_cut() {
        for answer in answers() {
            let mut bytes = Vec::new();
            write_answer(&mut bytes, &answer).await.unwrap();
            let message = read(&mut bytes.as_slice()).await.unwrap();
            assert_eq!(JoinAnswer::decode(&message), Ok(answer));
            for length in 0..message.len() {
                assert_eq!(JoinAnswer::decode(&message[..length]), Err(Malformed), "{length}");
            }
        }
        assert_eq!(JoinAnswer::decode(&[99]), Err(Malformed));
        // A count that no message can hold takes no memory.
        let many = [&[LOST_DISK][..], &[0; 16], &u32::MAX.to_le_bytes()].concat();
        assert_eq!(JoinAnswer::decode(&many), Err(Malformed));
    }

    #[tokio::test]
    async fn questions_read_back_and_are_refused_when_cut_or_long() {
        for content in [None, Some("vhost '/'".to_owned())] {
            let question = JoinQuestion { host: "h".to_owned(), port: 9, content };
            let mut bytes = Vec::new();
            write_message(&mut bytes, &question.encode()).await.unwrap();
            assert_eq!(read_question(&mut bytes.as_slice()).await.unwrap(), question);
            for length in 0..bytes.len() {
                assert!(read_question(&mut &bytes[..length]).await.is_err(), "{length}");
            }
        }
        assert!(read_question(&mut u32::MAX.to_le_bytes().as_slice()).await.is_err());
    }
}
