//! The scenarios in which something is refused, cancelled or lost.

use std::time::Duration;

use interop::refusal::Refusal;
use interop::{Outcome, restart_broker, unique, within};
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicQosOptions, ExchangeDeclareOptions, ExchangeDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, Result,
};
use tokio_stream::StreamExt as _;

use crate::actions::{
    address, bind, body, close, confirmed, consume, delete, depth, direct, durable, exclusive,
    next, open, send, table, told,
};

pub(crate) async fn cancel(connection: Connection) -> Outcome {
    let channel = connection.create_channel().await?;
    let queue = exclusive(&channel, "", FieldTable::default()).await?;
    let mut consumer = consume(&channel, &queue, false).await?;
    let other = connection.create_channel().await?;
    delete(&other, &queue).await?;
    assert_eq!(within("the stream ends", consumer.next()).await, None);
    close(connection).await
}

pub(crate) async fn restart() -> Outcome {
    let quickly = ConnectionProperties::default().configure_backoff(|backoff| {
        backoff
            .with_min_delay(Duration::from_millis(50))
            .with_max_delay(Duration::from_millis(200))
            .with_max_times(50)
    });
    let connection = Connection::connect(&address(), quickly.enable_auto_recover()).await?;
    let channel = confirmed(&connection).await?;
    let [exchange, queue] = [(); 2].map(|()| unique());
    let options = ExchangeDeclareOptions { durable: true, ..Default::default() };
    direct(&channel, &exchange, options).await?;
    durable(&channel, &queue, FieldTable::default()).await?;
    bind(&channel, &queue, &exchange, "key").await?;
    channel.basic_qos(1, BasicQosOptions::default()).await?;
    let mut consumer = consume(&channel, &queue, false).await?;

    // The consumer keeps the first message and so does not get the second one.
    let persistent = BasicProperties::default().with_delivery_mode(2);
    for body in ["kept", "waiting"] {
        let confirm = send(&channel, &exchange, "key", body.as_bytes(), persistent.clone()).await?;
        assert_eq!(confirm, Confirmation::Ack(None));
    }
    assert_eq!(body(&next(&mut consumer).await?), "kept");
    assert_eq!(depth(&channel, &queue).await?, 1);
    restart_broker().await;

    let kept = next_after_recovery(&channel, &mut consumer).await?;
    assert_eq!((body(&kept), kept.redelivered), ("kept", true));
    kept.ack(BasicAckOptions::default()).await?;
    let confirm = send(&channel, &exchange, "key", b"new", persistent).await?;
    assert_eq!(confirm, Confirmation::Ack(None));
    for (expected, redelivered) in [("waiting", true), ("new", false)] {
        let message = next(&mut consumer).await?;
        assert_eq!((body(&message), message.redelivered), (expected, redelivered));
        message.ack(BasicAckOptions::default()).await?;
    }
    delete(&channel, &queue).await?;
    channel.exchange_delete(exchange.as_str().into(), ExchangeDeleteOptions::default()).await?;
    close(connection).await
}

/// The next delivery of a consumer whose connection may be lost meanwhile.
async fn next_after_recovery(channel: &Channel, consumer: &mut Consumer) -> Result<Delivery> {
    loop {
        match next(consumer).await {
            Ok(message) => return Ok(message),
            Err(lost) => within("the channel recovers", channel.wait_for_recovery(lost)).await?,
        }
    }
}

/// The steps are refused so, and only their channel is closed.
async fn refused<T>(
    connection: &Connection,
    refusal: Refusal,
    steps: impl AsyncFnOnce(&Channel) -> Result<T>,
) -> Outcome {
    let channel = confirmed(connection).await?;
    let error = steps(&channel).await.err().expect("it is refused");
    assert_eq!(told(&error), refusal);
    assert!(!channel.status().connected());
    connection.create_channel().await?.close(200, "bye".into()).await?;
    Ok(())
}

pub(crate) async fn errors() -> Outcome {
    let [connection, stranger] = [open().await?, open().await?];
    let owner = connection.create_channel().await?;
    let queue = exclusive(&owner, &unique(), table([("x-message-ttl", 1000.into())])).await?;

    let missing = unique();
    refused(&connection, Refusal::missing(&missing), async |channel| {
        depth(channel, &missing).await
    })
    .await?;
    let other_ttl = table([("x-message-ttl", 2000.into())]);
    let inequivalent = Refusal::inequivalent(&queue);
    refused(&connection, inequivalent, async |channel| exclusive(channel, &queue, other_ttl).await)
        .await?;
    let invalid = BasicProperties::default().with_expiration("abc".into());
    let send_invalid = async |channel: &Channel| send(channel, "", &queue, b"", invalid).await;
    refused(&connection, Refusal::expiration(), send_invalid).await?;
    refused(&stranger, Refusal::locked(&queue), async |channel| depth(channel, &queue).await)
        .await?;
    close(stranger).await?;
    close(connection).await?;

    let wrong = address().replace("guest:guest", "guest:wrong");
    let error = Connection::connect(&wrong, ConnectionProperties::default())
        .await
        .expect_err("a wrong password");
    assert_eq!(told(&error), Refusal::password());
    let nope = address().replace("%2f", "nope");
    let error = Connection::connect(&nope, ConnectionProperties::default())
        .await
        .expect_err("no such vhost");
    assert_eq!(told(&error), Refusal::vhost());
    Ok(())
}
