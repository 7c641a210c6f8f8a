//! Families of queues, from the table of their numbers.

use server::snapshot::queue::QueueView;
use server::snapshot::queue_fields::{Level, QUEUE_FIELDS, QueueGroup};

use crate::metrics::family::Objects;
use crate::metrics::text::{Kind, Namespace, Text, Value};

/// Writes the families of a group.
pub(super) fn write(
    text: &mut Text,
    namespace: Namespace,
    group: QueueGroup,
    objects: &Objects<'_, QueueView>,
) {
    for row in QUEUE_FIELDS {
        if let Some((_, name)) = row.family.filter(|(of, _)| *of == group) {
            let kind = if row.is_count() { Kind::Counter } else { Kind::Gauge };
            let mut samples = text.family(namespace, name, kind, row.meaning);
            objects.put_all(&mut samples, |queue| shown(row.of(queue)));
        }
    }
}

fn shown(level: Level) -> Option<Value> {
    match level {
        Level::Whole(number) => Some(Value::Whole(number)),
        Level::Millionths(number) => Some(Value::Micros(number)),
        Level::Missing => None,
    }
}
