//! The hello: the first message of each side of a link or stream.
//!
//! A node tells which protocol it speaks, which node of which cluster it is, and a nonce. Nothing in a hello is
//! believed before the [proof] that the sender knows the cluster's secret.

mod judge;
mod messages;
mod proof;
#[cfg(test)]
mod tests;

use crate::cluster::purpose::{PROTOCOL, Purpose};
use crate::membership::fields::{FieldWriter, Fields, Malformed};
use crate::membership::ids::{ClusterId, DiskId, NodeId};

pub(crate) use judge::{CheckContext, judge};
pub(crate) use messages::{Message, MessageError, MessageReader, refusal_message};
pub(crate) use proof::{EXPORTER_BYTES, PROOF_BYTES, Secret, Side, Transcript};

/// Oldest and newest version that the dialer of a stream offers: a node of version 1 refuses both with a sentence.
const STREAM_PROTOCOL: (u16, u16) = (2, 3);

/// Oldest and newest version that a node offers that asks to join.
const JOIN_PROTOCOL: (u16, u16) = (3, 3);

/// First bytes of a hello.
const MAGIC: [u8; 8] = *b"LVRTLINK";

/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 32;

/// A hello.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hello {
    /// Oldest and newest version of the protocol that the sender speaks.
    pub(crate) protocol: (u16, u16),
    /// The purpose of the connection. The acceptor repeats that of the dialer.
    pub(crate) purpose: Purpose,
    pub(crate) cluster: ClusterId,
    pub(crate) node: NodeId,
    pub(crate) name: String,
    pub(crate) disk: DiskId,
    /// True if the sender knows that the cluster was founded.
    pub(crate) is_founded: bool,
    /// Newest format of the log that the sender reads.
    pub(crate) log_format: u32,
    /// Newest level of record kinds that the sender reads.
    pub(crate) record_level: u16,
    /// Version of the sender's build.
    pub(crate) build: String,
    pub(crate) nonce: [u8; NONCE_BYTES],
}

/// The reason why the bytes of a hello are not one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HelloError {
    /// Other first bytes.
    NotALink,
    /// The versions of both sides do not overlap.
    Version {
        oldest: u16,
        newest: u16,
    },
    /// The connection has a purpose of a later version.
    Purpose(u8),
    Malformed,
}

impl From<Malformed> for HelloError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl Hello {
    /// The versions that the dialer of a connection with this purpose offers.
    pub(crate) const fn versions(purpose: Purpose) -> (u16, u16) {
        match purpose {
            Purpose::Link => PROTOCOL,
            Purpose::Client | Purpose::Http | Purpose::Shipment => STREAM_PROTOCOL,
            Purpose::Join => JOIN_PROTOCOL,
        }
    }

    /// The bytes of the hello.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = FieldWriter::default();
        out.bytes(&MAGIC).u16(self.protocol.0).u16(self.protocol.1);
        out.u8(self.purpose.as_u8()).flag(self.is_founded);
        out.u64(self.cluster.0).u64(self.node.0).u64(self.disk.0);
        out.u32(self.log_format).u16(self.record_level);
        out.bytes(&self.nonce).text(&self.name).text(&self.build);
        out.into_bytes()
    }

    /// Reads a hello. Bytes behind it are of later versions, and are not read.
    ///
    /// # Errors
    /// [`HelloError`]. The version is checked before anything that may differ between versions.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HelloError> {
        let mut fields = Fields(bytes);
        if fields.array() != Ok(MAGIC) {
            return Err(HelloError::NotALink);
        }
        let protocol @ (oldest, newest) = (fields.u16()?, fields.u16()?);
        if oldest > newest {
            return Err(HelloError::Malformed);
        }
        if newest < PROTOCOL.0 || oldest > PROTOCOL.1 {
            return Err(HelloError::Version { oldest, newest });
        }
        let purpose = fields.u8()?;
        let purpose = Purpose::from_u8(purpose).ok_or(HelloError::Purpose(purpose))?;
        Ok(Self {
            protocol,
            purpose,
            is_founded: fields.flag()?,
            cluster: ClusterId(fields.u64()?),
            node: NodeId(fields.u64()?),
            disk: DiskId(fields.u64()?),
            log_format: fields.u32()?,
            record_level: fields.u16()?,
            nonce: fields.array()?,
            name: fields.text()?,
            build: fields.text()?,
        })
    }
}
