//! Families over many objects: of each object, or of their sum.

use crate::metrics::text::{Kind, Labels, Namespace, Samples, Text, Value};

/// The level of detail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Detail {
    Totals,
    PerObject,
}

/// A family: its name after the prefix, and its value for an object.
#[derive(Debug)]
pub(super) struct Family<T> {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    /// Returns none for an object without this value.
    pub(super) value: fn(&T) -> Option<Value>,
}

/// A gauge.
pub(super) const fn gauge<T>(
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<Value>,
) -> Family<T> {
    Family { name, kind: Kind::Gauge, help, value }
}

/// A counter.
pub(super) const fn counter<T>(
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<Value>,
) -> Family<T> {
    Family { name, kind: Kind::Counter, help, value }
}

/// A family of the type untyped.
pub(super) const fn untyped<T>(
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<Value>,
) -> Family<T> {
    Family { name, kind: Kind::Untyped, help, value }
}

/// A whole number as a value.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a family's value")]
pub(super) fn whole(value: u64) -> Option<Value> {
    Some(Value::Whole(value))
}

/// The objects to write.
#[derive(Debug)]
pub(super) enum Objects<'a, T> {
    /// The sum over all objects, without labels.
    Sum(&'a T),
    /// Each object with the name of its vhost, and the labels.
    Each(&'a [(&'a str, &'a T)], &'a Labels),
}

/// Writes families of objects.
pub(super) fn write<T>(
    text: &mut Text,
    namespace: Namespace,
    families: &[Family<T>],
    objects: &Objects<'_, T>,
) {
    for family in families {
        let mut samples = text.family(namespace, family.name, family.kind, family.help);
        objects.put_all(&mut samples, family.value);
    }
}

impl<T> Objects<'_, T> {
    /// Puts a value of each object that has it.
    pub(super) fn put_all(&self, samples: &mut Samples<'_>, value: impl Fn(&T) -> Option<Value>) {
        match self {
            Self::Sum(sum) => {
                if let Some(value) = value(sum) {
                    samples.put("", value);
                }
            }
            Self::Each(objects, labels) => {
                for ((_, object), labels) in objects.iter().zip(labels.iter()) {
                    if let Some(value) = value(object) {
                        samples.put(labels, value);
                    }
                }
            }
        }
    }
}
