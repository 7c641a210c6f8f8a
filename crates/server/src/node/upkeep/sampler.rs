//! Takes samples of all statistics at an interval, for rates and history.
//!
//! A vhost is sampled in slices of its queues, so that its clients never wait for the whole sample.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::history::{Sample, Sampling, VhostSample};
use crate::limits::SAMPLED_PER_LOCK;
use crate::node::Node;
use crate::vhost::VhostHandle;

/// Takes samples until the broker stops.
pub(crate) async fn run(node: Arc<Node>, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (at_ms, sample) = take(&node);
        node.history.add(at_ms, sample);
    }
}

/// Takes a sample now, with the time in milliseconds since the Unix epoch.
fn take(node: &Node) -> (u64, Sample) {
    let at_ms = node.clock.time().as_micros() / 1000;
    let clients = node.clients.all();
    let mut sample = Sample::new(&node.snapshot(), &node.process(), clients.len() as u64);
    for client in &clients {
        sample.add_connection(client.description.pid.number(), &client.socket.traffic());
    }
    for handle in node.vhosts.all() {
        sample.add_vhost(sample_vhost(&handle));
    }
    (at_ms, sample)
}

fn sample_vhost(handle: &VhostHandle) -> VhostSample {
    let traffic = handle.traffic();
    let queues = handle.queue_ids();
    let mut sampling = Sampling::of(queues.len());
    for slice in queues.chunks(SAMPLED_PER_LOCK) {
        handle.read(|v, _| sampling.add_queues(v, slice));
    }
    handle.read(|v, client_of| sampling.finish(v, client_of, &traffic))
}
