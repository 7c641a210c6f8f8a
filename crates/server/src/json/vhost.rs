//! Settings of a vhost in JSON, as in request bodies and definitions.

use broker::QueueType;
use serde_json::{Map, Value, json};

use crate::limits::{LABELS_BYTES_MAX, REPLICAS_MAX, USER_TAGS_MAX};
use crate::requests::{VhostMetadata, VhostSettings};

/// Tags of a vhost or a user: a list, or a string with commas.
///
/// # Errors
/// When the value is neither.
pub fn tags_from_json(tags: &Value) -> Result<Vec<String>, String> {
    let wrong = || "tags should be a list of strings".to_owned();
    if let Some(text) = tags.as_str() {
        let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
        return Ok(tags.map(str::to_owned).collect());
    }
    let tags = tags.as_array().ok_or_else(wrong)?;
    let text = |tag: &Value| match tag {
        Value::String(tag) => Some(tag.clone()),
        // As in RabbitMQ: a YAML file makes a number of a tag such as 2024.
        Value::Number(_) | Value::Bool(_) => Some(tag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    tags.iter().map(text).collect::<Option<_>>().ok_or_else(wrong)
}

/// The number of tags of a user if they are too many.
pub fn too_many_tags(tags: &[String]) -> Option<usize> {
    (tags.len() > USER_TAGS_MAX).then_some(tags.len())
}

/// Checks the bytes of tags, and of the description beside them.
///
/// # Errors
/// When they are too many.
pub fn check_labels(tags: &[String], description: &str) -> Result<(), String> {
    let bytes = description.len() + tags.iter().map(|tag| tag.len() + 1).sum::<usize>();
    if bytes > LABELS_BYTES_MAX {
        return Err(format!(
            "tags and description must not have more than {LABELS_BYTES_MAX} bytes"
        ));
    }
    Ok(())
}

/// Description, tags and default queue type. Missing fields and nulls get their defaults.
///
/// # Errors
/// Describes the first invalid field, in RabbitMQ's words where it has any.
pub fn vhost_metadata_from_json(object: &Map<String, Value>) -> Result<VhostMetadata, String> {
    let given = |key| object.get(key).filter(|value| !value.is_null());
    let description = given("description").map_or(Some(""), Value::as_str);
    let description = description.ok_or_else(|| "description should be a string".to_owned())?;
    let tags = given("tags").map_or(Ok(Vec::new()), tags_from_json)?;
    check_labels(&tags, description)?;
    Ok(VhostMetadata {
        description: description.to_owned(),
        tags,
        default_queue_type: given("default_queue_type")
            .map_or_else(|| Ok(QueueType::default()), queue_type)?,
    })
}

/// Number of replicas of a vhost; none for null, which is all nodes.
///
/// # Errors
/// When the value is none of these.
pub fn replicas_from_json(value: &Value) -> Result<Option<u8>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let number = match value.as_str() {
        Some(text) => text.parse().ok(),
        None => value.as_u64().and_then(|number| u8::try_from(number).ok()),
    };
    let problem =
        || format!("replicas should be a number from 1 to {REPLICAS_MAX}, or null for all nodes");
    number.filter(|number| (1..=REPLICAS_MAX).contains(number)).map(Some).ok_or_else(problem)
}

fn queue_type(value: &Value) -> Result<QueueType, String> {
    let name = value.as_str();
    let name = name.ok_or_else(|| format!("{value} is not a valid default_queue_type value"))?;
    if matches!(name, "" | "undefined") {
        return Ok(QueueType::default());
    }
    QueueType::parse(name.as_bytes()).ok_or_else(|| format!("{name} is not a valid queue type"))
}

/// The `metadata` that RabbitMQ shows of a vhost, with Leveret's `replicas` if it is set.
pub fn vhost_metadata_to_json(settings: &VhostSettings) -> Value {
    let mut metadata = json!({
        "description": settings.description,
        "tags": settings.tags,
        "default_queue_type": settings.default_queue_type.as_str(),
    });
    if let Some(protected) = settings.protected_from_deletion {
        metadata["protected_from_deletion"] = json!(protected);
    }
    if let Some(replicas) = settings.replicas {
        metadata["replicas"] = json!(replicas);
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_a_list_or_a_string() {
        assert_eq!(tags_from_json(&json!("a,,b , c")).unwrap(), ["a", "b", "c"]);
        assert_eq!(tags_from_json(&json!("")).unwrap(), [""; 0]);
        assert_eq!(tags_from_json(&json!(["a b", "c"])).unwrap(), ["a b", "c"]);
        assert_eq!(tags_from_json(&json!([7, true])).unwrap(), ["7", "true"]);
        for wrong in [json!(7), json!([null]), json!([[]]), json!(null), json!({})] {
            assert!(tags_from_json(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn vhost_metadata_survives_a_round_trip() {
        let metadata = VhostMetadata {
            description: "d".to_owned(),
            tags: vec!["t".to_owned()],
            default_queue_type: QueueType::Quorum,
        };
        let mut settings = VhostSettings { tracing: true, ..VhostSettings::default() };
        settings.change(crate::requests::VhostChange {
            metadata: Some(metadata.clone()),
            ..crate::requests::VhostChange::default()
        });
        let json = vhost_metadata_to_json(&settings);
        assert_eq!(vhost_metadata_from_json(json.as_object().unwrap()), Ok(metadata));
    }

    #[test]
    fn vhost_metadata_errors_name_the_fault() {
        for (metadata, problem) in [
            (json!({"default_queue_type": "nope"}), "nope is not a valid queue type"),
            (json!({"default_queue_type": 7}), "7 is not a valid default_queue_type value"),
            (json!({"description": 7}), "description should be a string"),
            (json!({"tags": [null]}), "tags should be a list of strings"),
        ] {
            let said = vhost_metadata_from_json(metadata.as_object().unwrap());
            assert_eq!(said, Err(problem.to_owned()));
        }
    }
}
