//! The scenarios in which something is refused, cancelled or lost.

use amqprs::BasicProperties;
use amqprs::channel::{BasicQosArguments, Channel, ExchangeDeleteArguments};
use amqprs::connection::Connection;
use amqprs::error::Error;
use amqprs::security::SecurityCredentials;
use amqprs::{FieldTable, FieldValue};
use interop::refusal::Refusal;
use interop::{Outcome, restart_broker, unique, within};

use crate::actions::{
    ack, arguments, bind, body, consume, delete, depth, direct, durable, exclusive, next, open,
    table,
};
use crate::publisher::{Publisher, Told};

pub(crate) async fn cancel(connection: Connection) -> Outcome {
    let mut consuming = Publisher::open(&connection).await?;
    let queue = exclusive(&consuming.channel, "", FieldTable::new()).await?;
    let _messages = consume(&consuming.channel, &queue, false).await?;
    let other = connection.open_channel(None).await?;
    delete(&other, &queue).await?;
    other.close().await?; // closed by being dropped it would come in the way of its connection's end
    let told = consuming.told().await;
    assert!(matches!(&told, Told::Cancelled(tag) if tag.starts_with("amq.ctag-")), "{told:?}");
    Ok(connection.close().await?)
}

pub(crate) async fn restart() -> Outcome {
    let connection = open().await?;
    let mut publisher = Publisher::open(&connection).await?;
    let channel = &publisher.channel;
    let [exchange, queue] = [(); 2].map(|()| unique());
    direct(channel, &exchange, true, false).await?;
    durable(channel, &queue, FieldTable::new()).await?;
    bind(channel, &queue, &exchange, "key").await?;
    channel.basic_qos(BasicQosArguments::new(0, 1, false)).await?;
    let mut messages = consume(channel, &queue, false).await?;

    // The consumer keeps the first message and so does not get the second one.
    let persistent = BasicProperties::default().with_persistence(true).finish();
    for body in ["kept", "waiting"] {
        publisher.publish(&exchange, "key", body, persistent.clone()).await?;
    }
    assert_eq!(body(&next(&mut messages).await), "kept");
    assert_eq!(depth(&publisher.channel, &queue).await?, 1);
    let lost = connection.listen_network_io_failure();
    let (lost, ()) = tokio::join!(within("the connection is lost", lost), restart_broker());
    assert!(lost);

    // The client does not recover by itself.
    let connection = open().await?;
    let mut publisher = Publisher::open(&connection).await?;
    let channel = connection.open_channel(None).await?;
    let mut messages = consume(&channel, &queue, false).await?;
    publisher.publish(&exchange, "key", "new", persistent).await?;
    for (expected, redelivered) in [("kept", true), ("waiting", true), ("new", false)] {
        let message = next(&mut messages).await;
        assert_eq!(body(&message), expected);
        assert_eq!(message.deliver.as_ref().expect("it is a delivery").redelivered(), redelivered);
        ack(&channel, &message).await?;
    }
    delete(&channel, &queue).await?;
    channel.exchange_delete(ExchangeDeleteArguments::new(&exchange)).await?;
    Ok(connection.close().await?)
}

/// The steps are refused so, and only their channel is closed.
async fn refused<T>(
    connection: &Connection,
    refusal: Refusal,
    steps: impl AsyncFnOnce(&Channel) -> Result<T, Error>,
) -> Outcome {
    let mut publisher = Publisher::open(connection).await?;
    assert!(steps(&publisher.channel).await.is_err());
    refused_so(&mut publisher, refusal).await;
    assert!(!publisher.channel.is_open());
    Ok(connection.open_channel(None).await?.close().await?)
}

/// The callback gets the reason of the close.
async fn refused_so(publisher: &mut Publisher, refusal: Refusal) {
    let told = publisher.told().await;
    assert!(matches!(&told, Told::Closed(why) if *why == refusal), "{told:?}, and not {refusal:?}");
}

pub(crate) async fn errors() -> Outcome {
    let [connection, stranger] = [open().await?, open().await?];
    let owner = connection.open_channel(None).await?;
    let ttl = |ttl_ms| table([("x-message-ttl", FieldValue::I(ttl_ms))]);
    let queue = exclusive(&owner, &unique(), ttl(1000)).await?;

    let missing = unique();
    refused(&connection, Refusal::missing(&missing), async |channel| {
        depth(channel, &missing).await
    })
    .await?;
    let inequivalent = Refusal::inequivalent(&queue);
    refused(&connection, inequivalent, async |channel| exclusive(channel, &queue, ttl(2000)).await)
        .await?;
    refused(&stranger, Refusal::locked(&queue), async |channel| depth(channel, &queue).await)
        .await?;
    let mut publisher = Publisher::open(&connection).await?;
    let invalid = BasicProperties::default().with_expiration("abc").finish();
    publisher.send("", &queue, "", invalid).await?;
    refused_so(&mut publisher, Refusal::expiration()).await;
    connection.open_channel(None).await?.close().await?;
    stranger.close().await?;
    connection.close().await?;

    let mut wrong = arguments();
    wrong.credentials(SecurityCredentials::new_plain("guest", "wrong"));
    // The client does not announce the capability, so brokers close the socket, after a while.
    let error = Connection::open(&wrong).await.err().expect("a wrong password");
    assert!(matches!(error, Error::NetworkError(_)), "{error}");

    let mut nope = arguments();
    nope.virtual_host("nope");
    let error = Connection::open(&nope).await.err().expect("no such vhost").to_string();
    let Refusal { code, text } = Refusal::vhost();
    assert!(error.contains(&text) && error.contains(&code.to_string()), "{error}");
    Ok(())
}
