//! The entry node: it finds the leader of a client's vhost and lets it adopt the client.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use amqp::reply_code::ReplyCode;
use broker::refusal::Refusal;
use tokio::time::{sleep, timeout};

use super::adopt::{Adopt, Answer, read_frame, write_frame};
use super::ends::Adopted;
use crate::cluster::ids::NodeId;
use crate::cluster::{Links, NodeStream, Purpose};
use crate::connection::socket::Reader;
use crate::connection::task::{Connection, End};
use crate::limits::{ADOPT_BYTES_MAX, LEADER_CHECK_INTERVAL, LEADER_WAIT};
use crate::node::Node;
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

/// Asks the leader of the vhost to adopt the client, and the next leader if it is another one meanwhile, for
/// [`LEADER_WAIT`] at the most. None if this node has become the leader, or nobody is, or if neither the leader is heard
/// nor a majority that may elect another one.
///
/// # Errors
/// The refusal for the client.
async fn seek(node: &Node, links: &Links, adopt: &Adopt) -> Result<Option<Adopted>, Refusal> {
    let (until, mut stopping) = (Instant::now() + LEADER_WAIT, node.lifecycle.stopping.subscribe());
    let mut hint: Option<String> = None;
    loop {
        let known = node.vhosts.leader_elsewhere(&adopt.vhost);
        let told = hint.take().filter(|leader| *leader != links.name).map(Arc::from);
        let Some(leader) = told.or(known) else { return Ok(None) };
        let left = until.saturating_duration_since(Instant::now());
        let asked = tokio::select! {
            asked = timeout(left, ask(links, &leader, adopt)) => asked,
            () = superseded(node, &adopt.vhost, &leader) => {
                Ok(Err("another node leads the vhost since then".to_owned()))
            }
            () = cut_off(node, links, adopt, &leader) => return out_of_reach(node, &adopt.vhost),
            _ = stopping.wait_for(|is| *is) => return Ok(None),
        };
        let mut is_unknown = false;
        let problem = match asked {
            Ok(Ok((Answer::Adopted, stream))) => {
                return Ok(Some(Adopted { stream, vhost: adopt.vhost.clone(), leader }));
            }
            // A user or vhost that is new here may be known there soon.
            Ok(Ok((Answer::Unknown, _))) => {
                is_unknown = true;
                "it does not know the user".to_owned()
            }
            Ok(Ok((Answer::NotLeading(next), _))) => {
                hint = next;
                "it leads the vhost no more".to_owned()
            }
            Ok(Ok((Answer::Stopping, _))) => "it stops".to_owned(),
            Ok(Err(problem)) => problem,
            Err(_) => "it does not answer".to_owned(),
        };
        if Instant::now() + LEADER_CHECK_INTERVAL >= until {
            let (vhost, user) = (&adopt.vhost, &adopt.user);
            if is_unknown {
                let text = format!("access to vhost '{vhost}' refused for user '{user}'");
                return Err(Refusal::not_allowed(text));
            }
            let text = format!("vhost '{vhost}' is led by node '{leader}', and {problem}");
            return Err(Refusal::new(ReplyCode::InternalError, text));
        }
        sleep(LEADER_CHECK_INTERVAL).await;
        let left = until.saturating_duration_since(Instant::now());
        drop(timeout(left, node.vhosts.leader_settled(&adopt.vhost)).await);
    }
}

/// Completes when neither the leader is heard nor a majority that may elect another one.
async fn cut_off(node: &Node, links: &Links, adopt: &Adopt, leader: &str) {
    let may_go_on = || {
        let handle = node.vhosts.get(&adopt.vhost);
        links.hears(NodeId::of(leader)) || handle.is_none_or(|handle| handle.may_elect())
    };
    while may_go_on() {
        sleep(LEADER_CHECK_INTERVAL).await;
    }
}

/// The refusal of a client whose vhost has a leader that is not heard, although this node may not have taken note of the loss.
fn out_of_reach(node: &Node, vhost: &str) -> Result<Option<Adopted>, Refusal> {
    let Some(handle) = node.vhosts.get(vhost) else { return Ok(None) };
    Err(NotLeading { leader: None, ..handle.not_leading() }.into())
}

/// Completes when another node has become the leader of the vhost than the one that is asked, which may be silent.
async fn superseded(node: &Node, vhost: &str, asked: &str) {
    loop {
        let leaders = node.vhosts.get(vhost).and_then(|handle| handle.leaders());
        let Some(mut leaders) = leaders else { return std::future::pending().await };
        // The node that is asked may be one of which this node was only told.
        let first = leaders.borrow_and_update().clone();
        while leaders.changed().await.is_ok() {
            let now = leaders.borrow_and_update().clone();
            if now != first && now.is_some_and(|now| *now != *asked) {
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
    write_frame(&mut stream, &octets).await.map_err(lost)?;
    let answer = read_frame(&mut stream).await.map_err(lost)?;
    let answer = Answer::decode(&answer).map_err(|_| "its answer cannot be read".to_owned())?;
    Ok((answer, stream))
}
