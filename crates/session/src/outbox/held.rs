//! Bytes of one connection that wait for the log of a replicated vhost, behind those that wait for the socket.
//!
//! A delivery of a quorum queue leaves when a majority of nodes has its batch on disk. Everything that follows it on the
//! connection waits behind it, so that the order stays. Only heartbeats do not: the shell writes them to the free outbox,
//! which ends between two frames at any time.
//!
//! In each batch of the vhost: [`HeldOutbox::hold`] at every `Effect::Hold`; [`HeldOutbox::append`] for every method, if
//! [`HeldOutbox::is_holding`], and the free outbox otherwise; [`HeldOutbox::end_batch`] with the last position of the log.
//! Then, and whenever the log is durable up to another position, [`HeldOutbox::release`].
//!
//! The core learns of held bytes only by [`HeldOutbox::backlog`], the number to call
//! [`Vhost::set_backlog`](broker::Vhost::set_backlog) with. After `Effect::Stalled` of a connection that
//! [has room](HeldOutbox::has_room), call it in another batch as soon as the socket has room; without room, when
//! [`Released::has_room_again`].

use std::collections::VecDeque;

use broker::Lsn;
use broker::limits::OUTBOX_BYTES_MAX;

use crate::limits::HELD_BYTES_MAX;
use crate::outbox::Outbox;

/// Bytes that wait for positions of the log, in order.
#[derive(Default, Debug)]
pub struct HeldOutbox {
    /// Bytes of earlier batches, oldest first, each with the position to wait for; the positions ascend.
    parts: VecDeque<(Lsn, Outbox)>,
    /// Bytes of this batch, from its first held delivery on.
    open: Option<Outbox>,
    bytes: u64,
    /// An empty outbox with a buffer for the next batch.
    spare: Outbox,
    /// True if the server's `connection.close` is the last method.
    is_closing: bool,
}

/// The outcome of [`HeldOutbox::release`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[must_use = "the writer is woken, and the core told"]
pub struct Released {
    /// Bytes that are free now.
    pub bytes: u64,
    /// True if they end with the server's `connection.close`.
    pub is_closing: bool,
    /// True if the connection had no room for deliveries because of held bytes, and has some now.
    pub has_room_again: bool,
}

impl HeldOutbox {
    /// Holds what follows until the log is durable up to the end of this batch.
    pub fn hold(&mut self) {
        let spare = &mut self.spare;
        self.open.get_or_insert_with(|| std::mem::take(spare));
    }

    /// True if the next method is held, too.
    pub fn is_holding(&self) -> bool {
        self.open.is_some() || !self.parts.is_empty()
    }

    /// Appends to what is held. Without a held delivery in this batch, the bytes wait for those before them.
    ///
    /// # Panics
    /// If nothing is held: the bytes belong into the free outbox. If the server's `connection.close` is the last method.
    pub fn append<T>(&mut self, append: impl FnOnce(&mut Outbox) -> T) -> T {
        assert!(!self.is_closing, "nothing follows connection.close");
        let last = self.parts.back_mut().map(|(_, outbox)| outbox);
        let outbox = self.open.as_mut().or(last).expect("bytes are held behind others");
        let before = outbox.len();
        let result = append(outbox);
        self.bytes += outbox.len() - before;
        result
    }

    /// Notes that the method that was appended last is the server's `connection.close`.
    pub fn set_closing(&mut self) {
        self.is_closing = true;
    }

    /// True if the server's `connection.close` is held, so that nothing may be appended.
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Ends a batch, after which `last` is the last position of the log.
    ///
    /// # Panics
    /// If `last` is less than at the end of an earlier batch.
    pub fn end_batch(&mut self, last: Lsn) {
        let Some(open) = self.open.take() else { return };
        let before = self.parts.back().map(|(lsn, _)| *lsn);
        assert!(before.is_none_or(|before| before <= last), "the log ends at {last} again");
        self.parts.push_back((last, open));
    }

    /// Moves what is free, now that the log is durable up to `durable`, into the outbox of the socket. Call it between
    /// batches.
    pub fn release(&mut self, durable: Lsn, free: &mut Outbox) -> Released {
        let had_room = self.has_room();
        let before = self.bytes;
        while let Some((_, mut outbox)) = self.parts.pop_front_if(|(lsn, _)| *lsn <= durable) {
            self.bytes -= outbox.len();
            free.append(&mut outbox);
            self.spare = outbox;
        }
        let is_closing = self.is_closing && !self.is_holding();
        self.is_closing &= !is_closing;
        Released {
            bytes: before - self.bytes,
            is_closing,
            has_room_again: !had_room && self.has_room(),
        }
    }

    /// Drops everything: the connection is gone, or the vhost has another leader.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Number of held bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// True if no bytes are held.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// True if held bytes leave room for more deliveries.
    pub fn has_room(&self) -> bool {
        self.bytes <= HELD_BYTES_MAX
    }

    /// The backlog to report to the core, if `unsent` bytes wait for the socket: held bytes count only if there are more
    /// than [`HELD_BYTES_MAX`].
    pub fn backlog(&self, unsent: u64) -> u64 {
        if self.has_room() { unsent } else { unsent.max(OUTBOX_BYTES_MAX) }
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use std::io::IoSlice;
    use std::sync::Arc;

    use broker::{Content, Envelope, Message, MessageMeta};
    use proptest::prelude::*;

    use super::*;

    /// Takes everything that is free.
    fn take(free: &mut Outbox) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !free.is_empty() {
            let mut slices = [IoSlice::new(&[]); 4];
            let filled = free.slices(&mut slices);
            let taken: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            free.consume(taken.len());
            bytes.extend(taken);
        }
        bytes
    }

    /// Appends as the shell does.
    fn send(held: &mut HeldOutbox, free: &mut Outbox, bytes: &[u8]) {
        if held.is_holding() {
            held.append(|outbox| outbox.tail().extend_from_slice(bytes));
        } else {
            free.tail().extend_from_slice(bytes);
        }
    }

    #[test]
    fn delivery_and_what_follows_wait_for_the_log() {
        let (mut held, mut free) = (HeldOutbox::default(), Outbox::default());
        send(&mut held, &mut free, b"answer ");
        held.hold();
        send(&mut held, &mut free, b"delivery ");
        held.end_batch(Lsn(7));
        send(&mut held, &mut free, b"cancel-ok ");
        held.end_batch(Lsn(9));
        free.tail().extend_from_slice(b"heartbeat ");
        assert_eq!(held.len(), 19);
        assert_eq!(held.release(Lsn(6), &mut free), Released::default());
        assert_eq!(take(&mut free), b"answer heartbeat ");
        // The answer has no record of its own: it waits for the delivery alone.
        let released = Released { bytes: 19, ..Released::default() };
        assert_eq!(held.release(Lsn(7), &mut free), released);
        assert_eq!(take(&mut free), b"delivery cancel-ok ");
        assert!(held.is_empty() && !held.is_holding());
        send(&mut held, &mut free, b"answer");
        assert_eq!(take(&mut free), b"answer");
    }

    #[test]
    fn connection_is_closing_when_its_close_is_free() {
        let (mut held, mut free) = (HeldOutbox::default(), Outbox::default());
        held.hold();
        send(&mut held, &mut free, b"delivery ");
        held.end_batch(Lsn(3));
        held.hold();
        send(&mut held, &mut free, b"close");
        held.set_closing();
        held.end_batch(Lsn(4));
        assert!(held.is_closing());
        assert!(!held.release(Lsn(3), &mut free).is_closing);
        assert!(held.release(Lsn(4), &mut free).is_closing);
        assert!(!held.release(Lsn(5), &mut free).is_closing);
        assert_eq!(take(&mut free), b"delivery close");
    }

    #[test]
    fn core_learns_of_held_bytes_above_the_limit() {
        let (mut held, mut free) = (HeldOutbox::default(), Outbox::default());
        let chunk = vec![7; 1 << 20];
        for lsn in 1..=8 {
            held.hold();
            send(&mut held, &mut free, &chunk);
            held.end_batch(Lsn(lsn));
        }
        assert_eq!((held.backlog(10), held.has_room()), (10, true));
        held.hold();
        send(&mut held, &mut free, b"one more");
        held.end_batch(Lsn(9));
        assert_eq!((held.backlog(10), held.has_room()), (OUTBOX_BYTES_MAX, false));
        assert_eq!(held.backlog(OUTBOX_BYTES_MAX + 1), OUTBOX_BYTES_MAX + 1);
        let bytes = chunk.len() as u64;
        let released = Released { bytes, has_room_again: true, ..Released::default() };
        assert_eq!(held.release(Lsn(1), &mut free), released);
        assert_eq!(held.release(Lsn(2), &mut free), Released { has_room_again: false, ..released });
        held.clear();
        assert_eq!((held.len(), held.is_holding()), (0, false));
        assert_eq!(free.len(), 2 * bytes);
    }

    #[test]
    fn long_bodies_are_not_copied_when_they_are_released() {
        static BODY: [u8; 100_000] = [3; 100_000];
        let envelope = Arc::new(Envelope::new("".into(), "q".into()));
        let content = Content::Framed { bytes: &BODY, properties_len: 0, body_start: 0 };
        let message = Message::new(envelope, MessageMeta::default(), content, None);
        let (mut held, mut free) = (HeldOutbox::default(), Outbox::default());
        held.hold();
        held.append(|outbox| outbox.push_body(&message, 0..BODY.len()));
        held.end_batch(Lsn(1));
        let _ = held.release(Lsn(1), &mut free);
        let mut slices = [IoSlice::new(&[])];
        assert_eq!(free.slices(&mut slices), 1);
        assert!(std::ptr::eq(slices[0].as_ptr(), message.body().as_ptr()), "it was copied");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Hold,
        /// A method of so many bytes.
        Send(usize),
        Heartbeat,
        /// The batch ends after so many records.
        EndBatch(u64),
        /// So many more records are durable.
        Durable(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => Just(Step::Hold),
            4 => prop_oneof![1..40_usize, 4000..9000_usize].prop_map(Step::Send),
            1 => Just(Step::Heartbeat),
            3 => (0..3_u64).prop_map(Step::EndBatch),
            3 => (0..4_u64).prop_map(Step::Durable),
        ]
    }

    const HEARTBEAT: u8 = 0;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Each method leaves once, whole and in order, and none before all batches with a held delivery before it are
        /// durable. Heartbeats leave at once.
        #[test]
        fn methods_leave_in_order_when_the_log_is_durable(steps in prop::collection::vec(step(), 0..80)) {
            let (mut held, mut free) = (HeldOutbox::default(), Outbox::default());
            let (mut last, mut durable) = (0_u64, 0_u64);
            // The methods that did not leave: the number, the length, and the position to wait for, once it is known.
            let mut waiting: VecDeque<(u8, usize, Option<u64>)> = VecDeque::new();
            let mut needed = Some(0);
            let mut number = 0;
            let steps = steps.into_iter().chain([Step::EndBatch(1), Step::Durable(1000)]);
            for step in steps {
                let mut heartbeats = 0;
                match step {
                    Step::Hold => {
                        held.hold();
                        needed = None;
                    }
                    Step::Send(len) => {
                        number = number % 200 + 1;
                        send(&mut held, &mut free, &vec![number; len]);
                        waiting.push_back((number, len, needed));
                    }
                    Step::Heartbeat => {
                        free.tail().push(HEARTBEAT);
                        heartbeats = 1;
                    }
                    Step::EndBatch(records) => {
                        last += records;
                        held.end_batch(Lsn(last));
                        waiting.iter_mut().for_each(|(.., needed)| *needed = needed.or(Some(last)));
                        needed = needed.or(Some(last));
                        let _ = held.release(Lsn(durable), &mut free);
                    }
                    Step::Durable(records) => {
                        // Only what is in a batch that has ended becomes durable.
                        durable = last.min(durable + records);
                        let _ = held.release(Lsn(durable), &mut free);
                    }
                }
                let mut expected = Vec::new();
                while let Some((number, len, _)) =
                    waiting.pop_front_if(|(.., needed)| needed.is_some_and(|lsn| lsn <= durable))
                {
                    expected.extend(vec![number; len]);
                }
                expected.extend(vec![HEARTBEAT; heartbeats]);
                prop_assert_eq!(take(&mut free), expected);
                let left: usize = waiting.iter().map(|(_, len, _)| len).sum();
                prop_assert_eq!(held.len(), left as u64);
            }
            prop_assert!(waiting.is_empty() && !held.is_holding());
        }
    }
}
