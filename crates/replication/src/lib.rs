//! One vhost's log on several nodes: a member of a group, which replicates entries, elects leaders, and tells what
//! a majority has on disk.
//!
//! A [`Member`] has no thread, socket, clock or randomness of its own: the driver tells it of ticks and frames, and
//! takes it through turns. So a simulation can run exactly what ships.
//!
//! ```text
//!  tick, receive, propose --> Member -- begin --> frames that leave before the own write
//!                               |  +--- write --> the log: hard state and entries, synced
//!                               +------ end ----> frames after it; committed entries, durable positions, role
//! ```
//!
//! The consensus engine stands behind `engine`, with its guards. `frame` is the encoding of everything between two
//! nodes; `clock` keeps the time of a group from running ahead when its leader changes.

mod clock;
mod engine;
mod entry_log;
mod frame;
mod ids;
pub mod levels;
pub mod limits;
mod member;
mod membership;
mod placement;

pub use clock::{
    Axis, AxisOrigin, ClockBounds, ClockReading, KnownClocks, LeaderClock, NewAxis, TurnClock,
};
pub use entry_log::{EntryLog, MemoryLog, Omission};
pub use frame::{
    ClockPing, FRAME_HEADER_BYTES, Frame, FrameClass, FrameError, FrameHeader, LeadsNotice,
    LedGroup, NodeFrame, NodePair, PROTOCOL_VERSION, check_frame,
};
pub use ids::{ClusterId, GroupId, MemberId, NodeId, RunId};
pub use member::{
    BeginError, CommitNews, Committed, HandOver, HandOverStep, Member, MemberConfig, ProposeError,
    Proposed, QuarantineReason, ReplacementStep, Role, SnapshotOffer, TurnResult,
};
pub use membership::MembershipChange;
pub use placement::GroupPlacement;
