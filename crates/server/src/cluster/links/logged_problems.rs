//! The problems of links that were logged, so that the log has not too many lines about one peer, or about many strangers.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::limits::{LINK_LOG_INTERVAL, LINK_LOG_INTERVAL_MIN, LINK_PROBLEMS_MAX};

/// Problems that were logged, by the other end, with the time.
#[derive(Debug, Default)]
pub(super) struct LoggedProblems(BTreeMap<String, (String, Instant)>);

impl LoggedProblems {
    /// True if a problem is to be logged now: it is another one than that which was logged last, or that was long ago. Of
    /// many strangers not all are logged, and of one that has other problems in turn a few.
    pub(super) fn is_due(&mut self, with: &str, reason: &str, now: Instant) -> bool {
        self.0.retain(|_, (_, at)| now.duration_since(*at) < LINK_LOG_INTERVAL);
        let is_due = match self.0.get(with) {
            Some((known, at)) => {
                known != reason && now.duration_since(*at) >= LINK_LOG_INTERVAL_MIN
            }
            None => self.0.len() < LINK_PROBLEMS_MAX,
        };
        if is_due {
            self.0.insert(with.to_owned(), (reason.to_owned(), now));
        }
        is_due
    }

    /// Forgets what was logged of the other end: there is a link.
    pub(super) fn forget(&mut self, with: &str) {
        self.0.remove(with);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn problems_in_turn_do_not_defeat_the_limit() {
        let (mut logged, start) = (LoggedProblems::default(), Instant::now());
        let mut lines = 0;
        for millis in 0..30_000 {
            let reason = if millis % 2 == 0 { "it is silent" } else { "it has another secret" };
            let now = start + Duration::from_millis(millis);
            lines += u32::from(logged.is_due("10.0.0.9", reason, now));
        }
        assert_eq!(lines, 6);
    }

    #[test]
    fn same_problem_is_logged_again_after_a_while_and_another_one_soon() {
        let (mut logged, start) = (LoggedProblems::default(), Instant::now());
        assert!(logged.is_due("a", "x", start));
        assert!(!logged.is_due("a", "x", start + LINK_LOG_INTERVAL_MIN));
        assert!(logged.is_due("a", "y", start + LINK_LOG_INTERVAL_MIN));
        assert!(!logged.is_due("a", "y", start + LINK_LOG_INTERVAL));
        assert!(logged.is_due("a", "y", start + LINK_LOG_INTERVAL + LINK_LOG_INTERVAL_MIN));
        let strangers = (0..2 * LINK_PROBLEMS_MAX).map(|number| format!("stranger {number}"));
        let mut logged = LoggedProblems::default();
        let told = strangers.filter(|stranger| logged.is_due(stranger, "x", start)).count();
        assert_eq!(told, LINK_PROBLEMS_MAX);
    }
}
