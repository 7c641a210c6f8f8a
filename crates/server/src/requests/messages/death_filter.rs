//! Selection of deaths in the history of dead letters.

use amqp::properties::Properties;
use broker::RecordedDeath;
use broker::dead_letter::DeathReason;

use super::message_filter::have_headers;
use crate::json::table::bytes_to_text;

/// Conditions on a death, all of which must hold; an empty filter matches every death.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DeathFilter {
    /// The `message_id` of the message.
    pub message_id: Option<String>,
    /// Headers that must be present, each with a value if one is given.
    pub headers: Vec<(String, Option<String>)>,
    /// The queue in which the message died.
    pub queue: Option<String>,
    /// Reason of the death.
    pub reason: Option<DeathReason>,
}

impl DeathFilter {
    /// True if `death` matches.
    pub fn matches(&self, death: &RecordedDeath) -> bool {
        let circumstances = &death.circumstances;
        self.reason.is_none_or(|reason| circumstances.reason == reason)
            && self.queue.as_ref().is_none_or(|queue| *circumstances.queue == **queue)
            && self.matches_properties(death.properties())
    }

    fn matches_properties(&self, encoded: &[u8]) -> bool {
        if self.message_id.is_none() && self.headers.is_empty() {
            return true;
        }
        // Properties were validated when the message was published.
        let properties = Properties::parse(encoded).unwrap_or_default();
        let has_id = |wanted: &String| {
            properties.message_id.is_some_and(|id| {
                id == wanted.as_bytes() || (!id.is_ascii() && bytes_to_text(id) == *wanted)
            })
        };
        self.message_id.as_ref().is_none_or(has_id) && have_headers(&properties, &self.headers)
    }
}
