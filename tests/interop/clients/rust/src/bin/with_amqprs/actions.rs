//! Actions that scenarios share.

use amqprs::channel::{
    BasicAckArguments, BasicConsumeArguments, BasicGetArguments, Channel, ConsumerMessage,
    ExchangeDeclareArguments, QueueBindArguments, QueueDeclareArguments, QueueDeleteArguments,
};
use amqprs::connection::{Connection, OpenConnectionArguments};
use amqprs::error::Error;
use amqprs::{BasicProperties, FieldTable, FieldValue, GetOk};
use interop::{host, port, within};
use tokio::sync::mpsc::UnboundedReceiver;

type Result<T> = std::result::Result<T, Error>;

/// Address of the broker, and the login.
pub(crate) fn arguments() -> OpenConnectionArguments {
    OpenConnectionArguments::new(&host(), port(), "guest", "guest")
}

/// A connection.
pub(crate) async fn open() -> Result<Connection> {
    Connection::open(&arguments()).await
}

async fn declare(channel: &Channel, arguments: QueueDeclareArguments) -> Result<(String, u32)> {
    let (queue, depth, _) = channel.queue_declare(arguments).await?.expect("it is waited for");
    Ok((queue, depth))
}

/// An exclusive queue.
pub(crate) async fn exclusive(
    channel: &Channel,
    queue: &str,
    arguments: FieldTable,
) -> Result<String> {
    let declaration =
        QueueDeclareArguments::new(queue).exclusive(true).arguments(arguments).finish();
    Ok(declare(channel, declaration).await?.0)
}

/// A durable queue.
pub(crate) async fn durable(
    channel: &Channel,
    queue: &str,
    arguments: FieldTable,
) -> Result<String> {
    let declaration =
        QueueDeclareArguments::durable_client_named(queue).arguments(arguments).finish();
    Ok(declare(channel, declaration).await?.0)
}

/// Number of ready messages.
pub(crate) async fn depth(channel: &Channel, queue: &str) -> Result<u32> {
    Ok(declare(channel, QueueDeclareArguments::new(queue).passive(true).finish()).await?.1)
}

/// No such queue any more.
pub(crate) async fn delete(channel: &Channel, queue: &str) -> Result<()> {
    channel.queue_delete(QueueDeleteArguments::new(queue)).await.map(drop)
}

/// A direct exchange.
pub(crate) async fn direct(
    channel: &Channel,
    exchange: &str,
    durable: bool,
    auto_delete: bool,
) -> Result<()> {
    let mut declaration = ExchangeDeclareArguments::new(exchange, "direct");
    channel.exchange_declare(declaration.durable(durable).auto_delete(auto_delete).finish()).await
}

/// A binding.
pub(crate) async fn bind(channel: &Channel, queue: &str, exchange: &str, key: &str) -> Result<()> {
    channel.queue_bind(QueueBindArguments::new(queue, exchange, key)).await
}

/// The next message of a queue, acknowledged.
pub(crate) async fn get(
    channel: &Channel,
    queue: &str,
) -> Result<Option<(GetOk, BasicProperties, Vec<u8>)>> {
    channel.basic_get(BasicGetArguments::new(queue).no_ack(true).finish()).await
}

/// The next message of a queue, not acknowledged.
pub(crate) async fn keep(
    channel: &Channel,
    queue: &str,
) -> Result<Option<(GetOk, BasicProperties, Vec<u8>)>> {
    channel.basic_get(BasicGetArguments::new(queue)).await
}

/// Deliveries of a consumer.
pub(crate) async fn consume(
    channel: &Channel,
    queue: &str,
    no_ack: bool,
) -> Result<UnboundedReceiver<ConsumerMessage>> {
    let arguments = BasicConsumeArguments::new(queue, "").manual_ack(!no_ack).finish();
    Ok(channel.basic_consume_rx(arguments).await?.1)
}

/// The next delivery.
pub(crate) async fn next(messages: &mut UnboundedReceiver<ConsumerMessage>) -> ConsumerMessage {
    within("a delivery", messages.recv()).await.expect("the consumer is not cancelled")
}

/// The delivery is done.
pub(crate) async fn ack(channel: &Channel, message: &ConsumerMessage) -> Result<()> {
    let deliver = message.deliver.as_ref().expect("it is a delivery");
    channel.basic_ack(BasicAckArguments::new(deliver.delivery_tag(), false)).await
}

/// The text of a delivery.
pub(crate) fn body(message: &ConsumerMessage) -> &str {
    std::str::from_utf8(message.content.as_ref().expect("it has a body")).expect("the body is text")
}

/// A long string.
pub(crate) fn text(value: &str) -> FieldValue {
    value.into()
}

/// A field table.
pub(crate) fn table<const N: usize>(entries: [(&str, FieldValue); N]) -> FieldTable {
    let mut table = FieldTable::new();
    for (key, value) in entries {
        table.insert(key.try_into().expect("a short string"), value);
    }
    table
}
