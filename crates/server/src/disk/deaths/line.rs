//! A death of the history of dead letters as a line of JSON. Bytes that need not be text are in base64.
//!
//! Consecutive deaths mostly have the same circumstances. The first of such a run has a whole line, with the number of
//! the run; the others have short lines with that number, their time and their properties. A short line counts only
//! behind the whole line of its run, so that no damage gives a death the circumstances of another.

use std::borrow::Cow;
use std::ops::Not;
use std::sync::Arc;

use amqp::properties::Properties;
use broker::dead_letter::DeathReason;
use broker::{
    ChannelNumber, CircumstancesIds, DeathCircumstances, DeathOutcome, DropCause, Envelope, Name,
    RecordedDeath, RestoredDeath, RoutingKey, SettledBy,
};
use serde::{Deserialize, Serialize};

use crate::disk::json_files::members::Base64;

/// The line of a death whose circumstances are those of the line before it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShortLine<'a> {
    run: u64,
    time_ms: u64,
    #[serde(default, skip_serializing_if = "Base64::is_empty")]
    properties: Base64<'a>,
    #[serde(default, skip_serializing_if = "Not::not")]
    is_cut: bool,
}

/// The line of a death with all its circumstances.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WholeLine<'a> {
    /// Missing in lines of the first builds, which had no short ones.
    run: Option<u64>,
    time_ms: u64,
    queue: Cow<'a, str>,
    reason: Cow<'a, str>,
    exchange: Cow<'a, str>,
    key: Base64<'a>,
    policy: Option<Cow<'a, str>>,
    operator_policy: Option<Cow<'a, str>>,
    #[serde(default)]
    properties: Base64<'a>,
    #[serde(default)]
    is_cut: bool,
    /// The members that follow are there for some deaths only.
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_exchange: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_key: Option<Base64<'a>>,
    outcome: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    targets: Option<Vec<Cow<'a, str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    targets_total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    copies_dropped: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<u16>,
    /// Null beside a channel of which the consumer is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_tag: Option<Option<Cow<'a, str>>>,
}

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
            let (run, time_ms, is_cut) = (self.run, death.time_ms, death.is_cut());
            let properties = Base64(death.properties().into());
            write_line(&ShortLine { run, time_ms, properties, is_cut }, out);
            return;
        }
        self.run += 1;
        self.circumstances = Some(Arc::clone(&death.circumstances));
        write_line(&WholeLine::of(death, self.run), out);
    }
}

fn write_line(line: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, line).expect("lines have members with names");
    out.push(b'\n');
}

impl<'a> WholeLine<'a> {
    fn of(death: &'a RecordedDeath, run: u64) -> Self {
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
        let key = |envelope: &'a Envelope| Base64(envelope.routing_key.as_bytes().into());
        let name = |name: &'a Name| Cow::Borrowed(&**name);
        let (dead_letter, settled_by) = (dead_letter.as_deref(), settled_by.as_deref());
        let line = Self {
            run: Some(run),
            time_ms: death.time_ms,
            queue: name(queue),
            reason: reason.as_str().into(),
            exchange: name(&published.exchange),
            key: key(published),
            policy: policy.as_ref().map(name),
            operator_policy: operator_policy.as_ref().map(name),
            properties: Base64(death.properties().into()),
            is_cut: death.is_cut(),
            dead_letter_exchange: dead_letter.map(|letter| name(&letter.exchange)),
            dead_letter_key: dead_letter.map(key),
            outcome: "".into(),
            targets: None,
            targets_total: None,
            copies_dropped: None,
            cause: None,
            user: settled_by.map(|by| name(&by.user)),
            connection: settled_by.map(|by| name(&by.connection)),
            channel: settled_by.map(|by| by.channel.0),
            consumer_tag: settled_by.map(|by| by.consumer_tag.as_ref().map(name)),
        };
        match outcome {
            DeathOutcome::DeadLettered { queues, queues_total, copies_dropped } => Self {
                outcome: DEAD_LETTERED.into(),
                targets: Some(queues.iter().map(name).collect()),
                targets_total: Some(*queues_total),
                copies_dropped: Some(*copies_dropped),
                ..line
            },
            DeathOutcome::Kept(cause) => {
                Self { outcome: KEPT.into(), cause: Some(cause.as_str().into()), ..line }
            }
            DeathOutcome::Dropped(cause) => {
                Self { outcome: DROPPED.into(), cause: Some(cause.as_str().into()), ..line }
            }
        }
    }

    /// The circumstances; an error says what is wrong with them.
    fn circumstances(self) -> Result<DeathCircumstances, String> {
        let name = |text: Cow<'_, str>| Name::from(&*text);
        let envelope = |exchange, key: Base64<'_>| {
            Arc::new(Envelope::new(name(exchange), RoutingKey::from(&*key.0)))
        };
        let cause = |word: &str| {
            let cause = DropCause::ALL.into_iter().find(|cause| cause.as_str() == word);
            cause.ok_or_else(|| format!("unknown cause `{word}`"))
        };
        let parts =
            (&*self.outcome, self.targets, self.targets_total, self.copies_dropped, self.cause);
        let outcome = match parts {
            (DEAD_LETTERED, Some(queues), Some(queues_total), Some(copies_dropped), None) => {
                let queues = queues.into_iter().map(name).collect();
                DeathOutcome::DeadLettered { queues, queues_total, copies_dropped }
            }
            (KEPT, None, None, None, Some(word)) => DeathOutcome::Kept(cause(&word)?),
            (DROPPED, None, None, None, Some(word)) => DeathOutcome::Dropped(cause(&word)?),
            (word, ..) => {
                return Err(format!("unknown outcome `{word}`, or one with other members"));
            }
        };
        let dead_letter = match (self.dead_letter_exchange, self.dead_letter_key) {
            (Some(exchange), Some(key)) => Some(envelope(exchange, key)),
            (None, None) => None,
            _ => return Err("a dead letter without exchange or key".to_owned()),
        };
        let settled_by = match (self.user, self.connection, self.channel) {
            (Some(user), Some(connection), Some(channel)) => Some(Arc::new(SettledBy {
                user: name(user),
                connection: name(connection),
                channel: ChannelNumber(channel),
                consumer_tag: self.consumer_tag.flatten().map(name),
            })),
            (None, None, None) => None,
            _ => return Err("a settlement without user, connection or channel".to_owned()),
        };
        let reason = DeathReason::parse(&self.reason);
        Ok(DeathCircumstances {
            queue: name(self.queue),
            reason: reason.ok_or_else(|| format!("unknown reason `{}`", self.reason))?,
            published: envelope(self.exchange, self.key),
            dead_letter,
            outcome,
            settled_by,
            policy: self.policy.map(name),
            operator_policy: self.operator_policy.map(name),
            ids: CircumstancesIds::default(),
        })
    }
}

/// The words of outcomes.
const DEAD_LETTERED: &str = "dead_lettered";
const KEPT: &str = "kept";
const DROPPED: &str = "dropped";

/// Decodes the lines of files, one after another.
#[derive(Default, Debug)]
pub(crate) struct Decoder {
    /// The number of the last run.
    run: u64,
    /// The circumstances of the last run, unless its whole line has no number, as lines of earlier builds.
    circumstances: Option<DeathCircumstances>,
}

impl Decoder {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn decode(&mut self, line: &[u8]) -> Result<RestoredDeath, String> {
        match serde_json::from_slice(line) {
            Ok(short) => self.behind_its_run(short),
            // Second, because most lines are short.
            Err(_) => self.first_of_its_run(line),
        }
    }

    fn behind_its_run(&self, line: ShortLine<'_>) -> Result<RestoredDeath, String> {
        let circumstances = self.circumstances.clone().filter(|_| line.run == self.run);
        let problem = || format!("run {} has no whole line in front of this one", line.run);
        Ok(RestoredDeath {
            time_ms: line.time_ms,
            circumstances: circumstances.ok_or_else(problem)?,
            properties: checked(line.properties)?,
            is_cut: line.is_cut,
        })
    }

    fn first_of_its_run(&mut self, line: &[u8]) -> Result<RestoredDeath, String> {
        let mut line: WholeLine<'_> =
            serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let (run, time_ms, is_cut) = (line.run, line.time_ms, line.is_cut);
        let properties = checked(std::mem::take(&mut line.properties))?;
        let circumstances = line.circumstances()?;
        self.circumstances = run.map(|_| circumstances.clone());
        self.run = run.unwrap_or(self.run);
        Ok(RestoredDeath { time_ms, circumstances, properties, is_cut })
    }
}

/// Properties that can be read.
fn checked(Base64(properties): Base64<'_>) -> Result<Vec<u8>, String> {
    if !properties.is_empty() && Properties::parse(&properties).is_err() {
        return Err("its properties are damaged".to_owned());
    }
    Ok(properties.into_owned())
}
