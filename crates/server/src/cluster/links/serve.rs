//! The thread of the links: it accepts and opens connections until the node stops.
//!
//! Of two nodes the one with the smaller id dials, so that there are never two links at once. The links have a thread of
//! their own: a node that is busy with its clients must not look dead to its peers.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::dial::DialError;
use super::link::run;
use super::majority_log::MajorityLog;
use super::registry::{ClusterError, Links, stopped};
use super::users::tell_users;
use crate::cluster::frames::control::Control;
use crate::cluster::handshake::HandshakeError;
use crate::cluster::peer::events::{LinkEvents, LocalNode};
use crate::cluster::purpose::Purpose;
use crate::cluster::remote_end::RemoteEnd;

use super::shake::{ProvedSocket, connect, shake};
use crate::cluster::peer::Peer;
use crate::cluster::refusal::Refusal;
use crate::limits::{
    FACTS_INTERVAL, LINK_CLOSE_TIMEOUT, LINK_CONNECT_TIMEOUT, LINK_HANDSHAKE_TIMEOUT,
    LINK_HANDSHAKES_MAX, LINK_LOG_INTERVAL, LINK_QUESTION_AFTER, LINK_RETRY_MAX, LINK_RETRY_MIN,
    LINK_THREADS, MAJORITY_LOOK_INTERVAL,
};
use crate::sockets::admission::{Admission, Ticket};
use crate::sockets::listener::Listener;
use crate::sockets::refusals::Refusals;

/// Links that run. Dropping them closes all sockets.
#[derive(Debug)]
pub(crate) struct RunningLinks {
    links: Arc<Links>,
    /// Taken only on drop.
    runtime: Option<Runtime>,
    /// Ends when all tasks have ended.
    gone: mpsc::Receiver<()>,
}

impl RunningLinks {
    /// Starts the links: they accept on `listeners` and dial.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    ///
    /// # Panics
    /// If the links were started before.
    pub(crate) fn start(
        links: Arc<Links>,
        listeners: Vec<Listener>,
        events: Arc<dyn LinkEvents>,
        local: Arc<dyn LocalNode>,
        refusals: &Arc<Refusals>,
    ) -> Result<Self, ClusterError> {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        let threads = threads.worker_threads(LINK_THREADS).thread_name("links").enable_all();
        let runtime = threads.build().map_err(ClusterError::Thread)?;
        let is_first = links.events.set(events).is_ok() && links.local.set(local).is_ok();
        assert!(is_first, "links start once");
        links.seek_peers();
        let (alive, gone) = mpsc::channel(1);
        let admission = Arc::new(Admission::new(LINK_HANDSHAKES_MAX));
        for listener in listeners {
            let (links, alive, admission) =
                (Arc::clone(&links), alive.clone(), Arc::clone(&admission));
            runtime.spawn(accept(links, listener, admission, Arc::clone(refusals), alive));
        }
        runtime.spawn(follow_peers(Arc::clone(&links), alive));
        runtime.spawn(tell_facts(Arc::clone(&links)));
        runtime.spawn(watch_majority(Arc::clone(&links)));
        runtime.spawn(tell_users(Arc::clone(&links)));
        Ok(Self { links, runtime: Some(runtime), gone })
    }

    /// Tells all peers that this node stops, and closes the links.
    pub(crate) async fn stop(mut self) {
        self.links.stopping.send_replace(true);
        drop(timeout(LINK_CLOSE_TIMEOUT, self.gone.recv()).await);
    }
}

#[cfg(test)]
impl RunningLinks {
    /// Closes all sockets without a word, as the end of a process does.
    pub(crate) fn kill(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for RunningLinks {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.links.stopping.send_replace(true);
            // Does not block: the drop may run inside another runtime.
            runtime.shutdown_background();
        }
    }
}

/// Accepts connections until the node stops. Each link holds a clone of `alive`.
async fn accept(
    links: Arc<Links>,
    mut listener: Listener,
    admission: Arc<Admission>,
    refusals: Arc<Refusals>,
    alive: mpsc::Sender<()>,
) {
    let mut stopping = links.stopping.subscribe();
    loop {
        let (socket, from) = tokio::select! {
            accepted = listener.accept(&admission, &refusals) => accepted,
            () = stopped(&mut stopping) => return,
        };
        let Some(ticket) = admission.admit(from.ip()) else { continue };
        let (links, alive) = (Arc::clone(&links), alive.clone());
        tokio::spawn(async move {
            if let Some(proved) = welcome(&links, socket, from.ip(), ticket).await {
                open(&links, proved).await;
            }
            drop(alive);
        });
    }
}

/// Shakes hands with whoever has connected. The place among strangers is free on return.
async fn welcome(
    links: &Links,
    socket: TcpStream,
    from: IpAddr,
    ticket: Ticket,
) -> Option<ProvedSocket> {
    let mut stopping = links.stopping.subscribe();
    let shaking = timeout(LINK_HANDSHAKE_TIMEOUT, shake(links, socket, None));
    let proved = tokio::select! {
        proved = shaking => proved.unwrap_or(Err(Refusal::Timeout.into())),
        () = ticket.connection().evicted() => Err(Refusal::Timeout.into()),
        () = stopped(&mut stopping) => return None,
    };
    match proved {
        Ok(proved) => Some(proved),
        Err(HandshakeError::Refused(refusal)) => {
            links.note_refusal(RemoteEnd::refused(from, &refusal), &refusal);
            None
        }
        Err(HandshakeError::Io(error)) => {
            tracing::debug!(%from, %error, "a connection for links was closed during its handshake");
            None
        }
    }
}

/// Runs a link that a peer has opened, or hands a stream to whoever serves its purpose.
async fn open(links: &Links, proved: ProvedSocket) {
    if proved.hello.purpose == Purpose::Link {
        run(links, proved).await;
        return;
    }
    let stream = proved.into_stream();
    let handler = links.streams.handler(stream.purpose);
    handler.expect("an admitted stream has a handler").accepted(stream);
}

/// Dials or watches each peer, from the start or from the moment at which it joins, until the node stops.
async fn follow_peers(links: Arc<Links>, alive: mpsc::Sender<()>) {
    let (mut stopping, mut changes) = (links.stopping.subscribe(), links.peers_changed.subscribe());
    let mut followed: Vec<Arc<Peer>> = Vec::new();
    loop {
        changes.mark_unchanged();
        let peers = links.peers();
        let is_new = |peer: &&Arc<Peer>| !followed.iter().any(|known| Arc::ptr_eq(known, peer));
        for peer in peers.iter().filter(is_new) {
            let (links, peer, alive) = (Arc::clone(&links), Arc::clone(peer), alive.clone());
            tokio::spawn(async move {
                match links.own < peer.id {
                    true => keep_dialing(&links, &peer).await,
                    false => watch(&links, &peer).await,
                }
                drop(alive);
            });
        }
        followed = peers.to_vec();
        tokio::select! {
            // The sender lives as long as the links.
            _ = changes.changed() => {}
            () = stopped(&mut stopping) => return,
        }
    }
}

/// Dials a peer again and again until the node stops or the peer leaves the cluster.
async fn keep_dialing(links: &Links, peer: &Peer) {
    let (mut stopping, mut left) = (links.stopping.subscribe(), peer.has_left.subscribe());
    let mut pause = LINK_RETRY_MIN;
    while !*stopping.borrow() && !*left.borrow() {
        let began = Instant::now();
        let was_open = tokio::select! {
            proved = dial(links, peer) => match proved {
                Some(proved) => run(links, proved).await,
                None => false,
            },
            () = stopped(&mut stopping) => return,
            () = stopped(&mut left) => return,
        };
        // Two processes with the name of one node take each other's links.
        let has_lasted = was_open && began.elapsed() >= LINK_RETRY_MAX;
        pause = if has_lasted { LINK_RETRY_MIN } else { (pause * 2).min(LINK_RETRY_MAX) };
        tokio::select! {
            () = sleep(pause) => {}
            () = stopped(&mut stopping) => return,
            () = stopped(&mut left) => return,
        }
    }
}

/// Connects to a peer and shakes hands. A problem is logged.
async fn dial(links: &Links, peer: &Peer) -> Option<ProvedSocket> {
    let with = RemoteEnd::Node(&peer.node.name);
    let (address, key) = (peer.node.address(), &peer.node.key);
    let socket = match timeout(LINK_CONNECT_TIMEOUT, connect(peer)).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(problem)) => {
            links.note_problem(with, &format!("{problem}, as {key} says"));
            return None;
        }
        Err(_) => {
            links.note_problem(with, &format!("{address} does not answer, as {key} says"));
            return None;
        }
    };
    let shaking = shake(links, socket, Some((peer, Purpose::Link)));
    let shaking = timeout(LINK_HANDSHAKE_TIMEOUT, shaking);
    match shaking.await.unwrap_or(Err(Refusal::Timeout.into())) {
        Ok(proved) => Some(proved),
        Err(HandshakeError::Refused(refusal)) => {
            links.note_refusal(with, &refusal);
            None
        }
        Err(HandshakeError::Io(error)) => {
            let text = format!("it closed the connection during the handshake: {error}");
            links.note_problem(with, &text);
            None
        }
    }
}

/// Watches a peer that dials this node. From time to time without a link it asks the peer why: a peer that has forgotten
/// this node, or knows it with another disk, never dials.
async fn watch(links: &Links, peer: &Peer) {
    let (mut stopping, mut left) = (links.stopping.subscribe(), peer.has_left.subscribe());
    let mut pause = LINK_QUESTION_AFTER;
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            () = stopped(&mut stopping) => return,
            () = stopped(&mut left) => return,
        }
        pause = LINK_LOG_INTERVAL;
        if peer.state.lock().current.is_none() {
            tokio::select! {
                () = ask(links, peer) => {}
                () = stopped(&mut stopping) => return,
                () = stopped(&mut left) => return,
            }
        }
    }
}

/// Notes the reason for which a peer has not dialed this node.
async fn ask(links: &Links, peer: &Peer) {
    let silent = "it has not connected to this node";
    let reason = match links.is_founded() {
        false => silent.to_owned(),
        true => match links.dial_peer(peer, Purpose::Http).await {
            Ok(_) => "it answers, and does not connect to this node; see its log".to_owned(),
            // Noted by the dial.
            Err(DialError::Refused(_)) => return,
            Err(error) => format!("{silent}, and {error}"),
        },
    };
    if peer.state.lock().current.is_none() {
        links.note_problem(RemoteEnd::Node(&peer.node.name), &reason);
    }
}

/// Looks whether this node is connected to a majority, and logs changes.
async fn watch_majority(links: Arc<Links>) {
    let (mut stopping, mut majority) = (links.stopping.subscribe(), MajorityLog::default());
    loop {
        tokio::select! {
            () = sleep(MAJORITY_LOOK_INTERVAL) => majority.look(&links),
            () = stopped(&mut stopping) => return,
        }
    }
}

/// Tells facts about this node to all peers from time to time, and when they are due.
async fn tell_facts(links: Arc<Links>) {
    let mut stopping = links.stopping.subscribe();
    loop {
        let of = Arc::clone(&links);
        let facts = tokio::task::spawn_blocking(move || of.facts()).await;
        if let Ok(Some(facts)) = facts {
            let facts = Control::Facts(facts);
            links.peers().iter().for_each(|peer| peer.tell(&facts));
        }
        tokio::select! {
            () = sleep(FACTS_INTERVAL) => {}
            () = links.facts_due.notified() => {}
            () = stopped(&mut stopping) => return,
        }
    }
}
