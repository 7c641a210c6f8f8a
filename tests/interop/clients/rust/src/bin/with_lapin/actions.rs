//! Actions that scenarios share.

use std::collections::BTreeMap;
use std::time::Duration;

use interop::refusal::Refusal;
use interop::{Outcome, host, port, within};
use lapin::message::Delivery;
use lapin::options::{
    BasicConsumeOptions, BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions,
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, LongString};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, Error,
    ErrorKind, ExchangeKind, Result,
};
use tokio_stream::StreamExt as _;

/// Address of the broker, and the login.
pub(crate) fn address() -> String {
    format!("amqp://guest:guest@{}:{}/%2f", host(), port())
}

/// A connection.
pub(crate) async fn open() -> Result<Connection> {
    Connection::connect(&address(), ConnectionProperties::default()).await
}

/// A channel that confirms.
pub(crate) async fn confirmed(connection: &Connection) -> Result<Channel> {
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    Ok(channel)
}

/// The connection is closed in order.
pub(crate) async fn close(connection: Connection) -> Outcome {
    Ok(connection.close(200, "bye".into()).await?)
}

async fn declare(
    channel: &Channel,
    queue: &str,
    options: QueueDeclareOptions,
    arguments: FieldTable,
) -> Result<String> {
    let queue = channel.queue_declare(queue.into(), options, arguments).await?;
    Ok(queue.name().to_string())
}

/// An exclusive queue.
pub(crate) async fn exclusive(
    channel: &Channel,
    queue: &str,
    arguments: FieldTable,
) -> Result<String> {
    declare(channel, queue, QueueDeclareOptions::exclusive(), arguments).await
}

/// A durable queue.
pub(crate) async fn durable(
    channel: &Channel,
    queue: &str,
    arguments: FieldTable,
) -> Result<String> {
    declare(channel, queue, QueueDeclareOptions::durable(), arguments).await
}

/// Number of ready messages.
pub(crate) async fn depth(channel: &Channel, queue: &str) -> Result<u32> {
    let passive = QueueDeclareOptions { passive: true, ..Default::default() };
    Ok(channel.queue_declare(queue.into(), passive, FieldTable::default()).await?.message_count())
}

/// No such queue any more.
pub(crate) async fn delete(channel: &Channel, queue: &str) -> Result<()> {
    channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await.map(drop)
}

/// A direct exchange.
pub(crate) async fn direct(
    channel: &Channel,
    exchange: &str,
    options: ExchangeDeclareOptions,
) -> Result<()> {
    let arguments = FieldTable::default();
    channel.exchange_declare(exchange.into(), ExchangeKind::Direct, options, arguments).await
}

/// A binding.
pub(crate) async fn bind(channel: &Channel, queue: &str, exchange: &str, key: &str) -> Result<()> {
    let (queue, exchange, key) = (queue.into(), exchange.into(), key.into());
    channel
        .queue_bind(queue, exchange, key, QueueBindOptions::default(), FieldTable::default())
        .await
}

/// Outcome of a mandatory message, which is returned if no queue takes it.
pub(crate) async fn send(
    channel: &Channel,
    exchange: &str,
    key: &str,
    body: &[u8],
    properties: BasicProperties,
) -> Result<Confirmation> {
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    channel.basic_publish(exchange.into(), key.into(), options, body, properties).await?.await
}

/// Publishes a message to a queue, which is confirmed.
pub(crate) async fn publish(
    channel: &Channel,
    queue: &str,
    body: &str,
    properties: BasicProperties,
) -> Outcome {
    assert_eq!(
        send(channel, "", queue, body.as_bytes(), properties).await?,
        Confirmation::Ack(None)
    );
    Ok(())
}

/// The next message of a queue, acknowledged.
pub(crate) async fn get(channel: &Channel, queue: &str) -> Result<Option<Delivery>> {
    let message = channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await?;
    Ok(message.map(|message| message.delivery))
}

/// A consumer.
pub(crate) async fn consume(channel: &Channel, queue: &str, no_ack: bool) -> Result<Consumer> {
    let options = BasicConsumeOptions { no_ack, ..Default::default() };
    channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await
}

/// The next delivery.
pub(crate) async fn next(consumer: &mut Consumer) -> Result<Delivery> {
    within("a delivery", consumer.next()).await.expect("the consumer is not cancelled")
}

/// There is no delivery yet.
pub(crate) async fn has_nothing(consumer: &mut Consumer) -> bool {
    tokio::time::timeout(Duration::ZERO, consumer.next()).await.is_err()
}

/// The text of a message.
pub(crate) fn body(message: &Delivery) -> &str {
    std::str::from_utf8(&message.data).expect("the body is text")
}

/// A long string.
pub(crate) fn text(value: &str) -> AMQPValue {
    LongString::from(value).into()
}

/// A field table.
pub(crate) fn table<const N: usize>(entries: [(&str, AMQPValue); N]) -> FieldTable {
    let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
    entries.collect::<BTreeMap<_, _>>().into()
}

/// The code and the text of an error of the broker.
pub(crate) fn told(error: &Error) -> Refusal {
    let ErrorKind::ProtocolError(told) = error.kind() else {
        panic!("the broker did not tell {error}")
    };
    Refusal::new(told.get_id(), told.get_message().as_str())
}
