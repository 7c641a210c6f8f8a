//! Operators, who ask nodes for changes of the metadata.

use replica::metadata::{ItemChange, ItemKey, ItemValue};
use simdisk::Random;

use crate::checks::metadata_log::MetadataLog;

/// Names of users, vhosts and parameters.
const NAMES: u64 = 5;

/// Longest text in a value, and in one of twenty.
const TEXT_BYTES_MAX: (u64, u64) = (300, 6_000);

/// A change that an operator waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    pub(crate) change: u64,
    pub(crate) node: usize,
    /// The time at which the operator gives up.
    pub(crate) until_us: u64,
}

/// The operators.
#[derive(Debug)]
pub(crate) struct Operators {
    /// The change that each waits for.
    pub(crate) all: Vec<Option<Waits>>,
    /// The node that made the last change.
    pub(crate) leader: usize,
    /// True while nobody asks for changes.
    pub(crate) rest: bool,
    /// A change counts for the readiness of the cluster if it was asked for since this time.
    pub(crate) healed_us: u64,
    /// Values so far.
    values: u64,
}

impl Operators {
    pub(crate) fn new(count: usize) -> Self {
        Self { all: vec![None; count], leader: 0, rest: false, healed_us: 0, values: 0 }
    }

    /// Draws changes that are made together: few or many, that put, replace, remove, or change nothing.
    pub(crate) fn draw(&mut self, log: &MetadataLog, random: &mut Random) -> Vec<ItemChange> {
        let count = match random.below(10) {
            0 => 0,
            1..7 => 1,
            7..9 => 2 + random.below(4),
            _ => 5 + random.below(20),
        };
        (0..count).map(|_| self.change(log, random)).collect()
    }

    fn change(&mut self, log: &MetadataLog, random: &mut Random) -> ItemChange {
        let name = format!("n{}", random.below(NAMES));
        let key = match random.below(10) {
            0 => ItemKey::NextVhostId,
            1 => ItemKey::RecordLevel,
            2 => ItemKey::Node(name),
            3..5 => ItemKey::Parameter(name),
            5..7 => ItemKey::Vhost(name),
            _ => ItemKey::User(name),
        };
        let value = match random.below(100) {
            0..20 => None,
            // As it is, perhaps.
            20..35 => log.value(&key).cloned(),
            _ => {
                self.values += 1;
                let (most, seldom) = TEXT_BYTES_MAX;
                let most = if random.percent(5) { seldom } else { most };
                let text = "x".repeat(usize::try_from(random.below(most)).expect("a small bound"));
                Some(ItemValue::from(vec![ItemValue::from(self.values), ItemValue::from(text)]))
            }
        };
        ItemChange { key, value }
    }
}
