//! Counts of login attempts by protocol and result.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::snapshot::logins::{LoginAttempts, Protocol};

/// The counts of one protocol.
#[derive(Default, Debug)]
struct Counts {
    succeeded: AtomicU64,
    failed: AtomicU64,
}

/// The counts since the start or the last reset.
#[derive(Default, Debug)]
pub(crate) struct LoginCounts {
    http: Counts,
    amqp091: Counts,
}

impl LoginCounts {
    fn of(&self, protocol: Protocol) -> &Counts {
        match protocol {
            Protocol::Http => &self.http,
            Protocol::Amqp091 => &self.amqp091,
        }
    }

    /// Counts an attempt.
    pub(crate) fn count(&self, protocol: Protocol, succeeded: bool) {
        let Counts { succeeded: good, failed: bad } = self.of(protocol);
        let count = if succeeded { good } else { bad };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts of each protocol with attempts.
    pub(crate) fn attempts(&self) -> Vec<LoginAttempts> {
        let all = [Protocol::Http, Protocol::Amqp091].map(|protocol| LoginAttempts {
            protocol,
            succeeded: self.of(protocol).succeeded.load(Ordering::Relaxed),
            failed: self.of(protocol).failed.load(Ordering::Relaxed),
        });
        all.into_iter().filter(|one| one.succeeded + one.failed > 0).collect()
    }

    /// Resets all counts to zero.
    pub(crate) fn forget(&self) {
        for Counts { succeeded, failed } in [&self.http, &self.amqp091] {
            succeeded.store(0, Ordering::Relaxed);
            failed.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_counts_list_used_protocols_only() {
        let counts = LoginCounts::default();
        assert_eq!(counts.attempts(), []);
        counts.count(Protocol::Amqp091, true);
        counts.count(Protocol::Amqp091, false);
        counts.count(Protocol::Amqp091, false);
        let amqp = LoginAttempts { protocol: Protocol::Amqp091, succeeded: 1, failed: 2 };
        assert_eq!(counts.attempts(), [amqp]);
        counts.forget();
        assert_eq!(counts.attempts(), []);
    }
}
