//! The destinations of a binding key, each with the number of its bindings.

use smallvec::SmallVec;

use super::binding::Destination;

/// Destinations, sorted, with the number of bindings of each. Two bindings of one queue that differ only in
/// their arguments count as one destination until both are removed.
#[derive(Clone, Default, Debug)]
pub(super) struct Destinations(SmallVec<[(Destination, u32); 1]>);

impl Destinations {
    fn find(&self, destination: Destination) -> Result<usize, usize> {
        self.0.binary_search_by_key(&destination, |(destination, _)| *destination)
    }

    pub(super) fn add(&mut self, destination: Destination) {
        match self.find(destination) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (destination, 1)),
        }
    }

    pub(super) fn remove(&mut self, destination: Destination) {
        // The exchange has checked that it has the binding.
        let at = self.find(destination).expect("a binding that is removed was added");
        let bindings = &mut self.0[at].1;
        *bindings -= 1;
        if *bindings == 0 {
            self.0.remove(at);
        }
    }

    pub(super) fn contains(&self, destination: Destination) -> bool {
        self.find(destination).is_ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn nth(&self, at: usize) -> Option<Destination> {
        self.0.get(at).map(|(destination, _)| *destination)
    }

    pub(super) fn each(&self, found: &mut dyn FnMut(Destination)) {
        for (destination, _) in &self.0 {
            found(*destination);
        }
    }
}
