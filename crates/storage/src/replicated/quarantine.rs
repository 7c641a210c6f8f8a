//! The mark of a member that was quarantined.
//!
//! A log does not always show what is wrong with it: a member that has lost entries which it had acknowledged learns of them
//! from its leader, and its log looks like one that ends earlier. The mark keeps such a member from voting when it is opened
//! again, until another incarnation takes its place.

use std::io;

use crate::directory::{Directory, DirectoryFile as _, create_or_open, with_room};
use crate::limits::QUARANTINE_REASON_BYTES_MAX;
use crate::recovery::{OpenError, io_error, read_all};

/// Name of the file, which has the reason as text.
const QUARANTINED: &str = "raft.quarantined";

/// Writes the mark, durably.
pub(super) fn mark<D: Directory>(directory: &D, why: &str) -> io::Result<()> {
    let file = create_or_open(directory, QUARANTINED)?;
    let reason =
        why.get(..why.floor_char_boundary(QUARANTINE_REASON_BYTES_MAX)).unwrap_or_default();
    with_room(directory, || file.write_at(reason.as_bytes(), 0))?;
    file.sync()?;
    directory.sync()
}

/// Refuses a directory with the mark. `names` are its files.
///
/// # Errors
/// [`OpenError::DoesNotVote`] with the reason, or [`OpenError::Io`].
pub(super) fn refuse_marked<D: Directory>(
    directory: &D,
    names: &[String],
) -> Result<(), OpenError> {
    if !names.iter().any(|name| name == QUARANTINED) {
        return Ok(());
    }
    let file = directory.open(QUARANTINED).map_err(io_error("open the mark of a quarantine"))?;
    let reason = read_all(&file).map_err(io_error("read the mark of a quarantine"))?;
    let reason = String::from_utf8_lossy(&reason);
    Err(OpenError::does_not_vote(format!("the member was quarantined ({reason})")))
}
