//! Effects as lines of text.

use amqp::properties::Properties;
use amqp::table::{TableRef, Value};
use broker::dead_letter::DeathReason;
use broker::{Delivery, DropCause, Entries, Message, Outgoing, Record, Vhost};

pub(crate) fn millis(micros: u64) -> String {
    if micros.is_multiple_of(1000) {
        format!("{}ms", micros / 1000)
    } else {
        format!("{}.{:03}ms", micros / 1000, micros % 1000)
    }
}

pub(crate) fn outgoing(outgoing: &Outgoing) -> String {
    match outgoing {
        Outgoing::ChannelOpenOk => "channel.open-ok".to_owned(),
        Outgoing::ChannelCloseOk => "channel.close-ok".to_owned(),
        Outgoing::ChannelClose { refusal, .. } => {
            format!("channel.close {} {refusal}", refusal.code.code())
        }
        Outgoing::ConnectionClose { refusal, .. } => {
            format!("connection.close {} {refusal}", refusal.code.code())
        }
        Outgoing::ChannelFlowOk => "channel.flow-ok".to_owned(),
        Outgoing::AccessRequestOk => "access.request-ok".to_owned(),
        Outgoing::ExchangeDeclareOk => "exchange.declare-ok".to_owned(),
        Outgoing::ExchangeDeleteOk => "exchange.delete-ok".to_owned(),
        Outgoing::ExchangeBindOk => "exchange.bind-ok".to_owned(),
        Outgoing::ExchangeUnbindOk => "exchange.unbind-ok".to_owned(),
        Outgoing::QueueDeclareOk { queue, message_count, consumer_count } => {
            format!("queue.declare-ok {queue} messages={message_count} consumers={consumer_count}")
        }
        Outgoing::QueueBindOk => "queue.bind-ok".to_owned(),
        Outgoing::QueueUnbindOk => "queue.unbind-ok".to_owned(),
        Outgoing::QueuePurgeOk { message_count } => format!("queue.purge-ok {message_count}"),
        Outgoing::QueueDeleteOk { message_count } => format!("queue.delete-ok {message_count}"),
        Outgoing::QosOk => "basic.qos-ok".to_owned(),
        Outgoing::ConsumeOk { consumer_tag } => format!("basic.consume-ok {consumer_tag}"),
        Outgoing::CancelOk { consumer_tag } => format!("basic.cancel-ok {consumer_tag}"),
        Outgoing::Cancel { consumer_tag } => format!("basic.cancel {consumer_tag}"),
        Outgoing::Deliver { consumer_tag, delivery } => {
            format!("deliver {consumer_tag} {}", self::delivery(delivery))
        }
        Outgoing::GetOk { delivery, message_count } => {
            format!("get-ok {} left={message_count}", self::delivery(delivery))
        }
        Outgoing::GetEmpty => "get-empty".to_owned(),
        Outgoing::Return { message } => format!("return {}", self::message(message)),
        Outgoing::Ack { seq, multiple } => format!("confirm ack {seq}{}", and_below(*multiple)),
        Outgoing::Nack { seq, multiple } => format!("confirm nack {seq}{}", and_below(*multiple)),
        Outgoing::RecoverOk => "basic.recover-ok".to_owned(),
        Outgoing::ConfirmSelectOk => "confirm.select-ok".to_owned(),
        Outgoing::TxSelectOk => "tx.select-ok".to_owned(),
        Outgoing::TxCommitOk => "tx.commit-ok".to_owned(),
        Outgoing::TxRollbackOk => "tx.rollback-ok".to_owned(),
    }
}

fn and_below(multiple: bool) -> &'static str {
    if multiple { " and below" } else { "" }
}

fn delivery(delivery: &Delivery) -> String {
    let redelivered = if delivery.redelivered { " redelivered" } else { "" };
    let counts = delivery.counts.map_or_else(String::new, |counts| {
        format!(" acquired={} delivery={}", counts.acquired, counts.delivery)
    });
    format!("#{}{redelivered}{counts} {}", delivery.tag, message(&delivery.message))
}

fn message(message: &Message) -> String {
    let envelope = message.envelope();
    let exchange = if envelope.exchange.is_empty() { "-" } else { &envelope.exchange };
    let body = match message.body() {
        body if body.len() > 40 => format!("{}xB", body.len()),
        body => String::from_utf8_lossy(body).into_owned(),
    };
    let mut out = format!("\"{body}\" from {exchange}/{}", envelope.routing_key);
    let properties = Properties::parse(message.properties()).unwrap();
    for (name, text) in [
        ("expiration", properties.expiration),
        ("reply-to", properties.reply_to),
        ("user-id", properties.user_id),
        ("message-id", properties.message_id),
    ] {
        if let Some(text) = text {
            out.push_str(&format!(" {name}={}", String::from_utf8_lossy(text)));
        }
    }
    if let Some(priority) = properties.priority {
        out.push_str(&format!(" priority={priority}"));
    }
    if let Some(headers) = properties.headers {
        out.push_str(&format!(" {}", table(headers)));
    }
    out
}

/// A table with the type of each value, except of strings.
fn table(table: TableRef<'_>) -> String {
    let entries: Vec<String> = table
        .iter()
        .map(|(key, item)| format!("{}={}", String::from_utf8_lossy(key), value(&item)))
        .collect();
    format!("{{{}}}", entries.join(" "))
}

fn value(value: &Value<'_>) -> String {
    match value {
        Value::LongStr(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Table(inner) => table(*inner),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| self::value(&item)).collect();
            format!("[{}]", items.join(","))
        }
        Value::I64(number) => format!("l:{number}"),
        Value::Timestamp(seconds) => format!("T:{seconds}"),
        Value::I32(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn entries(entries: &Entries) -> String {
    let list: Vec<String> =
        entries.iter().map(|(queue, entry)| format!("{queue}#{}", entry.seq)).collect();
    list.join(" ")
}

pub(crate) fn record(record: &Record) -> String {
    match record {
        Record::Publish { message, entries: to } => {
            format!("publish {} into {}", self::message(message), entries(to))
        }
        Record::Settle { queue, entry } => format!("settle {queue}#{}", entry.seq),
        Record::DeadLetter { queue, entry, message, entries: to } => {
            let message = self::message(message);
            format!("dead-letter {queue}#{} as {message} into {}", entry.seq, entries(to))
        }
        Record::Requeue { queue, entry, acquired_count, delivery_count } => {
            format!("requeue {queue}#{} {acquired_count} {delivery_count}", entry.seq)
        }
        Record::Purge { queue } => format!("purge {queue}"),
        Record::DeclareQueue { queue, name, arguments } => {
            format!("declare-queue {queue} {name} {}", table(arguments.as_ref()))
        }
        Record::DeleteQueue { queue } => format!("delete-queue {queue}"),
        Record::DeclareExchange { name, kind, .. } => {
            format!("declare-exchange {name} {}", kind.as_str())
        }
        Record::DeleteExchange { name } => format!("delete-exchange {name}"),
        Record::Bind(binding) => {
            format!("bind {} {} {}", binding.destination, binding.source, binding.routing_key)
        }
        Record::Unbind(binding) => {
            format!("unbind {} {} {}", binding.destination, binding.source, binding.routing_key)
        }
    }
}

/// What `show QUEUE` prints: what is in it and what became of the rest.
pub(crate) fn queue(vhost: &Vhost, name: &str) -> String {
    let Some(queue) = vhost.queue(name) else {
        return format!("{name} is gone");
    };
    let mut out = format!("{name}: ready={}", queue.ready_count());
    let mut add = |what: &str, count: u64| {
        if count > 0 {
            out.push_str(&format!(" {what}={count}"));
        }
    };
    add("unacked", queue.unacked_count());
    add("delayed", queue.delayed_count());
    add("pending", queue.pending_count());
    add("bytes", queue.ready_bytes());
    add("refused", queue.counters.refused);
    for reason in DeathReason::ALL {
        add(&format!("dead-lettered({reason})"), queue.counters.dead_lettered.get(reason));
        for cause in DropCause::ALL {
            let dropped = queue.counters.dropped.get(reason).get(cause);
            add(&format!("dropped({reason},{})", cause.as_str()), dropped);
        }
    }
    for cause in DropCause::ALL {
        let copies = queue.counters.copies_dropped.get(cause);
        add(&format!("copies-dropped({})", cause.as_str()), copies);
    }
    out
}
