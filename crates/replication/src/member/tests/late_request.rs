//! Requests to campaign that a member takes late.

use bytes::Bytes;
use storage::{EntryContent, EntryIndex, LogEntry, Term};

use super::directed::{from_leader, idle, led, member, turn};
use super::node::{member_id, node_id};
use super::world::World;
use crate::entry_log::EntryLog as _;
use crate::frame::{Append, Body, Frame, encode_append};

/// A node that has had no processor or disk for long takes the request together with what the leader has sent since.
#[test]
fn request_to_campaign_is_void_once_the_leader_goes_on() {
    for goes_on in [false, true] {
        let (mut world, leader) = led(6);
        let to = (leader + 1) % 3;
        idle(&mut world, to);
        let term = member(&mut world, to).term();
        let request = from_leader(&world, (leader, to), Body::TimeoutNow);
        assert_eq!(member(&mut world, to).receive(node_id(leader), &request), Ok(true));
        if goes_on {
            for frame in next_entry(&world, (leader, to)) {
                member(&mut world, to).receive(node_id(leader), &frame).unwrap();
            }
        }
        turn(&mut world, to, &mut Vec::new(), |_| ());
        let known = (member(&mut world, to).leader(), member(&mut world, to).term());
        let expected = match goes_on {
            true => (Some(member_id(leader)), term),
            false => (None, Term(term.0 + 1)),
        };
        assert_eq!(known, expected);
    }
}

/// The frames of an append with an entry behind the log of a follower.
fn next_entry(world: &World, (leader, to): (usize, usize)) -> Vec<Bytes> {
    let [of_leader, follower] = [leader, to].map(|node| world.nodes[node].member.as_ref().unwrap());
    let (previous, term) = (follower.last_index(), of_leader.term());
    let entry = LogEntry {
        index: EntryIndex(previous.0 + 1),
        term,
        axis_us: of_leader.last_axis_us,
        content: EntryContent::Empty,
    };
    let previous_term = follower.log().term_of(previous).unwrap().0;
    let (previous, entries) = (previous.0, vec![entry]);
    let append = Append { previous, previous_term, commit: 0, clock: None, entries };
    let mut frames = Vec::new();
    encode_append(of_leader.header(member_id(to)), 1_000_000, term.0, &append, &mut frames);
    frames.iter().map(Frame::to_bytes).collect()
}
