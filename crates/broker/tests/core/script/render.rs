//! Effects as lines of text.

use std::fmt::Write as _;

use amqp::properties::Properties;
use amqp::table::{TableBuilder, TableRef, Value};
use broker::{BindingRecord, Delivery, Entries, Message, Outgoing, QueueRecord, Record};

use super::values::table;

pub(crate) fn millis(micros: u64) -> String {
    if micros.is_multiple_of(1000) {
        format!("{}ms", micros / 1000)
    } else {
        format!("{}.{:03}ms", micros / 1000, micros % 1000)
    }
}

/// `shows_deaths` says whether death headers are shown in full.
pub(crate) fn outgoing(outgoing: &Outgoing, shows_deaths: bool) -> String {
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
            format!("deliver {consumer_tag} {}", self::delivery(delivery, shows_deaths))
        }
        Outgoing::GetOk { delivery, message_count } => {
            format!("get-ok {} left={message_count}", self::delivery(delivery, shows_deaths))
        }
        Outgoing::GetEmpty => "get-empty".to_owned(),
        Outgoing::Return { message } => format!("return {}", self::message(message, shows_deaths)),
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

fn delivery(delivery: &Delivery, shows_deaths: bool) -> String {
    let redelivered = if delivery.redelivered { " redelivered" } else { "" };
    let counts = delivery.counts.map_or_else(String::new, |counts| {
        format!(" acquired={} delivery={}", counts.acquired, counts.delivery)
    });
    format!("#{}{redelivered}{counts} {}", delivery.tag, message(&delivery.message, shows_deaths))
}

fn message(message: &Message, shows_deaths: bool) -> String {
    let envelope = message.envelope();
    let exchange = if envelope.exchange.is_empty() { "-" } else { &envelope.exchange };
    let body = match message.body() {
        body if body.len() > 40 => format!("{}xB", body.len()),
        body => String::from_utf8_lossy(body).into_owned(),
    };
    let mut out = format!("\"{body}\" from {exchange}/{}", envelope.routing_key);
    let properties = Properties::parse(message.properties()).unwrap();
    match properties.delivery_mode {
        None => {}
        Some(2) => out.push_str(" persistent"),
        Some(mode) => write!(out, " mode={mode}").unwrap(),
    }
    for (name, text) in [
        ("expiration", properties.expiration),
        ("reply-to", properties.reply_to),
        ("correlation-id", properties.correlation_id),
        ("user-id", properties.user_id),
        ("message-id", properties.message_id),
        ("content-type", properties.content_type),
        ("content-encoding", properties.content_encoding),
        ("type", properties.type_),
        ("app-id", properties.app_id),
    ] {
        if let Some(text) = text {
            write!(out, " {name}={}", String::from_utf8_lossy(text)).unwrap();
        }
    }
    if let Some(priority) = properties.priority {
        write!(out, " priority={priority}").unwrap();
    }
    if let Some(seconds) = properties.timestamp {
        write!(out, " timestamp={seconds}").unwrap();
    }
    if let Some(headers) = properties.headers {
        match deaths(headers).filter(|_| !shows_deaths) {
            Some((deaths, others)) if others.is_empty() => write!(out, " died=[{deaths}]").unwrap(),
            Some((deaths, others)) => write!(out, " died=[{deaths}] {others}").unwrap(),
            None => write!(out, " {}", table(headers)).unwrap(),
        }
    }
    out
}

/// The broker's own death headers in short, and the other headers; none if the message has none.
fn deaths(headers: TableRef<'_>) -> Option<(String, String)> {
    let Some(Value::Array(list)) = headers.get("x-death") else {
        return None;
    };
    headers.get("x-first-death-queue")?;
    let mut deaths = Vec::new();
    for death in list.iter() {
        let Value::Table(death) = death else {
            return None;
        };
        let text = |key| death.get(key).and_then(|value| value.as_long_str());
        let (queue, reason) = (text("queue")?, text("reason")?);
        let Some(Value::I64(count)) = death.get("count") else {
            return None;
        };
        let [queue, reason] = [queue, reason].map(String::from_utf8_lossy);
        deaths.push(format!("{queue} {reason} {count}"));
    }
    let mut others = TableBuilder::new();
    for (key, value) in headers.iter() {
        let is_death = [&b"x-death"[..], b"x-first-death-", b"x-last-death-"];
        if !is_death.iter().any(|prefix| key.starts_with(prefix)) {
            others.insert(key, value);
        }
    }
    let others = others.finish();
    let others = if others.is_empty() { String::new() } else { table(others.as_ref()) };
    Some((deaths.join(", "), others))
}

fn entries(entries: &Entries) -> String {
    if entries.is_empty() {
        return "nothing".to_owned();
    }
    let list: Vec<String> =
        entries.iter().map(|(queue, entry)| format!("{queue}#{}", entry.seq)).collect();
    list.join(" ")
}

pub(crate) fn record(record: &Record) -> String {
    match record {
        Record::Digest(digest) => format!("digest of {} queues", digest.queues.len()),
        Record::HandOver { ends: false } => "hand-over".to_owned(),
        Record::HandOver { ends: true } => "end of hand-over".to_owned(),
        Record::Publish { message, entries: to } => {
            format!("publish {} into {}", self::message(message, false), entries(to))
        }
        Record::Schedule { message, entries: to, .. } => {
            format!("schedule {} into {}", self::message(message, false), entries(to))
        }
        Record::Ready { queue, entry, to } => {
            format!("ready {queue}#{} as #{}", entry.seq, to.seq)
        }
        Record::Reschedule { queue, entry, .. } => format!("reschedule {queue}#{}", entry.seq),
        Record::Settle { queue, entry } => format!("settle {queue}#{}", entry.seq),
        Record::DeadLetter { queue, entry, message, entries: to } => {
            let message = self::message(message, false);
            format!("dead-letter {queue}#{} as {message} into {}", entry.seq, entries(to))
        }
        Record::Requeue { queue, entry, acquired_count, delivery_count, ready_at } => {
            let delayed = if ready_at.is_some() { " delayed" } else { "" };
            let seq = entry.seq;
            format!(
                "requeue {queue}#{seq} acquired={acquired_count} delivery={delivery_count}{delayed}"
            )
        }
        Record::Annotate { queue, entry, headers } => {
            format!("annotate {queue}#{} {}", entry.seq, table(headers.as_ref()))
        }
        Record::Pend { queue, entry, reason } => format!("pend {queue}#{} {reason}", entry.seq),
        Record::Purge { queue, kept } => {
            let kept: Vec<String> = kept.iter().map(|entry| entry.seq.to_string()).collect();
            format!("purge {queue} but [{}]", kept.join(","))
        }
        Record::Delivered { queue, up_to } => format!("delivered {queue} up to #{up_to}"),
        Record::DeclareQueue(QueueRecord { queue, name, auto_delete, arguments, .. }) => {
            let auto_delete = if *auto_delete { " auto-delete" } else { "" };
            format!("declare-queue {queue} {name}{auto_delete} {}", table(arguments.as_ref()))
        }
        Record::DeleteQueue { queue } => format!("delete-queue {queue}"),
        Record::DeclareExchange(exchange) => {
            let auto_delete = if exchange.auto_delete { " auto-delete" } else { "" };
            let internal = if exchange.internal { " internal" } else { "" };
            let arguments = table(exchange.arguments.as_ref());
            let (name, kind) = (&exchange.name, exchange.kind.as_str());
            format!("declare-exchange {name} {kind}{auto_delete}{internal} {arguments}")
        }
        Record::DeleteExchange { name } => format!("delete-exchange {name}"),
        Record::Bind(binding) => {
            format!("bind {}", self::binding(binding))
        }
        Record::Unbind(binding) => {
            format!("unbind {}", self::binding(binding))
        }
        Record::SetPolicy { kind, policy } => format!("set-policy {kind:?} {}", policy.name),
        Record::ClearPolicy { kind, name } => format!("clear-policy {kind:?} {name}"),
        Record::SetRedrive { id, job } => {
            format!("set-redrive {id} {}", String::from_utf8_lossy(job))
        }
        Record::ClearRedrive { id } => format!("clear-redrive {id}"),
    }
}

fn binding(binding: &BindingRecord) -> String {
    let to = if binding.to_queue { "queue" } else { "exchange" };
    let BindingRecord { source, destination, routing_key, arguments, .. } = binding;
    format!("{to} {destination} to {source} with {routing_key} {}", table(arguments.as_ref()))
}
