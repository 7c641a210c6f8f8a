//! The log of a node that is connected to fewer than a majority of its cluster.

use super::registry::Links;

/// The state that was logged last.
#[derive(Default, Debug)]
pub(crate) struct MajorityLog {
    /// True once the node was found without a majority; the first look may come before the links.
    lacked: bool,
    is_told: bool,
}

/// The sentence about a change.
#[derive(PartialEq, Eq, Debug)]
enum Change {
    Lost(String),
    Found,
}

impl MajorityLog {
    /// Logs if the nodes that are connected have become fewer than a majority, and if they are a majority again. A lack that
    /// is over at the next look is not logged.
    pub(in crate::cluster) fn look(&mut self, links: &Links) {
        if !links.is_founded() {
            return;
        }
        match self.note(links.peers().len() + 1, &links.away()) {
            Some(Change::Lost(text)) => tracing::warn!("{text}"),
            Some(Change::Found) => tracing::info!("a majority of the nodes is connected again"),
            None => {}
        }
    }

    fn note(&mut self, nodes: usize, away: &[String]) -> Option<Change> {
        let connected = nodes - away.len();
        let lacks = connected * 2 <= nodes;
        let lacked = std::mem::replace(&mut self.lacked, lacks);
        match (lacks, self.is_told) {
            (true, false) if lacked => {
                self.is_told = true;
                Some(Change::Lost(format!(
                    "no majority: {connected} of {nodes} nodes are connected, this one included. Nothing is confirmed, and \
                     users and vhosts cannot be changed, until more are; missing: {}",
                    away.join(", ")
                )))
            }
            (false, true) => {
                self.is_told = false;
                Some(Change::Found)
            }
            (true | false, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lack_of_a_majority_is_told_at_the_second_look_and_its_end_once() {
        let mut log = MajorityLog::default();
        let away = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(log.note(3, &away(&["b@h", "c@h"])), None);
        let Some(Change::Lost(text)) = log.note(3, &away(&["b@h", "c@h"])) else { panic!() };
        assert!(text.contains("1 of 3 nodes") && text.ends_with("missing: b@h, c@h"), "{text}");
        assert_eq!(log.note(3, &away(&["b@h", "c@h"])), None);
        assert_eq!(log.note(3, &away(&["c@h"])), Some(Change::Found));
        assert_eq!((log.note(3, &away(&["c@h"])), log.note(3, &[])), (None, None));
        // Half of an even number is no majority, and a lack that is over at once is not told.
        assert_eq!((log.note(4, &away(&["b@h", "c@h"])), log.note(4, &[])), (None, None));
    }
}
