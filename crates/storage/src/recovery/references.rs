//! References of records while these are read or applied.

use crate::format::Lsn;
use crate::liveness::Liveness;

/// References of the records that have been read. The callback of a reading ends them.
#[derive(Debug)]
pub struct References<'a>(Ended<'a>);

/// Place of the references that end.
#[derive(Debug)]
enum Ended<'a> {
    /// The liveness: references end at once.
    AtOnce(&'a mut Liveness),
    /// A list: references end once the entry is applied.
    Later(&'a mut Vec<Lsn>),
}

impl<'a> References<'a> {
    /// References that end at once.
    pub(crate) fn at_once(liveness: &'a mut Liveness) -> Self {
        Self(Ended::AtOnce(liveness))
    }

    /// References that are noted in `ended`.
    pub(crate) fn later(ended: &'a mut Vec<Lsn>) -> Self {
        Self(Ended::Later(ended))
    }

    /// Ends one reference of the record at `lsn`.
    pub fn release(&mut self, lsn: Lsn) {
        match &mut self.0 {
            Ended::AtOnce(liveness) => liveness.release(lsn),
            Ended::Later(ended) => ended.push(lsn),
        }
    }
}
