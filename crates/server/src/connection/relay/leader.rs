//! The leader: it takes clients of other nodes and continues their sessions.

use std::sync::{Arc, Weak};

use replica::relay::{Answer, Standing, judge};
use session::{Resumed, Session};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::adopt::{Adopt, encode_answer};
use super::ends::Ends;
use crate::cluster::{NodeStream, StreamHandler};
use crate::connection::task::{self, Origin};
use crate::limits::{ADOPT_BYTES_MAX, ADOPT_TIMEOUT};
use crate::membership::fields::{read_message, write_message};
use crate::node::Node;
use crate::sockets::admission::Admitted;
use crate::tls::TlsPeer;
use crate::vhost::OpenRefused;

/// Takes the streams of clients that other nodes have shaken hands with.
#[derive(Debug)]
pub(crate) struct Adopter {
    node: Weak<Node>,
    /// The runtime of clients.
    runtime: Handle,
    /// Each client holds a sender until it has ended.
    alive: mpsc::WeakSender<()>,
}

impl Adopter {
    /// An adopter whose clients run on the runtime of the caller.
    pub(crate) fn new(node: &Arc<Node>, alive: &mpsc::Sender<()>) -> Self {
        let (node, alive) = (Arc::downgrade(node), alive.downgrade());
        Self { node, runtime: Handle::current(), alive }
    }
}

impl StreamHandler for Adopter {
    fn accepted(&self, stream: NodeStream) {
        // Without a sender the node has ended its clients.
        let (Some(node), Some(alive)) = (self.node.upgrade(), self.alive.upgrade()) else { return };
        self.runtime.spawn(async move {
            serve(stream, node).await;
            drop(alive);
        });
    }
}

/// Serves a client over a stream.
async fn serve(mut stream: NodeStream, node: Arc<Node>) {
    let entry: Arc<str> = stream.peer.node.name.as_str().into();
    let adopt = match timeout(ADOPT_TIMEOUT, read_message(&mut stream, ADOPT_BYTES_MAX)).await {
        Ok(Ok(frame)) => Adopt::decode(&frame),
        // The client of the entry node is gone, or its patience.
        Ok(Err(_)) | Err(_) => return,
    };
    let Ok(adopt) = adopt else {
        tracing::warn!(%entry, "a client of this node cannot be adopted: its description is malformed");
        return;
    };
    let answer = answer(&node, &adopt).await;
    let is_adopted = answer == Answer::Adopted;
    let told = timeout(ADOPT_TIMEOUT, write_message(&mut stream, &encode_answer(&answer))).await;
    if !is_adopted || !matches!(told, Ok(Ok(()))) {
        return;
    }
    let (local, remote) = (stream.local, stream.remote);
    tracing::debug!(%entry, %local, %remote, peer = %adopt.peer, "a client of another node is adopted");
    let (Ends { reads, writes }, slot) = match Ends::of_stream(stream) {
        Ok(ends) => ends,
        Err(error) => {
            tracing::warn!(%entry, %error, "a client cannot be adopted");
            return;
        }
    };
    let Adopt { user, vhost, peer, local, mechanism, .. } = &adopt;
    let has_certificate = adopt.tls.as_ref().is_some_and(|tls| tls.certificate.is_some());
    let resumed = Resumed {
        client_properties: adopt.properties.as_ref(),
        mechanism,
        frame_max: adopt.frame_max,
        channel_max: adopt.channel_max,
        heartbeat_s: adopt.heartbeat_s,
    };
    let options = Arc::clone(node.sessions.options(has_certificate));
    let session = Session::resumed(options, node.clock.time(), resumed);
    let origin = Origin {
        peer: *peer,
        local: *local,
        tls: adopt.tls.clone().map(|details| Box::new(TlsPeer { details, certificate_der: None })),
        user: node.auth.user(user),
        entry: Some(entry),
        admitted: Arc::new(Admitted::new(peer.ip())),
        admission: None,
    };
    task::drive(Ends { reads, writes }, node, session, origin, Some(vhost.clone())).await;
    drop(slot);
}

/// Judges whether this node can take a client.
async fn answer(node: &Node, adopt: &Adopt) -> Answer {
    let asked = Asked { node, adopt };
    if let Some(answer) = judge(&asked, false) {
        return answer;
    }
    node.vhosts.leader_settled(&adopt.vhost).await;
    judge(&asked, true).expect("a node that has settled judges")
}

/// A node that is asked to adopt a client.
struct Asked<'a> {
    node: &'a Node,
    adopt: &'a Adopt,
}

impl Standing for Asked<'_> {
    fn is_stopping(&self) -> bool {
        *self.node.lifecycle.stopping.borrow()
    }

    fn knows_client(&self) -> bool {
        let Self { node, adopt } = self;
        node.vhosts.get(&adopt.vhost).is_some() && node.auth.user(&adopt.user).is_some()
    }

    fn leads(&self) -> Result<(), Option<String>> {
        match self.node.vhosts.get(&self.adopt.vhost).map(|handle| handle.check_room()) {
            Some(Err(OpenRefused::NotLeading(problem))) => {
                Err(problem.leader.map(|leader| leader.to_string()))
            }
            Some(Ok(()) | Err(OpenRefused::Deleted | OpenRefused::Full(_))) | None => Ok(()),
        }
    }
}
