//! The scenarios in which messages and queues expire and are dead-lettered.

use interop::deaths::{Death, Deaths};
use interop::refusal::Refusal;
use interop::{EXPIRES_MS, Outcome, eventually, expires, unique};
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicRejectOptions, ExchangeDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, Error};

use crate::actions::{
    bind, body, close, confirmed, consume, depth, direct, durable, exclusive, get, next, publish,
    send, table, text, told,
};

pub(crate) async fn queue_ttl(connection: Connection) -> Outcome {
    let channel = confirmed(&connection).await?;
    let queue = exclusive(&channel, "", table([("x-message-ttl", 1000.into())])).await?;
    for _ in 0..3 {
        publish(&channel, &queue, "short-lived", BasicProperties::default()).await?;
    }
    assert_eq!(depth(&channel, &queue).await?, 3);
    eventually("three messages expire", async || {
        Ok::<_, Error>(depth(&channel, &queue).await? == 0)
    })
    .await?;

    let queue = durable(&channel, &unique(), table([("x-expires", EXPIRES_MS.into())])).await?;
    let gone = async || match depth(&connection.create_channel().await?, &queue).await {
        Ok(_) => Ok(false),
        Err(error) => Ok::<_, Error>(told(&error) == Refusal::missing(&queue)),
    };
    expires(gone).await?;
    close(connection).await
}

pub(crate) async fn message_ttl(connection: Connection) -> Outcome {
    let expiring = |expiration: &str| BasicProperties::default().with_expiration(expiration.into());
    let channel = confirmed(&connection).await?;
    let queue = exclusive(&channel, "", FieldTable::default()).await?;
    publish(&channel, &queue, "first", expiring("1000")).await?;
    publish(&channel, &queue, "second", expiring("60000")).await?;
    assert_eq!(depth(&channel, &queue).await?, 2);
    eventually("the first expires", async || Ok::<_, Error>(depth(&channel, &queue).await? == 1))
        .await?;
    let second = get(&channel, &queue).await?.expect("the second is there");
    assert_eq!(body(&second), "second");
    assert_eq!(second.properties, expiring("60000"));

    publish(&channel, &queue, "never", expiring("0")).await?;
    assert_eq!(get(&channel, &queue).await?, None);
    close(connection).await
}

/// The headers of a dead-lettered message, through the client's types.
fn deaths(message: &Delivery) -> Deaths {
    let headers = message.properties.headers().as_ref().expect("there are headers").inner();
    let string = |value: &AMQPValue| value.as_long_string().expect("a string").to_string();
    let death = |value: &AMQPValue| {
        let entries = value.as_field_table().expect("a table").inner();
        let entry = |key: &str| string(&entries[key]);
        let routing_keys = entries["routing-keys"].as_array().expect("a list");
        Death {
            count: entries["count"].as_long_long_int().expect("an integer"),
            reason: entry("reason"),
            queue: entry("queue"),
            exchange: entry("exchange"),
            routing_keys: routing_keys.as_slice().iter().map(string).collect(),
            original_expiration: entries.get("original-expiration").map(string),
            time_s: entries["time"].as_timestamp().expect("a timestamp"),
        }
    };
    let list = headers["x-death"].as_array().expect("a list").as_slice();
    let first = ["reason", "queue", "exchange"]
        .map(|what| string(&headers[format!("x-first-death-{what}").as_str()]));
    Deaths { list: list.iter().map(death).collect(), first }
}

fn dead_lettering(exchange: &str, key: &str) -> [(&'static str, AMQPValue); 2] {
    [("x-dead-letter-exchange", text(exchange)), ("x-dead-letter-routing-key", text(key))]
}

pub(crate) async fn dead_letter(connection: Connection) -> Outcome {
    let channel = confirmed(&connection).await?;
    let [exchange, work, short, dead] = [(); 4].map(|()| unique());
    let options = ExchangeDeclareOptions { auto_delete: true, ..Default::default() };
    direct(&channel, &exchange, options).await?;
    let [to_dead, with] = dead_lettering(&exchange, &dead);
    exclusive(&channel, &dead, FieldTable::default()).await?;
    exclusive(&channel, &work, table([to_dead.clone(), with.clone()])).await?;
    exclusive(&channel, &short, table([to_dead, with, ("x-max-length", 1.into())])).await?;
    for queue in [&dead, &work, &short] {
        bind(&channel, queue, &exchange, queue).await?;
    }
    let mut consumer = consume(&channel, &dead, true).await?;

    let expiring = BasicProperties::default().with_expiration("100".into());
    send(&channel, &exchange, &work, b"expires", expiring).await?;
    let expired = next(&mut consumer).await?;
    assert_eq!(body(&expired), "expires");
    assert_eq!(*expired.properties.expiration(), None);
    deaths(&expired).assert_died("expired", &work, &exchange, Some("100"));

    send(&channel, &exchange, &work, b"refused", BasicProperties::default()).await?;
    let message = channel.basic_get(work.as_str().into(), BasicGetOptions::default()).await?;
    message.expect("it is there").reject(BasicRejectOptions { requeue: false }).await?;
    let rejected = next(&mut consumer).await?;
    assert_eq!(body(&rejected), "refused");
    deaths(&rejected).assert_died("rejected", &work, &exchange, None);

    for body in ["pushed out", "stays"] {
        send(&channel, &exchange, &short, body.as_bytes(), BasicProperties::default()).await?;
    }
    let dropped = next(&mut consumer).await?;
    assert_eq!(body(&dropped), "pushed out");
    deaths(&dropped).assert_died("maxlen", &short, &exchange, None);

    retry(&channel).await?;
    close(connection).await
}

async fn retry(channel: &Channel) -> Outcome {
    let [work, wait] = [(); 2].map(|()| unique());
    exclusive(channel, &work, table(dead_lettering("", &wait))).await?;
    let [back, with] = dead_lettering("", &work);
    exclusive(channel, &wait, table([back, with, ("x-message-ttl", 100.into())])).await?;
    let mut consumer = consume(channel, &work, false).await?;
    publish(channel, &work, "try", BasicProperties::default()).await?;
    for _ in 0..2 {
        next(&mut consumer).await?.nack(BasicNackOptions::default()).await?;
    }
    let third = next(&mut consumer).await?;
    deaths(&third).assert_retried(&work, &wait);
    third.ack(BasicAckOptions::default()).await?;
    Ok(())
}
