//! The log of a replicated vhost: batches that a majority of members has agreed upon, with their index and term.
//!
//! A batch of records is an *entry*. Its record octets are equal on every member and in every file. Only entries
//! that are committed change the liveness of records; the others can be cut off again.

mod applier;
mod entry;
mod hard_state;
mod log;
mod options;
mod shipment;

pub use applier::Applier;
pub use entry::{
    EntryContent, EntryFacts, EntryFault, EntryIndex, EntryRecords, LogEntry, Term, verify_entry,
};
pub use hard_state::HardState;
pub use log::ReplicatedLog;
pub use options::{EntryError, Founding, ReplicatedOptions};
pub use shipment::{Installation, Shipment, ShipmentPlan};
