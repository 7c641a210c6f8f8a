//! A lead that begins and ends between two turns, as on a machine whose processors starve.

use bytes::Bytes;
use storage::{EntryContent, EntryIndex};

use super::directed::{idle, isolate, led, member};
use super::node::{member_id, node_id};
use super::world::World;
use crate::entry_log::EntryLog as _;
use crate::frame::{Body, Message, VoteAnswer, encode_control};

/// A frame of one node to another one, in a term.
fn frame(world: &World, from: usize, to: usize, term: u64, body: Body) -> Bytes {
    let header = world.nodes[from].member.as_ref().unwrap().header(member_id(to));
    encode_control(header, &Message { term, body })
}

fn vote(is_pre_vote: bool) -> Body {
    let (commit, commit_term) = (0, 0);
    let (clock, saved) = (None, None);
    Body::VoteAnswer(VoteAnswer {
        is_pre_vote,
        is_rejected: false,
        commit,
        commit_term,
        clock,
        saved,
    })
}

#[test]
fn leader_that_is_deposed_before_its_first_turn_writes_its_first_entry() {
    let (mut world, leader) = led(17);
    let [brief, voter] = [(leader + 1) % 3, (leader + 2) % 3];
    isolate(&mut world, brief);
    idle(&mut world, brief);
    let it = member(&mut world, brief);
    let (term, last, axis_us) = (it.engine.term(), it.engine.last_index(), it.last_axis_us);
    it.engine.forget_leader();
    it.engine.campaign();
    it.settle();
    for is_pre_vote in [true, false] {
        let answer = frame(&world, voter, brief, term + 1, vote(is_pre_vote));
        member(&mut world, brief).receive(node_id(voter), &answer).unwrap();
    }
    assert!(member(&mut world, brief).engine.is_leader());
    let later = Body::Heartbeat { commit: 0, needed_from: 1, clock: None };
    let later = frame(&world, leader, brief, term + 2, later);
    member(&mut world, brief).receive(node_id(leader), &later).unwrap();
    assert!(!member(&mut world, brief).engine.is_leader());

    world.turn(brief);
    idle(&mut world, brief);
    let log = member(&mut world, brief).log();
    let written = log.entries(EntryIndex(last + 1), EntryIndex(last + 2), usize::MAX).unwrap();
    let [entry] = written.as_slice() else { panic!("{written:?}") };
    assert_eq!((entry.term.0, &entry.content), (term + 1, &EntryContent::Empty));
    assert_eq!(entry.axis_us, axis_us, "its time is that of the entry before");
}
