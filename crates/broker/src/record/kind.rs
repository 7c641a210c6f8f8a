//! The kinds of records, one row each: code, role, references, the first version of the format, and a description.
//!
//! A new kind is a row here, a variant of [`Record`](super::Record) with its kind, a pair in `encode` and `decode`, and
//! its replay. `docs/internals/formats/records.md` has the same rows with their payloads.

/// The effect of a record on other records, for a log that does not understand their contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordRole {
    /// The record is needed as long as something refers to it.
    Stands,
    /// The record ends one reference to the record it is about; it may also be needed itself.
    Releases,
    /// The record replaces earlier records of the same kind about the same entry or queue.
    Annotates,
    /// The record ends references to many records.
    EndsMany,
    /// Combines `Releases` and `EndsMany`: the record ends a reference to the record it is about, and
    /// references to many others.
    ReleasesMany,
}

/// The references that keep a record in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keeps {
    /// No references: the record is needed only for its effect on others.
    Nothing,
    /// One reference for each place that a message has entered.
    Places,
    /// One reference, which a later record of the same object ends.
    Object,
}

/// The changes of the vhost that a record is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum About {
    /// Messages, redrives and the log itself.
    Contents,
    /// The queues that publishes reach: a queue, an exchange, a binding or a policy.
    Definitions,
}

/// The properties that all records of a kind share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KindRow {
    pub(super) role: RecordRole,
    pub(super) keeps: Keeps,
    pub(super) about: About,
    /// The oldest version of the log's format whose builds know the kind.
    pub(super) since: u32,
    /// A description for operators whose log has lost such a record.
    pub(super) description: &'static str,
}

macro_rules! kinds {
    ($($kind:ident = $code:literal, $role:ident, $keeps:ident, $about:ident, since $since:literal, $description:literal;)*) => {
        /// The kinds of records, as stored in the log.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub(super) enum Kind {
            $($kind = $code,)*
        }

        impl Kind {
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The kind with this code; none for a code of later builds.
            pub(super) const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($code => Some(Self::$kind),)*
                    _ => None,
                }
            }

            /// The row of the kind.
            pub(super) const fn row(self) -> KindRow {
                match self {
                    $(Self::$kind => KindRow {
                        role: RecordRole::$role,
                        keeps: Keeps::$keeps,
                        about: About::$about,
                        since: $since,
                        description: $description,
                    },)*
                }
            }
        }
    };
}

kinds! {
    Publish = 1, Stands, Places, Contents, since 1, "a message";
    Settle = 2, Releases, Nothing, Contents, since 1, "an acknowledgement";
    DeadLetter = 3, Releases, Places, Contents, since 1, "a dead letter";
    Requeue = 4, Annotates, Nothing, Contents, since 1, "a message that was returned";
    Pend = 5, Annotates, Nothing, Contents, since 1, "a dead message that its queue keeps";
    Delivered = 6, Annotates, Nothing, Contents, since 1, "a mark of deliveries";
    Purge = 7, EndsMany, Nothing, Contents, since 1, "a purge";
    Schedule = 8, Stands, Places, Contents, since 2, "a message with a delivery time";
    Ready = 9, Annotates, Nothing, Contents, since 2, "the end of a delay";
    Reschedule = 10, Annotates, Nothing, Contents, since 2, "another delivery time";
    Annotate = 11, Annotates, Nothing, Contents, since 2, "headers that a consumer added";
    DeclareQueue = 16, Stands, Object, Definitions, since 1, "the declaration of a queue";
    DeleteQueue = 17, ReleasesMany, Nothing, Definitions, since 1, "the deletion of a queue";
    DeclareExchange = 18, Stands, Object, Definitions, since 1, "the declaration of an exchange";
    DeleteExchange = 19, Releases, Nothing, Definitions, since 1, "the deletion of an exchange";
    Bind = 20, Stands, Object, Definitions, since 1, "a binding";
    Unbind = 21, Releases, Nothing, Definitions, since 1, "the end of a binding";
    SetPolicy = 22, Releases, Object, Definitions, since 1, "a policy";
    ClearPolicy = 23, Releases, Nothing, Definitions, since 1, "the end of a policy";
    SetRedrive = 24, Releases, Object, Contents, since 3, "the progress of a redrive";
    ClearRedrive = 25, Releases, Nothing, Contents, since 3, "the end of a redrive";
    Digest = 240, Stands, Nothing, Contents, since 3, "a digest that replicas compare";
    HandOver = 241, Stands, Nothing, Contents, since 3, "a change of the leader";
}

/// A description of a record kind, for operators whose log has lost such a record; none for a kind of later builds.
pub fn record_description(kind: u8) -> Option<&'static str> {
    Some(Kind::from_byte(kind)?.row().description)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the document: code, and the column of references.
    fn documented() -> Vec<(u8, String)> {
        let document = include_str!("../../../../docs/internals/formats/records.md");
        let rows = document.lines().filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let code = cells.get(1)?.parse().ok()?;
            Some((code, (*cells.get(4)?).to_owned()))
        });
        rows.collect()
    }

    #[test]
    fn document_has_a_row_for_each_kind() {
        let shown = |kind: &Kind| {
            let references = match kind.row().keeps {
                Keeps::Nothing => "",
                Keeps::Places => "one for each place",
                Keeps::Object => "one",
            };
            (*kind as u8, references.to_owned())
        };
        assert_eq!(documented(), Kind::ALL.iter().map(shown).collect::<Vec<_>>());
    }

    #[test]
    fn codes_read_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_byte(*kind as u8), Some(*kind));
        }
        assert_eq!(Kind::from_byte(0), None);
        assert_eq!(record_description(99), None);
    }
}
