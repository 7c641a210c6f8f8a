//! Headers of dead-lettering, read through the types of a client.

use std::time::SystemTime;

/// The headers of a message that was dead-lettered.
#[derive(Debug)]
pub struct Deaths {
    /// The header `x-death`.
    pub list: Vec<Death>,
    /// `x-first-death-reason`, `x-first-death-queue` and `x-first-death-exchange`.
    pub first: [String; 3],
}

/// One table of `x-death`.
#[derive(Debug)]
pub struct Death {
    /// Number of deaths.
    pub count: i64,
    /// Reason of the death.
    pub reason: String,
    /// Queue in which the message died.
    pub queue: String,
    /// Exchange that the message was published to.
    pub exchange: String,
    /// Routing keys of the message.
    pub routing_keys: Vec<String>,
    /// Property `expiration` of the message.
    pub original_expiration: Option<String>,
    /// Time of the death, in seconds since 1970.
    pub time_s: u64,
}

impl Deaths {
    /// The message died once, in a queue that it got into through an exchange.
    pub fn assert_died(&self, reason: &str, queue: &str, exchange: &str, expiration: Option<&str>) {
        let [death] = &self.list[..] else { panic!("one death, and not {self:?}") };
        death.assert_is(1, reason, queue, exchange);
        assert_eq!(death.original_expiration.as_deref(), expiration);
        assert_eq!(self.first, [reason, queue, exchange]);
    }

    /// The message was rejected from a work queue and expired in a wait queue, twice.
    pub fn assert_retried(&self, work: &str, wait: &str) {
        let [expired, rejected] = &self.list[..] else { panic!("two deaths, and not {self:?}") };
        expired.assert_is(2, "expired", wait, "");
        rejected.assert_is(2, "rejected", work, "");
        assert_eq!(self.first, ["rejected", work, ""]);
    }
}

impl Death {
    fn assert_is(&self, count: i64, reason: &str, queue: &str, exchange: &str) {
        assert_eq!(self.count, count);
        assert_eq!([&self.reason, &self.queue, &self.exchange], [reason, queue, exchange]);
        assert_eq!(self.routing_keys, [queue]); // the queues of the scenario are bound with their names
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("it is later than 1970");
        assert!(now.as_secs().abs_diff(self.time_s) < 60, "it died at {}", self.time_s);
    }
}
