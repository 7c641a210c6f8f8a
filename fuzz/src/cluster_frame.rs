//! Frames of one node to a member of a group: each has an effect or an error with a sentence.
//!
//! The first octet chooses whether the member leads or follows. The rest is frames, each behind its length of 16 bits:
//! when its highest bit is set, the octets are a payload, behind a header that is right.

use replication::{
    ClockBounds, ClockReading, ClusterId, CommitNews, FRAME_HEADER_BYTES, Frame, FrameHeader,
    GroupId, Member, MemberConfig, MemoryLog, NodeFrame, NodeId, NodePair, RunId, TurnClock,
    check_frame,
};

const CLUSTER: ClusterId = ClusterId(7);
const GROUP: GroupId = GroupId(5);

/// Kinds of frames, 0 for none; the last ones concern nodes and not a group.
const KINDS: u8 = 11;
const FIRST_KIND_OF_NODES: u8 = 9;

/// The node at the other end of the link, and the own one.
fn nodes() -> (NodeId, NodeId) {
    (NodeId::new(2).expect("a node"), NodeId::new(1).expect("a node"))
}

/// Checks one input.
pub fn check(input: &[u8]) {
    let Some((choice, mut rest)) = input.split_first() else { return };
    let (from, me) = nodes();
    let voters = match choice % 2 {
        0 => vec![me.member(1).get(), from.member(1).get()],
        _ => vec![me.member(1).get()],
    };
    let config = MemberConfig {
        cluster: CLUSTER,
        group: GROUP,
        me: me.member(1),
        seed: 1,
        tells_commits: CommitNews::AtTick,
    };
    let log = MemoryLog::new(GROUP.0, voters);
    let mut member = Member::open(config, log).expect("an empty log");
    for _ in 0..usize::from(*choice) {
        member.tick();
    }
    turn(&mut member);
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = u16::from_le_bytes(*length);
        let (is_payload, length) = (length >> 15 == 1, usize::from(length & 0x7fff));
        let (octets, behind) = behind.split_at(length.min(behind.len()));
        rest = behind;
        let frame = if is_payload { framed(octets) } else { octets.to_vec() };
        take(&mut member, &frame);
        member.tick();
        turn(&mut member);
    }
}

/// A frame with a right header: the first octet of `octets` chooses its kind, the rest is its payload.
fn framed(octets: &[u8]) -> Vec<u8> {
    let Some((kind, payload)) = octets.split_first() else { return Vec::new() };
    let (from, me) = nodes();
    let kind = kind % KINDS;
    match kind < FIRST_KIND_OF_NODES {
        true => check_frame(CLUSTER, GROUP, (from.member(1), me.member(1)), kind, payload),
        false => {
            let members = (from.member(0), me.member(0));
            check_frame(CLUSTER, GroupId::NODES, members, kind, payload)
        }
    }
}

fn take(member: &mut Member<MemoryLog>, frame: &[u8]) {
    let (from, me) = nodes();
    if let Ok(header) = FrameHeader::read(frame) {
        assert!(header.frame_bytes() >= FRAME_HEADER_BYTES, "a frame has a header");
    }
    if let Err(error) = NodeFrame::decode(frame, NodePair { cluster: CLUSTER, from, to: me }) {
        assert!(!error.to_string().is_empty(), "an error has a sentence");
    }
    let bytes = bytes::Bytes::copy_from_slice(frame);
    if let Err(error) = member.receive(from, &bytes) {
        assert!(!error.to_string().is_empty(), "an error has a sentence");
    }
}

/// A turn, in which the member writes what it has accepted.
fn turn(member: &mut Member<MemoryLog>) {
    let now = ClockReading { run: RunId(1), monotonic_us: 1, wall_us: 1 };
    let bounds = ClockBounds::default();
    let mut frames: Vec<Frame> = Vec::new();
    if member.begin(&TurnClock { now, wall_after_us: now.wall_us, bounds: &bounds }, &mut frames) {
        member.write().expect("memory has room");
    }
    let result = member.end(&mut frames);
    for frame in &frames {
        let header = FrameHeader::read(&frame.head).expect("an own frame can be read");
        assert_eq!(header.frame_bytes(), frame.len(), "a frame is as long as it says");
    }
    let last = member.last_index();
    assert!(result.committed.iter().all(|committed| committed.entry.index <= last));
}
