//! The place in which a scheduled message waits: a queue, or a delayed exchange.

use crate::ids::{ExchangeId, QueueId};
use crate::page::PageOwner;

/// The place in which a message waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    Queue(QueueId),
    Exchange(ExchangeId),
}

impl Holder {
    /// The owner of pages of messages that wait here.
    pub(crate) fn page_owner(self) -> PageOwner {
        match self {
            Self::Queue(id) => PageOwner::Scheduled(id),
            Self::Exchange(id) => PageOwner::Exchange(id),
        }
    }

    /// The place in which the messages of pages with this owner wait; none if they are ready.
    pub(crate) fn of_pages(owner: PageOwner) -> Option<Self> {
        match owner {
            PageOwner::Ready { .. } => None,
            PageOwner::Scheduled(queue) => Some(Self::Queue(queue)),
            PageOwner::Exchange(exchange) => Some(Self::Exchange(exchange)),
        }
    }
}
