//! Histories drawn from a seed: faults, then healing, then nothing may be lost and all must agree.

use super::checks::Checks;
use super::network::Faults;
use super::world::{Sabotage, World};
use crate::entry_log::EntryLog;
use crate::membership::MembershipChange;

use super::node::member_id;

/// Histories of a test run. `REPLICATION_SEEDS` asks for more.
const SEEDS: u64 = 100;

#[allow(clippy::disallowed_methods, reason = "a longer run of the same test")]
fn seeds() -> u64 {
    std::env::var("REPLICATION_SEEDS").map_or(SEEDS, |seeds| seeds.parse().unwrap())
}

#[allow(clippy::disallowed_methods, reason = "a part of a longer run")]
fn first_seed() -> u64 {
    std::env::var("REPLICATION_FIRST_SEED").map_or(0, |seed| seed.parse().unwrap())
}

/// Seeds with which something was found once.
fn kept() -> impl Iterator<Item = u64> {
    let lines = include_str!("../../../../../tests/seeds.txt").lines();
    let seeds = lines.filter_map(|line| line.strip_prefix("replication "));
    seeds.map(|seed| seed.split('#').next().unwrap_or_default().trim().parse().unwrap())
}

/// One random step.
fn step(world: &mut World, has_changes: bool) {
    let nodes = world.nodes.len();
    let node = usize::try_from(world.draws.below(nodes as u64)).unwrap();
    let other = usize::try_from(world.draws.below(nodes as u64)).unwrap();
    match world.draws.below(100) {
        0..50 => {
            let at = world.leader().filter(|_| world.draws.percent(80)).unwrap_or(node);
            for _ in 0..world.draws.below(6) {
                let bytes = if world.draws.percent(2) { 600_000 } else { 20 };
                world.propose(at, bytes);
                let us = world.draws.below(4_000);
                world.run(us);
            }
        }
        50..56 => world.crash(node),
        56..66 => world.start(node),
        66..74 if node != other => world.network.cut(node, other, true),
        74..80 => world.network.cut(node, other, false),
        80..82 => {
            for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
                let is_cut = (from < nodes / 2) != (to < nodes / 2);
                world.network.cut(from, to, is_cut);
            }
        }
        82..84 => {
            let faults = Faults::draw(&mut world.draws);
            world.network.heal();
            world.network.faults = faults;
        }
        84..88 => world.compact(node),
        88..92 => transfer(world, other),
        92..96 if has_changes => change(world, other),
        96..98 => stall(world, node),
        98 => world.write_us_max = 1_000 << world.draws.below(10),
        _ => {}
    }
}

fn transfer(world: &mut World, to: usize) {
    if let Some(leader) = world.leader()
        && !world.nodes[leader].is_writing
        && let Some(member) = &mut world.nodes[leader].member
    {
        member.transfer(member_id(to));
        world.turn(leader);
    }
}

fn change(world: &mut World, node: usize) {
    let Some(leader) = world.leader().filter(|leader| !world.nodes[*leader].is_writing) else {
        return;
    };
    let clock = world.nodes[leader].reading(world.now_us);
    let Some(member) = &mut world.nodes[leader].member else {
        return;
    };
    let Some(axis) = member.axis() else {
        return;
    };
    let id = member_id(node);
    let (voters, learners) = member.members();
    let change = if learners.contains(&id) {
        MembershipChange::Promote(id)
    } else if voters.contains(&id) {
        MembershipChange::Remove(id)
    } else {
        MembershipChange::AddLearner(id)
    };
    if voters.len() > 2 || !matches!(change, MembershipChange::Remove(_)) {
        // Refusals are part of the history.
        let _ = member.change_members(change, axis.at(clock.monotonic_us));
        world.turn(leader);
    }
}

fn stall(world: &mut World, node: usize) {
    let draw = world.draws.percent(50);
    if let Some(member) = &mut world.nodes[node].member {
        if draw { member.stalled() } else { member.recovered() }
    }
}

/// Lets all nodes run without faults, and adds those to the group again that are not.
fn heal(world: &mut World) {
    world.network.heal();
    world.write_us_max = 3_000;
    for node in 0..world.nodes.len() {
        world.start(node);
        if let Some(member) = &mut world.nodes[node].member {
            member.recovered();
        }
    }
}

fn history(seed: u64, sabotage: Sabotage) -> (Checks, u64) {
    let has_changes = seed % 3 == 2;
    let (nodes, voters) = [(3, 3), (5, 5), (5, 3)][usize::try_from(seed % 3).unwrap()];
    let mut world = World::new(nodes, voters, seed, sabotage);
    if seed.is_multiple_of(2) {
        // Half of the histories begin well, so that there is something to lose.
        let faults = std::mem::replace(&mut world.network.faults, Faults::NONE);
        world.run(3_000_000);
        world.network.faults = faults;
    }
    for _ in 0..200 {
        step(&mut world, has_changes);
        let us = world.draws.below(150_000);
        world.run(us);
        if !world.checks.violations.is_empty() {
            return (world.checks, 0);
        }
    }
    heal(&mut world);
    if sabotage == Sabotage::None {
        converge(&mut world);
    } else {
        // Nodes that know of the fault stay away: only what was lost or contradicted counts.
        world.run(10_000_000);
    }
    world.checks.end();
    let history = world.history();
    (world.checks, history)
}

/// All must agree within a minute, and go on.
fn converge(world: &mut World) {
    world.run(20_000_000);
    let mut is_accepted = false;
    for _ in 0..400 {
        world.run(100_000);
        let Some(leader) = world.leader() else {
            continue;
        };
        is_accepted = is_accepted || world.propose(leader, 20);
        let newest = world.nodes[leader].delivered;
        let Some(member) = &world.nodes[leader].member else {
            continue;
        };
        let (voters, learners) = member.members();
        let is_equal = voters.iter().chain(&learners).all(|member| {
            let node = &world.nodes[super::node::number(*member)];
            node.delivered == newest
                && node.member.as_ref().is_some_and(|m| m.log().last_index().0 == newest)
        });
        if is_accepted && is_equal && world.nodes[leader].proposed.is_empty() {
            return;
        }
    }
    let delivered: Vec<u64> = world.nodes.iter().map(|node| node.delivered).collect();
    let leader = world.leader();
    let text = format!("no agreement a minute after healing: {delivered:?}, leader {leader:?}");
    world.checks.violations.push(text);
}

#[test]
fn members_never_lose_or_contradict() {
    let (mut confirmed, mut committed, mut terms) = (0, 0, 0);
    let first = first_seed();
    for seed in (first..first + seeds()).chain(kept()) {
        let (checks, _) = history(seed, Sabotage::None);
        assert_eq!(checks.violations, Vec::<String>::new(), "seed {seed}");
        confirmed += checks.confirmed.len();
        committed += checks.committed.len();
        terms += checks.leaders.len();
    }
    if (first, seeds()) != (0, SEEDS) {
        // Few seeds in a row may have quiet histories.
        return;
    }
    let seeds = usize::try_from(SEEDS).unwrap();
    assert!(confirmed > 20 * seeds, "{confirmed} confirmed");
    assert!(committed > confirmed && terms > 2 * seeds, "{committed} committed, {terms} terms");
}

#[test]
fn history_repeats_itself() {
    for seed in 0..9 {
        let once = history(seed, Sabotage::None).1;
        assert_eq!(once, history(seed, Sabotage::None).1, "seed {seed}");
    }
}

/// Seeds until the checks see the sabotage, and what they see.
fn seeds_until_caught(sabotage: Sabotage) -> (u64, String) {
    let first = |seed| history(seed, sabotage).0.violations.into_iter().next();
    let caught = (0..400).find_map(|seed| Some((seed + 1, first(seed)?)));
    caught.expect("the checks see it")
}

#[test]
fn checks_see_an_answer_before_the_sync() {
    let (seeds, seen) = seeds_until_caught(Sabotage::AnswerBeforeSync);
    assert!(seeds <= 100, "{seeds}: {seen}");
}

#[test]
fn checks_see_a_hard_state_that_is_not_synced() {
    let (seeds, seen) = seeds_until_caught(Sabotage::HardStateNotSynced);
    assert!(seeds <= 400, "{seeds}: {seen}");
}

#[test]
fn checks_see_a_confirm_at_the_own_sync() {
    let (seeds, seen) = seeds_until_caught(Sabotage::ConfirmAtOwnSync);
    assert!(seeds <= 100, "{seeds}: {seen}");
}
