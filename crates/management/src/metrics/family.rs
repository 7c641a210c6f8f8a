//! Families that are told of many objects of a kind: of each, or of all together.

use crate::metrics::text::{Kind, Labels, Namespace, Text, Value};

/// Whether objects are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Detail {
    Totals,
    PerObject,
}

/// A family: its name behind the prefix, and which number of an object it is.
#[derive(Debug)]
pub(super) struct Family<T> {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    /// None where there is nothing to tell.
    pub(super) value: fn(&T) -> Option<Value>,
}

/// A gauge that every object has.
pub(super) const fn gauge<T>(
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<Value>,
) -> Family<T> {
    Family { name, kind: Kind::Gauge, help, value }
}

/// A counter that every object has.
pub(super) const fn counter<T>(
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<Value>,
) -> Family<T> {
    Family { name, kind: Kind::Counter, help, value }
}

/// A number that is there.
#[expect(clippy::unnecessary_wraps, reason = "what families are made of")]
pub(super) fn whole(value: u64) -> Option<Value> {
    Some(Value::Whole(value))
}

/// What is told.
#[derive(Debug)]
pub(super) enum Objects<'a, T> {
    /// The sum of all, which has no labels.
    Sum(&'a T),
    /// Each, with the name of its vhost, and its labels.
    Each(&'a [(&'a str, &'a T)], &'a Labels),
}

/// Writes families of some objects.
pub(super) fn write<T>(
    text: &mut Text,
    namespace: Namespace,
    families: &[Family<T>],
    objects: &Objects<'_, T>,
) {
    for family in families {
        let mut samples = text.family(namespace, family.name, family.kind, family.help);
        match objects {
            Objects::Sum(sum) => {
                if let Some(value) = (family.value)(sum) {
                    samples.put("", value);
                }
            }
            Objects::Each(objects, labels) => {
                for ((_, object), labels) in objects.iter().zip(labels.iter()) {
                    if let Some(value) = (family.value)(object) {
                        samples.put(labels, value);
                    }
                }
            }
        }
    }
}
