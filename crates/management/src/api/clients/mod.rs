//! Clients: their connections, channels and consumers.

mod channels;
mod client_filter;
mod connections;
pub(crate) mod consumers;

use crate::http::routes::Routes;

/// The paths.
pub(super) fn routes() -> Routes {
    channels::routes().merge(connections::routes()).merge(consumers::routes())
}
