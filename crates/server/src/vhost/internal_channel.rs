//! An internal channel of the node: commands of HTTP users go through the core like those of AMQP clients,
//! with the permissions of the user but without a socket.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::reply_code::ReplyCode;
use broker::access::Access;
use broker::refusal::Refusal;
use broker::time::Now;
use broker::{ChannelNumber, Command, ConnectionId, Outgoing, Publish, Request, ScheduledPlace};
use tokio::sync::mpsc::UnboundedReceiver;

use super::handle::VhostHandle;

/// The connection name in listings.
const NAME: &str = "HTTP";

/// The only channel of the connection.
const CHANNEL: ChannelNumber = ChannelNumber(1);

/// An internal connection of the node with one channel.
#[derive(Debug)]
pub struct InternalChannel {
    handle: Arc<VhostHandle>,
    connection: ConnectionId,
    answers: UnboundedReceiver<Outgoing>,
}

impl InternalChannel {
    /// Opens a connection and its channel, once the disk is not behind.
    pub(crate) async fn open(
        handle: Arc<VhostHandle>,
        access: Arc<Access>,
    ) -> Result<Self, Refusal> {
        handle.caught_up().await;
        let (connection, answers) = handle.open_internal(NAME, access)?;
        let mut channel = Self { handle, connection, answers };
        channel.apply(Command::OpenChannel);
        channel.answer().await?;
        Ok(channel)
    }

    /// The user of the channel with their current permissions.
    ///
    /// # Errors
    /// The reason why the channel was closed.
    pub(crate) fn access(&mut self) -> Result<Arc<Access>, Refusal> {
        if let Ok(
            Outgoing::ChannelClose { refusal, .. } | Outgoing::ConnectionClose { refusal, .. },
        ) = self.answers.try_recv()
        {
            return Err(refusal);
        }
        let access = self.handle.read(|vhost, _| {
            vhost.connection(self.connection).map(|connection| Arc::clone(&connection.access))
        });
        access.ok_or_else(gone)
    }

    /// The id of the connection.
    #[cfg(test)]
    pub(crate) fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// The vhost of the channel.
    pub(crate) fn vhost(&self) -> &Arc<VhostHandle> {
        &self.handle
    }

    /// Performs a command; [`Self::answer`] returns the result.
    pub fn apply(&mut self, command: Command<'_>) {
        let request = Request { channel: CHANNEL, method: MethodId::NONE, command };
        self.handle.apply_internal(self.connection, request);
    }

    /// Performs a publish; [`Self::answer`] returns its confirm. Returns the places in which the message waits for
    /// its delivery time, and the time of the publish.
    pub fn publish(&mut self, publish: Publish<'_>) -> (Vec<ScheduledPlace>, Now) {
        let (method, command) = (MethodId::NONE, Command::Publish(publish));
        let request = Request { channel: CHANNEL, method, command };
        self.handle.apply_and_collect_places(self.connection, request)
    }

    /// The next message to the channel: the answer to a command once its effects are on disk, a confirm, or
    /// a returned message. A refusal closes the channel.
    ///
    /// # Errors
    /// The refusal that has closed the channel.
    pub async fn answer(&mut self) -> Result<Outgoing, Refusal> {
        match self.answers.recv().await {
            Some(
                Outgoing::ChannelClose { refusal, .. } | Outgoing::ConnectionClose { refusal, .. },
            ) => Err(refusal),
            Some(outgoing) => Ok(outgoing),
            None => Err(gone()),
        }
    }

    /// Closes the channel; completes when all its effects are on disk.
    pub async fn close(self) {
        let (lsn, handle) = (self.handle.close(self.connection), Arc::clone(&self.handle));
        drop(self);
        // The caller has the answers of all commands, which have waited for the log.
        let _ = handle.durable_at(lsn).await;
    }
}

fn gone() -> Refusal {
    Refusal::new(ReplyCode::ConnectionForced, "the vhost is gone")
}

impl Drop for InternalChannel {
    fn drop(&mut self) {
        self.handle.close(self.connection);
    }
}
