//! lapin, through every scenario; ../../../../../README.md says what each does.

mod actions;
mod expiry;
mod trouble;

use std::collections::HashMap;
use std::process::ExitCode;

use interop::{Outcome, ca_file, host, large, run, tls_port, unique};
use lapin::message::{Delivery, DeliveryResult};
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions,
    BasicRejectOptions,
};
use lapin::tcp::OwnedTLSConfig;
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties,
    DefaultConnectionBuilder, Error, Result,
};

use actions::{
    body, close, confirmed, consume, delete, depth, durable, exclusive, get, has_nothing, next,
    open, publish, send, table, text,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    run("lapin", scenario).await
}

async fn scenario(name: String) -> Outcome {
    match name.as_str() {
        "connect" => properties_come_back(open().await?).await,
        "tls" => tls().await,
        "confirms" => confirms(open().await?).await,
        "prefetch" => prefetch(open().await?).await,
        "queue-ttl" => expiry::queue_ttl(open().await?).await,
        "message-ttl" => expiry::message_ttl(open().await?).await,
        "dead-letter" => expiry::dead_letter(open().await?).await,
        "priorities" => priorities(open().await?).await,
        "transactions" => transactions(open().await?).await,
        "rpc" => rpc(open().await?).await,
        "large" => large_message(open().await?).await,
        "cancel" => trouble::cancel(open().await?).await,
        "restart" => trouble::restart().await,
        "errors" => trouble::errors().await,
        _ => Err(format!("there is no scenario {name}").into()),
    }
}

/// Headers of every type that RabbitMQ has.
fn headers() -> FieldTable {
    let list =
        vec![text("a"), AMQPValue::ShortInt(-1), FieldArray::from(vec![AMQPValue::Void]).into()];
    table([
        ("text", text("Häsin")),
        ("octet", AMQPValue::ShortShortInt(-1)),
        ("unsigned octet", AMQPValue::ShortShortUInt(200)),
        ("short", AMQPValue::ShortInt(-1000)),
        ("unsigned short", AMQPValue::ShortUInt(60_000)),
        ("number", AMQPValue::LongInt(70_000)),
        ("unsigned", AMQPValue::LongUInt(4_000_000_000)),
        ("large", AMQPValue::LongLongInt(1 << 40)),
        ("single", AMQPValue::Float(0.5)),
        ("double", AMQPValue::Double(0.25)),
        ("flag", AMQPValue::Boolean(true)),
        ("at", AMQPValue::Timestamp(1_700_000_000)),
        (
            "nested",
            table([("deep", table([("list", FieldArray::from(list.clone()).into())]).into())])
                .into(),
        ),
        ("list", FieldArray::from(list).into()),
    ])
}

async fn properties_come_back(connection: Connection) -> Outcome {
    let channel = connection.create_channel().await?;
    let queue = exclusive(&channel, "", FieldTable::default()).await?;
    assert!(queue.starts_with("amq.gen-"), "{queue}");
    let properties = BasicProperties::default()
        .with_content_type("text/plain".into())
        .with_headers(headers())
        .with_delivery_mode(2)
        .with_correlation_id("correlation".into())
        .with_message_id("message".into())
        .with_timestamp(1_700_000_001)
        .with_type("greeting".into());
    send(&channel, "", &queue, b"hello", properties.clone()).await?;
    let message = get(&channel, &queue).await?.expect("the message is there");
    assert_eq!(body(&message), "hello");
    assert_eq!(message.properties, properties);
    assert_eq!(get(&channel, &queue).await?, None);
    channel.close(200, "bye".into()).await?;
    close(connection).await
}

async fn tls() -> Outcome {
    let address = format!("amqps://guest:guest@{}:{}/%2f", host(), tls_port());
    let stranger = Connection::connect(&address, ConnectionProperties::default()).await;
    let refused = stranger.expect_err("the authority is not known").to_string();
    assert!(refused.contains("invalid peer certificate: UnknownIssuer"), "{refused}");

    let cert_chain = Some(std::fs::read_to_string(ca_file())?);
    let builder = DefaultConnectionBuilder::new()?.with_uri_str(address);
    let connection =
        builder.with_tls_config(OwnedTLSConfig { identity: None, cert_chain }).connect().await?;
    properties_come_back(connection).await
}

async fn confirms(connection: Connection) -> Outcome {
    let channel = confirmed(&connection).await?;
    let queue = durable(&channel, &unique(), FieldTable::default()).await?;
    let persistent = BasicProperties::default().with_delivery_mode(2);
    let mut confirms = Vec::new();
    for _ in 0..1000 {
        let options = BasicPublishOptions::default();
        confirms.push(
            channel
                .basic_publish("".into(), queue.as_str().into(), options, b"x", persistent.clone())
                .await?,
        );
    }
    for confirm in confirms {
        assert_eq!(confirm.await?, Confirmation::Ack(None));
    }
    assert_eq!(depth(&channel, &queue).await?, 1000);
    delete(&channel, &queue).await?;

    let confirm = send(&channel, "", &queue, b"nowhere", BasicProperties::default()).await?;
    assert!(confirm.is_ack());
    let returned = confirm.take_message().expect("it comes back");
    assert_eq!((returned.reply_code, returned.reply_text.as_str()), (312, "NO_ROUTE"));
    assert_eq!(body(&returned.delivery), "nowhere");

    let one = table([("x-max-length", 1.into()), ("x-overflow", text("reject-publish"))]);
    exclusive(&channel, &queue, one).await?;
    publish(&channel, &queue, "taken", BasicProperties::default()).await?;
    let refused = send(&channel, "", &queue, b"refused", BasicProperties::default()).await?;
    assert_eq!(refused, Confirmation::Nack(None));
    close(connection).await
}

async fn prefetch(connection: Connection) -> Outcome {
    let channel = confirmed(&connection).await?;
    let queue = durable(&channel, &unique(), FieldTable::default()).await?;
    for i in 0..100 {
        publish(&channel, &queue, &i.to_string(), BasicProperties::default()).await?;
    }

    let consuming = connection.create_channel().await?;
    consuming.basic_qos(10, BasicQosOptions::default()).await?;
    let mut consumer = consume(&consuming, &queue, false).await?;
    for batch in 0..10 {
        let mut messages = Vec::new();
        for i in 0..10 {
            messages.push(next(&mut consumer).await?);
            assert_eq!(body(&messages[i]), (10 * batch + i).to_string());
        }
        assert_eq!(depth(&consuming, &queue).await? as usize, 90 - 10 * batch);
        assert!(has_nothing(&mut consumer).await);
        for message in &messages[..5] {
            message.ack(BasicAckOptions::default()).await?;
        }
        messages[9].ack(BasicAckOptions { multiple: true }).await?;
    }

    publish(&channel, &queue, "again", BasicProperties::default()).await?;
    let sent_back = next(&mut consumer).await?;
    assert!(!sent_back.redelivered);
    sent_back.nack(BasicNackOptions { requeue: true, ..Default::default() }).await?;
    let again = next(&mut consumer).await?;
    assert_eq!((body(&again), again.redelivered), ("again", true));
    again.reject(BasicRejectOptions { requeue: false }).await?;
    consuming.close(200, "bye".into()).await?;
    assert_eq!(depth(&channel, &queue).await?, 0);
    delete(&channel, &queue).await?;
    close(connection).await
}

async fn priorities(connection: Connection) -> Outcome {
    let channel = confirmed(&connection).await?;
    let queue = exclusive(&channel, "", table([("x-max-priority", 5.into())])).await?;
    for priority in [1, 5, 3] {
        publish(&channel, &queue, "with", BasicProperties::default().with_priority(priority))
            .await?;
    }
    publish(&channel, &queue, "without", BasicProperties::default()).await?;
    for (expected, priority) in
        [("with", Some(5)), ("with", Some(3)), ("with", Some(1)), ("without", None)]
    {
        let message = get(&channel, &queue).await?.expect("it is there");
        assert_eq!((body(&message), *message.properties.priority()), (expected, priority));
    }
    close(connection).await
}

async fn transactions(connection: Connection) -> Outcome {
    let watching = connection.create_channel().await?;
    let queue = exclusive(&watching, "", FieldTable::default()).await?;
    let channel = connection.create_channel().await?;
    channel.tx_select().await?;
    let publish_two = async || {
        for body in [b"1", b"2"] {
            let sent = send(&channel, "", &queue, body, BasicProperties::default()).await?;
            assert_eq!(sent, Confirmation::NotRequested);
        }
        Ok::<_, Error>(())
    };
    publish_two().await?;
    channel.tx_rollback().await?;
    assert_eq!(depth(&watching, &queue).await?, 0);
    publish_two().await?;
    assert_eq!(depth(&watching, &queue).await?, 0);
    channel.tx_commit().await?;
    assert_eq!(depth(&watching, &queue).await?, 2);

    let not_acknowledged = BasicGetOptions::default();
    let first = channel
        .basic_get(queue.as_str().into(), not_acknowledged)
        .await?
        .expect("the first is there");
    first.ack(BasicAckOptions::default()).await?;
    channel.tx_commit().await?;
    channel.basic_get(queue.as_str().into(), not_acknowledged).await?.expect("the second is there");
    channel.close(200, "bye".into()).await?;
    let second = get(&watching, &queue).await?.expect("it is there again");
    assert_eq!((body(&second), second.redelivered), ("2", true));
    assert_eq!(get(&watching, &queue).await?, None);
    close(connection).await
}

async fn rpc(connection: Connection) -> Outcome {
    let server = connection.create_channel().await?;
    let queue = exclusive(&server, "", FieldTable::default()).await?;
    let requests = consume(&server, &queue, false).await?;
    requests.set_delegate(move |delivery: DeliveryResult| {
        let server = server.clone();
        async move {
            if let Ok(Some(request)) = delivery {
                answer(&server, &request).await.expect("the answer is sent");
            }
        }
    });

    let channel = connection.create_channel().await?;
    let mut consumer = consume(&channel, "amq.rabbitmq.reply-to", true).await?;
    for i in 0..100 {
        let properties = BasicProperties::default()
            .with_reply_to("amq.rabbitmq.reply-to".into())
            .with_correlation_id(format!("id-{i}").into());
        send(&channel, "", &queue, format!("request {i}").as_bytes(), properties).await?;
    }
    let mut answers = HashMap::new();
    while answers.len() < 100 {
        let answer = next(&mut consumer).await?;
        let id = answer.properties.correlation_id().as_ref().expect("it has the id of its request");
        answers.insert(id.to_string(), body(&answer).to_owned());
    }
    for i in 0..100 {
        assert_eq!(answers[&format!("id-{i}")], format!("answer to request {i}"));
    }
    close(connection).await
}

async fn answer(server: &Channel, request: &Delivery) -> Result<()> {
    let reply_to = request.properties.reply_to().as_ref().expect("it says where to");
    let id = request.properties.correlation_id().clone().expect("it has an id");
    let properties = BasicProperties::default().with_correlation_id(id);
    let answer = format!("answer to {}", body(request));
    send(server, "", reply_to.as_str(), answer.as_bytes(), properties).await?;
    request.ack(BasicAckOptions::default()).await.map(drop)
}

async fn large_message(connection: Connection) -> Outcome {
    let channel = confirmed(&connection).await?;
    let queue = exclusive(&channel, "", FieldTable::default()).await?;
    let large = large();
    let confirm = send(&channel, "", &queue, &large, BasicProperties::default()).await?;
    assert!(confirm.is_ack());
    let message = get(&channel, &queue).await?.expect("it is there");
    assert!(message.data == large);
    close(connection).await
}
