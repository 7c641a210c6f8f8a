//! lapin, through every scenario; ../../../../README.md says what each does.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;
use std::time::Duration;

use interop::deaths::{Death, Deaths};
use interop::refusal::Refusal;
use interop::{
    EXPIRES_MS, Outcome, ca_file, eventually, expires, host, large, port, restart_broker, run,
    tls_port, unique, within,
};
use lapin::message::{Delivery, DeliveryResult};
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions,
    BasicQosOptions, BasicRejectOptions, ConfirmSelectOptions, ExchangeDeclareOptions,
    ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::tcp::OwnedTLSConfig;
use lapin::types::{AMQPValue, FieldArray, FieldTable, LongString};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer,
    DefaultConnectionBuilder, Error, ErrorKind, ExchangeKind, Result,
};
use tokio_stream::StreamExt as _;

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
        "queue-ttl" => queue_ttl(open().await?).await,
        "message-ttl" => message_ttl(open().await?).await,
        "dead-letter" => dead_letter(open().await?).await,
        "priorities" => priorities(open().await?).await,
        "transactions" => transactions(open().await?).await,
        "rpc" => rpc(open().await?).await,
        "large" => large_message(open().await?).await,
        "cancel" => cancel(open().await?).await,
        "restart" => restart().await,
        "errors" => errors().await,
        _ => Err(format!("there is no scenario {name}").into()),
    }
}

fn address() -> String {
    format!("amqp://guest:guest@{}:{}/%2f", host(), port())
}

async fn open() -> Result<Connection> {
    Connection::connect(&address(), ConnectionProperties::default()).await
}

async fn confirmed(connection: &Connection) -> Result<Channel> {
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    Ok(channel)
}

async fn close(connection: Connection) -> Outcome {
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

async fn exclusive(channel: &Channel, queue: &str, arguments: FieldTable) -> Result<String> {
    declare(channel, queue, QueueDeclareOptions::exclusive(), arguments).await
}

async fn durable(channel: &Channel, queue: &str, arguments: FieldTable) -> Result<String> {
    declare(channel, queue, QueueDeclareOptions::durable(), arguments).await
}

async fn depth(channel: &Channel, queue: &str) -> Result<u32> {
    let passive = QueueDeclareOptions { passive: true, ..Default::default() };
    Ok(channel.queue_declare(queue.into(), passive, FieldTable::default()).await?.message_count())
}

async fn delete(channel: &Channel, queue: &str) -> Result<()> {
    channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await.map(drop)
}

async fn send(
    channel: &Channel,
    exchange: &str,
    key: &str,
    body: &[u8],
    properties: BasicProperties,
) -> Result<Confirmation> {
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    channel.basic_publish(exchange.into(), key.into(), options, body, properties).await?.await
}

/// Published to a queue and confirmed.
async fn publish(
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

async fn get(channel: &Channel, queue: &str) -> Result<Option<Delivery>> {
    let message = channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await?;
    Ok(message.map(|message| message.delivery))
}

async fn consume(channel: &Channel, queue: &str, no_ack: bool) -> Result<Consumer> {
    let options = BasicConsumeOptions { no_ack, ..Default::default() };
    channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await
}

async fn next(consumer: &mut Consumer) -> Result<Delivery> {
    within("a delivery", consumer.next()).await.expect("the consumer is not cancelled")
}

async fn has_nothing(consumer: &mut Consumer) -> bool {
    tokio::time::timeout(Duration::ZERO, consumer.next()).await.is_err()
}

fn body(message: &Delivery) -> &str {
    std::str::from_utf8(&message.data).expect("the body is text")
}

fn text(value: &str) -> AMQPValue {
    LongString::from(value).into()
}

fn table<const N: usize>(entries: [(&str, AMQPValue); N]) -> FieldTable {
    let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
    entries.collect::<BTreeMap<_, _>>().into()
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

async fn queue_ttl(connection: Connection) -> Outcome {
    let channel = confirmed(&connection).await?;
    let queue = exclusive(&channel, "", table([("x-message-ttl", 300.into())])).await?;
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

async fn message_ttl(connection: Connection) -> Outcome {
    let expiring = |expiration: &str| BasicProperties::default().with_expiration(expiration.into());
    let channel = confirmed(&connection).await?;
    let queue = exclusive(&channel, "", FieldTable::default()).await?;
    publish(&channel, &queue, "first", expiring("300")).await?;
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

async fn dead_letter(connection: Connection) -> Outcome {
    let channel = confirmed(&connection).await?;
    let [exchange, work, short, dead] = [(); 4].map(|()| unique());
    let options = ExchangeDeclareOptions { auto_delete: true, ..Default::default() };
    channel
        .exchange_declare(
            exchange.as_str().into(),
            ExchangeKind::Direct,
            options,
            FieldTable::default(),
        )
        .await?;
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

async fn bind(channel: &Channel, queue: &str, exchange: &str, key: &str) -> Result<()> {
    let (queue, exchange, key) = (queue.into(), exchange.into(), key.into());
    channel
        .queue_bind(queue, exchange, key, QueueBindOptions::default(), FieldTable::default())
        .await
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

async fn cancel(connection: Connection) -> Outcome {
    let channel = connection.create_channel().await?;
    let queue = exclusive(&channel, "", FieldTable::default()).await?;
    let mut consumer = consume(&channel, &queue, false).await?;
    let other = connection.create_channel().await?;
    delete(&other, &queue).await?;
    assert_eq!(within("the stream ends", consumer.next()).await, None);
    close(connection).await
}

async fn restart() -> Outcome {
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
    channel
        .exchange_declare(
            exchange.as_str().into(),
            ExchangeKind::Direct,
            options,
            FieldTable::default(),
        )
        .await?;
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
    for expected in ["waiting", "new"] {
        let message = next(&mut consumer).await?;
        assert_eq!((body(&message), message.redelivered), (expected, false));
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

/// The code and the text of an error that the broker told.
fn told(error: &Error) -> Refusal {
    let ErrorKind::ProtocolError(told) = error.kind() else {
        panic!("the broker did not tell {error}")
    };
    Refusal::new(told.get_id(), told.get_message().as_str())
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

async fn errors() -> Outcome {
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
