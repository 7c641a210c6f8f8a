//! The filter of lists of clients.

use server::snapshot::client::ClientDescription;

use crate::api::list_query::Query;

/// True if the filter finds the client by the addresses of its socket, or by the client-provided name.
///
/// COMPAT: filter of connections: RabbitMQ compares the addresses only.
pub(crate) fn is_client_wanted(client: &ClientDescription, query: &Query) -> bool {
    let given = client.connection_name.as_deref();
    query.matches_name(&client.name) || given.is_some_and(|name| query.matches_name(name))
}
