//! The sending side: files of the vhosts that this node leads, for members that ask.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::message::{Message, invalid, read, write};
use super::status::{ShipmentCounts, UnderWay};
use crate::cluster::{NodeStream, StreamHandler};
use crate::disk::vhost_files::VhostId;
use crate::limits::{
    SHIPMENT_CHUNK_BYTES, SHIPMENT_IDLE_TIMEOUT, SHIPMENT_KEPT_TIME, SHIPMENT_PREPARE_TIMEOUT,
};
use crate::replicas::{PreparedShipment, Replicator, ShipmentNeed};

/// A shipment that was cut off, for the same member.
#[derive(Debug)]
struct Kept {
    need: ShipmentNeed,
    term: u64,
    shipment: Arc<PreparedShipment>,
    until: Instant,
}

/// Sends files to members of other nodes.
#[derive(Debug)]
pub(crate) struct Sender {
    replicator: Arc<Replicator>,
    runtime: Handle,
    /// Octets a second, of all shipments together.
    bandwidth: u64,
    counts: Arc<ShipmentCounts>,
    /// Shipments that were cut off, by vhost and receiver: a receiver goes on where it was.
    kept: Arc<Mutex<BTreeMap<(VhostId, replication::NodeId), Kept>>>,
    /// Time until which the bandwidth is used.
    paced: Mutex<Instant>,
}

impl Sender {
    pub(super) fn new(
        replicator: Arc<Replicator>,
        runtime: Handle,
        bandwidth: u64,
        counts: Arc<ShipmentCounts>,
    ) -> Self {
        let (kept, paced) = (Arc::default(), Mutex::new(Instant::now()));
        Self { replicator, runtime, bandwidth, counts, kept, paced }
    }

    async fn serve(
        &self,
        to: replication::NodeId,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let Message::Ask { vhost, need } = in_time(read(stream)).await? else {
            return Err(invalid("a shipment begins with its vhost"));
        };
        let vhost = VhostId(vhost);
        let prepared = match self.prepared(vhost, to, need).await {
            Ok(prepared) => prepared,
            Err(reason) => {
                let leader = self.replicator.leader_of(vhost).map_or(0, replication::NodeId::get);
                return in_time(write(stream, &Message::Refused { leader, reason })).await;
            }
        };
        let plan = prepared.shipment.plan().clone();
        let (member, state) = (prepared.member, prepared.state.clone());
        let (files, index) = (plan.files.len(), plan.index.0);
        tracing::info!(vhost = vhost.0, %member, files, index, "sending the files of a vhost");
        let files = plan.files.clone();
        in_time(write(stream, &Message::Plan { member, state, plan })).await?;
        let _under_way = UnderWay::new(&self.counts.sending);
        if let Message::From { file, offset } = in_time(read(stream)).await? {
            self.send(stream, &prepared, &files, (file, offset)).await?;
        }
        in_time(write(stream, &Message::End)).await?;
        // The receiver checks every octet first.
        let Message::Installed = timeout(SHIPMENT_PREPARE_TIMEOUT, read(stream)).await?? else {
            return Err(invalid("a shipment ends with its installation"));
        };
        self.kept.lock().remove(&(vhost, to));
        self.replicator.shipped(vhost, member, prepared.shipment.plan().index);
        tracing::info!(vhost = vhost.0, %member, index, "the files of a vhost are installed");
        Ok(())
    }

    /// The shipment for a member: the one that was cut off, if it is still for the member that is to come, or a new one.
    async fn prepared(
        &self,
        vhost: VhostId,
        to: replication::NodeId,
        need: ShipmentNeed,
    ) -> Result<Arc<PreparedShipment>, String> {
        let term = self.replicator.leads_in(vhost);
        let known = {
            let kept = self.kept.lock();
            kept.get(&(vhost, to))
                .filter(|kept| kept.need == need && Some(kept.term) == term)
                .map(|kept| Arc::clone(&kept.shipment))
        };
        let preparing = self.replicator.prepare_shipment(vhost, to, need, known.clone());
        let shipment = timeout(SHIPMENT_PREPARE_TIMEOUT, preparing).await;
        let shipment = shipment.unwrap_or_else(|_| {
            Err("the members of the group could not be changed in time".to_owned())
        })?;
        let is_known = known.is_some_and(|known| Arc::ptr_eq(&known, &shipment));
        if let Some(term) = term.filter(|_| !is_known) {
            let until = Instant::now() + SHIPMENT_KEPT_TIME;
            let kept = Kept { need, term, shipment: Arc::clone(&shipment), until };
            self.kept.lock().insert((vhost, to), kept);
            // It holds files and entries of the log.
            let all = Arc::clone(&self.kept);
            self.runtime.spawn(async move {
                tokio::time::sleep(SHIPMENT_KEPT_TIME).await;
                let now = Instant::now();
                all.lock().retain(|_, kept| kept.until > now);
            });
        }
        Ok(shipment)
    }

    /// Sends all octets from this place on.
    async fn send(
        &self,
        stream: &mut (impl AsyncWrite + Unpin),
        prepared: &Arc<PreparedShipment>,
        files: &[(u64, u64)],
        from: (u64, u64),
    ) -> io::Result<()> {
        let first = files.iter().position(|(file, _)| *file == from.0);
        let first = first.ok_or_else(|| invalid("a file is asked for that is not in the plan"))?;
        let mut offset = from.1;
        for (file, end) in files.iter().skip(first).copied() {
            while offset < end {
                let shipment = Arc::clone(prepared);
                let reading = self.runtime.spawn_blocking(move || {
                    let mut bytes = vec![0; SHIPMENT_CHUNK_BYTES];
                    let read = shipment.shipment.read(file, offset, &mut bytes)?;
                    bytes.truncate(read);
                    Ok::<_, io::Error>(bytes)
                });
                let bytes = reading.await.map_err(io::Error::other)??;
                if bytes.is_empty() {
                    return Err(invalid("a file of the log is shorter than it was"));
                }
                let count = bytes.len() as u64;
                self.pace(count).await;
                in_time(write(stream, &Message::Chunk { file, offset, bytes })).await?;
                self.counts.sent_bytes.fetch_add(count, Ordering::Relaxed);
                offset += count;
            }
            offset = 0;
        }
        Ok(())
    }

    /// Waits until the bandwidth allows so many octets more.
    async fn pace(&self, bytes: u64) {
        let micros = bytes.saturating_mul(1_000_000) / self.bandwidth.max(1);
        let now = Instant::now();
        let begin = {
            let mut paced = self.paced.lock();
            let begin = (*paced).max(now);
            *paced = begin + Duration::from_micros(micros);
            begin
        };
        tokio::time::sleep(begin.saturating_duration_since(now)).await;
    }
}

/// Ends a step that takes too long.
pub(super) async fn in_time<T>(step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(SHIPMENT_IDLE_TIMEOUT, step).await?
}

/// Serves the streams of other nodes.
pub(super) struct Handler(pub(super) Arc<Sender>);

impl StreamHandler for Handler {
    fn accepted(&self, mut stream: NodeStream) {
        let sender = Arc::clone(&self.0);
        self.0.runtime.spawn(async move {
            let Some(to) = replication::NodeId::new(stream.peer.id.0) else { return };
            if let Err(error) = sender.serve(to, &mut stream).await {
                let peer = &*stream.peer.node.name;
                tracing::warn!(peer, %error, "a shipment was cut off");
            }
        });
    }
}
