//! The problems of an import, named all at once, and the items that an import leaves out.

use serde_json::{Map, Value};

use super::difference::bounded;
use super::unsupported::lack;
use super::{Document, ItemError, Place, Scope};
use crate::limits::IMPORT_ITEMS_NAMED_MAX;
use crate::requests::{ImportError, ImportItem, ImportItems};

/// The problems of an import: the first ones, and the number of all.
#[derive(Default, Debug)]
pub(crate) struct Problems {
    named: Vec<ItemError>,
    total: u64,
}

impl Problems {
    pub(super) fn add(&mut self, error: ItemError) {
        self.total += 1;
        if self.named.len() < IMPORT_ITEMS_NAMED_MAX {
            self.named.push(error);
        }
    }

    /// Adds the problem of a result; true if there is none.
    pub(super) fn check(&mut self, result: Result<(), ItemError>) -> bool {
        result.map_err(|error| self.add(error)).is_ok()
    }

    /// # Errors
    /// The problems, if there are any.
    pub(super) fn none(self) -> Result<(), Self> {
        if self.named.is_empty() { Ok(()) } else { Err(self) }
    }

    /// The first problems.
    pub(crate) fn named(&self) -> &[ItemError] {
        &self.named
    }

    /// Problems that are counted only.
    pub(crate) fn unnamed(&self) -> u64 {
        self.total - self.named.len() as u64
    }

    /// The error of an import of `root`.
    pub(super) fn of(&self, root: &Document, scope: Scope<'_>) -> ImportError {
        let mut reasons: Vec<String> =
            self.named.iter().map(ItemError::in_rabbitmqs_order).collect();
        if self.unnamed() > 0 {
            reasons.push(format!("and {} more", self.unnamed()));
        }
        let item = |error: &ItemError| ImportItem {
            family: error.place.family.to_owned(),
            number: error.place.index.map(|index| index + 1),
            identity: item_at(root, error.place)
                .map_or_else(Map::new, |item| identity(error.place.family, scope, item)),
            reason: error.problem.clone(),
            is_unsupported: item_at(root, error.place)
                .is_some_and(|item| lack(error.place.family, item).is_some()),
        };
        let named = self.named.iter().map(item).collect();
        let problems = ImportItems { named, total: self.total };
        ImportError::Definitions { reason: reasons.join("; "), problems }
    }
}

impl From<ItemError> for Problems {
    fn from(error: ItemError) -> Self {
        Self { named: vec![error], total: 1 }
    }
}

fn item_at(root: &Document, place: Place) -> Option<&Value> {
    root.get(place.family)?.get(place.index?)
}

/// The fields that identify an item, without missing ones.
pub(super) fn identity(family: &str, scope: Scope<'_>, item: &Value) -> Map<String, Value> {
    let fields: &[&str] = match family {
        "permissions" => &["user", "vhost"],
        "topic_permissions" => &["user", "vhost", "exchange"],
        "parameters" => &["component", "name", "vhost"],
        "bindings" => &["vhost", "source", "destination", "destination_type", "routing_key"],
        _ => &["vhost", "name"],
    };
    let value = |field: &str| match (field, scope) {
        ("vhost", Scope::Vhost(vhost)) => Some(Value::from(vhost)),
        _ => item.get(field).map(bounded),
    };
    fields.iter().filter_map(|field| Some(((*field).to_owned(), value(field)?))).collect()
}

/// An item that an import leaves out, or imports without some of its fields.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) family: &'static str,
    pub(super) identity: Map<String, Value>,
    pub(super) reason: String,
    /// True if nothing of the item is imported.
    pub(super) is_whole: bool,
}

impl LeftOut {
    /// The vhost of the item.
    pub(super) fn vhost(&self) -> Option<&str> {
        self.identity.get("vhost")?.as_str()
    }
}

/// The items that an import has left out.
pub(super) fn left_out(all: &[LeftOut]) -> ImportItems {
    let item = |one: &LeftOut| ImportItem {
        family: one.family.to_owned(),
        number: None,
        identity: one.identity.clone(),
        reason: one.reason.clone(),
        is_unsupported: true,
    };
    let named = all.iter().take(IMPORT_ITEMS_NAMED_MAX).map(item).collect();
    ImportItems { named, total: all.len() as u64 }
}

/// Writes the items that an import leaves out to the log.
pub(super) fn log_left_out(all: &[LeftOut]) {
    for one in all.iter().take(IMPORT_ITEMS_NAMED_MAX) {
        let identity = Value::Object(one.identity.clone()).to_string();
        tracing::warn!(family = one.family, identity, reason = one.reason, "definition left out");
    }
    if let Some(more) = all.len().checked_sub(IMPORT_ITEMS_NAMED_MAX).filter(|more| *more > 0) {
        tracing::warn!("{more} more definitions left out");
    }
}
