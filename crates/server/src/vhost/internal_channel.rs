//! A channel of the node's own: what a user asks over HTTP goes through the core as what clients ask
//! over AMQP, with his permissions and nobody's socket.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::reply_code::ReplyCode;
use broker::access::Access;
use broker::refusal::Refusal;
use broker::{ChannelNumber, Command, ConnectionId, Outgoing, Request};
use management::ChangeFuture;
use tokio::sync::mpsc::UnboundedReceiver;

use super::handle::VhostHandle;

/// What people see where they see names of connections.
const NAME: &str = "HTTP";

/// The only channel of its connection.
const CHANNEL: ChannelNumber = ChannelNumber(1);

/// A connection of the node's own with one channel.
#[derive(Debug)]
pub(crate) struct InternalChannel {
    handle: Arc<VhostHandle>,
    connection: ConnectionId,
    told: UnboundedReceiver<Outgoing>,
}

impl InternalChannel {
    /// Opens a connection and its channel, once the disk has not too much to do.
    pub(crate) async fn open(
        handle: Arc<VhostHandle>,
        access: Arc<Access>,
    ) -> Result<Self, Refusal> {
        handle.caught_up().await;
        let (connection, told) = handle.open_internal(NAME, access);
        let mut channel = Self { handle, connection, told };
        channel.request(Command::OpenChannel);
        channel.next().await?;
        Ok(channel)
    }

    /// On whose behalf it is, and what he may do now.
    ///
    /// # Errors
    /// Why he may do nothing any more.
    pub(crate) fn access(&mut self) -> Result<Arc<Access>, Refusal> {
        if let Ok(
            Outgoing::ChannelClose { refusal, .. } | Outgoing::ConnectionClose { refusal, .. },
        ) = self.told.try_recv()
        {
            return Err(refusal);
        }
        let access = self.handle.read(|vhost, _| {
            vhost.connection(self.connection).map(|connection| Arc::clone(&connection.access))
        });
        access.ok_or_else(gone)
    }

    /// Its connection.
    #[cfg(test)]
    pub(crate) fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// The vhost that it is in.
    pub(crate) fn vhost(&self) -> &Arc<VhostHandle> {
        &self.handle
    }

    fn request(&self, command: Command<'_>) {
        let request = Request { channel: CHANNEL, method: MethodId::NONE, command };
        self.handle.apply_internal(self.connection, request);
    }

    async fn next(&mut self) -> Result<Outgoing, Refusal> {
        match self.told.recv().await {
            Some(
                Outgoing::ChannelClose { refusal, .. } | Outgoing::ConnectionClose { refusal, .. },
            ) => Err(refusal),
            Some(outgoing) => Ok(outgoing),
            None => Err(gone()),
        }
    }
}

fn gone() -> Refusal {
    Refusal::new(ReplyCode::ConnectionForced, "the vhost is gone")
}

impl management::Channel for InternalChannel {
    fn apply(&mut self, command: Command<'_>) {
        self.request(command);
    }

    fn answer(&mut self) -> ChangeFuture<'_, Result<Outgoing, Refusal>> {
        Box::pin(self.next())
    }

    fn close(self: Box<Self>) -> ChangeFuture<'static, ()> {
        let lsn = self.handle.close(self.connection);
        let handle = Arc::clone(&self.handle);
        Box::pin(async move { handle.durable_at(lsn).await })
    }
}

impl Drop for InternalChannel {
    fn drop(&mut self) {
        self.handle.close(self.connection);
    }
}
