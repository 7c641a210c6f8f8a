//! Field tables and arrays: validated once, then read in place.
//!
//! A [`TableRef`] or [`ArrayRef`] exists only over bytes that were found well-formed, so that reading
//! one cannot fail; [`Table`] and [`Array`] own such bytes. The meaning of a key is not known here.
//!
//! ```text
//! table   size:long ( key:shortstr type:octet value )*
//! array   size:long ( type:octet value )*
//! ```
//!
//! RabbitMQ 4.3.6 accepts any bytes as a key, also an empty one, and keeps duplicate keys; a lookup
//! finds the first (observed with two `x-message-ttl`).

mod borrowed;
mod builder;
mod error;
mod normalise;
mod owned;
mod validate;
mod value;

pub use borrowed::{ArrayIter, TableIter};
pub use builder::{ArrayBuilder, TableBuilder};
pub use error::TableError;
pub use owned::{Array, Table};
pub use value::{ArrayRef, TableRef, Value};
