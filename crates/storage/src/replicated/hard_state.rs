//! The hard state of a member: its term, its vote and the members it knows, durable before a vote leaves the node.
//!
//! Two slots in one file have the same state. They are written one after the other, so that the older state stays if the
//! power goes during a write, and the newest one if a slot rots: a member that forgets a vote might vote twice.

use std::io;
use std::sync::Arc;

use crc32c::crc32c;

use super::entry::{EntryIndex, Term};
use crate::directory::{Directory, DirectoryFile, create_or_open, with_room};
use crate::format::{put, put_u64, u32_at, u64_at};
use crate::limits::MEMBERS_MAX;
use crate::manifest::Manifest;
use crate::recovery::{OpenError, io_error, read_all, write_error};

/// Name of the file.
pub(crate) const HARD_STATE: &str = "raft";

/// True if the log in a directory belongs to a group.
///
/// # Errors
/// If the directory cannot be listed.
pub fn is_replicated<D: Directory>(directory: &D) -> io::Result<bool> {
    Ok(directory.list()?.iter().any(|name| name == HARD_STATE))
}

/// The member that a replicated log belongs to. None if the directory has none.
///
/// # Errors
/// [`OpenError`]: the hard state is damaged, or the disk failed.
pub fn saved_member<D: Directory>(directory: &D) -> Result<Option<SavedMember>, OpenError> {
    Ok(read_newest(directory)?.map(|Slot { identity, state, .. }| {
        let Identity { cluster_id, member_id, .. } = identity;
        SavedMember { cluster_id, member_id, state }
    }))
}

/// The member that a replicated log belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedMember {
    /// Id of the cluster.
    pub cluster_id: u64,
    /// Id of the member.
    pub member_id: u64,
    /// The state that was saved last.
    pub state: HardState,
}

const MAGIC: [u8; 8] = *b"LVRTRFT\0";
const VERSION: u32 = 1;
const SLOT_BYTES: usize = 512;
/// Distance of the slots, in bytes: a disk with sectors of this size never destroys both in one write.
const SLOT_DISTANCE: usize = 4096;
const MEMBERS_OFFSET: usize = 80;
/// Offset of the term of the saved clock, 0 for none; the distance to the wall clock is behind it.
const CLOCK_OFFSET: usize = SLOT_BYTES - 16;
const _: () = assert!(MEMBERS_OFFSET + 8 * MEMBERS_MAX <= CLOCK_OFFSET);

/// State of a member that must survive any crash.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HardState {
    /// Newest term that the member has seen.
    pub term: Term,
    /// Member that got the vote in this term; 0 for none.
    pub vote: u64,
    /// Entries up to this one are committed; there may be more. The log stores it as a hint, at most the last entry
    /// that is durable, and never lets it fall.
    pub commit: EntryIndex,
    /// Members that vote.
    pub voters: Vec<u64>,
    /// Members that only receive.
    pub learners: Vec<u64>,
    /// The axis of time beside the node's wall clock; none in a group that has had no leader.
    pub clock: Option<SavedClock>,
}

impl HardState {
    /// The state of a member that begins with files of its leader and keeps its identity: this one, which came with the
    /// files, with the vote that the member has given. In a term in which it has voted it must not vote again.
    #[must_use]
    pub fn keeping_vote_of(self, own: &Self) -> Self {
        let term = own.term.max(self.term);
        let vote = if term == own.term { own.vote } else { 0 };
        Self { term, vote, ..self }
    }
}

/// The axis of a leader as the wall clock of a node shows it: with it, the axis goes on after all nodes were down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SavedClock {
    /// Term of the leader, from 1 on.
    pub term: u64,
    /// Microseconds by which the wall clock was ahead of the axis.
    pub wall_ahead_us: i64,
}

/// The member to which a hard state belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) cluster_id: u64,
    /// Id of the group, which is the log's.
    pub(crate) group: u64,
    pub(crate) member_id: u64,
}

/// A slot: a hard state, its owner, and its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    /// 1 for the state with which the group began, and one more with each save.
    pub(crate) sequence: u64,
    pub(crate) identity: Identity,
    pub(crate) state: HardState,
}

impl Slot {
    /// The octets of the slot.
    ///
    /// # Panics
    /// If there are more members than a slot has room for.
    fn encode(&self) -> [u8; SLOT_BYTES] {
        let HardState { term, vote, commit, voters, learners, clock } = &self.state;
        let members = voters.len() + learners.len();
        assert!(members <= MEMBERS_MAX, "{members} members, but a hard state has {MEMBERS_MAX}");
        let mut out = [0; SLOT_BYTES];
        for (byte, magic) in out.iter_mut().zip(MAGIC) {
            *byte = magic;
        }
        put(&mut out, 8, VERSION);
        let Identity { cluster_id, group, member_id } = self.identity;
        let numbers = [self.sequence, cluster_id, group, member_id, term.0, *vote, commit.0];
        for (place, number) in numbers.into_iter().enumerate() {
            put_u64(&mut out, 16 + 8 * place, number);
        }
        let count = |members: &[u64]| u32::try_from(members.len()).expect("few members");
        put(&mut out, 72, count(voters));
        put(&mut out, 76, count(learners));
        for (place, member) in voters.iter().chain(learners).enumerate() {
            put_u64(&mut out, MEMBERS_OFFSET + 8 * place, *member);
        }
        if let Some(SavedClock { term, wall_ahead_us }) = clock {
            put_u64(&mut out, CLOCK_OFFSET, *term);
            put_u64(&mut out, CLOCK_OFFSET + 8, wall_ahead_us.cast_unsigned());
        }
        let crc = crc32c(&out);
        put(&mut out, 12, crc);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, SlotFault> {
        let bytes = bytes.get(..SLOT_BYTES).ok_or(SlotFault::Empty)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(SlotFault::Empty);
        }
        let mut plain = bytes.to_vec();
        put(&mut plain, 12, 0);
        if !bytes.starts_with(&MAGIC) || crc32c(&plain) != u32_at(bytes, 12) {
            return Err(SlotFault::Damaged);
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(SlotFault::Version(version));
        }
        let [voters, learners] = [72, 76].map(|at| u32_at(bytes, at) as usize);
        if voters.saturating_add(learners) > MEMBERS_MAX {
            return Err(SlotFault::Damaged);
        }
        let members = |from: usize, to: usize| {
            (from..to).map(|place| u64_at(bytes, MEMBERS_OFFSET + 8 * place)).collect()
        };
        let number = |place: usize| u64_at(bytes, 16 + 8 * place);
        let identity = Identity { cluster_id: number(1), group: number(2), member_id: number(3) };
        let state = HardState {
            term: Term(number(4)),
            vote: number(5),
            commit: EntryIndex(number(6)),
            voters: members(0, voters),
            learners: members(voters, voters + learners),
            clock: match u64_at(bytes, CLOCK_OFFSET) {
                0 => None,
                term => {
                    let wall_ahead_us = u64_at(bytes, CLOCK_OFFSET + 8).cast_signed();
                    Some(SavedClock { term, wall_ahead_us })
                }
            },
        };
        Ok(Self { sequence: number(0), identity, state })
    }
}

/// Reason for which a slot cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotFault {
    Empty,
    Damaged,
    Version(u32),
}

/// Offsets of the slots.
const OFFSETS: [usize; 2] = [0, SLOT_DISTANCE];

/// Reads the newest slot of the directory; `None` if there is no file.
///
/// # Errors
/// [`OpenError::DoesNotVote`] if no slot can be used.
pub(crate) fn read_newest<D: Directory>(directory: &D) -> Result<Option<Slot>, OpenError> {
    let file = match directory.open(HARD_STATE) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open the hard state")(error)),
    };
    let bytes = read_all(&file).map_err(io_error("read the hard state"))?;
    let mut newest: Option<Slot> = None;
    for at in OFFSETS {
        match Slot::decode(bytes.get(at..).unwrap_or_default()) {
            Ok(slot) if newest.as_ref().is_none_or(|other| slot.sequence > other.sequence) => {
                newest = Some(slot);
            }
            Err(SlotFault::Version(version)) => {
                let file = HARD_STATE.to_owned();
                return Err(OpenError::Version { file, version, known: VERSION });
            }
            Ok(_) | Err(SlotFault::Empty | SlotFault::Damaged) => {}
        }
    }
    match newest {
        Some(newest) => Ok(Some(newest)),
        None => Err(OpenError::does_not_vote("both copies of the hard state are damaged")),
    }
}

/// The last entry of which the directory says that it is committed. A hard state that cannot be read says nothing.
pub(crate) fn known_commit<D: Directory>(
    directory: &D,
    manifest: &Manifest,
) -> Result<EntryIndex, OpenError> {
    let said = match read_newest(directory) {
        Ok(slot) => slot.map_or(EntryIndex(0), |slot| slot.state.commit),
        Err(OpenError::DoesNotVote { .. }) => EntryIndex(0),
        Err(error) => return Err(error),
    };
    Ok(commit_with(said, manifest))
}

/// The last entry of which the hard state or the manifest says that it is committed.
pub(crate) fn commit_with(said: EntryIndex, manifest: &Manifest) -> EntryIndex {
    let group = &manifest.group;
    said.max(group.commit).max(group.clean).max(group.base.0)
}

/// The file of the hard state.
pub(crate) struct HardStateFile<D: Directory> {
    file: Arc<D::File>,
    newest: Slot,
}

impl<D: Directory> std::fmt::Debug for HardStateFile<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HardStateFile").field("newest", &self.newest).finish_non_exhaustive()
    }
}

impl<D: Directory> HardStateFile<D> {
    /// Opens the file whose newest slot was read. The other slot gets the same state, if it is older or damaged.
    pub(crate) fn open(directory: &D, newest: Slot) -> Result<Self, OpenError> {
        let file = directory.open(HARD_STATE).map_err(io_error("open the hard state"))?;
        let bytes = read_all(&file).map_err(io_error("read the hard state"))?;
        for at in OFFSETS {
            if Slot::decode(bytes.get(at..).unwrap_or_default()).as_ref() != Ok(&newest) {
                write_slot(&file, &newest, at).map_err(write_error("write the hard state"))?;
            }
        }
        Ok(Self { file: Arc::new(file), newest })
    }

    /// The state that was saved last.
    pub(crate) fn newest(&self) -> &Slot {
        &self.newest
    }

    /// Saves a state in both slots.
    pub(crate) fn save(&mut self, state: HardState) -> io::Result<()> {
        self.save_as(self.newest.identity, state)
    }

    /// Saves a state of a member with another identity.
    pub(crate) fn save_as(&mut self, identity: Identity, state: HardState) -> io::Result<()> {
        let sequence = self.newest.sequence + 1;
        let slot = Slot { sequence, identity, state };
        for at in OFFSETS {
            write_slot(&*self.file, &slot, at)?;
        }
        self.newest = slot;
        Ok(())
    }
}

/// Writes a slot, durably.
fn write_slot(file: &impl DirectoryFile, slot: &Slot, at: usize) -> io::Result<()> {
    file.write_at(&slot.encode(), at as u64)?;
    file.sync()
}

/// Makes the file with a state, durably. A file from an attempt that was cut off is replaced.
pub(crate) fn store_slot<D: Directory>(directory: &D, slot: &Slot) -> io::Result<()> {
    let file = create_or_open(directory, HARD_STATE)?;
    // The whole file is there before it counts: a later save finds room on a full disk.
    let mut bytes = vec![0; 2 * SLOT_DISTANCE];
    for at in OFFSETS {
        let room = bytes.get_mut(at..at + SLOT_BYTES).expect("the file has two slots");
        room.copy_from_slice(&slot.encode());
    }
    with_room(directory, || file.write_at(&bytes, 0))?;
    file.sync()?;
    directory.sync()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Slot {
        let state = HardState {
            term: Term(7),
            vote: 3 << 16 | 1,
            commit: EntryIndex(99),
            voters: vec![1 << 16, 2 << 16, 3 << 16],
            learners: vec![4 << 16 | 2],
            clock: Some(SavedClock { term: 6, wall_ahead_us: -1_234_567 }),
        };
        let identity = Identity { cluster_id: 11, group: 12, member_id: 13 };
        Slot { sequence: 5, identity, state }
    }

    #[test]
    fn slot_round_trips() {
        assert_eq!(Slot::decode(&slot().encode()), Ok(slot()));
    }

    #[test]
    fn slot_with_a_changed_byte_is_damaged() {
        let bytes = slot().encode();
        for at in 0..bytes.len() {
            let mut changed = bytes;
            changed[at] ^= 4;
            assert_eq!(Slot::decode(&changed), Err(SlotFault::Damaged), "byte {at}");
        }
        assert_eq!(Slot::decode(&[0; SLOT_BYTES]), Err(SlotFault::Empty));
    }

    #[test]
    fn slot_has_room_for_all_members() {
        let mut slot = slot();
        slot.state.voters = (0..MEMBERS_MAX as u64 - 1).collect();
        assert_eq!(Slot::decode(&slot.encode()), Ok(slot));
    }
}
