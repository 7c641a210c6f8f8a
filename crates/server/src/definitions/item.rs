//! One item of definitions, with typed access to its fields.

use std::fmt;

use amqp::limits::SHORT_STRING_BYTES_MAX;
use amqp::table::{Table, TableRef};
use broker::access::PermissionPattern;
use serde_json::Value;

use super::Problem;
use super::arguments::table;
use crate::auth::Users;

/// The scope of definitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope<'a> {
    /// The whole node: each item names its vhost.
    Node,
    /// One vhost: the vhost of an item is ignored, and users and vhosts are left out.
    Vhost(&'a str),
}

/// The place of an item in definitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) family: &'static str,
    /// Index of the item, from 0; none for the family as a whole.
    pub(crate) index: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{}, item {}", self.family, index + 1),
            None => f.write_str(self.family),
        }
    }
}

/// An item of a family, with the scope of the definitions.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) value: &'a Value,
    pub(super) scope: Scope<'a>,
    /// The users before the import.
    pub(super) users: &'a Users,
}

impl<'a> Item<'a> {
    /// The same scope with another object.
    pub(super) fn with(self, value: &'a Value) -> Self {
        Self { value, ..self }
    }

    /// The field `key`; `null` counts as missing.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.value.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str) -> Result<&'a str, Problem> {
        let value = self.get(key).ok_or_else(|| format!("'{key}' is missing"))?;
        value.as_str().ok_or_else(|| format!("'{key}' must be a string"))
    }

    /// A name or a routing key, limited to the length of an AMQP short string.
    pub(super) fn short(&self, key: &str) -> Result<&'a str, Problem> {
        let text = self.text(key)?;
        if text.len() > SHORT_STRING_BYTES_MAX {
            return Err(format!("'{key}' is longer than {SHORT_STRING_BYTES_MAX} bytes"));
        }
        Ok(text)
    }

    pub(super) fn text_or(&self, key: &str, default: &'a str) -> Result<&'a str, Problem> {
        self.get(key).map_or(Ok(default), |_| self.text(key))
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool, Problem> {
        let value = self.get(key).map_or(Some(default), Value::as_bool);
        value.ok_or_else(|| format!("'{key}' must be true or false"))
    }

    pub(super) fn arguments(&self) -> Result<Table, Problem> {
        match self.get("arguments") {
            None => Ok(Table::default()),
            Some(Value::Object(arguments)) => {
                let table = table(arguments)?;
                // JSON may be nested deeper than AMQP and the log allow.
                TableRef::from_bytes(table.as_ref().as_bytes())
                    .map_err(|error| format!("'arguments': {error}"))?;
                Ok(table)
            }
            // Some tools write an empty list for empty arguments.
            Some(Value::Array(list)) if list.is_empty() => Ok(Table::default()),
            Some(_) => Err("'arguments' must be an object".to_owned()),
        }
    }

    pub(super) fn pattern(&self, key: &str) -> Result<PermissionPattern, Problem> {
        PermissionPattern::new(self.text(key)?).map_err(|error| format!("'{key}': {error}"))
    }

    /// The vhost of the item.
    pub(super) fn vhost(&self) -> Result<String, Problem> {
        match self.scope {
            Scope::Node => self.short("vhost").map(str::to_owned),
            Scope::Vhost(name) => Ok(name.to_owned()),
        }
    }
}
