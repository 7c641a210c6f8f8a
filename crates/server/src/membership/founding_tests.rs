//! Foundings of three nodes that meet in any order, lose their disks and restart.

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 3] = ["a@h", "b@h", "c@h"];

/// Three nodes with what is on their disks.
struct Nodes {
    all: Vec<Founding>,
    next_disk: u64,
}

impl Nodes {
    fn new() -> Self {
        let mut nodes = Self { all: Vec::new(), next_disk: 0 };
        for name in NAMES {
            let fresh = nodes.fresh();
            nodes.all.push(Founding::new(name, &NAMES, None, fresh, None).unwrap());
        }
        nodes
    }

    fn fresh(&mut self) -> DiskId {
        self.next_disk += 1;
        DiskId(self.next_disk)
    }

    /// One direction of a link: `from` tells `to`.
    fn tell(&mut self, from: usize, to: usize) -> Result<StatementEffect, DiskProblem> {
        let founding = &self.all[from];
        let told = PeerStatement {
            disk: founding.record.disk,
            is_founded: founding.is_founded(),
            disks: founding.disks(),
        };
        let before = self.all[to].record.clone();
        let heard = self.all[to].hear(NAMES[from], &told);
        if heard.is_err() {
            assert_eq!(self.all[to].record, before, "a refusal changes nothing");
        }
        heard
    }

    /// Two nodes meet, and tell each other until nothing changes; false if one refuses the other.
    fn meet(&mut self, a: usize, b: usize) -> bool {
        loop {
            let both = [self.tell(a, b), self.tell(b, a)];
            if both.iter().any(Result::is_err) {
                return false;
            }
            if both.iter().all(|heard| *heard == Ok(StatementEffect::Unchanged)) {
                return true;
            }
        }
    }

    fn restart(&mut self, node: usize) {
        let record = self.all[node].record.clone();
        self.all[node] = Founding::new(NAMES[node], &NAMES, Some(record), DiskId(0), None).unwrap();
    }

    fn lose_disk(&mut self, node: usize) {
        let fresh = self.fresh();
        self.all[node] = Founding::new(NAMES[node], &NAMES, None, fresh, None).unwrap();
    }

    /// The disk of a node is lost, and the operator agrees that the node gets another one.
    fn replace_disk(&mut self, node: usize) {
        let (fresh, random) = (self.fresh(), self.fresh().0);
        self.all[node] = Founding::new(NAMES[node], &NAMES, None, fresh, Some(random)).unwrap();
    }

    fn found_all(&mut self) {
        for _ in 0..2 {
            assert!(self.meet(0, 1) && self.meet(0, 2) && self.meet(1, 2));
        }
        assert_eq!(self.founded(), [true; 3]);
    }

    fn founded(&self) -> Vec<bool> {
        self.all.iter().map(Founding::is_founded).collect()
    }
}

#[test]
fn cluster_is_founded_when_all_have_met_all() {
    let mut nodes = Nodes::new();
    assert_eq!(nodes.all[0].unmet(), ["b@h", "c@h"]);
    assert!(nodes.meet(0, 1) && nodes.meet(0, 2));
    assert_eq!(nodes.founded(), [false; 3]);
    assert_eq!(nodes.all[1].unmet(), ["c@h"]);
    assert!(nodes.meet(1, 2));
    nodes.restart(2);
    assert!(nodes.meet(0, 1) && nodes.meet(0, 2) && nodes.meet(1, 2));
    assert_eq!(nodes.founded(), [true; 3]);
    let one = Founding::new("a@h", &["a@h"], None, DiskId(1), None).unwrap();
    assert!(one.is_founded());
}

#[test]
fn founded_node_tells_one_that_missed_it() {
    let mut nodes = Nodes::new();
    assert!(nodes.meet(0, 1) && nodes.meet(0, 2) && nodes.meet(1, 2));
    assert!(nodes.meet(0, 1));
    // Node c is complete and was not told; node b is gone for ever.
    nodes.restart(2);
    assert!(nodes.all[0].is_founded() && nodes.meet(0, 2));
    assert!(nodes.all[2].is_founded());
}

#[test]
fn lost_disk_is_refused_by_all() {
    let mut nodes = Nodes::new();
    nodes.found_all();
    nodes.lose_disk(1);
    assert_eq!(nodes.tell(1, 0), Err(DiskProblem::PeerLostDisk));
    assert_eq!(nodes.tell(0, 1), Err(DiskProblem::OwnDiskLost));
    assert_eq!(nodes.tell(1, 2), Err(DiskProblem::PeerLostDisk));
    assert!(!nodes.all[1].is_founded() && nodes.meet(0, 2));
}

#[test]
fn disk_lost_before_the_founding_is_replaced() {
    let mut nodes = Nodes::new();
    assert!(nodes.meet(0, 1));
    nodes.lose_disk(1);
    for _ in 0..2 {
        assert!(nodes.meet(0, 1) && nodes.meet(0, 2) && nodes.meet(1, 2));
    }
    assert_eq!(nodes.founded(), [true; 3]);
}

#[test]
fn lost_disk_is_replaced_if_the_operator_agrees() {
    let mut nodes = Nodes::new();
    nodes.found_all();
    let old = nodes.all[1].clone();
    nodes.replace_disk(1);
    // Its first disk is refused; then it knows that it has lost one.
    assert_eq!(nodes.tell(1, 0), Err(DiskProblem::PeerLostDisk));
    assert_eq!(nodes.tell(0, 1), Ok(StatementEffect::TookNewDisk));
    assert!(!nodes.all[1].is_founded() && nodes.all[1].record.is_newcomer);
    nodes.restart(1);
    assert!(nodes.meet(0, 1));
    assert!(nodes.all[1].is_founded());
    assert_eq!(nodes.all[1].disks(), nodes.all[0].disks());
    // Node c learns it from the node itself, or from node a.
    let mut others = Nodes { all: nodes.all.clone(), next_disk: 0 };
    assert!(nodes.meet(1, 2) && nodes.meet(0, 2));
    assert!(others.meet(0, 2) && others.meet(1, 2));
    assert_eq!(nodes.all[2].disks(), nodes.all[0].disks());
    assert_eq!(others.all[2].disks(), nodes.all[0].disks());
    // The old disk comes back.
    nodes.all[1] = old;
    assert_eq!(nodes.tell(1, 0), Err(DiskProblem::PeerLostDisk));
    assert_eq!(nodes.tell(0, 1), Err(DiskProblem::OwnDiskLost));
    // Its operator removes it.
    nodes.replace_disk(1);
    assert_eq!(nodes.tell(2, 1), Ok(StatementEffect::TookNewDisk));
    assert!(nodes.meet(1, 2) && nodes.meet(0, 1));
    assert_eq!(nodes.all[0].record.peers["b@h"].generation(), 2);
}

#[test]
fn new_disk_is_no_reason_to_found_a_second_cluster() {
    let mut nodes = Nodes::new();
    nodes.found_all();
    nodes.replace_disk(1);
    nodes.replace_disk(2);
    assert!(nodes.meet(1, 2));
    assert_eq!(nodes.founded(), [true, false, false]);
    assert_eq!(nodes.tell(0, 1), Ok(StatementEffect::TookNewDisk));
    assert_eq!(nodes.tell(0, 2), Ok(StatementEffect::TookNewDisk));
    nodes.found_all();
    assert!(nodes.all[1..].iter().all(|node| node.record.is_newcomer));
}

#[test]
fn disagreement_is_told() {
    let mut nodes = Nodes::new();
    assert!(nodes.meet(0, 1));
    // Node a is complete with the first disk of node b, node c with the second one.
    nodes.tell(2, 0).unwrap();
    nodes.lose_disk(1);
    assert!(nodes.meet(1, 2));
    assert_eq!(nodes.tell(0, 2), Ok(StatementEffect::Changed));
    let of = "b@h".to_owned();
    assert_eq!(nodes.tell(2, 0), Err(DiskProblem::Disagreement { of: of.clone() }));
    assert_eq!(nodes.tell(0, 2), Err(DiskProblem::Disagreement { of }));
    assert_eq!(nodes.founded(), [false; 3]);
}

/// The list of these nodes, with their first disks.
fn list(nodes: &[(&str, DiskId)]) -> NodeList {
    let listed = |(name, disk): &(&str, DiskId)| {
        let (host, disk) = ("h".to_owned(), *disk);
        ((*name).to_owned(), ListedNode { host, port: 1, disk, joins: 0, is_forgotten: false })
    };
    NodeList(nodes.iter().map(listed).collect())
}

#[test]
fn founded_nodes_meet_with_lists_of_different_age() {
    let mut nodes = Nodes::new();
    nodes.found_all();
    let disks: Vec<DiskId> = nodes.all.iter().map(|node| node.record.disk).collect();
    let (a, b, c) = (("a@h", disks[0]), ("b@h", disks[1]), ("c@h", disks[2]));
    // Nodes a and b know that node d has joined, node c does not yet; then that node c is forgotten.
    let (with_d, without_c) = ([a, b, c, ("d@h", DiskId(99))], [a, b, ("d@h", DiskId(99))]);
    for (position, known) in [(5, list(&with_d)), (7, list(&without_c))] {
        assert!(nodes.all[0].set_nodes(&known, position));
        assert!(!nodes.all[0].set_nodes(&known, position + 1), "it is the same");
        assert!(!nodes.all[0].set_nodes(&list(&[a, b]), position - 1), "it is older");
        assert!(nodes.meet(0, 1));
        assert_eq!(nodes.all[0].disks().len(), known.0.len());
        assert_eq!(nodes.tell(0, 2), Ok(StatementEffect::Unchanged));
    }
    assert_eq!(nodes.tell(2, 0), Err(DiskProblem::Forgotten));
    // The list is the memory after a restart, whatever the configuration says.
    let record = nodes.all[0].record.clone();
    let again =
        Founding::new("a@h", &["a@h", "b@h", "d@h"], Some(record), DiskId(0), None).unwrap();
    assert_eq!(again.unmet(), Vec::<&str>::new());
}

#[test]
fn list_brings_newer_disks_and_no_older_ones() {
    let mut nodes = Nodes::new();
    nodes.found_all();
    let (own, first) = (nodes.all[0].record.disk, nodes.all[1].record.disk);
    let newer = first.replaced(7).unwrap();
    let c = ("c@h", nodes.all[2].record.disk);
    for (position, disk) in [(1, newer), (2, first)] {
        nodes.all[0].set_nodes(&list(&[("a@h", own), ("b@h", disk), c]), position);
        assert_eq!(nodes.all[0].record.peers["b@h"], newer);
    }
}

#[test]
fn record_must_fit_the_configuration() {
    let record = Nodes::new().all.remove(0).record;
    let with = |me, names: &[&str]| {
        Founding::new(me, names, Some(record.clone()), DiskId(9), None).map(|_| ()).unwrap_err()
    };
    assert!(matches!(with("b@h", &NAMES), RecordProblem::OtherNode { .. }));
    assert!(matches!(with("a@h", &["a@h", "b@h"]), RecordProblem::OtherCluster { .. }));
}

proptest! {
    /// In any order of events: once a node was founded, every node that is founded later remembers the same
    /// disks, as long as one disk with this memory is left.
    #[test]
    fn founded_nodes_never_disagree(
        steps in proptest::collection::vec((0_u8..8, 0_usize..3, 0_usize..3), 0..60),
    ) {
        let mut nodes = Nodes::new();
        let mut first: Option<BTreeMap<NodeId, DiskId>> = None;
        for (kind, a, b) in steps {
            match kind {
                0 => nodes.lose_disk(a),
                1 => nodes.restart(a),
                // One direction of a link arrives, the other one is cut.
                2 | 3 if a != b => drop(nodes.tell(a, b)),
                _ if a != b => drop(nodes.meet(a, b)),
                _ => {}
            }
            let remembers = |disks: &BTreeMap<NodeId, DiskId>| {
                nodes.all.iter().any(|node| node.disks() == *disks)
            };
            first = first.filter(remembers);
            for node in nodes.all.iter().filter(|node| node.is_founded()) {
                let disks = node.disks();
                prop_assert_eq!(&disks, first.get_or_insert_with(|| disks.clone()));
            }
        }
    }

    /// In any order of events: a node of a founded cluster that lost its disk votes only with one that replaces it, and
    /// founded nodes that have all met agree.
    #[test]
    fn lost_disk_never_votes_as_if_it_were_the_first(
        steps in proptest::collection::vec((0_u8..10, 0_usize..3, 0_usize..3), 0..60),
    ) {
        let mut nodes = Nodes::new();
        nodes.found_all();
        let mut lost = [false; 3];
        for (kind, a, b) in steps {
            match kind {
                0 => nodes.replace_disk(a),
                1 => nodes.lose_disk(a),
                2 => nodes.restart(a),
                3 | 4 if a != b => drop(nodes.tell(a, b)),
                _ if a != b => drop(nodes.meet(a, b)),
                _ => {}
            }
            lost[a] |= kind < 2;
            if !nodes.all.iter().any(Founding::is_founded) {
                // Nobody knows the cluster any more.
                return Ok(());
            }
            for (node, lost) in nodes.all.iter().zip(lost) {
                prop_assert!(!(lost && node.is_founded()) || node.record.is_newcomer);
            }
        }
        let founded: Vec<usize> = (0..3).filter(|node| nodes.all[*node].is_founded()).collect();
        let met = founded.iter().all(|a| founded.iter().all(|b| a == b || nodes.meet(*a, *b)));
        if met && let [first, rest @ ..] = &*founded {
            let disks = nodes.all[*first].disks();
            prop_assert!(rest.iter().all(|node| nodes.all[*node].disks() == disks));
        }
    }
}
