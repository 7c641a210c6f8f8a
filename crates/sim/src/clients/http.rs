//! Users of HTTP: cancellations of all messages with a name, at the node of a client.

use broker::{ScheduleId, ScheduledFilter};

use crate::checks::schedules::Operation;
use crate::clients::schedules::{newest_name, target_of};
use crate::world::World;

impl World {
    /// Has the messages of a name cancelled at the node of a client now and then, if the run has schedules.
    pub(crate) fn cancel_by_http(&mut self, number: usize) {
        let cancels = self.plan.schedulers > 0 && self.is_ready && !self.clients[number].drains;
        if !cancels || !self.random.percent(10) {
            return;
        }
        let Some(place) = self.clients[number].place else { return };
        let name = newest_name(&self.book, &mut self.random);
        let term = self.nodes[place.node].process.as_ref().and_then(|process| process.serves());
        let since = (self.now_us, self.book.root_of(term.unwrap_or(0)));
        let entries = self.book.ledger.len();
        let request = self.book.schedules.asks(name, Operation::CancelAll, since, entries);
        self.tell(format_args!("operation {request} cancels all messages of name {name}"));
        let (id, target) = target_of(name);
        let filter = ScheduledFilter {
            target: target.parse().ok(),
            id: ScheduleId::new(&id),
            ..ScheduledFilter::default()
        };
        self.with(place.node, |process, ctx| process.begin_cancellation(request, filter, ctx));
    }
}
