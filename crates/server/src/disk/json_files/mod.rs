//! The files of a data directory that are JSON, each replaced as a whole.

pub(crate) mod cluster_file;
pub(crate) mod members;
pub(crate) mod node_file;
pub(crate) mod sealed_json;
pub(crate) mod stored_user;
mod stored_vhost;
#[cfg(test)]
mod tests;
