//! The number by which the run knows a message.

use broker::Message;

/// The number of a message of the run, which its body begins with.
pub(crate) fn id_of(message: &Message) -> Option<u64> {
    let id = message.body().first_chunk::<8>()?;
    Some(u64::from_le_bytes(*id))
}
