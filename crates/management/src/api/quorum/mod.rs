//! `/api/queues/quorum`: quorum queues as RabbitMQ has them, whose members are the replicas of their vhost.

mod replicas;
mod status;

use crate::http::routes::Routes;

/// The paths.
pub(super) fn routes() -> Routes {
    replicas::routes().merge(status::routes())
}
