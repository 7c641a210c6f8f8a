//! Directed histories: one rule each.

use bytes::Bytes;
use storage::{
    EntryContent, EntryIndex, HardState, LogEntry, Lsn, NewRecord, Term, WriteBatch, WriteQueue,
};

use super::super::{
    BeginError, CommitNews, HandOverStep, Member, MemberConfig, ProposeError, Proposed,
    QuarantineReason, Role,
};
use super::network::Faults;
use super::node::{CLUSTER, GROUP, batch, member_id, node_id, record};
use super::world::{Sabotage, World};
use crate::entry_log::{EntryLog, MemoryLog};
use crate::frame::{
    Append, Body, Frame, FrameClass, FrameError, Message, encode_append, encode_control,
};
use crate::ids::{ClusterId, GroupId, MemberId};
use crate::limits::{
    ELECTION_TICKS_MIN, HAND_OVER_TICKS, HEARD_TICKS, HEARTBEAT_TICKS, TICK_US,
    UNCOMMITTED_BYTES_MAX,
};
use crate::membership::MembershipChange;

/// Three nodes without faults, with a leader that is active.
pub(super) fn led(seed: u64) -> (World, usize) {
    let mut world = World::new(3, 3, seed, Sabotage::None);
    world.network.faults = Faults::NONE;
    let leader = elect(&mut world);
    world.run(500_000);
    (world, leader)
}

fn elect(world: &mut World) -> usize {
    for _ in 0..200 {
        world.run(TICK_US);
        if let Some(leader) = world.leader() {
            return leader;
        }
    }
    panic!("no leader after ten seconds");
}

pub(super) fn member(world: &mut World, node: usize) -> &mut Member<MemoryLog> {
    world.nodes[node].member.as_mut().unwrap()
}

pub(super) fn isolate(world: &mut World, node: usize) {
    for other in (0..world.nodes.len()).filter(|other| *other != node) {
        world.network.cut(node, other, true);
        world.network.cut(other, node, true);
    }
}

/// Waits until a node writes nothing.
pub(super) fn idle(world: &mut World, node: usize) {
    while world.nodes[node].is_writing {
        world.run(100);
    }
}

pub(super) fn end(world: &World) {
    assert_eq!(world.checks.violations, Vec::<String>::new());
}

#[test]
fn reset_link_elects_within_a_few_ticks() {
    for seed in 0..20 {
        let (mut world, leader) = led(seed);
        world.nodes[leader].crash();
        let others: Vec<usize> = (0..3).filter(|other| *other != leader).collect();
        for other in &others {
            idle(&mut world, *other);
            member(&mut world, *other).peer_lost(member_id(leader));
            world.turn(*other);
        }
        world.run(4 * TICK_US);
        let next = world.leader();
        assert!(next.is_some_and(|next| next != leader), "seed {seed}: {next:?}");
        end(&world);
    }
}

#[test]
fn silent_leader_is_replaced_after_an_election_time() {
    let (mut world, leader) = led(3);
    isolate(&mut world, leader);
    world.run(950_000);
    assert_eq!(world.leader(), Some(leader), "no election before a second has passed");
    world.run(2_500_000);
    let next = world.leader().unwrap();
    assert_ne!(next, leader);
    let role = member(&mut world, leader).role();
    assert!(!matches!(role, Role::Leader { .. }), "check-quorum has deposed it: {role:?}");
    end(&world);
}

/// The axis of a leader now.
fn axis_us(world: &World, leader: usize) -> u64 {
    let there = &world.nodes[leader];
    let axis = there.member.as_ref().unwrap().axis().unwrap();
    axis.at(there.reading(world.now_us).monotonic_us)
}

#[test]
fn axis_goes_on_when_all_nodes_were_down() {
    for seed in 0..20 {
        let (mut world, mut leader) = led(seed);
        let (begin_us, began_us) = (world.now_us, axis_us(&world, leader));
        // The wall clocks differ by up to two minutes, and two of them have no median.
        for away in 0..3 {
            (0..3).for_each(|node| world.crash(node));
            world.run(30_000_000);
            (0..3).filter(|node| *node != away).for_each(|node| world.start(node));
            leader = elect(&mut world);
            world.run(2_000_000);
            world.start(away);
            world.run(2_000_000);
        }
        let (passed, shown) = (world.now_us - begin_us, axis_us(&world, leader) - began_us);
        assert!(shown <= passed + passed * 200 / 1_000_000 + 2, "{shown} us after {passed}");
        assert!(shown + 100_000 > passed, "seed {seed}: {shown} us after {passed}");
        end(&world);
    }
}

#[test]
fn leader_that_is_cut_off_tells_nothing_durable_not_even_elided() {
    let (mut world, leader) = led(4);
    assert!(world.propose(leader, 10));
    world.run(300_000);
    let confirmed = world.checks.confirmed.len();
    assert!(confirmed > 0);
    isolate(&mut world, leader);
    world.run((HEARD_TICKS + 2) * TICK_US);
    idle(&mut world, leader);
    assert!(matches!(member(&mut world, leader).role(), Role::Leader { .. }));
    let axis_us = member(&mut world, leader).last_axis_us;
    let mut elided = elided_batch(Lsn(1_000));
    let proposed = member(&mut world, leader).propose(&mut elided, axis_us);
    assert!(matches!(proposed, Ok(Proposed::Nothing(_))), "{proposed:?}");
    let mut frames = Vec::new();
    turn(&mut world, leader, &mut frames, |result| assert_eq!(result.durable, None));
    end(&world);
}

/// Clients of the leader wait until then.
#[test]
fn leader_that_is_cut_off_gives_up_after_an_election_time_and_a_heartbeat() {
    for seed in 40..50 {
        let (mut world, leader) = led(seed);
        world.run(seed * TICK_US);
        isolate(&mut world, leader);
        world.run((ELECTION_TICKS_MIN + HEARTBEAT_TICKS) as u64 * TICK_US);
        let role = member(&mut world, leader).role();
        assert!(!matches!(role, Role::Leader { .. }), "seed {seed}: {role:?}");
        end(&world);
    }
}

#[test]
fn elided_batch_is_durable_with_the_entry_before() {
    let (mut world, leader) = led(5);
    idle(&mut world, leader);
    let axis_us = member(&mut world, leader).last_axis_us;
    let before = member(&mut world, leader).last_index();
    let proposed = member(&mut world, leader).propose(&mut elided_batch(Lsn(1_000)), axis_us);
    assert_eq!(proposed, Ok(Proposed::Nothing(before)));
    let told = |result: &super::super::TurnResult| assert_eq!(result.durable, Some(before));
    turn(&mut world, leader, &mut Vec::new(), told);
    end(&world);
}

/// A batch of which nothing is left to write.
fn elided_batch(first: Lsn) -> WriteBatch {
    let mut queue = WriteQueue::default();
    queue.push(record(first, 1), |_| {});
    let (lsn, flags) = (Lsn(first.0 + 1), storage::Flags::RELEASES);
    queue.push(NewRecord { lsn, target: first, flags, ..record(first, 0) }, |_| {});
    let mut batch = WriteBatch::default();
    queue.take_batch(&mut batch);
    batch
}

/// One turn of a node, whose frames are not sent.
pub(super) fn turn(
    world: &mut World,
    node: usize,
    frames: &mut Vec<Frame>,
    told: impl Fn(&super::super::TurnResult),
) {
    let there = &mut world.nodes[node];
    let now = there.reading(world.now_us);
    let member = there.member.as_mut().unwrap();
    let clock = crate::clock::TurnClock { now, wall_after_us: now.wall_us, bounds: &there.bounds };
    if member.begin(&clock, frames) {
        member.write().unwrap();
    }
    told(&member.end(frames));
}

#[test]
fn transfer_takes_no_proposals_until_it_is_done() {
    let (mut world, leader) = led(6);
    let to = (leader + 1) % 3;
    idle(&mut world, leader);
    member(&mut world, leader).transfer(member_id(to));
    let refused = member(&mut world, leader).propose(&mut batch(Lsn(900), 9, 0), u64::MAX);
    assert_eq!(refused, Err(ProposeError::Transferring));
    world.turn(leader);
    world.run(300_000);
    assert_eq!(world.leader(), Some(to));
    assert!(world.propose(to, 10));
    end(&world);
}

#[test]
fn hand_over_that_comes_to_nothing_ends() {
    let (mut world, leader) = led(6);
    let to = member_id((leader + 1) % 3);
    idle(&mut world, leader);
    let mut hand_over = member(&mut world, leader).hand_over(Some(to)).unwrap();
    // Nobody hears the request to campaign, and answers count as before.
    isolate(&mut world, leader);
    let mut step = |world: &mut World| hand_over.step(member(world, leader), true);
    assert_eq!(step(&mut world), HandOverStep::Wait);
    let mut steps = Vec::new();
    for _ in 0..HAND_OVER_TICKS {
        member(&mut world, leader).tick();
        turn(&mut world, leader, &mut Vec::new(), |_| ());
        steps.push(step(&mut world));
    }
    assert_eq!(steps.pop(), Some(HandOverStep::KeepLeading));
    assert!(steps.iter().all(|step| *step == HandOverStep::Wait), "{steps:?}");
    let axis_us = member(&mut world, leader).last_axis_us;
    let proposed = member(&mut world, leader).propose(&mut batch(Lsn(900), 9, 0), axis_us);
    assert!(proposed.is_ok(), "{proposed:?}");
    assert_eq!(hand_over.step(member(&mut world, leader), false), HandOverStep::Wait);
    assert_eq!(hand_over.step(member(&mut world, leader), true), HandOverStep::Resume);
}

#[test]
fn hand_over_needs_a_voter_that_was_heard() {
    let (mut world, leader) = led(6);
    let (next, other) = ((leader + 1) % 3, (leader + 2) % 3);
    assert_eq!(member(&mut world, leader).successors().len(), 2);
    assert!(member(&mut world, next).hand_over(None).is_none(), "it does not lead");
    world.network.cut(leader, next, true);
    world.run(800_000);
    assert_eq!(member(&mut world, leader).successors(), [member_id(other)]);
    assert!(member(&mut world, leader).hand_over(Some(member_id(next))).is_none());
    assert_eq!(member(&mut world, leader).hand_over(None).unwrap().to(), member_id(other));
}

#[test]
fn uncommitted_octets_have_a_limit() {
    let (mut world, leader) = led(7);
    isolate(&mut world, leader);
    let most = UNCOMMITTED_BYTES_MAX / 2;
    idle(&mut world, leader);
    let axis_us = member(&mut world, leader).last_axis_us;
    let mut propose = |bytes, position| {
        member(&mut world, leader).propose(&mut batch(Lsn(position), 9, bytes), axis_us)
    };
    assert!(propose(most, 1_000).is_ok());
    let behind = propose(most, 1_010);
    assert!(matches!(behind, Err(ProposeError::Behind { bytes }) if bytes > most), "{behind:?}");
    assert!(propose(100, 1_020).is_ok());
}

#[test]
fn first_entry_is_accepted_whatever_its_size() {
    let (mut world, leader) = led(7);
    idle(&mut world, leader);
    let axis_us = member(&mut world, leader).last_axis_us;
    let mut large = batch(Lsn(1_000), 9, UNCOMMITTED_BYTES_MAX + 1);
    assert!(member(&mut world, leader).propose(&mut large, axis_us).is_ok());
}

#[test]
fn heartbeats_pass_a_large_entry() {
    let (mut world, leader) = led(8);
    idle(&mut world, leader);
    let axis_us = member(&mut world, leader).last_axis_us;
    let mut large = batch(Lsn(1_000), 9, 3_000_000);
    member(&mut world, leader).propose(&mut large, axis_us).unwrap();
    let mut frames = Vec::new();
    turn(&mut world, leader, &mut frames, |_| {});
    assert!(frames.len() > 20, "{} frames", frames.len());
    assert!(frames.iter().all(|frame| frame.len() <= crate::limits::FRAME_BYTES_MAX));
    assert!(frames.iter().all(|frame| frame.class == FrameClass::Entries));
    assert!(frames.iter().filter(|frame| !frame.tail.is_empty()).count() > 20, "shared octets");
}

/// Guard 2: the leader's entries leave before its own write, an answer only after it.
#[test]
fn entries_leave_before_the_own_write_and_answers_after_it() {
    let (mut world, leader) = led(9);
    let follower = (leader + 1) % 3;
    idle(&mut world, leader);
    idle(&mut world, follower);
    let axis_us = member(&mut world, leader).last_axis_us;
    member(&mut world, leader).propose(&mut batch(Lsn(1_000), 9, 10), axis_us).unwrap();
    let there = &mut world.nodes[leader];
    let now = there.reading(world.now_us);
    let clock = crate::clock::TurnClock { now, wall_after_us: now.wall_us, bounds: &there.bounds };
    let mut frames = Vec::new();
    assert!(there.member.as_mut().unwrap().begin(&clock, &mut frames));
    let to_follower = |frame: &&Frame| frame.to == member_id(follower);
    let frame = frames.iter().find(to_follower).unwrap().to_bytes();
    let there = &mut world.nodes[follower];
    let now = there.reading(world.now_us);
    let member = there.member.as_mut().unwrap();
    member.receive(node_id(leader), &frame).unwrap();
    let clock = crate::clock::TurnClock { now, wall_after_us: now.wall_us, bounds: &there.bounds };
    let mut answers = Vec::new();
    let durable = member.log().durable().len();
    assert!(member.begin(&clock, &mut answers));
    assert_eq!(answers.len(), 0, "nothing is answered before the write");
    member.write().unwrap();
    assert_eq!(member.log().durable().len(), durable + 1);
    member.end(&mut answers);
    assert_eq!(answers.len(), 1);
}

/// Guard 1: a leader that removes itself steps down at once, and the others go on.

#[test]
fn stalled_leader_steps_down_and_acknowledges_nothing() {
    let (mut world, leader) = led(11);
    idle(&mut world, leader);
    member(&mut world, leader).stalled();
    world.turn(leader);
    assert!(matches!(member(&mut world, leader).role(), Role::Follower { .. }));
    world.run(4_000_000);
    let next = world.leader().unwrap();
    assert_ne!(next, leader);
    member(&mut world, leader).recovered();
    assert!(world.propose(next, 10));
    world.run(1_000_000);
    assert_eq!(world.nodes[leader].delivered, world.nodes[next].delivered);
    end(&world);
}

#[test]
fn quarantined_member_neither_votes_nor_leads() {
    let (mut world, leader) = led(12);
    idle(&mut world, leader);
    let reason = QuarantineReason::Damaged("a test".to_owned());
    member(&mut world, leader).quarantine(reason.clone());
    turn(&mut world, leader, &mut Vec::new(), |result| {
        assert_eq!(result.role, Some(Role::Quarantined));
        assert_eq!(result.quarantine, Some(reason.clone()));
    });
    world.run(4_000_000);
    let next = world.leader().unwrap();
    assert_ne!(next, leader);
    let other = 3 - leader - next;
    world.crash(next);
    world.run(6_000_000);
    assert_eq!(world.leader(), None, "node {other} is no majority");
    world.crash(leader);
    assert!(world.nodes[leader].log.as_ref().unwrap().is_disqualified(), "a later process knows");
}

/// A frame of the leader to a follower.
pub(super) fn from_leader(world: &World, (leader, to): (usize, usize), body: Body) -> Bytes {
    let member = world.nodes[leader].member.as_ref().unwrap();
    let message = Message { term: member.engine.term(), body };
    encode_control(member.header(member_id(to)), &message)
}

#[test]
fn member_whose_log_lacks_acknowledged_entries_is_quarantined() {
    let (mut world, leader) = led(13);
    let follower = (leader + 1) % 3;
    idle(&mut world, follower);
    let heartbeat = Body::Heartbeat { commit: 1_000_000, needed_from: 1, clock: None };
    let frame = from_leader(&world, (leader, follower), heartbeat);
    assert_eq!(member(&mut world, follower).receive(node_id(leader), &frame), Ok(true));
    let reason = member(&mut world, follower).quarantine_reason();
    assert!(matches!(reason, Some(QuarantineReason::Diverged(_))), "{reason:?}");
    // It is told when it is written down: what follows from it may end the process.
    assert!(!member(&mut world, follower).log().is_disqualified());
    turn(&mut world, follower, &mut Vec::new(), |result| assert!(result.quarantine.is_some()));
    assert!(member(&mut world, follower).log().is_disqualified());
}

/// Sends an append of the leader to a follower, and expects that all its frames are refused or lead to nothing.
fn refuses_append(previous: u64, previous_term: u64, entries: Vec<LogEntry>) {
    let (mut world, leader) = led(16);
    let follower = (leader + 1) % 3;
    idle(&mut world, follower);
    let of_leader = world.nodes[leader].member.as_ref().unwrap();
    let append = Append { previous, previous_term, commit: 0, clock: None, entries };
    let (header, term) = (of_leader.header(member_id(follower)), of_leader.engine.term());
    let mut frames = Vec::new();
    encode_append(header, 1, term, &append, &mut frames);
    let results = frames
        .iter()
        .map(|frame| member(&mut world, follower).receive(node_id(leader), &frame.to_bytes()));
    let refused = results.last().unwrap();
    assert!(matches!(refused, Err(FrameError::Impossible(_))), "{refused:?}");
}

#[test]
fn entries_behind_one_that_is_not_there_and_has_no_term_are_refused() {
    refuses_append(1_000_000, 0, Vec::new());
}

#[test]
fn entry_without_a_term_is_refused() {
    let (world, leader) = led(16);
    let of_leader = world.nodes[leader].member.as_ref().unwrap();
    let (last, term) = (of_leader.last_index().0, of_leader.engine.term());
    let entry = LogEntry {
        index: EntryIndex(last + 1),
        term: Term(0),
        axis_us: of_leader.last_axis_us,
        content: EntryContent::Empty,
    };
    refuses_append(last, term, vec![entry]);
}

#[test]
fn answer_to_an_entry_that_does_not_exist_is_refused() {
    let (mut world, leader) = led(14);
    let follower = (leader + 1) % 3;
    let answer = Body::AppendAnswer {
        index: 1_000_000,
        commit: 0,
        is_rejected: false,
        hint: 0,
        hint_term: 0,
    };
    let frame = from_leader(&world, (follower, leader), answer);
    idle(&mut world, leader);
    let refused = member(&mut world, leader).receive(node_id(follower), &frame);
    assert!(matches!(refused, Err(FrameError::Impossible(_))), "{refused:?}");
}

#[test]
fn frames_of_others_are_refused_by_kind() {
    let (mut world, leader) = led(15);
    let follower = (leader + 1) % 3;
    idle(&mut world, follower);
    let from = world.nodes[leader].member.as_ref().unwrap();
    let message = Message { term: 1, body: Body::HeartbeatAnswer { commit: 0 } };
    let header = from.header(member_id(follower));
    let rebuilt = |member: MemberId| member.node().member(0);
    let cases = [
        (crate::frame::FrameHeader { cluster: ClusterId(1), ..header }, "of cluster"),
        (crate::frame::FrameHeader { group: GroupId(1), ..header }, "of group 1"),
        (crate::frame::FrameHeader { from: member_id(9), ..header }, "not at this end"),
        (crate::frame::FrameHeader { to: member_id(9), ..header }, "not at this end"),
        (crate::frame::FrameHeader { from: rebuilt(header.from), ..header }, "and 1 is known"),
        (crate::frame::FrameHeader { to: rebuilt(header.to), ..header }, "and 1 is known"),
        (crate::frame::FrameHeader { to: node_id(follower).member(2), ..header }, "and this is 1"),
    ];
    for (header, text) in cases {
        let frame = encode_control(header, &message);
        let refused = member(&mut world, follower).receive(node_id(leader), &frame).unwrap_err();
        assert!(refused.to_string().contains(text), "{refused}");
    }
}

fn config() -> MemberConfig {
    MemberConfig {
        cluster: CLUSTER,
        group: GROUP,
        me: member_id(0),
        seed: 1,
        tells_commits: CommitNews::AtOnce,
    }
}

#[test]
fn group_without_voters_is_refused() {
    let refused = Member::open(config(), MemoryLog::new(GROUP.0, Vec::new())).unwrap_err();
    assert!(refused.to_string().contains("nobody votes"), "{refused}");
}

#[test]
fn contradictory_log_and_hard_state_are_refused() {
    let mut log = MemoryLog::new(GROUP.0, vec![member_id(0).get()]);
    let state = log.hard_state().clone();
    log.save_hard_state(&HardState { term: Term(1), commit: EntryIndex(3), ..state }).unwrap();
    let refused = Member::open(config(), log).unwrap_err();
    assert!(matches!(refused, BeginError::Contradiction(_)), "{refused}");
}

/// A change of the members proves that the one before is committed: its member must not campaign without it.

#[test]
fn leaders_of_a_node_send_heartbeats_at_the_same_ticks() {
    for begins in 0..HEARTBEAT_TICKS as u64 {
        let (mut world, leader) = led(6);
        idle(&mut world, leader);
        isolate(&mut world, leader);
        // As if the driver had counted more ticks before this member.
        let ticks = member(&mut world, leader).ticks;
        member(&mut world, leader).begin_at_tick(ticks + begins);
        let (mut beats, mut last) = (0, None);
        // It gives up soon after, because nobody answers.
        for _ in 0..3 * HEARTBEAT_TICKS {
            member(&mut world, leader).tick();
            let number = member(&mut world, leader).ticks;
            let mut frames = Vec::new();
            turn(&mut world, leader, &mut frames, |_| ());
            if !frames.is_empty() {
                assert!(number.is_multiple_of(HEARTBEAT_TICKS as u64), "{number}");
                assert!(last.is_none_or(|last| number - last == HEARTBEAT_TICKS as u64));
                (beats, last) = (beats + 1, Some(number));
            }
        }
        assert!(beats >= 2, "{beats}");
    }
}

/// An idle leader has no turn for each answer to its heartbeats; one with an entry under way has.
#[test]
fn answers_to_heartbeats_need_a_turn_only_if_something_is_under_way() {
    let (mut world, leader) = led(18);
    let follower = (leader + 1) % 3;
    let last = member(&mut world, leader).last_index().0;
    let answer = |world: &World, commit| {
        from_leader(world, (follower, leader), Body::HeartbeatAnswer { commit })
    };
    idle(&mut world, leader);
    let frame = answer(&world, last);
    assert_eq!(member(&mut world, leader).receive(node_id(follower), &frame), Ok(false));
    isolate(&mut world, leader);
    assert!(world.propose(leader, 10));
    idle(&mut world, leader);
    let frame = answer(&world, last);
    assert_eq!(member(&mut world, leader).receive(node_id(follower), &frame), Ok(true));
}

/// The leader's own way to tell commits: nodes with even numbers tell them at once, the others with a tick.
#[test]
fn commit_without_new_entries_is_told_at_once_or_with_the_next_tick() {
    let mut seen = [0, 0];
    for seed in 0..12 {
        let (mut world, leader) = led(seed);
        let waits = !leader.is_multiple_of(2);
        let delivered = |world: &mut World| [0, 1, 2].map(|node| member(world, node).delivered().0);
        // Just behind a tick, so that the next one is far.
        let ticks = member(&mut world, leader).ticks;
        while member(&mut world, leader).ticks == ticks {
            world.run(200);
        }
        idle(&mut world, leader);
        assert!(world.propose(leader, 10));
        let last = member(&mut world, leader).last_index().0;
        world.run(TICK_US / 2);
        let after = delivered(&mut world);
        assert_eq!(after[leader], last, "seed {seed}");
        let behind = after.iter().filter(|of| **of < last).count();
        assert_eq!(behind, if waits { 2 } else { 0 }, "seed {seed}: {after:?} of {last}");
        world.run(TICK_US);
        assert_eq!(delivered(&mut world), [last; 3], "seed {seed}");
        seen[usize::from(waits)] += 1;
        end(&world);
    }
    assert!(seen.iter().all(|of| *of > 0), "{seen:?}");
}

#[test]
fn files_do_not_replace_a_log_that_has_their_last_entry() {
    let (mut world, leader) = led(4);
    assert!(world.propose(leader, 10));
    world.run(200_000);
    let follower = member(&mut world, (leader + 1) % 3);
    let (last, term) = (follower.last_index(), follower.term());
    for index in 1..=last.0 {
        assert!(!follower.is_behind(EntryIndex(index), term), "entry {index} is there");
    }
    assert!(follower.is_behind(EntryIndex(last.0 + 1), term), "the log ends before");
    assert!(follower.is_behind(last, Term(term.0 + 1)), "another entry is there");
    for _ in 0..5 {
        assert!(world.propose(leader, 10));
        world.run(200_000);
    }
    world.compact(leader);
    let leader = member(&mut world, leader);
    assert!(leader.log().first_index().0 > 2, "{:?}", leader.log().first_index());
    assert!(!leader.is_behind(EntryIndex(1), Term(9)), "what was there is compacted");
}

#[test]
fn change_before_the_last_one_is_committed() {
    let all: Vec<u64> = (0..3).map(|node| member_id(node).get()).collect();
    let mut log = MemoryLog::new(GROUP.0, all);
    let state = log.hard_state().clone();
    log.save_hard_state(&HardState { term: Term(1), ..state }).unwrap();
    let change = |index, node| {
        let content =
            EntryContent::Membership(MembershipChange::AddLearner(member_id(node)).encode());
        LogEntry { index: EntryIndex(index), term: Term(1), axis_us: 0, content }
    };
    log.append(&[change(1, 3), change(2, 4)]).unwrap();
    let mut member = Member::open(config(), log).unwrap();
    let reading =
        crate::clock::ClockReading { run: crate::ids::RunId(1), monotonic_us: 0, wall_us: 0 };
    let bounds = crate::clock::ClockBounds::default();
    member.begin(
        &crate::clock::TurnClock { now: reading, wall_after_us: reading.wall_us, bounds: &bounds },
        &mut Vec::new(),
    );
    member.write().unwrap();
    // The members are saved before the log learns that the change is committed.
    let saved = member.log().hard_state();
    assert_eq!((saved.commit, saved.learners.clone()), (EntryIndex(1), vec![member_id(3).get()]));
    let result = member.end(&mut Vec::new());
    assert_eq!(result.committed.len(), 1);
    assert_eq!(member.members().1, [member_id(3)]);
}
