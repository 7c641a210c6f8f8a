//! amqprs, through every scenario; ../../../../../README.md says what each does.

mod actions;
mod expiry;
mod publisher;
mod trouble;

use std::collections::HashMap;
use std::process::ExitCode;

use amqprs::channel::{
    BasicAckArguments, BasicNackArguments, BasicPublishArguments, BasicQosArguments,
    BasicRejectArguments, Channel, ConsumerMessage,
};
use amqprs::connection::Connection;
use amqprs::error::Error;
use amqprs::tls::TlsAdaptor;
use amqprs::{
    BasicProperties, DELIVERY_MODE_PERSISTENT, DecimalValue, FieldArray, FieldTable, FieldValue,
};
use interop::{Outcome, ca_file, host, large, run, tls_port, unique};
use tokio::task;

use actions::{
    ack, arguments, body, consume, delete, depth, durable, exclusive, get, keep, next, open, table,
    text,
};
use publisher::Publisher;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    run("amqprs", scenario).await
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
    let inner = FieldArray::try_from(vec![FieldValue::V]).expect("it is short");
    let list = vec![text("a"), FieldValue::s(-1), FieldValue::A(inner)];
    let list = FieldValue::A(list.try_into().expect("it is short"));
    table([
        ("text", text("Häsin")),
        ("octet", FieldValue::b(-1)),
        ("unsigned octet", FieldValue::B(200)),
        ("short", FieldValue::s(-1000)),
        ("unsigned short", FieldValue::u(60_000)),
        ("number", FieldValue::I(70_000)),
        ("unsigned", FieldValue::i(4_000_000_000)),
        ("large", FieldValue::l(1 << 40)),
        ("single", FieldValue::f(0.5)),
        ("double", FieldValue::d(0.25)),
        ("decimal", FieldValue::D(DecimalValue::new(2, 314))),
        ("flag", FieldValue::t(true)),
        ("at", FieldValue::T(1_700_000_000)),
        (
            "nested",
            FieldValue::F(table([("deep", FieldValue::F(table([("list", list.clone())])))])),
        ),
        ("list", list),
    ])
}

async fn properties_come_back(connection: Connection) -> Outcome {
    let channel = connection.open_channel(None).await?;
    let queue = exclusive(&channel, "", FieldTable::new()).await?;
    assert!(queue.starts_with("amq.gen-"), "{queue}");
    let properties = BasicProperties::default()
        .with_content_type("text/plain")
        .with_headers(headers())
        .with_delivery_mode(DELIVERY_MODE_PERSISTENT)
        .with_correlation_id("correlation")
        .with_message_id("message")
        .with_timestamp(1_700_000_001)
        .with_message_type("greeting")
        .finish();
    let to_queue = BasicPublishArguments::new("", &queue);
    channel.basic_publish(properties.clone(), b"hello".to_vec(), to_queue).await?;
    let (_, came_back, content) = get(&channel, &queue).await?.expect("the message is there");
    assert_eq!(content, b"hello");
    assert_eq!(came_back.headers(), properties.headers());
    assert_eq!(came_back.timestamp(), properties.timestamp());
    assert_eq!(came_back.delivery_mode(), properties.delivery_mode());
    for text in [
        BasicProperties::content_type,
        BasicProperties::correlation_id,
        BasicProperties::message_id,
        BasicProperties::message_type,
    ] {
        assert!(text(&properties).is_some());
        assert_eq!(text(&came_back), text(&properties));
    }
    assert!(get(&channel, &queue).await?.is_none());
    channel.close().await?;
    Ok(connection.close().await?)
}

async fn tls() -> Outcome {
    let mut arguments = arguments();
    arguments.port(tls_port());
    arguments.tls_adaptor(TlsAdaptor::without_client_auth(None, host())?);
    let refused =
        Connection::open(&arguments).await.err().expect("the authority is not known").to_string();
    assert!(refused.contains("invalid peer certificate: UnknownIssuer"), "{refused}");

    arguments.tls_adaptor(TlsAdaptor::without_client_auth(Some(&ca_file()), host())?);
    properties_come_back(Connection::open(&arguments).await?).await
}

async fn confirms(connection: Connection) -> Outcome {
    let mut publisher = Publisher::open(&connection).await?;
    let queue = durable(&publisher.channel, &unique(), FieldTable::new()).await?;
    let persistent = BasicProperties::default().with_persistence(true).finish();
    for _ in 0..1000 {
        publisher.send("", &queue, "x", persistent.clone()).await?;
    }
    let settled = publisher.settled().await;
    assert_eq!((settled.taken, settled.refused), (1000, 0));
    assert_eq!(depth(&publisher.channel, &queue).await?, 1000);
    delete(&publisher.channel, &queue).await?;

    publisher.send("", &queue, "nowhere", BasicProperties::default()).await?;
    let settled = publisher.settled().await;
    assert_eq!(settled.taken, 1);
    assert_eq!(settled.returned, [(312, "NO_ROUTE".to_owned(), b"nowhere".to_vec())]);

    let one = table([("x-max-length", FieldValue::I(1)), ("x-overflow", text("reject-publish"))]);
    exclusive(&publisher.channel, &queue, one).await?;
    publisher.publish("", &queue, "taken", BasicProperties::default()).await?;
    publisher.send("", &queue, "refused", BasicProperties::default()).await?;
    let settled = publisher.settled().await;
    assert_eq!((settled.taken, settled.refused), (0, 1));
    Ok(connection.close().await?)
}

async fn prefetch(connection: Connection) -> Outcome {
    let mut publisher = Publisher::open(&connection).await?;
    let queue = durable(&publisher.channel, &unique(), FieldTable::new()).await?;
    for i in 0..100 {
        publisher.publish("", &queue, i.to_string(), BasicProperties::default()).await?;
    }

    let consuming = connection.open_channel(None).await?;
    consuming.basic_qos(BasicQosArguments::new(0, 10, false)).await?;
    let mut messages = consume(&consuming, &queue, false).await?;
    for batch in 0..10 {
        let mut tags = Vec::new();
        for i in 0..10 {
            let message = next(&mut messages).await;
            assert_eq!(body(&message), (10 * batch + i).to_string());
            tags.push(tag(&message));
        }
        assert_eq!(depth(&consuming, &queue).await?, 90 - 10 * batch);
        assert!(messages.is_empty());
        for tag in &tags[..5] {
            consuming.basic_ack(BasicAckArguments::new(*tag, false)).await?;
        }
        consuming.basic_ack(BasicAckArguments::new(tags[9], true)).await?;
    }

    publisher.publish("", &queue, "again", BasicProperties::default()).await?;
    let sent_back = next(&mut messages).await;
    assert!(!redelivered(&sent_back));
    consuming.basic_nack(BasicNackArguments::new(tag(&sent_back), false, true)).await?;
    let again = next(&mut messages).await;
    assert_eq!((body(&again), redelivered(&again)), ("again", true));
    consuming.basic_reject(BasicRejectArguments::new(tag(&again), false)).await?;
    consuming.close().await?;
    assert!(messages.is_empty());
    assert_eq!(depth(&publisher.channel, &queue).await?, 0);
    delete(&publisher.channel, &queue).await?;
    Ok(connection.close().await?)
}

fn tag(message: &ConsumerMessage) -> u64 {
    message.deliver.as_ref().expect("it is a delivery").delivery_tag()
}

fn redelivered(message: &ConsumerMessage) -> bool {
    message.deliver.as_ref().expect("it is a delivery").redelivered()
}

async fn priorities(connection: Connection) -> Outcome {
    let mut publisher = Publisher::open(&connection).await?;
    let with_priorities = table([("x-max-priority", FieldValue::I(5))]);
    let queue = exclusive(&publisher.channel, "", with_priorities).await?;
    for priority in [1, 5, 3] {
        let properties = BasicProperties::default().with_priority(priority).finish();
        publisher.publish("", &queue, "with", properties).await?;
    }
    publisher.publish("", &queue, "without", BasicProperties::default()).await?;
    for (body, priority) in
        [("with", Some(5)), ("with", Some(3)), ("with", Some(1)), ("without", None)]
    {
        let (_, properties, content) = get(&publisher.channel, &queue).await?.expect("it is there");
        assert_eq!((&content[..], properties.priority()), (body.as_bytes(), priority));
    }
    Ok(connection.close().await?)
}

async fn transactions(connection: Connection) -> Outcome {
    let watching = connection.open_channel(None).await?;
    let queue = exclusive(&watching, "", FieldTable::new()).await?;
    let channel = connection.open_channel(None).await?;
    channel.tx_select().await?;
    let publish_two = async || {
        for body in ["1", "2"] {
            let to_queue = BasicPublishArguments::new("", &queue);
            channel.basic_publish(BasicProperties::default(), body.into(), to_queue).await?;
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

    let (first, _, _) = keep(&channel, &queue).await?.expect("the first is there");
    channel.basic_ack(BasicAckArguments::new(first.delivery_tag(), false)).await?;
    channel.tx_commit().await?;
    keep(&channel, &queue).await?.expect("the second is there");
    channel.close().await?;
    let (second, _, content) = get(&watching, &queue).await?.expect("it is there again");
    assert_eq!((&content[..], second.redelivered()), (&b"2"[..], true));
    assert!(get(&watching, &queue).await?.is_none());
    Ok(connection.close().await?)
}

async fn rpc(connection: Connection) -> Outcome {
    let server = connection.open_channel(None).await?;
    let queue = exclusive(&server, "", FieldTable::new()).await?;
    let mut requests = consume(&server, &queue, false).await?;
    task::spawn_local(async move {
        while let Some(request) = requests.recv().await {
            answer(&server, &request).await.expect("the answer is sent");
        }
    });

    let channel = connection.open_channel(None).await?;
    let mut replies = consume(&channel, "amq.rabbitmq.reply-to", true).await?;
    for i in 0..100 {
        let properties = BasicProperties::default()
            .with_reply_to("amq.rabbitmq.reply-to")
            .with_correlation_id(&format!("id-{i}"))
            .finish();
        let to_queue = BasicPublishArguments::new("", &queue);
        channel.basic_publish(properties, format!("request {i}").into(), to_queue).await?;
    }
    let mut answers = HashMap::new();
    while answers.len() < 100 {
        let answer = next(&mut replies).await;
        let properties = answer.basic_properties.as_ref().expect("it has properties");
        let id = properties.correlation_id().expect("it has the id of its request");
        answers.insert(id.clone(), body(&answer).to_owned());
    }
    for i in 0..100 {
        assert_eq!(answers[&format!("id-{i}")], format!("answer to request {i}"));
    }
    Ok(connection.close().await?)
}

async fn answer(server: &Channel, request: &ConsumerMessage) -> Result<(), Error> {
    let properties = request.basic_properties.as_ref().expect("it has properties");
    let id = properties.correlation_id().expect("it has an id");
    let to_client =
        BasicPublishArguments::new("", properties.reply_to().expect("it says where to"));
    let answer = format!("answer to {}", body(request));
    let properties = BasicProperties::default().with_correlation_id(id).finish();
    server.basic_publish(properties, answer.into(), to_client).await?;
    ack(server, request).await
}

async fn large_message(connection: Connection) -> Outcome {
    let mut publisher = Publisher::open(&connection).await?;
    let queue = exclusive(&publisher.channel, "", FieldTable::new()).await?;
    publisher.publish("", &queue, large(), BasicProperties::default()).await?;
    let (_, _, content) = get(&publisher.channel, &queue).await?.expect("it is there");
    assert!(content == large());
    Ok(connection.close().await?)
}
