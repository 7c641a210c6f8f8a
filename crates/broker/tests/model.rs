//! The core against a naive model with time: random histories of publishes, deliveries, settlements,
//! time passing and policies on a few queues that dead-letter into each other.
//!
//! The model keeps messages in plain lists and looks at all of them for every question, so that it is
//! right by inspection. After every step the core must have said the same to the client, hold the
//! same numbers of messages, keep its invariants, and have written a log whose replay gives exactly
//! the durable messages there are.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::wildcard_enum_match_arm, reason = "what a test does not know it need not name")]

#[path = "model/log.rs"]
mod log;
#[path = "model/naive.rs"]
mod naive;
#[path = "model/real.rs"]
mod real;
#[path = "model/steps.rs"]
mod steps;

use proptest::prelude::*;
use steps::{QueueSpec, Step};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 20_000, ..Default::default() })]

    #[test]
    fn the_core_does_what_the_naive_model_does(
        queues in prop::collection::vec(QueueSpec::any(), 3),
        steps in prop::collection::vec(Step::any(), 1..80),
    ) {
        let mut naive = naive::Model::new(&queues);
        let mut real = real::Broker::new(&queues);
        for (number, step) in steps.iter().enumerate() {
            let expected = naive.run(step);
            let said = real.run(step);
            prop_assert_eq!(&said, &expected, "step {}: {:?}", number, step);
            prop_assert_eq!(real.counts(), naive.counts(), "step {}: {:?}", number, step);
            real.check();
        }
        real.check_restart();
    }
}
