//! Publisher confirms of one channel: the publishes that are settled, and the confirms to send.
//!
//! Publishes are numbered from 1. Each is confirmed at once, refused, or confirmed when the log is durable up
//! to a position. No publish waits for a lower position than one before it, so the waiting publishes form a queue.
//! Confirms are collected and sent once per batch, as one `basic.ack` with `multiple` if no lower number is open.

use std::collections::VecDeque;

use crate::ids::{Lsn, PublishSeq};

/// One `basic.ack` or `basic.nack` to a publisher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Confirm {
    pub(crate) ack: bool,
    pub(crate) seq: PublishSeq,
    /// True if the confirm covers all open publishes up to `seq`.
    pub(crate) multiple: bool,
    /// The number of publishes that the confirm settles.
    pub(crate) count: u64,
}

/// The publisher confirms of one channel.
#[derive(Default, Debug)]
pub(crate) struct Confirms {
    last_seq: u64,
    waiting: VecDeque<(u64, Lsn)>,
    /// Ranges of publishes to acknowledge with the next flush, ascending.
    acked: Vec<(u64, u64)>,
    nacked: Vec<u64>,
}

impl Confirms {
    /// Assigns the number of the next publish.
    pub(crate) fn assign(&mut self) -> PublishSeq {
        self.last_seq += 1;
        PublishSeq(self.last_seq)
    }

    /// Acknowledges the publish with the next flush.
    pub(crate) fn ack(&mut self, seq: PublishSeq) {
        match self.acked.last_mut() {
            Some((_, last)) if *last + 1 == seq.0 => *last = seq.0,
            _ => self.acked.push((seq.0, seq.0)),
        }
    }

    /// Acknowledges the publish once the log is durable up to `lsn`, and not before the waiting publishes with lower
    /// numbers.
    pub(crate) fn ack_when_durable(&mut self, seq: PublishSeq, lsn: Lsn) {
        let needed = self.waits_for().map_or(lsn, |before| before.max(lsn));
        self.waiting.push_back((seq.0, needed));
    }

    /// Refuses the publish with the next flush.
    pub(crate) fn nack(&mut self, seq: PublishSeq) {
        self.nacked.push(seq.0);
    }

    /// The number of publishes that wait for the log.
    pub(crate) fn unconfirmed_count(&self) -> usize {
        self.waiting.len()
    }

    /// The log position that the newest waiting publish needs.
    pub(crate) fn waits_for(&self) -> Option<Lsn> {
        self.waiting.back().map(|(_, lsn)| *lsn)
    }

    /// Notes that the log is durable up to `lsn`.
    pub(crate) fn durable(&mut self, lsn: Lsn) {
        while let Some((seq, needed)) = self.waiting.front().copied()
            && needed <= lsn
        {
            self.waiting.pop_front();
            self.ack(PublishSeq(seq));
        }
    }

    /// Passes all pending confirms to `send`.
    pub(crate) fn flush(&mut self, mut send: impl FnMut(Confirm)) {
        for seq in self.nacked.drain(..) {
            send(Confirm { ack: false, seq: PublishSeq(seq), multiple: false, count: 1 });
        }
        if self.acked.is_empty() {
            return;
        }
        self.acked.sort_unstable();
        let open = self.waiting.front().map_or(u64::MAX, |(seq, _)| *seq);
        let mut below = 0_u64;
        let mut last_below = None;
        let mut above = Vec::new();
        for (first, last) in self.acked.drain(..) {
            if last < open {
                below += last - first + 1;
                last_below = Some(last);
            } else {
                above.extend(first..=last);
            }
        }
        if let Some(last) = last_below {
            let multiple = below > 1;
            send(Confirm { ack: true, seq: PublishSeq(last), multiple, count: below });
        }
        for seq in above {
            send(Confirm { ack: true, seq: PublishSeq(seq), multiple: false, count: 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flushed(confirms: &mut Confirms) -> Vec<(bool, u64, bool)> {
        let mut told = Vec::new();
        confirms.flush(|c| told.push((c.ack, c.seq.0, c.multiple)));
        told
    }

    #[test]
    fn batch_is_confirmed_with_one_ack() {
        let mut confirms = Confirms::default();
        for _ in 0..5 {
            let seq = confirms.assign();
            confirms.ack(seq);
        }
        assert_eq!(flushed(&mut confirms), [(true, 5, true)]);
        assert_eq!(flushed(&mut confirms), []);
    }

    #[test]
    fn multiple_never_covers_what_is_open() {
        let mut confirms = Confirms::default();
        let seqs: Vec<_> = (0..5).map(|_| confirms.assign()).collect();
        confirms.ack(seqs[0]);
        confirms.ack_when_durable(seqs[1], Lsn(7));
        confirms.nack(seqs[2]);
        confirms.ack(seqs[3]);
        confirms.ack_when_durable(seqs[4], Lsn(9));
        assert_eq!(flushed(&mut confirms), [(false, 3, false), (true, 1, false), (true, 4, false)]);
        confirms.durable(Lsn(8));
        assert_eq!(flushed(&mut confirms), [(true, 2, false)]);
        confirms.durable(Lsn(9));
        assert_eq!(flushed(&mut confirms), [(true, 5, false)]);
    }

    /// A client that follows the rules of `multiple`.
    #[derive(Default)]
    struct Client {
        open: std::collections::BTreeSet<u64>,
        /// The log position that each publish needs.
        needs: Vec<Option<u64>>,
    }

    impl Client {
        fn publish(&mut self, seq: PublishSeq, needs: Option<u64>) {
            self.open.insert(seq.0);
            self.needs.push(needs);
        }

        fn receive(&mut self, confirms: &mut Confirms, durable: u64) {
            confirms.flush(|confirm| {
                let covered: Vec<u64> = match confirm.multiple {
                    true => self.open.range(..=confirm.seq.0).copied().collect(),
                    false => vec![confirm.seq.0],
                };
                assert!(!confirm.multiple || covered.len() > 1, "multiple covers several");
                for seq in covered {
                    assert!(self.open.remove(&seq), "{seq} is settled twice");
                    let need = self.needs[usize::try_from(seq).unwrap() - 1];
                    assert!(need.is_none_or(|need| need <= durable), "{seq} is early");
                }
            });
        }
    }

    proptest! {
        #[test]
        fn every_publish_is_settled_once_and_not_before_its_time(
            steps in prop::collection::vec((0_u8..5, 0_u64..4), 1..200),
        ) {
            let mut confirms = Confirms::default();
            let mut client = Client::default();
            let (mut lsn, mut durable) = (0, 0);
            for (what, by) in steps {
                match what {
                    0 | 1 => {
                        let seq = confirms.assign();
                        client.publish(seq, None);
                        if what == 0 { confirms.ack(seq) } else { confirms.nack(seq) }
                    }
                    2 => {
                        let seq = confirms.assign();
                        lsn += by;
                        client.publish(seq, Some(lsn));
                        confirms.ack_when_durable(seq, Lsn(lsn));
                    }
                    3 => {
                        durable = lsn.min(durable + by);
                        confirms.durable(Lsn(durable));
                    }
                    _ => client.receive(&mut confirms, durable),
                }
            }
            confirms.durable(Lsn(lsn));
            client.receive(&mut confirms, lsn);
            prop_assert!(client.open.is_empty(), "{:?} are never settled", client.open);
        }
    }
}
