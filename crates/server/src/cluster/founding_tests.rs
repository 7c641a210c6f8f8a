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
            nodes.all.push(Founding::new(name, &NAMES, None, fresh).unwrap());
        }
        nodes
    }

    fn fresh(&mut self) -> DiskId {
        self.next_disk += 1;
        DiskId(self.next_disk)
    }

    /// One direction of a link: `from` tells `to`.
    fn tell(&mut self, from: usize, to: usize) -> Result<bool, DiskProblem> {
        let founding = &self.all[from];
        let told = Told {
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
            if both.iter().all(|changed| *changed == Ok(false)) {
                return true;
            }
        }
    }

    fn restart(&mut self, node: usize) {
        let record = self.all[node].record.clone();
        self.all[node] = Founding::new(NAMES[node], &NAMES, Some(record), DiskId(0)).unwrap();
    }

    fn lose_disk(&mut self, node: usize) {
        let fresh = self.fresh();
        self.all[node] = Founding::new(NAMES[node], &NAMES, None, fresh).unwrap();
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
    let one = Founding::new("a@h", &["a@h"], None, DiskId(1)).unwrap();
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
    for _ in 0..2 {
        assert!(nodes.meet(0, 1) && nodes.meet(0, 2) && nodes.meet(1, 2));
    }
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
fn disagreement_is_told() {
    let mut nodes = Nodes::new();
    assert!(nodes.meet(0, 1));
    // Node a is complete with the first disk of node b, node c with the second one.
    nodes.tell(2, 0).unwrap();
    nodes.lose_disk(1);
    assert!(nodes.meet(1, 2));
    assert_eq!(nodes.tell(0, 2), Ok(true));
    let of = "b@h".to_owned();
    assert_eq!(nodes.tell(2, 0), Err(DiskProblem::Disagreement { of: of.clone() }));
    assert_eq!(nodes.tell(0, 2), Err(DiskProblem::Disagreement { of }));
    assert_eq!(nodes.founded(), [false; 3]);
}

#[test]
fn record_must_fit_the_configuration() {
    let record = Nodes::new().all.remove(0).record;
    let with = |me, names: &[&str]| {
        Founding::new(me, names, Some(record.clone()), DiskId(9)).map(|_| ()).unwrap_err()
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
}
