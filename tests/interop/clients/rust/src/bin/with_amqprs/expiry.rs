//! The scenarios in which messages and queues expire and are dead-lettered.

use std::collections::HashMap;

use amqprs::channel::{BasicNackArguments, BasicRejectArguments, Channel, ConsumerMessage};
use amqprs::connection::Connection;
use amqprs::error::Error;
use amqprs::{BasicProperties, FieldTable, FieldValue, ShortStr};
use interop::deaths::{Death, Deaths};
use interop::refusal::Refusal;
use interop::{EXPIRES_MS, Outcome, eventually, expires, unique};

use crate::actions::{
    ack, bind, body, consume, depth, direct, durable, exclusive, get, keep, next, table, text,
};
use crate::publisher::{Publisher, Told};

pub(crate) async fn queue_ttl(connection: Connection) -> Outcome {
    let mut publisher = Publisher::open(&connection).await?;
    let queue =
        exclusive(&publisher.channel, "", table([("x-message-ttl", FieldValue::I(1000))])).await?;
    for _ in 0..3 {
        publisher.publish("", &queue, "short-lived", BasicProperties::default()).await?;
    }
    let channel = &publisher.channel;
    assert_eq!(depth(channel, &queue).await?, 3);
    eventually("three messages expire", async || {
        Ok::<_, Error>(depth(channel, &queue).await? == 0)
    })
    .await?;

    let queue =
        durable(channel, &unique(), table([("x-expires", FieldValue::I(EXPIRES_MS))])).await?;
    let gone = async || {
        let mut asking = Publisher::open(&connection).await?;
        let gone = depth(&asking.channel, &queue).await.is_err();
        if gone {
            let told = asking.told().await;
            assert!(
                matches!(&told, Told::Closed(why) if *why == Refusal::missing(&queue)),
                "{told:?}"
            );
        }
        Ok::<_, Error>(gone)
    };
    expires(gone).await?;
    Ok(connection.close().await?)
}

fn expiring(expiration: &str) -> BasicProperties {
    BasicProperties::default().with_expiration(expiration).finish()
}

pub(crate) async fn message_ttl(connection: Connection) -> Outcome {
    let mut publisher = Publisher::open(&connection).await?;
    let queue = exclusive(&publisher.channel, "", FieldTable::new()).await?;
    publisher.publish("", &queue, "first", expiring("1000")).await?;
    publisher.publish("", &queue, "second", expiring("60000")).await?;
    let channel = &publisher.channel;
    assert_eq!(depth(channel, &queue).await?, 2);
    eventually("the first expires", async || Ok::<_, Error>(depth(channel, &queue).await? == 1))
        .await?;
    let (_, properties, content) = get(channel, &queue).await?.expect("the second is there");
    assert_eq!(content, b"second");
    assert_eq!(properties.expiration().map(String::as_str), Some("60000"));

    publisher.publish("", &queue, "never", expiring("0")).await?;
    assert!(get(&publisher.channel, &queue).await?.is_none());
    Ok(connection.close().await?)
}

fn string(value: &FieldValue) -> String {
    <&str>::try_from(value).expect("a string").to_owned()
}

fn list(value: &FieldValue) -> Vec<FieldValue> {
    let FieldValue::A(list) = value else { panic!("a list, and not {value}") };
    list.clone().into()
}

fn entry<'a>(table: &'a FieldTable, key: &str) -> &'a FieldValue {
    let entries: &HashMap<ShortStr, FieldValue> = table.as_ref();
    &entries[&key.try_into().expect("a short string")]
}

fn death(value: &FieldValue) -> Death {
    let FieldValue::F(table) = value else { panic!("a table, and not {value}") };
    let &FieldValue::l(count) = entry(table, "count") else { panic!("{table}") };
    let &FieldValue::T(time_s) = entry(table, "time") else { panic!("{table}") };
    let original_expiration = "original-expiration".try_into().expect("a short string");
    Death {
        count,
        reason: string(entry(table, "reason")),
        queue: string(entry(table, "queue")),
        exchange: string(entry(table, "exchange")),
        routing_keys: list(entry(table, "routing-keys")).iter().map(string).collect(),
        original_expiration: table.get(&original_expiration).map(string),
        time_s,
    }
}

/// The headers of a dead-lettered message, through the client's types.
fn deaths(message: &ConsumerMessage) -> Deaths {
    let properties = message.basic_properties.as_ref().expect("it has properties");
    let headers = properties.headers().expect("it has headers");
    let first = ["reason", "queue", "exchange"];
    Deaths {
        list: list(entry(headers, "x-death")).iter().map(death).collect(),
        first: first.map(|what| string(entry(headers, &format!("x-first-death-{what}")))),
    }
}

fn dead_lettering(exchange: &str, key: &str) -> [(&'static str, FieldValue); 2] {
    [("x-dead-letter-exchange", text(exchange)), ("x-dead-letter-routing-key", text(key))]
}

pub(crate) async fn dead_letter(connection: Connection) -> Outcome {
    let mut publisher = Publisher::open(&connection).await?;
    let channel = connection.open_channel(None).await?;
    let [exchange, work, short, dead] = [(); 4].map(|()| unique());
    direct(&channel, &exchange, false, true).await?;
    let [to_dead, with] = dead_lettering(&exchange, &dead);
    exclusive(&channel, &dead, FieldTable::new()).await?;
    exclusive(&channel, &work, table([to_dead.clone(), with.clone()])).await?;
    exclusive(&channel, &short, table([to_dead, with, ("x-max-length", FieldValue::I(1))])).await?;
    for queue in [&dead, &work, &short] {
        bind(&channel, queue, &exchange, queue).await?;
    }
    let mut messages = consume(&channel, &dead, true).await?;

    publisher.publish(&exchange, &work, "expires", expiring("100")).await?;
    let expired = next(&mut messages).await;
    assert_eq!(body(&expired), "expires");
    assert_eq!(expired.basic_properties.as_ref().expect("it has properties").expiration(), None);
    deaths(&expired).assert_died("expired", &work, &exchange, Some("100"));

    publisher.publish(&exchange, &work, "refused", BasicProperties::default()).await?;
    let (message, _, _) = keep(&channel, &work).await?.expect("it is there");
    channel.basic_reject(BasicRejectArguments::new(message.delivery_tag(), false)).await?;
    let rejected = next(&mut messages).await;
    assert_eq!(body(&rejected), "refused");
    deaths(&rejected).assert_died("rejected", &work, &exchange, None);

    publisher.publish(&exchange, &short, "pushed out", BasicProperties::default()).await?;
    publisher.publish(&exchange, &short, "stays", BasicProperties::default()).await?;
    let dropped = next(&mut messages).await;
    assert_eq!(body(&dropped), "pushed out");
    deaths(&dropped).assert_died("maxlen", &short, &exchange, None);

    retry(&channel, &mut publisher).await?;
    Ok(connection.close().await?)
}

async fn retry(channel: &Channel, publisher: &mut Publisher) -> Outcome {
    let [work, wait] = [(); 2].map(|()| unique());
    exclusive(channel, &work, table(dead_lettering("", &wait))).await?;
    let [back, with] = dead_lettering("", &work);
    exclusive(channel, &wait, table([back, with, ("x-message-ttl", FieldValue::I(100))])).await?;
    let mut messages = consume(channel, &work, false).await?;
    publisher.publish("", &work, "try", BasicProperties::default()).await?;
    for _ in 0..2 {
        let message = next(&mut messages).await;
        let tag = message.deliver.expect("it is a delivery").delivery_tag();
        channel.basic_nack(BasicNackArguments::new(tag, false, false)).await?;
    }
    let third = next(&mut messages).await;
    deaths(&third).assert_retried(&work, &wait);
    Ok(ack(channel, &third).await?)
}
