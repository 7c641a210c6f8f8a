//! The node as HTTP needs it: one trait for each concern, which the server implements.
//!
//! What is read is copied under a vhost's lock and formatted without it. What changes something is a
//! future that ends when the change is on the disk.

mod logins;
mod policies;
mod status;
mod topology;
mod vhosts;

use std::pin::Pin;

pub use logins::{Login, Logins};
pub use policies::Policies;
pub use status::Status;
pub use topology::Topology;
pub use vhosts::Vhosts;

/// What a change has led to, once it is on the disk.
pub type Change<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The node: everything that HTTP asks of it.
pub trait Node: Status + Vhosts + Topology + Policies + Logins + Send + Sync {}

impl<T: Status + Vhosts + Topology + Policies + Logins + Send + Sync> Node for T {}
