//! Annotations of deliveries: a publish to the exchange `amq.settle` gives a message headers and a delivery time, for
//! the return or rejection that follows or that the publish itself makes. See `docs/guides/retry-with-delays.md`.

use crate::channel::PublishMode;
use crate::channel::annotations::Annotation;
use crate::channel::unacked::{Tags, Unacked};
use crate::channel_key::ChannelKey;
use crate::command::{Outcome, Publish};
use crate::dead_letter::DeathReason;
use crate::death_headers::DEATH_HEADERS_FRAME_BYTES;
use crate::exchange::control::{SETTLE_EXCHANGE, in_transaction};
use crate::ids::Lsn;
use crate::limits::CHANNEL_ANNOTATIONS_BYTES_MAX;
use crate::publish_properties;
use crate::publish_properties::settle_headers::{self, SettleRequest, annotated};
use crate::record::Record;
use crate::refusal::Refusal;
use crate::vhost::Vhost;
use crate::vhost::commands::settle::Touched;
use crate::vhost::state::death_ledger::Settler;
use crate::vhost::state::given_reasons::GIVEN_REASON_HEADER;

impl Vhost {
    /// Performs a publish to `amq.settle`. One whose delivery is not outstanding on the channel is unroutable.
    #[cold]
    pub(in crate::vhost) fn publish_settlement(
        &mut self,
        at: ChannelKey,
        publish: &Publish<'_>,
    ) -> Result<(), Refusal> {
        let properties = publish_properties::parse(publish.content.properties())?;
        let headers = properties.headers.unwrap_or_default();
        let request = settle_headers::request(headers, self.now)?;
        let prepared = self.prepare(at, publish, &properties)?;
        let Some(channel) = self.connections.channel(at) else { return Ok(()) };
        if let PublishMode::Transactional(_) = channel.mode {
            return Err(in_transaction(SETTLE_EXCHANGE));
        }
        let is_found = channel.unacked.contains(request.tag);
        if is_found {
            self.annotate(at, request)?;
        }
        self.count_operation(at);
        let exchange = self.find_exchange(SETTLE_EXCHANGE)?;
        self.topology.known_exchange_mut(exchange).counters.published_in += 1;
        if !is_found {
            self.return_operation(at, exchange, publish, &prepared);
        }
        self.confirm_operation(at);
        Ok(())
    }

    /// Annotates an outstanding delivery, and settles it if the request says so.
    fn annotate(&mut self, at: ChannelKey, request: SettleRequest) -> Result<(), Refusal> {
        let SettleRequest { tag, annotation, outcome } = request;
        let channel = self.connections.known_channel_mut(at);
        let Some(unacked) = channel.unacked.get(tag) else { return Ok(()) };
        let message = annotated(&unacked.entry.message, annotation.headers.as_ref());
        if message.properties().len() > DEATH_HEADERS_FRAME_BYTES {
            return Err(Refusal::precondition_failed(format!(
                "annotation makes the properties of delivery {tag} longer than \
                 {DEATH_HEADERS_FRAME_BYTES} bytes"
            )));
        }
        let annotations = channel.annotations.get_or_insert_default();
        if !annotations.set(tag, annotation, &channel.unacked) {
            return Err(Refusal::precondition_failed(format!(
                "annotations of the channel take more than {CHANNEL_ANNOTATIONS_BYTES_MAX} bytes"
            )));
        }
        match outcome {
            Some(outcome) => self.settle_annotated(at, Tags { tag, multiple: false }, outcome),
            None => Ok(()),
        }
    }

    /// Settles deliveries of a channel with annotations.
    #[cold]
    pub(in crate::vhost) fn settle_annotated(
        &mut self,
        at: ChannelKey,
        tags: Tags,
        outcome: Outcome,
    ) -> Result<(), Refusal> {
        let channel = self.connections.known_channel_mut(at);
        let mut annotations = channel.annotations.take().unwrap_or_default();
        let mut settled = Vec::new();
        let taken = channel.unacked.take(tags, |tag, unacked| {
            settled.push((unacked, annotations.take(tag)));
        });
        channel.annotations = (!annotations.is_empty()).then_some(annotations);
        taken?;
        channel.count_settled(outcome, settled.len());
        let mut touched = Touched::new();
        let mut freed_global = false;
        for (unacked, annotation) in settled {
            self.work_done += 1;
            freed_global |= self.release(at, &unacked);
            touched.push(unacked.queue);
            match annotation {
                Some(annotation) if outcome != Outcome::Ack => {
                    self.settle_with(at, unacked, &annotation, outcome);
                }
                _ => {
                    self.settle_entry(at, unacked, outcome);
                }
            }
        }
        self.finish_settling(at, touched, freed_global);
        Ok(())
    }

    /// Returns or rejects a message with an annotation, which replaces the rule of the consumer and of the queue.
    fn settle_with(
        &mut self,
        at: ChannelKey,
        mut unacked: Unacked,
        annotation: &Annotation,
        outcome: Outcome,
    ) {
        let id = unacked.queue;
        let Some(queue) = self.topology.queue_mut(id) else {
            // The message was deleted with its queue.
            return;
        };
        let number = queue.number;
        let entry = &mut unacked.entry;
        if annotation.headers.as_ref().iter().next().is_some() {
            entry.message = annotated(&entry.message, annotation.headers.as_ref());
            if entry.lsn != Lsn(0) {
                let headers = entry.message.decoded_properties().headers.unwrap_or_default();
                let headers = headers.to_table();
                // In front of the record of the settlement: a crash between both leaves an annotated message that is
                // not settled, and delivered again.
                let record = Record::Annotate { queue: number, entry: entry.id, headers };
                self.log_about(unacked.entry.lsn, record);
            }
        }
        let settler = Settler { at, consumer: unacked.consumer };
        let death = match (outcome, annotation.delivery_time) {
            (Outcome::Requeue { failed }, Some(time)) => {
                let delay_ms = time.delay_ms(self.now);
                self.requeue(id, unacked.entry, failed, Some(delay_ms), settler)
            }
            (Outcome::Reject, _) => {
                self.die_settled(id, unacked.entry, DeathReason::Rejected, settler);
                Some(DeathReason::Rejected)
            }
            (Outcome::Requeue { .. } | Outcome::Ack, _) => self.settle_entry(at, unacked, outcome),
        };
        let Some(DeathReason::Rejected | DeathReason::DeliveryLimit) = death else { return };
        if let Some(reason) = annotation.headers.get(GIVEN_REASON_HEADER) {
            self.given_reasons.count(reason);
        }
    }
}
