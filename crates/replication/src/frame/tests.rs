//! Frames are read as they were written, in any parts; other octets are refused and do no harm.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use storage::{EntryContent, EntryIndex, EntryRecords, LogEntry, Lsn, Term};

use super::control::{decode_control, encode_control};
use super::message::{Append, Body, Message, Vote, VoteAnswer};
use super::{
    Assembly, ClockPing, Frame, FrameError, FrameHeader, FrameKind, LeadsNotice, LedGroup,
    NodeFrame, NodePair, decode_append, encode_append,
};
use crate::clock::{ClockReading, LeaderClock};
use crate::ids::{ClusterId, GroupId, MemberId, NodeId, RunId};
use crate::limits::{FRAME_BYTES_MAX, LEADS_PER_NOTICE_MAX, NUMBER_MAX};

fn header() -> FrameHeader {
    FrameHeader {
        kind: FrameKind::Part,
        length: 0,
        bare: 0,
        crc: 0,
        cluster: ClusterId(7),
        group: GroupId(5),
        from: MemberId::new(0x2_0001).unwrap(),
        to: MemberId::new(0x1_0001).unwrap(),
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..10_u64, 0..=NUMBER_MAX]
}

fn clock() -> impl Strategy<Value = Option<LeaderClock>> {
    let some = (number(), 1..1_u64 << 48, any::<u64>(), any::<i64>());
    let clock = some.prop_map(|(term, node, run, offset_us)| LeaderClock {
        term,
        node: NodeId::new(node).unwrap(),
        run: RunId(run),
        offset_us,
    });
    proptest::option::of(clock)
}

fn control() -> impl Strategy<Value = Message> {
    let body = prop_oneof![
        (number(), number(), any::<bool>(), number(), number()).prop_map(
            |(index, commit, is_rejected, hint, hint_term)| Body::AppendAnswer {
                index,
                commit,
                is_rejected,
                hint,
                hint_term
            }
        ),
        (number(), number(), clock()).prop_map(|(commit, needed_from, clock)| Body::Heartbeat {
            commit,
            needed_from,
            clock
        }),
        number().prop_map(|commit| Body::HeartbeatAnswer { commit }),
        ((any::<bool>(), any::<bool>()), [number(), number(), number(), number()]).prop_map(
            |((is_pre_vote, is_transfer), [last, last_term, commit, commit_term])| {
                let numbers = (last, last_term, commit, commit_term);
                let (last, last_term, commit, commit_term) = numbers;
                Body::Vote(Vote { is_pre_vote, is_transfer, last, last_term, commit, commit_term })
            }
        ),
        (any::<bool>(), any::<bool>(), number(), number(), clock(), clock()).prop_map(
            |(is_pre_vote, is_rejected, commit, commit_term, clock, saved)| {
                Body::VoteAnswer(VoteAnswer {
                    is_pre_vote,
                    is_rejected,
                    commit,
                    commit_term,
                    clock,
                    saved,
                })
            }
        ),
        Just(Body::TimeoutNow),
        (number(), number())
            .prop_map(|(index, index_term)| Body::SnapshotOffer { index, index_term }),
    ];
    (1..=NUMBER_MAX, body).prop_map(|(term, body)| Message { term, body })
}

fn append() -> impl Strategy<Value = Message> {
    let bytes = prop_oneof![9 => 1..2_000_usize, 1 => 1..800_000_usize];
    let entry = (0..4_u8, bytes, any::<u8>());
    let fields = (0..1_000_u64, 1..5_u64, number(), clock(), vec(entry, 0..12));
    fields.prop_map(|(previous, term, commit, clock, contents)| {
        let entries =
            contents.into_iter().zip(previous + 1..).map(|((kind, bytes, fill), index)| {
                let content = match kind {
                    0 => EntryContent::Empty,
                    1 => EntryContent::Membership(Bytes::from(vec![fill; bytes % 65])),
                    _ => EntryContent::Records(EntryRecords {
                        first: Lsn(index * 10),
                        last: Lsn(index * 10 + 3),
                        count: 2,
                        bytes: Bytes::from(vec![fill; bytes]),
                    }),
                };
                let (index, term) = (EntryIndex(index), Term(term));
                LogEntry { index, term, axis_us: 99, content }
            });
        let entries = entries.collect();
        let append = Append { previous, previous_term: term, commit, clock, entries };
        Message { term, body: Body::Append(append) }
    })
}

fn cut(message: &Message, number: u64) -> Vec<Frame> {
    let Body::Append(append) = &message.body else { panic!("a message with entries") };
    let mut frames = Vec::new();
    encode_append(header(), number, message.term, append, &mut frames);
    frames
}

/// Reads frames as a member does.
fn join(assembly: &mut Assembly, frame: &[u8]) -> Result<Option<Message>, FrameError> {
    let header = FrameHeader::read(frame)?;
    let payload = header.payload(frame)?;
    if header.kind == FrameKind::Part {
        return assembly.push(payload)?.map(|whole| decode_append(&whole)).transpose();
    }
    decode_control(header.kind, payload).map(Some)
}

proptest! {
    #[test]
    fn control_is_read_as_it_was_written(message in control()) {
        let frame = encode_control(header(), &message);
        prop_assert_eq!(join(&mut Assembly::default(), &frame), Ok(Some(message)));
    }

    #[test]
    fn entries_are_joined_from_their_parts(messages in vec(append(), 1..4)) {
        let mut assembly = Assembly::default();
        for (number, message) in messages.iter().enumerate() {
            let frames = cut(message, number as u64);
            let last = frames.len() - 1;
            for (at, frame) in frames.iter().enumerate() {
                prop_assert!(frame.len() <= FRAME_BYTES_MAX);
                let joined = join(&mut assembly, &frame.to_bytes());
                let expected = (at == last).then(|| message.clone());
                prop_assert_eq!(joined, Ok(expected));
            }
        }
    }

    /// A lost, doubled or reordered part loses its message, and never mixes two.
    #[test]
    fn parts_of_two_messages_never_mix(
        one in append(), other in append(), order in vec((any::<bool>(), 0..12_usize), 0..40)
    ) {
        let frames = [cut(&one, 1), cut(&other, 2)];
        let mut assembly = Assembly::default();
        for (is_other, at) in order {
            let of = &frames[usize::from(is_other)];
            let joined = join(&mut assembly, &of[at % of.len()].to_bytes());
            if let Some(message) = joined.unwrap() {
                prop_assert!(message == one || message == other);
            }
        }
    }

    #[test]
    fn cut_frame_is_cut(message in control(), keep in 0.0..1.0_f64) {
        let frame = encode_control(header(), &message);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of it")]
        let keep = (frame.len() as f64 * keep) as usize;
        let refused = join(&mut Assembly::default(), &frame[..keep]);
        prop_assert_eq!(refused, Err(FrameError::Cut { bytes: keep }));
    }

    #[test]
    fn changed_octet_is_refused(message in control(), at in any::<usize>(), with in 1..=255_u8) {
        let mut frame = encode_control(header(), &message).to_vec();
        let at = at % frame.len();
        frame[at] ^= with;
        prop_assert!(join(&mut Assembly::default(), &frame).is_err());
    }

    #[test]
    fn any_octets_do_no_harm(octets in vec(any::<u8>(), 0..300), kind in 0..11_u8) {
        let (from, to) = (header().from, header().to);
        let frame = super::check_frame(ClusterId(7), GroupId(5), (from, to), kind, &octets);
        // Refused or not: nothing but a panic would be a fault.
        let _ = join(&mut Assembly::default(), &frame);
        let _ = join(&mut Assembly::default(), &octets);
        let _ = decode_append(&Bytes::from(octets));
    }
}

#[test]
fn lengths_are_checked_before_memory_is_taken() {
    let mut frame = encode_control(header(), &Message { term: 1, body: Body::TimeoutNow }).to_vec();
    frame[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(FrameHeader::read(&frame), Err(FrameError::TooLong { .. })));
    frame[4] = 2;
    assert_eq!(FrameHeader::read(&frame), Err(FrameError::NewerVersion { version: 2 }));
    // A part that claims 4 GiB takes the memory of what has come.
    let mut part = 1_u64.to_le_bytes().to_vec();
    part.extend([0, 0, 0, 0, 255, 255, 255, 255, 7]);
    assert_eq!(Assembly::default().push(&part), Ok(None));
    // A message that claims a million entries and has none.
    let mut message = vec![0; 8 * 4 + 33];
    message[0] = 1;
    message.extend(1_000_000_u32.to_le_bytes());
    let refused = decode_append(&Bytes::from(message));
    assert_eq!(refused, Err(FrameError::Malformed("more entries than octets")));
}

#[test]
fn frames_between_nodes_are_read_by_their_receiver_alone() {
    let [a, b] = [1, 2].map(|node| NodeId::new(node).unwrap());
    let nodes = NodePair { cluster: ClusterId(7), from: a, to: b };
    let reading = ClockReading { run: RunId(9), monotonic_us: 5, wall_us: 6 };
    let ping = ClockPing { nodes, reading };
    let led = |group, number| LedGroup {
        group: GroupId(group),
        term: Term(number),
        without: EntryIndex(number),
    };
    let notice = LeadsNotice { nodes, led: vec![led(3, 4), led(u64::MAX, NUMBER_MAX)] };
    let frames =
        [(ping.encode(), NodeFrame::Ping(ping)), (notice.encode(), NodeFrame::Leads(notice))];
    for (frame, meant) in frames {
        assert_eq!(NodeFrame::decode(&frame, nodes), Ok(meant));
        let refused = NodeFrame::decode(&frame, NodePair { cluster: ClusterId(8), ..nodes });
        assert_eq!(refused, Err(FrameError::OtherCluster { cluster: 7 }));
        let refused = NodeFrame::decode(&frame, NodePair { from: b, to: a, ..nodes });
        assert!(matches!(refused, Err(FrameError::OtherMember { .. })));
        for cut in 0..frame.len() {
            assert!(NodeFrame::decode(&frame[..cut], nodes).is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn notice_of_leads_is_bounded_and_whole() {
    let [a, b] = [1, 2].map(|node| NodeId::new(node).unwrap());
    let nodes = NodePair { cluster: ClusterId(7), from: a, to: b };
    for (bytes, problem) in [
        (24 * (LEADS_PER_NOTICE_MAX + 1), FrameError::Malformed("too many groups")),
        (25, FrameError::Cut { bytes: 1 }),
        (40, FrameError::Cut { bytes: 0 }),
    ] {
        let frame = nodes.frame(FrameKind::Leads, |out| out.resize(out.len() + bytes, 0));
        assert_eq!(NodeFrame::decode(&frame, nodes), Err(problem), "{bytes} octets");
    }
    let frame = nodes.frame(FrameKind::Vote, |_| ());
    let refused = NodeFrame::decode(&frame, nodes);
    assert_eq!(refused, Err(FrameError::Malformed("no frame between nodes")));
}
