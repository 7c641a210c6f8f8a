//! The log of a vhost: records of durable messages and topology, synced in batches, recovered after any
//! crash.
//!
//! What is absent: queues, messages, AMQP, threads, clocks. A record is a kind, bytes, and the facts that
//! the log needs without interpreting the bytes: the number of references that keep the record, the
//! earlier record that it is about, and whether it ends one of that record's references.
//!
//! ```text
//!  WriteQueue --write--> Log --> active segment, sealed files --compaction--> smaller files
//!  (in memory)            |
//!                         +- Liveness: which records still have references
//! ```
//!
//! Beside the log there are pages (`pages`): messages of long queues that wait on disk while the process
//! lives.
//!
//! Files cover ranges of positions (LSNs) that do not overlap. Reading all files in the order of their
//! ranges repeats the history without the records that are not needed any more.
//! `docs/internals/formats/log.md` describes the format byte by byte, and argues why a crash at any
//! instant is harmless.

mod batch_encoder;
mod check;
mod compaction;
mod directory;
mod format;
pub mod limits;
mod liveness;
mod log;
mod manifest;
mod pages;
mod recovery;
mod replicated;
mod segment_reader;
mod snapshot;
mod verify;
mod write_batch;
mod write_queue;

pub use batch_encoder::Body;
pub use check::check;
pub use compaction::{Compacted, Compaction};
pub use directory::{
    CountedFile, Directory, DirectoryFile, IoCounters, IoTotal, RealDirectory, SYNC_BOUNDS_US,
};
pub use format::{FORMAT_VERSION, FORMAT_VERSION_OLDEST, FORMAT_VERSION_REPLICATED, Flags, Lsn};
pub use log::{Durability, Log, LogError, LogOptions, Preparation, Prepared, Written};
pub use manifest::has_log;
pub use pages::{PageEntry, PageError, PageStore, PageWriter};
pub use recovery::{
    Damage, IgnoreRecords, OpenError, OpenReport, ReadProgress, RecordSink, References,
};
pub use replicated::{
    Applier, EntryContent, EntryError, EntryFacts, EntryFault, EntryIndex, EntryRecords, Founding,
    HardState, Installation, LogEntry, LoneLog, ReplicatedLog, ReplicatedOptions, SavedClock,
    SavedMember, Shipment, ShipmentPlan, Term, is_replicated, saved_member, verify_entry,
};
pub use segment_reader::Record;
pub use snapshot::{LogSnapshot, SnapshotCopy};
pub use verify::VerifiableFile;
pub use write_batch::{NewRecord, WriteBatch};
pub use write_queue::WriteQueue;
