//! The entry node: it finds the leader of a client's vhost and lets it adopt the client.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use broker::refusal::Refusal;
use broker::time::Time;
use replica::relay::{Answer, Found, Reply, Seek, is_cut_off, is_superseded};
use tokio::time::{sleep, timeout};

use super::adopt::{Adopt, decode_answer};
use super::ends::Adopted;
use crate::cluster::{Links, NodeStream, Purpose};
use crate::connection::task::{Connection, End};
use crate::limits::{ADOPT_BYTES_MAX, LEADER_CHECK_INTERVAL};
use crate::membership::fields::{read_message, write_message};
use crate::membership::ids::NodeId;
use crate::node::Node;
use crate::sockets::socket::Reader;
use crate::vhost::NotLeading;

impl Connection {
    /// Lets the node that leads the vhost adopt the client. None if this node answers `connection.open` itself: it leads
    /// the vhost, or nobody does.
    ///
    /// # Errors
    /// [`End`], if the client is gone meanwhile; the inner error is the refusal of the vhost.
    pub(in crate::connection) async fn adopt_elsewhere(
        &mut self,
        socket: &Reader,
        vhost: &str,
    ) -> Result<Result<Option<Adopted>, Refusal>, End> {
        let node = Arc::clone(&self.node);
        let Some(links) = &node.cluster else { return Ok(Ok(None)) };
        if node.vhosts.leader_elsewhere(vhost).is_none() {
            return Ok(Ok(None));
        }
        if let Err(refusal) = self.take_place() {
            return Ok(Err(refusal));
        }
        let adopt = self.adopt(vhost);
        let mut adopted = Ok(None);
        let seek = async { adopted = seek(&node, links, &adopt).await };
        self.wait_keeping_alive(socket, Box::pin(seek)).await?;
        Ok(adopted)
    }

    /// The facts that the leader must know.
    fn adopt(&self, vhost: &str) -> Adopt {
        let client = self.session.client();
        Adopt {
            user: self.user.as_ref().map(|user| user.name.clone()).unwrap_or_default(),
            vhost: vhost.to_owned(),
            peer: self.peer,
            local: self.local,
            mechanism: self.session.mechanism(),
            frame_max: self.session.frame_max(),
            channel_max: self.session.channel_max(),
            heartbeat_s: self.session.heartbeat_s(),
            properties: client.properties.clone(),
            tls: self.tls.as_ref().map(|tls| tls.details.clone()),
        }
    }
}

/// Lets the leader of the vhost adopt the client, as [`Seek`] decides. None if this node answers `connection.open` itself.
///
/// # Errors
/// The refusal for the client.
async fn seek(node: &Node, links: &Links, adopt: &Adopt) -> Result<Option<Adopted>, Refusal> {
    let began = Instant::now();
    let now = || Time::from_micros(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
    let mut stopping = node.lifecycle.stopping.subscribe();
    let mut seek = Seek::new(&links.name, &adopt.vhost, &adopt.user, now());
    while let Some(leader) = seek.next(|| node.vhosts.leader_elsewhere(&adopt.vhost)) {
        let until = seek.until();
        let left = || Duration::from_micros(until.micros_since(now()));
        let (reply, stream) = tokio::select! {
            asked = timeout(left(), ask(links, &leader, adopt)) => match asked {
                Ok(Ok((answer, stream))) => (Reply::Answer(answer), Some(stream)),
                Ok(Err(problem)) => (Reply::Failed(problem), None),
                Err(_) => (Reply::Silent, None),
            },
            () = superseded(node, &adopt.vhost, &leader) => (Reply::Superseded, None),
            () = cut_off(node, links, adopt, &leader) => {
                (Reply::CutOff(out_of_reach(node, &adopt.vhost)), None)
            }
            _ = stopping.wait_for(|is| *is) => (Reply::Stops, None),
        };
        match seek.heard(reply, now()) {
            Found::Adopted(leader) => {
                let adopted = |stream| Adopted { stream, vhost: adopt.vhost.clone(), leader };
                return Ok(stream.map(adopted));
            }
            Found::Here => break,
            Found::Refused(refusal) => return Err(refusal),
            Found::Again => {
                sleep(LEADER_CHECK_INTERVAL).await;
                drop(timeout(left(), node.vhosts.leader_settled(&adopt.vhost)).await);
            }
        }
    }
    Ok(None)
}

/// Completes when neither the leader is heard nor a majority that may elect another one.
async fn cut_off(node: &Node, links: &Links, adopt: &Adopt, leader: &str) {
    let may_elect = || node.vhosts.get(&adopt.vhost).is_none_or(|handle| handle.may_elect());
    while !is_cut_off(links.hears(NodeId::of(leader)), may_elect) {
        sleep(LEADER_CHECK_INTERVAL).await;
    }
}

/// The refusal of a client whose vhost has a leader that is not heard, although this node may not have taken note of the loss.
fn out_of_reach(node: &Node, vhost: &str) -> Option<Refusal> {
    let handle = node.vhosts.get(vhost)?;
    Some(NotLeading { leader: None, ..handle.not_leading() }.into())
}

/// Completes when another node has become the leader of the vhost than the one that is asked, which may be silent.
async fn superseded(node: &Node, vhost: &str, asked: &str) {
    loop {
        let leaders = node.vhosts.get(vhost).and_then(|handle| handle.leaders());
        let Some(mut leaders) = leaders else { return std::future::pending().await };
        let first = leaders.borrow_and_update().clone();
        while leaders.changed().await.is_ok() {
            let now = leaders.borrow_and_update().clone();
            if is_superseded(asked, first.as_deref(), now.as_deref()) {
                return;
            }
        }
        // The vhost was opened anew, or this node leads it now.
        if node.vhosts.leader_elsewhere(vhost).is_none_or(|leader| *leader != *asked) {
            return;
        }
    }
}

/// Asks one node.
async fn ask(links: &Links, node: &str, adopt: &Adopt) -> Result<(Answer, NodeStream), String> {
    let octets = adopt.encode();
    if octets.len() > ADOPT_BYTES_MAX {
        return Err("the names of the client are too long".to_owned());
    }
    let dialed = links.dial(NodeId::of(node), Purpose::Client).await;
    let mut stream = dialed.map_err(|error| error.to_string())?;
    let lost = |error: io::Error| format!("it closed the stream: {error}");
    write_message(&mut stream, &octets).await.map_err(lost)?;
    let answer = read_message(&mut stream, ADOPT_BYTES_MAX).await.map_err(lost)?;
    let answer = decode_answer(&answer).map_err(|_| "its answer cannot be read".to_owned())?;
    Ok((answer, stream))
}
