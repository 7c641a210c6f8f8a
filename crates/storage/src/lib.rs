//! The log: what must survive is a record in it, synced in batches, recovered after any crash.
//!
//! What is absent: queues, messages, AMQP, threads, clocks. A record is a kind, octets and a few facts
//! that let the log do its work without understanding it: how many references keep it alive, which
//! earlier record it is about, and whether it ends one of that record's references.
//!
//! ```text
//!  Pending --write--> Log --> active file, sealed files --compact--> smaller files
//!  (in memory)         |
//!                      +- Liveness: which records are still referred to
//! ```
//!
//! Beside the log there are pages (`pages`): what of long queues waits on disk, for as long as the
//! process lives.
//!
//! Files cover ranges of positions (LSNs) that do not overlap, and replaying all files in the order of
//! their ranges is replaying history without what no longer matters. The format is written down octet
//! by octet in `docs/internals/formats/log.md`, with the argument why a crash at any instant is harmless.

mod batch_encoder;
mod compaction;
mod directory;
mod format;
pub mod limits;
mod liveness;
mod log;
mod manifest;
mod pages;
mod recovery;
mod segment_reader;
mod write_queue;

pub use batch_encoder::Body;
pub use compaction::{Compacted, Compaction};
pub use directory::{Directory, DirectoryFile, RealDirectory};
pub use format::{FORMAT_VERSION, Flags, Lsn};
pub use log::{Durability, Log, LogError, LogOptions, Preparation, Prepared, Written};
pub use pages::{PageEntry, PageError, PageStore, PageWriter};
pub use recovery::{Damage, OpenError, OpenReport, ReadProgress, References, check};
pub use segment_reader::Record;
pub use write_queue::{NewRecord, WriteBatch, WriteQueue};
