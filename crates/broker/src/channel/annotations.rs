//! Annotations of deliveries: headers and a delivery time that a consumer adds to a message by a publish to
//! `amq.settle`, before it returns or rejects the message. Few deliveries have one, so they are apart from these.

use std::collections::BTreeMap;

use amqp::table::Table;

use super::unacked::UnackedList;
use crate::ids::DeliveryTag;
use crate::limits::{ANNOTATION_MEMORY_BYTES, CHANNEL_ANNOTATIONS_BYTES_MAX};
use crate::publish_properties::delivery_time::DeliveryTime;

/// The changes that a consumer asks for, made when the delivery is returned or rejected.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Annotation {
    /// Headers for the message, sorted; they replace headers of the same names.
    pub(crate) headers: Table,
    /// The delivery time after a return; none leaves the delay to the consumer and the queue.
    pub(crate) delivery_time: Option<DeliveryTime>,
}

impl Annotation {
    fn memory_bytes(&self) -> usize {
        ANNOTATION_MEMORY_BYTES + self.headers.as_ref().as_bytes().len()
    }
}

/// The annotations of a channel whose deliveries are not settled.
#[derive(Default, Debug)]
pub(crate) struct Annotations {
    by_tag: BTreeMap<DeliveryTag, Annotation>,
    bytes: usize,
}

impl Annotations {
    /// Sets the annotation of a delivery, instead of an earlier one. False, without a change, if the annotations of
    /// the channel would take more than [`CHANNEL_ANNOTATIONS_BYTES_MAX`].
    pub(crate) fn set(
        &mut self,
        tag: DeliveryTag,
        annotation: Annotation,
        unacked: &UnackedList,
    ) -> bool {
        let added = annotation.memory_bytes();
        let replaced = self.by_tag.get(&tag).map_or(0, Annotation::memory_bytes);
        if self.bytes - replaced + added > CHANNEL_ANNOTATIONS_BYTES_MAX {
            // Deliveries may have timed out.
            self.by_tag.retain(|tag, _| unacked.contains(*tag));
            self.bytes = self.by_tag.values().map(Annotation::memory_bytes).sum();
        }
        let replaced = self.by_tag.get(&tag).map_or(0, Annotation::memory_bytes);
        let bytes = self.bytes - replaced + added;
        if bytes > CHANNEL_ANNOTATIONS_BYTES_MAX {
            return false;
        }
        self.bytes = bytes;
        self.by_tag.insert(tag, annotation);
        true
    }

    /// Removes the annotation of a delivery, which is settled.
    pub(crate) fn take(&mut self, tag: DeliveryTag) -> Option<Annotation> {
        let annotation = self.by_tag.remove(&tag)?;
        self.bytes -= annotation.memory_bytes();
        Some(annotation)
    }

    /// True without annotations.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_tag.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use amqp::table::{TableBuilder, Value};

    use super::*;

    fn annotation(bytes: usize) -> Annotation {
        let mut headers = TableBuilder::new();
        headers.insert("x-reason", Value::LongStr(&vec![b'.'; bytes]));
        Annotation { headers: headers.finish(), delivery_time: None }
    }

    #[test]
    fn size_of_a_channel_is_limited_and_ends_with_the_deliveries() {
        let mut annotations = Annotations::default();
        let half = CHANNEL_ANNOTATIONS_BYTES_MAX / 2;
        let unacked = UnackedList::default();
        assert!(annotations.set(DeliveryTag(1), annotation(half), &unacked));
        assert!(annotations.set(DeliveryTag(1), annotation(half + 1), &unacked));
        // No delivery has the tag 1 any more.
        assert!(annotations.set(DeliveryTag(2), annotation(half), &unacked));
        assert_eq!(annotations.take(DeliveryTag(1)), None);
        assert!(!annotations.set(DeliveryTag(3), annotation(2 * half), &unacked));
        annotations.set(DeliveryTag(3), annotation(0), &unacked);
        assert!(annotations.take(DeliveryTag(3)).is_some());
        assert!(annotations.is_empty() && annotations.bytes == 0);
    }
}
