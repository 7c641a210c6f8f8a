//! The core against a naive model with time: random histories of publishes, deliveries, settlements,
//! time passing and policies on a few queues that dead-letter into each other.
//!
//! The model keeps messages in plain lists and looks at all of them for every question, so that it is
//! right by inspection. After every step the core must have sent the same to the client, hold the
//! same numbers of messages, keep its invariants, and have written a log whose replay gives exactly
//! the durable messages there are.

mod naive;
mod real;
mod steps;

use broker::VhostOptions;
use broker::page::Paging;
use proptest::prelude::*;

use self::steps::{QueueSpec, Step};
use crate::disk::{SMALL_PAGES, replicated};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 20_000, ..Default::default() })]

    #[test]
    fn core_agrees_with_naive_model(
        queues in prop::collection::vec(QueueSpec::any(), 3),
        steps in prop::collection::vec(Step::any(), 1..80),
    ) {
        compare(&queues, &steps, VhostOptions::default())?;
    }

    /// The same, where replicas take over at any moment: nothing is lost, doubled or early, deaths are told in full, and
    /// marks of redelivery are those of the queue type.
    #[test]
    fn replicated_core_agrees_with_naive_model(
        queues in prop::collection::vec(QueueSpec::any(), 3),
        steps in prop::collection::vec(Step::any_or_failover(), 1..80),
    ) {
        compare(&queues, &steps, replicated())?;
    }

    /// Between queues the order may differ: what is in a page comes a moment later than what is not. So
    /// this is about one queue, whose dead letters have no consumer.
    #[test]
    fn paged_queue_agrees_with_naive_model(
        queue in QueueSpec::any(),
        steps in prop::collection::vec(Step::any(), 1..160),
        page_messages in 1_usize..4,
    ) {
        let long = QueueSpec {
            max_length: queue.max_length.map(|max| 4 + 4 * max),
            dead_letters_to: queue.dead_letters_to.map(|_| 1),
            ..queue
        };
        let steps: Vec<Step> = steps.into_iter().map(|step| step.on(0)).collect();
        let paging = Paging { page_messages, ..SMALL_PAGES };
        let options = VhostOptions { paging, ..VhostOptions::default() };
        compare(&[long, QueueSpec::PLAIN, QueueSpec::PLAIN], &steps, options)?;
    }
}

/// Goes through a history with both.
fn compare(
    queues: &[QueueSpec],
    steps: &[Step],
    options: VhostOptions,
) -> Result<(), TestCaseError> {
    let mut naive = naive::Model::new(queues);
    let mut real = real::Broker::new(queues, options);
    for (number, step) in steps.iter().enumerate() {
        let expected = naive.run(step);
        let said = real.run(step);
        prop_assert_eq!(&said, &expected, "step {}: {:?}", number, step);
        prop_assert_eq!(real.counts(), naive.counts(), "step {}: {:?}", number, step);
        let (looked, waiting) = (real.browsed(1 + number % 3), naive.waiting());
        let [mut looked, mut waiting] =
            [looked, waiting].map(|queues| queues.into_iter().enumerate().collect::<Vec<_>>());
        if options.paging != Paging::default() {
            // What died of a page stands where it came a moment later.
            let others = looked.iter_mut().chain(&mut waiting).filter(|(queue, _)| *queue != 0);
            others.for_each(|(_, (ready, _))| ready.sort());
        }
        prop_assert_eq!(looked, waiting, "a look after step {}: {:?}", number, step);
        real.check_deadlines(&naive.deadlines(), 1 + number % 3);
        real.check();
    }
    real.check_restart();
    Ok(())
}
