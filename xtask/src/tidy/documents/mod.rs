//! Rules about documents, lists and the files of the page.

pub(super) mod architecture;
pub(super) mod compatibility;
pub(super) mod markdown;
pub(super) mod places;
pub(super) mod test_index;
pub(super) mod text;
pub(super) mod web;
