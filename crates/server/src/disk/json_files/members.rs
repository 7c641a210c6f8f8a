//! Forms of members that several objects in files have, and of the items of the metadata, which are such objects.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Reads a member that may be null, and is never missing: serde takes an `Option` that is missing for none.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

/// Reads a member that may be missing, and is never null. It also needs `serde(default)`.
pub(crate) fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Bytes that need not be text.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Base64<'a>(pub(crate) Cow<'a, [u8]>);

impl Base64<'_> {
    /// True if there are no bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Base64<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // They may be the hash of a password.
        write!(f, "Base64({} bytes)", self.0.len())
    }
}

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

impl<'de> Deserialize<'de> for Base64<'_> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(from)?);
        bytes.map(|bytes| Self(bytes.into())).map_err(D::Error::custom)
    }
}

/// Limits by name.
pub(crate) mod limits {
    use std::collections::BTreeMap;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::requests::LimitName;

    pub(crate) fn serialize<L: LimitName, S: Serializer>(
        limits: &BTreeMap<L, i64>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(limits.iter().map(|(limit, max)| (limit.as_str(), max)))
    }

    pub(crate) fn deserialize<'de, L: LimitName, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<L, i64>, D::Error> {
        let limits = BTreeMap::<String, i64>::deserialize(from)?.into_iter();
        let limit = |(name, max): (String, i64)| match L::parse(&name) {
            Some(limit) => Ok((limit, max)),
            None => Err(D::Error::custom(format_args!("unknown limit `{name}`"))),
        };
        limits.map(limit).collect()
    }
}

/// The value of an item of the metadata.
pub(crate) fn item_value(item: &impl Serialize) -> Value {
    serde_json::to_value(item).expect("items have members with names")
}
