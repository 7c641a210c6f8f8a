//! A run: chaos, then everything heals, and then nothing may be missing.

use std::fmt;
use std::ops::AddAssign;

use replication::MemberId;

use crate::clients::client::Client;
use crate::clients::client::Part;
use crate::cluster::content::group_content::GroupContent;
use crate::cluster::node::Node;
use crate::cluster::process::Process;
use crate::plan::Plan;
use crate::story::Story;
use crate::world::World;

/// Time within which a healed cluster must agree, in microseconds.
const AGREE_US: u64 = 60_000_000;

/// Time within which all messages must be taken, in microseconds.
const DRAIN_US: u64 = 60_000_000;

/// The amount of work of a run, or of several.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Messages that were published.
    pub published: u64,
    /// Messages that were confirmed.
    pub confirmed: u64,
    /// Deliveries to clients.
    pub deliveries: u64,
    /// Dead letters in the committed log, redriven ones as well.
    pub dead_letters: u64,
    /// Dead letters that were redriven.
    pub redriven: u64,
    /// Messages with the name of a schedule that were published.
    pub scheduled: u64,
    /// Operations on schedules that have found messages, and that have found none.
    pub operations: (u64, u64),
    /// Times that the level of record kinds has risen, and changes of the nodes that were refused below it.
    pub levels: (u64, u64),
    /// Committed entries.
    pub entries: u64,
    /// Starts of processes and replicas.
    pub starts: u64,
    /// Replicas that were rebuilt from the files of a leader.
    pub rebuilt: u64,
    /// Replicas of nodes that had none, and those that their group did without.
    pub moved: u64,
    /// Barriers that were answered with an entry.
    pub barriers: u64,
    /// Changes of the metadata that were made, and that were refused.
    pub changes: (u64, u64),
    /// Pages that were written.
    pub pages_written: u64,
    /// Pages of which messages were read.
    pub pages_read: u64,
    /// Pages that were dropped with messages in them.
    pub pages_ended: u64,
    /// Clients that a leader has adopted.
    pub adopted: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.published += more.published;
        self.confirmed += more.confirmed;
        self.deliveries += more.deliveries;
        self.dead_letters += more.dead_letters;
        self.redriven += more.redriven;
        self.scheduled += more.scheduled;
        self.operations.0 += more.operations.0;
        self.operations.1 += more.operations.1;
        self.levels.0 += more.levels.0;
        self.levels.1 += more.levels.1;
        self.entries += more.entries;
        self.starts += more.starts;
        self.rebuilt += more.rebuilt;
        self.moved += more.moved;
        self.barriers += more.barriers;
        self.changes.0 += more.changes.0;
        self.changes.1 += more.changes.1;
        self.pages_written += more.pages_written;
        self.pages_read += more.pages_read;
        self.pages_ended += more.pages_ended;
        self.adopted += more.adopted;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { published, confirmed, deliveries, dead_letters, .. } = self;
        let Self { redriven, entries, starts, rebuilt, moved, barriers, .. } = self;
        let Self { scheduled, operations: (found, not_found), .. } = self;
        let Self { levels: (risen, refused), .. } = self;
        let Self { pages_written, pages_read, pages_ended, adopted, .. } = self;
        let Self { changes: (made, unmade), .. } = self;
        write!(
            f,
            "{published} published, {confirmed} confirmed, {deliveries} deliveries, {dead_letters} dead letters, \
             {redriven} redriven, {scheduled} scheduled ({found} operations, {not_found} without effect), {entries} entries, {starts} starts, {rebuilt} rebuilt, {moved} moved, \
             {risen} levels risen, {refused} level changes refused, \
             {barriers} barriers, changes: {made} made, {unmade} refused, pages: {pages_written} written, {pages_read} read, {pages_ended} ended, {adopted} adopted"
        )
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The first checks that have failed; none if all hold.
    pub violations: Vec<String>,
    /// The events of the run.
    pub story: Story,
    /// The amount of work.
    pub counts: Counts,
}

/// Runs a plan. With `keeps_story`, the story has its lines.
#[must_use]
pub fn run(plan: &Plan, keeps_story: bool) -> Outcome {
    let mut world = World::new(plan.clone(), keeps_story);
    world.run(plan.chaos_us);
    let steps: [fn(&mut World); 4] = [heal, agree, drain, read_back];
    for step in steps {
        if world.book.violations.is_empty() {
            step(&mut world);
        }
    }
    outcome(world)
}

fn outcome(mut world: World) -> Outcome {
    for violation in world.book.violations.clone() {
        world.tell(format_args!("VIOLATION: {violation}"));
    }
    let (messages, ledger) = (&world.book.messages, &world.book.ledger);
    let confirmed = messages.values().filter(|message| message.is_confirmed).count();
    let counts = Counts {
        published: messages.len() as u64,
        confirmed: confirmed as u64,
        deliveries: world.book.deliveries,
        dead_letters: ledger.dead_letters,
        redriven: ledger.redriven_count,
        scheduled: world.book.schedules.published(),
        levels: (world.levels.risen, world.levels.refused),
        operations: (world.book.schedules.found, world.book.schedules.not_found),
        entries: ledger.len(),
        starts: world.starts,
        rebuilt: world.rebuilt,
        barriers: world.book.barriers,
        moved: world.moved,
        changes: ledger.changes(),
        pages_written: world.book.pages.written,
        pages_read: world.book.pages.read,
        pages_ended: world.book.pages.ended,
        adopted: world.relays.adopted,
    };
    Outcome { counts, violations: world.book.violations, story: world.story }
}

/// Ends all faults.
fn heal(world: &mut World) {
    world.tell(format_args!("everything heals"));
    let arrivals = world.network.heal(world.now_us);
    world.arrivals(arrivals);
    (0..world.nodes.len()).for_each(|node| world.resume(node));
    world.heal_relays();
    for node in &mut world.nodes {
        node.sync_us = (0, 0);
        node.disk.free_room();
        (node.alarm_until_us, node.drained_until_us) = (0, 0);
    }
    if world.plan.content == GroupContent::Metadata {
        world.ask_anew();
    }
    for node in 0..world.nodes.len() {
        world.start(node);
        world.with(node, Process::alarm_changed);
    }
    world.upgrade_all();
}

/// True if one node serves clients, and all have applied the committed log up to this entry.
fn agrees(world: &World, up_to: u64) -> bool {
    let is_as_placed = |node: &Node| node.process.is_some() == world.placement().has(node.number);
    if !world.nodes.iter().all(is_as_placed) || !world.has_newest_level() {
        return false;
    }
    let processes: Vec<&Process> =
        world.nodes.iter().filter_map(|node| node.process.as_ref()).collect();
    let is_sound = |process: &&Process| process.replica.member().quarantine_reason().is_none();
    let has_no_others = |process: &&Process| process.members().len() == processes.len();
    let are_voters = |process: &&Process| process.replica.member().is_voter();
    let leaders = processes.iter().filter(|process| process.replica.leads_in().is_some()).count();
    leaders == 1
        && processes.iter().all(is_sound)
        && processes.iter().all(are_voters)
        && processes.iter().all(has_no_others)
        && processes.iter().all(|process| process.replica.applied().0 >= up_to)
}

/// All must agree, and serve clients.
fn agree(world: &mut World) {
    let end_us = world.now_us + AGREE_US;
    // Clients go on working: nodes need not have what is committed from now on.
    let up_to = world.book.ledger.len();
    while world.now_us < end_us && world.book.violations.is_empty() {
        world.run(100_000);
        if agrees(world, up_to) && world.is_ready {
            return;
        }
    }
    if world.book.violations.is_empty() {
        let states: Vec<String> = world
            .nodes
            .iter()
            .map(|node| match &node.process {
                Some(process) => format!(
                    "{:?} with {} at {} of {} and {}, caught up: {}",
                    process.replica.service(),
                    names(&process.members()),
                    process.replica.member().delivered(),
                    process.replica.applied(),
                    process.replica.member().last_index(),
                    process.is_caught_up()
                ),
                None => "down".to_owned(),
            })
            .collect();
        let (committed, is_ready) = (world.book.ledger.len(), world.is_ready);
        world.book.violation(format!(
            "no agreement a minute after healing: {states:?}, {committed} committed, ready: {is_ready}"
        ));
    }
}

fn names(members: &[MemberId]) -> String {
    let names: Vec<String> = members.iter().map(ToString::to_string).collect();
    names.join(" ")
}

/// Clients take all that is there.
fn drain(world: &mut World) {
    if world.plan.content == GroupContent::Metadata {
        return rest(world);
    }
    world.tell(format_args!("everything is drained"));
    let all: Vec<usize> = (0..world.book.topology.queues.len())
        .filter(|queue| {
            !matches!(*queue, crate::clients::topology::WAIT | crate::clients::topology::RULED)
        })
        .collect();
    for number in 0..world.clients.len() {
        world.disconnect(number);
        let client: &mut Client = &mut world.clients[number];
        client.drains = true;
        if client.part == Part::Consumes {
            client.consumes.clone_from(&all);
        }
    }
    let end_us = world.now_us + DRAIN_US;
    while world.now_us < end_us && world.book.violations.is_empty() {
        world.run(200_000);
        let is_over = world.book.ledger.standing() == 0 && !world.book.ledger.has_redrive();
        if is_over && agrees(world, world.book.ledger.len()) {
            break;
        }
    }
    if world.book.violations.is_empty() && world.book.ledger.standing() > 0 {
        let left = world.book.ledger.standing();
        let places = world.book.ledger.whereabouts();
        let text = format!("{left} messages are not delivered a minute after healing: {places:?}");
        world.book.violation(text);
    }
    if world.book.violations.is_empty() && world.book.ledger.has_redrive() {
        world.book.violation("a redrive does not end".to_owned());
    }
    world.run(500_000);
    if world.book.violations.is_empty() {
        world.book.end();
    }
}

/// Ends the changes of the metadata: all nodes must have what is committed.
fn rest(world: &mut World) {
    world.tell(format_args!("nobody asks for changes any more"));
    let end_us = world.now_us + DRAIN_US;
    let mut is_over = false;
    while !is_over && world.now_us < end_us && world.book.violations.is_empty() {
        world.run(200_000);
        is_over = world.are_changes_over()
            && agrees(world, world.book.ledger.len())
            && world.are_items_shown();
    }
    if world.book.violations.is_empty() {
        match is_over {
            true => world.end_metadata(),
            false => world.book.violation("changes are not over a minute after healing".to_owned()),
        }
    }
}

/// Every node reads its own log back: the state must be the one it had.
fn read_back(world: &mut World) {
    for node in 0..world.nodes.len() {
        if world.book.violations.is_empty() {
            world.kill(node, 10_000);
            world.run(50_000);
        }
    }
    let has_metadata = world.plan.content == GroupContent::Metadata;
    if has_metadata {
        world.ask_anew();
    }
    if world.book.violations.is_empty() {
        agree(world);
    }
    if has_metadata && world.book.violations.is_empty() {
        rest(world);
    }
}
