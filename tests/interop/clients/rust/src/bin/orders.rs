//! Orders that are late, fail and come later: orders.rs

use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions,
    QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable, LongString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, Consumer, Result};
use tokio_stream::StreamExt as _;

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(LongString::from(text))
}

fn table(pairs: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (key, value) in pairs {
        table.insert((*key).into(), value.clone());
    }
    table
}

async fn declare(channel: &Channel, queue: &str, arguments: &[(&str, AMQPValue)]) -> Result<()> {
    channel.queue_declare(queue.into(), QueueDeclareOptions::durable(), table(arguments)).await?;
    Ok(())
}

async fn publish(channel: &Channel, queue: &str, body: &str, headers: FieldTable) -> Result<()> {
    let properties = BasicProperties::default().with_delivery_mode(2).with_headers(headers);
    let options = BasicPublishOptions::default();
    channel.basic_publish("".into(), queue.into(), options, body.as_bytes(), properties).await?;
    Ok(())
}

async fn consume(channel: &Channel, queue: &str) -> Result<Consumer> {
    let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
    channel.basic_consume(queue.into(), "".into(), options, arguments).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let address =
        std::env::var("AMQP_URL").unwrap_or("amqp://guest:guest@localhost:5672/%2f".into());
    let connection = Connection::connect(&address, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let dead =
        [("x-dead-letter-exchange", text("")), ("x-dead-letter-routing-key", text("orders.dead"))];
    let offers = [("x-message-ttl", 100.into())]; // milliseconds
    let orders = [
        ("x-delayed-retry-type", text("all")),
        ("x-delayed-retry-schedule", text("100ms,300ms")), // for example 1s,1m,1h
        ("x-delivery-limit", 2.into()),
        ("x-delivery-limit-count", text("acquired")), // a nack counts, too
    ];
    declare(&channel, "orders.dead", &[]).await?;
    declare(&channel, "offers", &[&dead[..], &offers].concat()).await?;
    declare(&channel, "orders", &[&dead[..], &orders].concat()).await?;

    publish(&channel, "offers", "offer", FieldTable::default()).await?;
    publish(&channel, "orders", "broken", FieldTable::default()).await?;
    let delay = table(&[("x-opt-delivery-delay", 1000.into())]);
    publish(&channel, "orders", "later", delay).await?;

    let deliveries =
        consume(&channel, "orders").await?.merge(consume(&channel, "orders.dead").await?);
    let mut ended = 0;
    tokio::pin!(deliveries);
    while ended < 3 {
        let delivery = deliveries.next().await.expect("the consumers go on")?;
        let body = String::from_utf8_lossy(&delivery.data);
        let headers = delivery.properties.headers().clone().unwrap_or_default();
        let header = |name: &str| headers.inner().get(name);
        if let Some(reason) = header("x-first-death-reason") {
            println!("orders.dead: {body}, {}", reason.as_long_string().expect("a text"));
        } else {
            let delivered = header("x-acquired-count").and_then(AMQPValue::as_long_long_int);
            println!("orders: {body}, attempt {}", 1 + delivered.unwrap_or(0));
            if body == "broken" {
                delivery.nack(BasicNackOptions { requeue: true, ..Default::default() }).await?;
                continue;
            }
        }
        delivery.ack(BasicAckOptions::default()).await?;
        ended += 1;
    }
    connection.close(200, "bye".into()).await
}
