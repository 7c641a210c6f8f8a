//! Shipments: a replica that is lost, damaged or too far behind is rebuilt from the files of its leader.
//!
//! The node that lacks a replica asks: it opens a stream to the node that leads ([`receiving`]). That one changes the
//! members of the group if needed, seals its log, and sends the files at a bounded bandwidth ([`sending`]). What has
//! arrived is checked and takes the place of the replica ([`directories`]).

pub(crate) mod directories;
mod message;
mod receiving;
mod sending;
mod status;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use self::receiving::Receiver;
use self::sending::{Handler, Sender};
use crate::cluster::{Links, Purpose};
use crate::disk::vhost_files::VhostId;
use crate::replicas::Replicator;
use crate::snapshot::replication::{RebuildSnapshot, ShipmentSnapshot};
use status::ShipmentCounts;

/// The shipments of a node, in both directions.
#[derive(Debug)]
pub(crate) struct Shipments {
    receiver: Arc<Receiver>,
    counts: Arc<ShipmentCounts>,
    /// The thread that rebuilds replicas, until the node is closed.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Shipments {
    /// Serves the streams of other nodes. `bandwidth` is that of all files that are sent, in octets a second.
    pub(crate) fn new(
        data_dir: PathBuf,
        replicator: &Arc<Replicator>,
        links: &Arc<Links>,
        bandwidth: u64,
        runtime: Handle,
    ) -> Self {
        let counts = Arc::<ShipmentCounts>::default();
        let sender = Sender::new(Arc::clone(replicator), runtime, bandwidth, Arc::clone(&counts));
        links.streams.serve(Purpose::Shipment, Arc::new(Handler(Arc::new(sender))));
        let receiver =
            Receiver::new(data_dir, Arc::clone(replicator), Arc::clone(links), Arc::clone(&counts));
        Self { receiver: Arc::new(receiver), counts, thread: Mutex::default() }
    }

    /// Begins to rebuild the replicas that are wanted.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start(&self, runtime: Handle) -> io::Result<()> {
        let receiver = Arc::clone(&self.receiver);
        let run = move || receiver.run(&runtime);
        *self.thread.lock() =
            Some(std::thread::Builder::new().name("shipments".to_owned()).spawn(run)?);
        Ok(())
    }

    /// Figures for metrics.
    pub(crate) fn snapshot(&self) -> ShipmentSnapshot {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ShipmentSnapshot {
            sent_bytes: read(&self.counts.sent_bytes),
            received_bytes: read(&self.counts.received_bytes),
            sending: read(&self.counts.sending),
            receiving: read(&self.counts.receiving),
        }
    }

    /// The files of a replica, while they come from its leader.
    pub(crate) fn rebuild_of(&self, vhost: VhostId) -> Option<RebuildSnapshot> {
        self.counts.rebuild_of(vhost)
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.receiver.stop();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of shipments has failed");
        }
    }
}
