//! The settings and the first members of a vhost, as `node.json` and the metadata have them.

use std::collections::BTreeMap;

use broker::QueueType;
use serde::{Deserialize, Serialize};

use crate::disk::json_files::members::{limits, nullable, optional};
use crate::requests::{VhostLimit, VhostSettings};

/// The settings of a vhost.
#[derive(Serialize, Deserialize)]
#[serde(remote = "VhostSettings", deny_unknown_fields)]
struct StoredSettings {
    description: String,
    tags: Vec<String>,
    #[serde(with = "queue_type")]
    default_queue_type: QueueType,
    #[serde(deserialize_with = "nullable")]
    protected_from_deletion: Option<bool>,
    tracing: bool,
    #[serde(with = "limits")]
    limits: BTreeMap<VhostLimit, i64>,
    /// Missing for a vhost that is on all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional")]
    replicas: Option<u8>,
}

/// Settings that several owners share.
pub(crate) mod settings {
    use std::sync::Arc;

    use serde::{Deserializer, Serializer};

    use super::StoredSettings;
    use crate::requests::VhostSettings;

    pub(crate) fn serialize<S: Serializer>(
        settings: &VhostSettings,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        StoredSettings::serialize(settings, to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Arc<VhostSettings>, D::Error> {
        StoredSettings::deserialize(from).map(Arc::new)
    }
}

mod queue_type {
    use broker::QueueType;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(kind: &QueueType, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<QueueType, D::Error> {
        let word = String::deserialize(from)?;
        let unknown = || D::Error::custom(format_args!("unknown type of queues `{word}`"));
        QueueType::parse(word.as_bytes()).ok_or_else(unknown)
    }
}

/// The members with which a group begins, as numbers.
pub(crate) mod voters {
    use replication::MemberId;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(voters: &[MemberId], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(voters.iter().map(|voter| voter.get()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<MemberId>, D::Error> {
        let voter = |id| {
            let unknown = || D::Error::custom(format_args!("{id} is not the id of a member"));
            MemberId::new(id).ok_or_else(unknown)
        };
        Vec::<u64>::deserialize(from)?.into_iter().map(voter).collect()
    }
}
