//! A death of the history of dead letters as a line of JSON. Bytes that need not be text are in base64.
//!
//! Consecutive deaths mostly have the same circumstances. The first of such a run has a whole line, with the number of
//! the run; the others have short lines with that number, their time and their properties. A short line counts only
//! behind the whole line of its run, so that no damage gives a death the circumstances of another.

use std::io::Write as _;
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

/// Encodes the lines of a file.
#[derive(Default, Debug)]
pub(crate) struct Encoder {
    /// The number of the last run.
    run: u64,
    /// The circumstances of the last run; none if the next line must be whole.
    circumstances: Option<Arc<DeathCircumstances>>,
}

impl Encoder {
    /// Continues behind lines that were read.
    pub(crate) fn behind(lines: &Decoder) -> Self {
        Self { run: lines.run, circumstances: None }
    }

    /// Begins a file, or a place in a file behind a line that may be torn.
    pub(crate) fn begin(&mut self) {
        self.circumstances = None;
    }

    /// Appends the line of a death.
    pub(crate) fn encode(&mut self, death: &RecordedDeath, out: &mut Vec<u8>) {
        let is_same = |last: &Arc<_>| Arc::ptr_eq(last, &death.circumstances);
        if self.circumstances.as_ref().is_some_and(is_same) {
            let _ = write!(out, "{{\"run\":{},\"time_ms\":{}", self.run, death.time_ms);
            let properties = death.properties();
            if !properties.is_empty() {
                out.extend_from_slice(b",\"properties\":\"");
                encode_base64(properties, out);
                out.push(b'"');
            }
            if death.is_cut() {
                out.extend_from_slice(b",\"is_cut\":true");
            }
            out.extend_from_slice(b"}\n");
            return;
        }
        self.run += 1;
        self.circumstances = Some(Arc::clone(&death.circumstances));
        encode_whole(death, self.run, out);
    }
}

fn encode_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    out.resize(begin + bytes.len().div_ceil(3) * 4, 0);
    let written = out.get_mut(begin..).map(|room| STANDARD.encode_slice(bytes, room));
    assert!(matches!(written, Some(Ok(_))), "base64 takes four bytes for three");
}

/// Appends the line of a death with all its circumstances.
fn encode_whole(death: &RecordedDeath, run: u64, out: &mut Vec<u8>) {
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
        "run": run,
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

/// Decodes the lines of files, one after another.
#[derive(Default, Debug)]
pub(crate) struct Decoder {
    /// The number of the last run.
    run: u64,
    /// The circumstances of the last run, unless its whole line has no number, as lines of earlier builds.
    circumstances: Option<DeathCircumstances>,
}

impl Decoder {
    /// Reads a line; none if anything necessary is missing or invalid.
    pub(crate) fn decode(&mut self, line: &[u8]) -> Option<RestoredDeath> {
        let line: Value = serde_json::from_slice(line).ok()?;
        let run = line.get("run").and_then(Value::as_u64);
        let circumstances = match line.get("queue") {
            None if run == Some(self.run) => self.circumstances.clone()?,
            None => return None,
            Some(_) => circumstances(&line)?,
        };
        let properties = base64(&line, "properties").unwrap_or_default();
        if !properties.is_empty() && Properties::parse(&properties).is_err() {
            return None;
        }
        let time_ms = line.get("time_ms").and_then(Value::as_u64)?;
        let is_cut = line.get("is_cut").and_then(Value::as_bool).unwrap_or_default();
        if line.get("queue").is_some() {
            self.circumstances = run.map(|_| circumstances.clone());
            self.run = run.unwrap_or(self.run);
        }
        Some(RestoredDeath { time_ms, circumstances, properties, is_cut })
    }
}

fn base64(line: &Value, field: &str) -> Option<Vec<u8>> {
    STANDARD.decode(line.get(field)?.as_str()?).ok()
}

/// The circumstances in a whole line; none if anything necessary is missing or invalid.
fn circumstances(line: &Value) -> Option<DeathCircumstances> {
    let name = |field| line.get(field).and_then(Value::as_str).map(Name::from);
    let number = |field| line.get(field).and_then(Value::as_u64);
    let envelope = |exchange, key| {
        let key = RoutingKey::from(&*base64(line, key)?);
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
    Some(DeathCircumstances {
        queue: name("queue")?,
        reason: DeathReason::parse(line.get("reason")?.as_str()?)?,
        published: envelope("exchange", "key")?,
        dead_letter: envelope("dead_letter_exchange", "dead_letter_key"),
        outcome,
        settled_by: settled_by(),
        policy: name("policy"),
        operator_policy: name("operator_policy"),
        ids: CircumstancesIds::default(),
    })
}
