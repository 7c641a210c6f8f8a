//! Members that come and go.

use std::ops::RangeInclusive;

use storage::{EntryIndex, Term};

use super::super::{ProposeError, ReplacementStep, Role};
use super::directed::{end, idle, isolate, led, member};
use super::node::{GROUP, member_id, node_id};
use super::world::World;
use crate::frame::LedGroup;
use crate::ids::{MemberId, NodeId};
use crate::membership::MembershipChange;
use crate::placement::GroupPlacement;

/// Incarnations of the members of a founder.
const FIRST: RangeInclusive<u16> = 1..=4;

/// Makes the changes at a leader that lead to a new member on a node. Returns the member and the changes.
fn replace(
    world: &mut World,
    leader: usize,
    node: NodeId,
    incarnations: &RangeInclusive<u16>,
) -> (MemberId, Vec<MembershipChange>) {
    let mut changes = Vec::new();
    loop {
        idle(world, leader);
        match member(world, leader).replacement(node, incarnations) {
            ReplacementStep::Change(change) => {
                changes.push(change);
                propose_change(world, leader, change);
            }
            ReplacementStep::Wait => {}
            ReplacementStep::Ready(ready) => return (ready, changes),
            ReplacementStep::Refused(why) => panic!("{why}"),
        }
        world.run(50_000);
    }
}

/// Three nodes, whose leader has not heard one of the others for long: the world, the leader, that one.
fn led_without_one() -> (World, usize, usize) {
    let (mut world, leader) = led(6);
    let lost = (leader + 1) % 3;
    isolate(&mut world, lost);
    world.run(800_000);
    idle(&mut world, leader);
    (world, leader, lost)
}

fn propose_change(world: &mut World, leader: usize, change: MembershipChange) {
    let axis_us = member(world, leader).last_axis_us;
    member(world, leader).change_members(change, axis_us).unwrap();
    world.turn(leader);
}

#[test]
fn lost_member_is_replaced_by_its_next_incarnation() {
    let (mut world, leader, lost) = led_without_one();
    let third = 3 - leader - lost;
    let (ready, changes) = replace(&mut world, leader, node_id(lost), &FIRST);
    let next = node_id(lost).member(2);
    assert_eq!(ready, next);
    let removed = MembershipChange::Remove(member_id(lost));
    assert_eq!(changes, [MembershipChange::AddLearner(next), removed]);
    let (mut voters, learners) = member(&mut world, leader).members();
    voters.sort_unstable();
    let mut expected = vec![member_id(leader), member_id(third)];
    expected.sort_unstable();
    assert_eq!((voters, learners), (expected, vec![next]));
    // The learner has acknowledged nothing: the next attempt uses it, and it does not vote yet.
    idle(&mut world, leader);
    let again = member(&mut world, leader).replacement(node_id(lost), &FIRST);
    assert_eq!(again, ReplacementStep::Ready(next));
    assert_eq!(member(&mut world, leader).promotable(), None);
}

#[test]
fn node_that_joins_gets_a_learner() {
    let (mut world, leader) = led(6);
    let node = NodeId::new(77).unwrap();
    let told = member(&mut world, leader).told_to(node).unwrap();
    assert_eq!(told.without, member(&mut world, leader).delivered());
    assert_eq!(member(&mut world, leader).told_to(node_id(leader)), None, "it votes");
    let (ready, changes) = replace(&mut world, leader, node, &(9..=12));
    let told = member(&mut world, leader).told_to(node).unwrap();
    assert_eq!(told.without, EntryIndex(0), "it learns");
    assert_eq!((ready, changes), (node.member(9), vec![MembershipChange::AddLearner(ready)]));
    assert_eq!(member(&mut world, leader).members().1, [ready]);
}

#[test]
fn node_that_joins_again_gets_no_member_that_it_had() {
    let (mut world, leader, lost) = led_without_one();
    let (ready, changes) = replace(&mut world, leader, node_id(lost), &(5..=8));
    assert_eq!(ready, node_id(lost).member(5));
    assert_eq!(changes.len(), 2);
    // A learner of an earlier time is not taken for one of this time.
    let (ready, changes) = replace(&mut world, leader, node_id(lost), &(9..=9));
    assert_eq!(ready, node_id(lost).member(9));
    let removed = MembershipChange::Remove(node_id(lost).member(5));
    assert_eq!(changes, [MembershipChange::AddLearner(ready), removed]);
    idle(&mut world, leader);
    let step = member(&mut world, leader).replacement(node_id(lost), &(1..=8));
    assert_eq!(step, ReplacementStep::Refused("the member has no more incarnations"));
}

#[test]
fn member_of_a_forgotten_node_is_removed_while_a_majority_is_heard() {
    let (mut world, leader, gone) = led_without_one();
    let third = 3 - leader - gone;
    let is_gone = |member: MemberId| member == member_id(gone);
    let change = member(&mut world, leader).removal(is_gone);
    assert_eq!(change, Some(MembershipChange::Remove(member_id(gone))));
    assert_eq!(member(&mut world, leader).removal(|_| false), None);
    // One that is needed for the majority stays, and so does the leader itself.
    let others = |member: MemberId| member != member_id(gone);
    assert_eq!(member(&mut world, leader).removal(others), None);
    assert_eq!(member(&mut world, third).removal(is_gone), None, "it does not lead");
    propose_change(&mut world, leader, change.unwrap());
    world.run(200_000);
    idle(&mut world, leader);
    assert_eq!(member(&mut world, leader).removal(is_gone), None);
    assert_eq!(member(&mut world, leader).members().0.len(), 2);
}

#[test]
fn leader_does_not_replace_itself() {
    let (mut world, leader) = led(6);
    idle(&mut world, leader);
    let step = member(&mut world, leader).replacement(node_id(leader), &FIRST);
    assert!(matches!(step, ReplacementStep::Refused(_)), "{step:?}");
    let follower = (leader + 1) % 3;
    let step = member(&mut world, follower).replacement(node_id(leader), &FIRST);
    assert_eq!(step, ReplacementStep::Refused("this member does not lead"));
}

#[test]
fn leader_that_removes_itself_steps_down() {
    let (mut world, leader) = led(10);
    idle(&mut world, leader);
    let axis_us = member(&mut world, leader).last_axis_us;
    let change = MembershipChange::Remove(member_id(leader));
    member(&mut world, leader).change_members(change, axis_us).unwrap();
    let second = member(&mut world, leader).change_members(change, axis_us);
    assert_eq!(second, Err(ProposeError::ChangePending));
    world.turn(leader);
    world.run(200_000);
    idle(&mut world, leader);
    assert_eq!(member(&mut world, leader).role(), Role::Follower { leader: None });
    let (voters, _) = member(&mut world, leader).members();
    assert!(!voters.contains(&member_id(leader)));
    world.run(4_000_000);
    let next = world.leader().unwrap();
    assert_ne!(next, leader);
    assert!(world.propose(next, 10));
    end(&world);
}

#[test]
fn member_that_is_removed_is_told_once_those_that_are_left_know() {
    let (mut world, leader, gone) = led_without_one();
    let axis_us = member(&mut world, leader).last_axis_us;
    assert_eq!(member(&mut world, leader).tell_removal(axis_us), None, "nobody was removed");
    propose_change(&mut world, leader, MembershipChange::Remove(member_id(gone)));
    world.run(200_000);
    idle(&mut world, leader);
    assert_eq!(member(&mut world, leader).members().0.len(), 2);
    let told = member(&mut world, leader).told_to(node_id(gone)).unwrap();
    assert_eq!(told.without, EntryIndex(0), "the other one may not know yet");
    assert!(member(&mut world, leader).tell_removal(axis_us).is_some());
    world.turn(leader);
    world.run(200_000);
    idle(&mut world, leader);
    assert_eq!(member(&mut world, leader).tell_removal(axis_us), None, "it is told");
    let told = member(&mut world, leader).told_to(node_id(gone)).unwrap();
    assert_eq!(told.without, member(&mut world, leader).delivered());
}

/// A group that is to be on some nodes; new members have an incarnation from this one on.
struct OnNodes(Vec<NodeId>, u16);

impl GroupPlacement for OnNodes {
    fn incarnations(&self, node: NodeId) -> Option<RangeInclusive<u16>> {
        self.0.contains(&node).then_some(self.1..=self.1 + 9)
    }

    fn first_incarnation(&self, node: NodeId) -> Option<u16> {
        Some(if self.0.contains(&node) { self.1 } else { self.1 + 10 })
    }

    fn is_gone(&self, _: MemberId) -> bool {
        false
    }

    fn chosen(&self) -> Option<Vec<NodeId>> {
        Some(self.0.clone())
    }
}

#[test]
fn member_leaves_once_those_vote_that_come_in_its_place() {
    let (mut world, leader) = led(6);
    let (one, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let new = NodeId::new(77).unwrap();
    let moved = OnNodes(vec![node_id(leader), node_id(one), new], 1);
    assert_eq!(member(&mut world, leader).next_change(&moved), None, "the new node has no voter");
    let smaller = OnNodes(vec![node_id(leader), node_id(one)], 1);
    let removal = Some(MembershipChange::Remove(member_id(other)));
    assert_eq!(member(&mut world, leader).next_change(&smaller), removal);
    let term = member(&mut world, leader).term();
    let known = member(&mut world, other).delivered();
    let led = |term, without| LedGroup { group: GROUP, term, without };
    let left_out = led(term, EntryIndex(known.0 + 1));
    assert!(member(&mut world, other).is_left_out(&left_out, &smaller));
    assert!(!member(&mut world, other).is_left_out(&left_out, &OnNodes(vec![node_id(other)], 1)));
    assert!(!member(&mut world, leader).is_left_out(&left_out, &OnNodes(vec![node_id(one)], 1)));
    for (told, why) in [
        (led(Term(term.0 - 1), left_out.without), "the leader is an old one"),
        (led(term, known), "the member may have been added later"),
        (led(term, EntryIndex(0)), "it learns"),
    ] {
        assert!(!member(&mut world, other).is_left_out(&told, &smaller), "{why}");
    }
}

#[test]
fn leader_that_leaves_gives_the_lead_to_one_that_stays() {
    let (mut world, leader) = led(6);
    let (one, other) = ((leader + 1) % 3, (leader + 2) % 3);
    for stays in [one, other] {
        let on_one = OnNodes(vec![node_id(stays)], 1);
        let successor = member(&mut world, leader).successor_of_leaving(&on_one);
        assert_eq!(successor, Some(node_id(stays)));
    }
    let on_new = OnNodes(vec![node_id(one), NodeId::new(77).unwrap()], 1);
    assert_eq!(member(&mut world, leader).successor_of_leaving(&on_new), None, "not all vote");
    let with_leader = OnNodes(vec![node_id(leader)], 1);
    assert_eq!(member(&mut world, leader).successor_of_leaving(&with_leader), None);
}

#[test]
fn member_of_a_node_that_is_chosen_again_stays_if_it_has_not_left() {
    let (mut world, leader) = led(6);
    let [all @ .., other] = [leader, (leader + 1) % 3, (leader + 2) % 3];
    let nodes = all.map(node_id).to_vec();
    let again = OnNodes([nodes.clone(), vec![node_id(other)]].concat(), 5);
    assert_eq!(member(&mut world, leader).next_change(&again), None);
    assert_eq!(member(&mut world, leader).successor_of_leaving(&again), None);
    // Another one leaves all the same.
    let removal = Some(MembershipChange::Remove(member_id(other)));
    assert_eq!(member(&mut world, leader).next_change(&OnNodes(nodes, 5)), removal);
    // One that has left ends, to come back as another.
    let term = member(&mut world, leader).term();
    let without = EntryIndex(member(&mut world, other).delivered().0 + 1);
    let left_out = LedGroup { group: GROUP, term, without };
    assert!(member(&mut world, other).is_left_out(&left_out, &again));
}

#[test]
fn member_of_a_later_choice_is_not_removed_by_a_leader_that_does_not_know_it_yet() {
    let (mut world, leader) = led(6);
    let (one, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let without = OnNodes(vec![node_id(leader), node_id(one)], 1);
    assert!(without.is_leaving(member_id(other)) && !without.is_leaving(node_id(other).member(11)));
    assert!(!without.may_be_left_out(node_id(other).member(11)));
    assert!(member(&mut world, leader).next_change(&without).is_some());
}
