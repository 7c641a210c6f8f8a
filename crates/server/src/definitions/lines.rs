//! The line of an item in the text of definitions, for errors of a file that an operator edits.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::Place;

/// The line at which an item begins, or the list of its family; from 1. None if the text has no such item.
pub(super) fn line_of(text: &[u8], place: Place) -> Option<usize> {
    // As in the document itself, the last of several members of one name counts.
    let families: BTreeMap<String, &RawValue> = serde_json::from_slice(text).ok()?;
    let family = families.get(place.family)?.get();
    let found = match place.index {
        None => family,
        Some(index) => {
            let items: Vec<&RawValue> = serde_json::from_str(family).ok()?;
            items.get(index)?.get()
        }
    };
    // Raw values are parts of the text.
    let offset = found.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let before = text.get(..offset)?;
    Some(1 + before.iter().filter(|byte| **byte == b'\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] =
        b"{\n \"users\": [],\n \"queues\":\n  [{\"name\":\n   \"a\"}, {},\n\n   7]}\n";

    fn line(family: &'static str, index: Option<usize>) -> Option<usize> {
        line_of(TEXT, Place { family, index })
    }

    #[test]
    fn items_have_the_line_of_their_first_character() {
        assert_eq!(line("queues", Some(0)), Some(4));
        assert_eq!(line("queues", Some(1)), Some(5));
        assert_eq!(line("queues", Some(2)), Some(7));
    }

    #[test]
    fn families_have_the_line_of_their_list() {
        assert_eq!((line("users", None), line("queues", None)), (Some(2), Some(4)));
    }

    #[test]
    fn missing_items_have_no_line() {
        assert_eq!((line("queues", Some(3)), line("vhosts", None)), (None, None));
        assert_eq!(line_of(b"[", Place { family: "users", index: None }), None);
    }

    #[test]
    fn the_last_of_two_families_counts() {
        let text = b"{\"users\": [1],\n\"users\": [1]}";
        assert_eq!(line_of(text, Place { family: "users", index: Some(0) }), Some(2));
    }
}
