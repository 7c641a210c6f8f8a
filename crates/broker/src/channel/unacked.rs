//! The deliveries of a channel that a client has not settled yet, by delivery tag.
//!
//! The channel holds the messages themselves: a queue only counts what it has handed out. Tags ascend
//! without gaps and most are settled in order, so settling is a pop from the front.

use crate::ids::{ConsumerId, DeliveryTag, QueueId};
use crate::ordered::Ordered;
use crate::queue::Entry;
use crate::refusal::Refusal;
use crate::time::Time;

/// A delivery that is not settled.
#[derive(Debug)]
pub(crate) struct Unacked {
    /// The queue it came from; that may be gone.
    pub(crate) queue: QueueId,
    /// The consumer it went to; none for `basic.get`.
    pub(crate) consumer: Option<ConsumerId>,
    /// The message as the queue had it.
    pub(crate) entry: Entry,
    /// When it must be settled at the latest.
    pub(crate) timeout: Option<Time>,
}

#[derive(Debug)]
enum Held {
    Delivered(Unacked),
    /// Settled in a transaction that is not committed.
    InTransaction(Unacked),
    /// Returned to its queue because it was not settled in time; settling it is ignored.
    TimedOut,
}

/// Which deliveries a client settles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tags {
    pub(crate) tag: DeliveryTag,
    /// All up to `tag`; all there are if `tag` is 0.
    pub(crate) multiple: bool,
}

/// The unsettled deliveries of one channel.
#[derive(Default, Debug)]
pub(crate) struct UnackedList(Ordered<DeliveryTag, Held>);

impl UnackedList {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the newest delivery.
    pub(crate) fn push(&mut self, tag: DeliveryTag, unacked: Unacked) {
        self.0.push_back(tag, Held::Delivered(unacked));
    }

    /// Hands what `tags` name to `each`, in order of tag.
    ///
    /// # Errors
    /// 406 `unknown delivery tag` if the tag itself is not outstanding.
    pub(crate) fn take(
        &mut self,
        tags: Tags,
        mut each: impl FnMut(DeliveryTag, Unacked),
    ) -> Result<(), Refusal> {
        self.check(tags)?;
        if !tags.multiple {
            if let Some(Held::Delivered(unacked)) = self.0.remove(tags.tag) {
                each(tags.tag, unacked);
            }
            return Ok(());
        }
        let mut kept = Vec::new();
        while let Some((tag, _)) = self.0.front()
            && (tags.tag.0 == 0 || tag <= tags.tag)
        {
            match self.0.pop_front() {
                Some((tag, Held::Delivered(unacked))) => each(tag, unacked),
                Some((tag, held @ Held::InTransaction(_))) => kept.push((tag, held)),
                Some((_, Held::TimedOut)) | None => {}
            }
        }
        if !kept.is_empty() {
            self.put_back(kept);
        }
        Ok(())
    }

    /// Marks what `tags` name as settled in a transaction and returns those tags in order.
    ///
    /// # Errors
    /// 406 `unknown delivery tag` if the tag itself is not outstanding.
    pub(crate) fn mark(&mut self, tags: Tags) -> Result<Vec<DeliveryTag>, Refusal> {
        self.check(tags)?;
        let wanted = |tag: DeliveryTag| {
            if tags.multiple { tags.tag.0 == 0 || tag <= tags.tag } else { tag == tags.tag }
        };
        let is_open = |held: &Held| matches!(held, Held::Delivered(_));
        let marked: Vec<DeliveryTag> = self
            .0
            .iter()
            .filter(|(tag, held)| wanted(*tag) && is_open(held))
            .map(|(tag, _)| tag)
            .collect();
        for tag in &marked {
            self.replace(*tag, |held| match held {
                Held::Delivered(unacked) | Held::InTransaction(unacked) => {
                    Held::InTransaction(unacked)
                }
                Held::TimedOut => Held::TimedOut,
            });
        }
        Ok(marked)
    }

    /// Makes the marked deliveries outstanding again.
    pub(crate) fn unmark(&mut self, tags: &[DeliveryTag]) {
        for tag in tags {
            self.replace(*tag, |held| match held {
                Held::Delivered(unacked) | Held::InTransaction(unacked) => Held::Delivered(unacked),
                Held::TimedOut => Held::TimedOut,
            });
        }
    }

    /// Takes a marked delivery at commit.
    pub(crate) fn take_marked(&mut self, tag: DeliveryTag) -> Option<Unacked> {
        match self.0.remove(tag)? {
            Held::Delivered(unacked) | Held::InTransaction(unacked) => Some(unacked),
            Held::TimedOut => None,
        }
    }

    /// Takes everything, in order of tag.
    pub(crate) fn take_all(&mut self) -> Vec<(DeliveryTag, Unacked)> {
        let mut all = Vec::new();
        while let Some((tag, held)) = self.0.pop_front() {
            match held {
                Held::Delivered(unacked) | Held::InTransaction(unacked) => all.push((tag, unacked)),
                Held::TimedOut => {}
            }
        }
        all
    }

    /// Takes the deliveries that should have been settled by `now`; settling them later is ignored.
    pub(crate) fn take_timed_out(&mut self, now: Time) -> Vec<Unacked> {
        let is_late = |held: &Held| matches!(held, Held::Delivered(u) if u.timeout.is_some_and(|timeout| timeout <= now));
        let late: Vec<DeliveryTag> =
            self.0.iter().filter(|(_, held)| is_late(held)).map(|(tag, _)| tag).collect();
        let mut taken = Vec::new();
        for tag in late {
            self.replace(tag, |held| {
                if let Held::Delivered(unacked) = held {
                    taken.push(unacked);
                }
                Held::TimedOut
            });
        }
        taken
    }

    /// When the next delivery must be settled.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let timeout = |held: &Held| match held {
            Held::Delivered(unacked) => unacked.timeout,
            Held::InTransaction(_) | Held::TimedOut => None,
        };
        self.0.iter().filter_map(|(_, held)| timeout(held)).min()
    }

    /// The outstanding deliveries, in order of tag.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Unacked> {
        self.0.iter().filter_map(|(_, held)| match held {
            Held::Delivered(unacked) | Held::InTransaction(unacked) => Some(unacked),
            Held::TimedOut => None,
        })
    }

    fn check(&self, tags: Tags) -> Result<(), Refusal> {
        let known = match (tags.tag.0, tags.multiple) {
            (0, multiple) => multiple,
            _ => matches!(self.0.get(tags.tag), Some(Held::Delivered(_) | Held::TimedOut)),
        };
        let refuse = || Refusal::precondition_failed(format!("unknown delivery tag {}", tags.tag));
        known.then_some(()).ok_or_else(refuse)
    }

    fn replace(&mut self, tag: DeliveryTag, change: impl FnOnce(Held) -> Held) {
        if let Some(held) = self.0.get_mut(tag) {
            *held = change(std::mem::replace(held, Held::TimedOut));
        }
    }

    /// Puts deliveries back in front of all others; they come in order of tag.
    fn put_back(&mut self, front: Vec<(DeliveryTag, Held)>) {
        let mut rest = std::mem::take(&mut self.0);
        for (tag, held) in front {
            self.0.push_back(tag, held);
        }
        while let Some((tag, held)) = rest.pop_front() {
            self.0.push_back(tag, held);
        }
    }
}
