//! Guard 3: election times from our seed. The engine draws its own from the thread's random source, so that no
//! history could be repeated.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::limits::{ELECTION_TICKS_MAX, ELECTION_TICKS_MIN, RELUCTANT_FACTOR};

/// Situation to which an election time belongs: term, role and leader. When any changes, another one is drawn.
pub(super) type Situation = (u64, u8, u64);

/// Election times of a member.
#[derive(Debug)]
pub(super) struct Timeouts {
    random: ChaCha8Rng,
    situation: Option<Situation>,
    ticks: usize,
}

impl Timeouts {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed), situation: None, ticks: 0 }
    }

    /// The election time in this situation, in ticks.
    pub(super) fn ticks(&mut self, situation: Situation, is_reluctant: bool) -> usize {
        if self.situation != Some(situation) {
            self.situation = Some(situation);
            let range = (ELECTION_TICKS_MAX - ELECTION_TICKS_MIN) as u64;
            let drawn = usize::try_from(self.random.next_u64() % range).expect("a small number");
            self.ticks = ELECTION_TICKS_MIN + drawn;
        }
        if is_reluctant { self.ticks * RELUCTANT_FACTOR } else { self.ticks }
    }

    /// Draws another time although nothing has changed: a campaign has failed.
    pub(super) fn redraw(&mut self) {
        self.situation = None;
    }
}
