//! Collections that the core needs beside those of the standard library.

mod lookup;
mod packed_numbers;
mod rare;
mod small_set;
mod sparse_deque;

pub(crate) use lookup::Lookup;
pub(crate) use packed_numbers::PackedNumbers;
pub(crate) use rare::Rare;
pub(crate) use small_set::SmallSet;
pub(crate) use sparse_deque::SparseDeque;
