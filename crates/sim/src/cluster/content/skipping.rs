//! The vhost of the simulation, and a replica that leaves out records now and then, as a sabotage says.

use broker::page::Paging;
use broker::{Vhost, VhostOptions};
use simdisk::Random;

/// Records from one that a sabotaged replica leaves out to the next.
const SKIPPED_EVERY: u32 = 40;

/// An empty vhost of a node; each node keeps as many messages in memory as it likes.
pub(crate) fn empty_vhost(random: &mut Random) -> Vhost {
    let paging = match random.percent(60) {
        true => Paging {
            resident_bytes_max: 1_000 << random.below(4),
            page_bytes: 200 << random.below(4),
            page_messages: 2 + usize::try_from(random.below(8)).expect("a small bound"),
        },
        false => Paging::default(),
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&random.next().to_le_bytes());
    Vhost::new(
        "/",
        seed,
        VhostOptions { delivers_after_commit: true, paging, ..VhostOptions::default() },
    )
}

/// The records that a replica applies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skipping {
    /// Records until the next that is left out; none if none is.
    left: Option<u32>,
}

impl Skipping {
    pub(crate) fn new(skips: bool) -> Self {
        Self { left: skips.then_some(SKIPPED_EVERY) }
    }

    /// True if the next record is left out.
    pub(crate) fn skips(&mut self) -> bool {
        let Some(left) = &mut self.left else { return false };
        *left -= 1;
        if *left > 0 {
            return false;
        }
        *left = SKIPPED_EVERY;
        true
    }
}
