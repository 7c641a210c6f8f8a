//! A peer: another node of the cluster, and what is known of it.

pub(crate) mod contact;
pub(crate) mod events;
pub(crate) mod link_output;
pub(crate) mod replaced;
mod skew;
mod traffic;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::timeout;

use super::frames::control::{Control, Facts, Ping};
use super::frames::wire::Channel;
use super::peer::contact::Contact;
use super::peer::events::LostCause;
use super::peer::link_output::LinkOutput;
use super::peer::replaced::{Replaced, ReplacementRate};
use super::peer::skew::ClockSkew;
use super::peer::traffic::Traffic;
use crate::auth::user_slots::UserCounts;
use crate::clock::Clock;
use crate::clock::own_time;
use crate::config::ClusterNode;
use crate::limits::STREAM_DIALS_MAX;
use crate::membership::ids::NodeId;

/// A link whose handshake is done.
#[derive(Debug)]
pub(crate) struct OpenLink {
    /// Number among all links of this process.
    pub(crate) number: u64,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// The newest level of record kinds that the peer reads.
    pub(crate) record_level: u16,
    pub(crate) output: LinkOutput,
    /// Time of the last ping of this node, by its clock.
    pinged_us: Mutex<Option<u64>>,
    /// The newest ping of the peer: its `sent_us`, and when it was received.
    pub(crate) heard: Mutex<Option<(u64, u64)>>,
    is_closing: AtomicBool,
    /// Told when the link must close; the cause stands beside it.
    pub(crate) closing: Notify,
    pub(crate) cause: Mutex<Option<LostCause>>,
}

impl OpenLink {
    pub(crate) fn new(
        number: u64,
        (local, remote): (SocketAddr, SocketAddr),
        record_level: u16,
        output: LinkOutput,
    ) -> Self {
        Self {
            number,
            local,
            remote,
            record_level,
            output,
            pinged_us: Mutex::default(),
            heard: Mutex::default(),
            is_closing: AtomicBool::default(),
            closing: Notify::new(),
            cause: Mutex::default(),
        }
    }

    /// Closes the link for this reason; a later reason does not count.
    pub(crate) fn close(&self, cause: LostCause) {
        self.cause.lock().get_or_insert(cause);
        self.closing.notify_one();
    }

    /// Lets the writer end when it has sent the link's own frames.
    pub(crate) fn finish(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.output.wakes.notify_one();
    }

    /// True if the writer ends when it has sent the link's own frames.
    pub(crate) fn is_finishing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Adds a frame of the link itself; there is always room, because a link sends few of them.
    pub(crate) fn tell(&self, control: &Control) {
        self.output.add(Channel::Control, control.encode().into());
        self.output.flush();
    }

    /// Adds a ping if the last one is as old as this, or there is none. Returns the time since the last one.
    pub(crate) fn ping_after(&self, interval: Duration, clock: &Clock) -> Duration {
        let mut pinged_us = self.pinged_us.lock();
        let now = clock.now();
        let sent_us = now.time.as_micros();
        let since = pinged_us.map(|at| Duration::from_micros(sent_us.saturating_sub(at)));
        if let Some(since) = since.filter(|since| *since < interval) {
            return since;
        }
        let heard = *self.heard.lock();
        let echo = heard.map(|(theirs, received_us)| (theirs, sent_us.saturating_sub(received_us)));
        let ping = Control::Ping(Ping { sent_us, wall_ms: now.wall_ms(), echo });
        self.output.add(Channel::Control, ping.encode().into());
        *pinged_us = Some(sent_us);
        Duration::ZERO
    }
}

/// Another node of the cluster.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) id: NodeId,
    pub(crate) node: ClusterNode,
    pub(crate) state: Mutex<PeerState>,
    /// Held during calls about this peer, so that they have an order.
    pub(crate) calls: Mutex<()>,
    pub(crate) traffic: Arc<Traffic>,
    /// Turns for streams that are being dialed.
    pub(crate) dials: Semaphore,
    /// True once the node is not one of the cluster any more.
    pub(crate) has_left: watch::Sender<bool>,
    /// The contact with the node, for those that serve its clients.
    pub(crate) contact: watch::Sender<Contact>,
}

/// The state of a peer.
#[derive(Debug)]
pub(crate) struct PeerState {
    /// The link in use; none while the peer cannot be reached.
    pub(crate) current: Option<Arc<OpenLink>>,
    /// Since when there is no link, in microseconds of the node's clock.
    down_since_us: u64,
    /// Microseconds without a link, up to `down_since_us`.
    down_us: u64,
    /// The reason why there is no link, as far as known.
    problem: Option<String>,
    replaced: Replaced,
    /// Round-trip time in microseconds, a mean that forgets.
    pub(crate) rtt_us: Option<u64>,
    pub(crate) skew: ClockSkew,
    pub(crate) facts: Option<Facts>,
    /// The clients that the peer counts for users with limits.
    pub(crate) users: UserCounts,
}

impl Peer {
    /// A peer without a link, at this time of the node's clock.
    pub(crate) fn new(node: ClusterNode, now_us: u64) -> Self {
        Self {
            id: NodeId::of(&node.name),
            node,
            state: Mutex::new(PeerState {
                current: None,
                down_since_us: now_us,
                down_us: 0,
                problem: None,
                replaced: Replaced::default(),
                rtt_us: None,
                skew: ClockSkew::default(),
                facts: None,
                users: UserCounts::new(),
            }),
            calls: Mutex::default(),
            traffic: Arc::default(),
            dials: Semaphore::new(STREAM_DIALS_MAX),
            has_left: watch::Sender::new(false),
            contact: watch::Sender::new(Contact::sought()),
        }
    }

    /// Hands a frame of the link itself to the link, if there is one.
    pub(crate) fn tell(&self, control: &Control) {
        if let Some(link) = &self.state.lock().current {
            link.tell(control);
        }
    }

    /// The newest level of record kinds that the peer reads; none while it is not connected.
    pub(crate) fn record_level(&self) -> Option<u16> {
        self.state.lock().current.as_ref().map(|link| link.record_level)
    }

    /// True if the peer is heard, or may be soon.
    pub(crate) fn is_heard(&self) -> bool {
        self.contact.borrow().is_heard(own_time::now().as_micros())
    }

    /// Completes when the peer is away: nothing was heard of it for [`PEER_AWAY`](crate::limits::PEER_AWAY), from the begin of
    /// this wait on.
    pub(crate) async fn away(&self) {
        let (mut contact, opened_us) = (self.contact.subscribe(), own_time::now().as_micros());
        loop {
            let now_us = own_time::now().as_micros();
            let away_in = contact.borrow_and_update().away_in(opened_us, now_us);
            // The sender lives as long as the peer.
            match away_in {
                None => drop(contact.changed().await),
                Some(Duration::ZERO) => return,
                Some(left) => drop(timeout(left, contact.changed()).await),
            }
        }
    }

    /// Closes the link for ever, for this reason.
    pub(crate) fn leave(&self, cause: LostCause) {
        self.has_left.send_replace(true);
        if let Some(link) = &self.state.lock().current {
            link.close(cause);
        }
    }
}

impl PeerState {
    /// Puts a link into use. Returns the one that was in use.
    pub(crate) fn open(&mut self, link: &Arc<OpenLink>, now_us: u64) -> Option<Arc<OpenLink>> {
        let before = self.current.replace(Arc::clone(link));
        if before.is_none() {
            self.down_us += now_us.saturating_sub(self.down_since_us);
        }
        self.problem = None;
        self.rtt_us = None;
        self.skew = ClockSkew::default();
        before
    }

    /// The reason why there is no link; none while there is one, or before it is known.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Notes the reason why there is no link.
    pub(crate) fn note_problem(&mut self, reason: &str) {
        if self.current.is_none() {
            self.problem = Some(reason.to_owned());
        }
    }

    /// Notes that a link took the place of an open one.
    pub(crate) fn note_replaced(&mut self, now_us: u64) -> ReplacementRate {
        self.replaced.note(now_us)
    }

    /// True while links take each other's place so often that two processes must have the name of the peer.
    pub(crate) fn is_doubled(&self, now_us: u64) -> bool {
        self.replaced.is_often(now_us)
    }

    /// Takes a link out of use; false if it is not in use.
    pub(crate) fn close(&mut self, number: u64, now_us: u64) -> bool {
        if self.current.as_ref().is_none_or(|link| link.number != number) {
            return false;
        }
        self.current = None;
        self.down_since_us = now_us;
        self.rtt_us = None;
        self.skew = ClockSkew::default();
        self.facts = None;
        // Those of a peer that is gone are gone, too.
        self.users.clear();
        true
    }

    /// Notes facts about the peer; true if its alarms are others than before.
    pub(crate) fn note_facts(&mut self, facts: Facts) -> bool {
        let alarms = |facts: &Facts| (facts.memory_alarm, facts.disk_alarm);
        let is_changed = self.facts.as_ref().map(alarms) != Some(alarms(&facts));
        self.facts = Some(facts);
        is_changed
    }

    /// Microseconds without a link since the start.
    pub(crate) fn down_us(&self, now_us: u64) -> u64 {
        let since =
            if self.current.is_none() { now_us.saturating_sub(self.down_since_us) } else { 0 };
        self.down_us + since
    }

    /// Notes a round-trip time.
    pub(crate) fn note_rtt(&mut self, rtt_us: u64) {
        // Weights of an eighth, as in TCP.
        let mean = self.rtt_us.map_or(rtt_us, |mean| mean - mean / 8 + rtt_us / 8);
        self.rtt_us = Some(mean);
    }
}
