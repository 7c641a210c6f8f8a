//! A death of the history of dead letters as a line of JSON. Bytes that need not be text are in base64.

use std::sync::Arc;

use amqp::properties::Properties;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::dead_letter::DeathReason;
use broker::{
    ChannelNumber, CircumstancesIds, DeathCircumstances, DeathOutcome, DropCause, Envelope, Name,
    RecordedDeath, RestoredDeath, RoutingKey, SettledBy,
};
use serde_json::{Value, json};

/// Appends the line of a death.
pub(crate) fn encode(death: &RecordedDeath, out: &mut Vec<u8>) {
    let DeathCircumstances {
        queue,
        reason,
        published,
        dead_letter,
        outcome,
        settled_by,
        policy,
        operator_policy,
        ids: _,
    } = &*death.circumstances;
    let key = |envelope: &Envelope| STANDARD.encode(envelope.routing_key.as_bytes());
    let mut line = json!({
        "time_ms": death.time_ms,
        "queue": **queue,
        "reason": reason.as_str(),
        "exchange": *published.exchange,
        "key": key(published),
        "policy": policy.as_deref(),
        "operator_policy": operator_policy.as_deref(),
        "properties": STANDARD.encode(death.properties()),
        "is_cut": death.is_cut(),
    });
    if let Some(letter) = dead_letter {
        line["dead_letter_exchange"] = json!(*letter.exchange);
        line["dead_letter_key"] = json!(key(letter));
    }
    match outcome {
        DeathOutcome::DeadLettered { queues, queues_total, copies_dropped } => {
            line["outcome"] = json!("dead_lettered");
            line["targets"] = queues.iter().map(|queue| json!(**queue)).collect();
            line["targets_total"] = json!(queues_total);
            line["copies_dropped"] = json!(copies_dropped);
        }
        DeathOutcome::Kept(cause) => {
            line["outcome"] = json!("kept");
            line["cause"] = json!(cause.as_str());
        }
        DeathOutcome::Dropped(cause) => {
            line["outcome"] = json!("dropped");
            line["cause"] = json!(cause.as_str());
        }
    }
    if let Some(by) = settled_by {
        line["user"] = json!(*by.user);
        line["connection"] = json!(*by.connection);
        line["channel"] = json!(by.channel.0);
        line["consumer_tag"] = json!(by.consumer_tag.as_deref());
    }
    out.extend_from_slice(line.to_string().as_bytes());
    out.push(b'\n');
}

/// Reads a line; none if anything necessary is missing or invalid.
pub(crate) fn decode(line: &[u8]) -> Option<RestoredDeath> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let name = |field| line.get(field).and_then(Value::as_str).map(Name::from);
    let number = |field| line.get(field).and_then(Value::as_u64);
    let bytes = |field| STANDARD.decode(line.get(field)?.as_str()?).ok();
    let envelope = |exchange, key| {
        let key = RoutingKey::from(&*bytes(key)?);
        Some(Arc::new(Envelope::new(name(exchange)?, key)))
    };
    let cause = || {
        let word = line.get("cause")?.as_str()?;
        DropCause::ALL.into_iter().find(|cause| cause.as_str() == word)
    };
    let targets = || {
        let targets = line.get("targets")?.as_array()?.iter();
        targets.map(|target| target.as_str().map(Name::from)).collect::<Option<Box<[Name]>>>()
    };
    let outcome = match line.get("outcome")?.as_str()? {
        "dead_lettered" => DeathOutcome::DeadLettered {
            queues: targets()?,
            queues_total: number("targets_total")?,
            copies_dropped: number("copies_dropped")?,
        },
        "kept" => DeathOutcome::Kept(cause()?),
        "dropped" => DeathOutcome::Dropped(cause()?),
        _ => return None,
    };
    let settled_by = || {
        Some(Arc::new(SettledBy {
            user: name("user")?,
            connection: name("connection")?,
            channel: ChannelNumber(u16::try_from(number("channel")?).ok()?),
            consumer_tag: name("consumer_tag"),
        }))
    };
    let properties = bytes("properties").unwrap_or_default();
    if !properties.is_empty() && Properties::parse(&properties).is_err() {
        return None;
    }
    let circumstances = DeathCircumstances {
        queue: name("queue")?,
        reason: DeathReason::parse(line.get("reason")?.as_str()?)?,
        published: envelope("exchange", "key")?,
        dead_letter: envelope("dead_letter_exchange", "dead_letter_key"),
        outcome,
        settled_by: settled_by(),
        policy: name("policy"),
        operator_policy: name("operator_policy"),
        ids: CircumstancesIds::default(),
    };
    let is_cut = line.get("is_cut").and_then(Value::as_bool).unwrap_or_default();
    Some(RestoredDeath { time_ms: number("time_ms")?, circumstances, properties, is_cut })
}
