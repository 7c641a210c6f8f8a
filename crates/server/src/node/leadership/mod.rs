//! The leaders of vhosts: which nodes have a vhost, and which of them leads it.

mod leads;
mod placements;
