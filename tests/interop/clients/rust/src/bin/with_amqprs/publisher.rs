//! A channel that confirms: the client has callbacks, which are made events here.

use std::collections::BTreeSet;

use amqprs::callbacks::ChannelCallback;
use amqprs::channel::{BasicPublishArguments, Channel, ConfirmSelectArguments};
use amqprs::connection::Connection;
use amqprs::error::Error;
use amqprs::{Ack, BasicProperties, Cancel, CloseChannel, Nack, Return};
use async_trait::async_trait;
use interop::refusal::Refusal;
use interop::within;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

type Result<T> = std::result::Result<T, Error>;

/// Answers of the broker.
#[derive(Debug)]
pub(crate) enum Told {
    Closed(Refusal),
    Cancelled(String),
    Acked { tag: u64, multiple: bool },
    Nacked { tag: u64, multiple: bool },
    Returned(Returned),
}

/// Code, text and body of a message that came back.
pub(crate) type Returned = (u16, String, Vec<u8>);

/// Outcomes of messages.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    pub(crate) taken: usize,
    pub(crate) refused: usize,
    pub(crate) returned: Vec<Returned>,
}

/// A channel whose callback is a queue of events.
pub(crate) struct Publisher {
    pub(crate) channel: Channel,
    told: UnboundedReceiver<Told>,
    published: u64,
    unsettled: BTreeSet<u64>,
}

impl Publisher {
    /// A channel that confirms.
    pub(crate) async fn open(connection: &Connection) -> Result<Self> {
        let channel = connection.open_channel(None).await?;
        let (callback, told) = mpsc::unbounded_channel();
        channel.register_callback(Callback(callback)).await?;
        channel.confirm_select(ConfirmSelectArguments::default()).await?;
        Ok(Self { channel, told, published: 0, unsettled: BTreeSet::new() })
    }

    /// Sends a message, which comes back if no queue takes it.
    pub(crate) async fn send(
        &mut self,
        exchange: &str,
        key: &str,
        body: impl Into<Vec<u8>>,
        properties: BasicProperties,
    ) -> Result<()> {
        self.published += 1;
        self.unsettled.insert(self.published);
        let arguments = BasicPublishArguments::new(exchange, key).mandatory(true).finish();
        self.channel.basic_publish(properties, body.into(), arguments).await
    }

    /// Sends a message, which is confirmed.
    pub(crate) async fn publish(
        &mut self,
        exchange: &str,
        key: &str,
        body: impl Into<Vec<u8>>,
        properties: BasicProperties,
    ) -> Result<()> {
        self.send(exchange, key, body, properties).await?;
        let settled = self.settled().await;
        assert_eq!((settled.taken, settled.refused, settled.returned), (1, 0, vec![]));
        Ok(())
    }

    /// Waits until nothing is on its way.
    pub(crate) async fn settled(&mut self) -> Settled {
        let mut settled = Settled::default();
        while !self.unsettled.is_empty() {
            match self.told().await {
                Told::Acked { tag, multiple } => settled.taken += self.settle(tag, multiple),
                Told::Nacked { tag, multiple } => settled.refused += self.settle(tag, multiple),
                Told::Returned(message) => settled.returned.push(message),
                unexpected => panic!("{unexpected:?}"),
            }
        }
        settled
    }

    fn settle(&mut self, tag: u64, multiple: bool) -> usize {
        let before = self.unsettled.len();
        self.unsettled.retain(|&other| other != tag && !(multiple && other < tag));
        before - self.unsettled.len()
    }

    /// Next answer of the broker.
    pub(crate) async fn told(&mut self) -> Told {
        within("the broker tells something", self.told.recv()).await.expect("the channel is open")
    }
}

struct Callback(UnboundedSender<Told>);

impl Callback {
    /// The receiver may be gone.
    fn tell(&self, told: Told) {
        let _ = self.0.send(told);
    }
}

#[async_trait]
impl ChannelCallback for Callback {
    async fn close(&mut self, _: &Channel, close: CloseChannel) -> Result<()> {
        self.tell(Told::Closed(Refusal::new(close.reply_code(), close.reply_text())));
        Ok(())
    }

    async fn cancel(&mut self, _: &Channel, cancel: Cancel) -> Result<()> {
        self.tell(Told::Cancelled(cancel.consumer_tag().clone()));
        Ok(())
    }

    async fn flow(&mut self, _: &Channel, active: bool) -> Result<bool> {
        Ok(active)
    }

    async fn publish_ack(&mut self, _: &Channel, ack: Ack) {
        self.tell(Told::Acked { tag: ack.delivery_tag(), multiple: ack.mutiple() });
    }

    async fn publish_nack(&mut self, _: &Channel, nack: Nack) {
        self.tell(Told::Nacked { tag: nack.delivery_tag(), multiple: nack.multiple() });
    }

    async fn publish_return(
        &mut self,
        _: &Channel,
        ret: Return,
        _: BasicProperties,
        content: Vec<u8>,
    ) {
        self.tell(Told::Returned((ret.reply_code(), ret.reply_text().clone(), content)));
    }
}
