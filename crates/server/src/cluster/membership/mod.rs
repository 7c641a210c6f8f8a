//! The membership of a cluster, as values: its nodes, its founding, and the levels of record kinds they can read.

pub(crate) mod founding;
pub(crate) mod levels;
pub(crate) mod node_list;
