//! The log of a replicated vhost: batches that a majority of members has agreed upon, with their index and term.
//!
//! A batch of records is an *entry*. Its record octets are equal on every member and in every file. Only entries
//! that are committed change the liveness of records; the others can be cut off again.

mod applier;
mod entry;
mod entry_map;
mod entry_reader;
mod entry_state;
mod entry_writer;
mod hard_state;
mod installation;
mod log;
mod log_end;
mod opening;
mod options;
mod quarantine;
mod seal;
mod shipment;
mod tail;

pub use applier::Applier;
pub use entry::{
    EntryContent, EntryFacts, EntryFault, EntryIndex, EntryRecords, LogEntry, Term, verify_entry,
};
pub(crate) use entry_state::{EntryReading, EntryState};
pub use hard_state::{HardState, SavedClock, SavedMember, is_replicated, saved_member};
pub(crate) use hard_state::{Slot, known_commit, store_slot};
pub use installation::Installation;
pub use log::ReplicatedLog;
pub use options::{EntryError, Founding, LoneLog, ReplicatedOptions};
pub use shipment::{Shipment, ShipmentPlan};
