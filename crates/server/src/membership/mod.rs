//! The membership of a cluster, as values: its nodes and their ids, its founding, and the nodes that have a vhost; and the
//! fields in which nodes write to each other.

pub(crate) mod fields;
pub(crate) mod founding;
pub(crate) mod ids;
pub(crate) mod node_list;
pub(crate) mod placement;
