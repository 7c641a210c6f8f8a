//! The history beside a naive model that keeps every sample.

use std::collections::BTreeMap;

use broker::QueueNumber;
use proptest::prelude::*;

use crate::history::{
    History, Sample, SharedHistory, TimeRange, TimeRanges, Trend, VhostSample, fields,
};
use crate::snapshot::fields::{QUEUE, StatsKind, VHOST};

/// The place of `publish` among the numbers of a queue and of a vhost.
const PUBLISHED: usize = 3;
/// Names of queues; one counter of [`Step::Sample`] belongs to each.
const QUEUES: u64 = 4;

/// An event between two samples.
#[derive(Clone, Debug)]
enum Step {
    /// Time passes, each queue counts some messages, and a sample is taken.
    Sample {
        after_ms: u64,
        published: [u8; 4],
    },
    /// The queue is deleted and declared anew, or declared for the first time.
    Declare(u64),
    Delete(u64),
    /// The clock of the machine is set back.
    SetBack {
        by_ms: u64,
    },
    /// All samples are discarded.
    Reset,
}

fn step() -> impl Strategy<Value = Step> {
    let samples = (
        prop_oneof![8 => Just(5000_u64), 2 => 4000..9000_u64, 1 => 1..300_000_u64],
        prop::array::uniform(prop_oneof![2 => Just(0), 1 => any::<u8>()]),
    );
    let samples = samples.prop_map(|(after_ms, published)| Step::Sample { after_ms, published });
    prop_oneof![
        60 => samples,
        2 => (0..QUEUES).prop_map(Step::Declare),
        1 => (0..QUEUES).prop_map(Step::Delete),
        1 => (1..100_000_u64).prop_map(|by_ms| Step::SetBack { by_ms }),
        1 => Just(Step::Reset),
    ]
}

/// Every sample of the queues that exist, and all queues with their counters.
#[derive(Default, Debug)]
struct Model {
    now_ms: u64,
    /// The latest time that there was, before the clock was set back, too.
    latest_ms: u64,
    live: BTreeMap<u64, u64>,
    next: u64,
    /// The names of queues by number; a queue that is declared anew has a new one.
    named: BTreeMap<u64, u64>,
    samples: BTreeMap<u64, BTreeMap<u64, u64>>,
}

impl Model {
    fn declare(&mut self, name: u64) {
        self.delete(name);
        self.named.insert(name, self.next);
        self.live.insert(self.next, 0);
        self.next += 1;
    }

    fn delete(&mut self, name: u64) {
        if let Some(number) = self.named.remove(&name) {
            self.live.remove(&number);
        }
    }

    fn sample(&mut self) -> Sample {
        let numbers = |published: u64| {
            let mut numbers = [0; QUEUE.len()];
            (numbers[0], numbers[PUBLISHED]) = (published % 7, published);
            numbers
        };
        let queues =
            self.live.iter().map(|(number, count)| (QueueNumber(*number), numbers(*count)));
        let mut totals = [0; VHOST.len()];
        totals[PUBLISHED] = self.live.values().sum();
        let vhost = VhostSample {
            name: "/".to_owned(),
            totals,
            queues: queues.collect(),
            exchanges: Vec::new(),
            channels: Vec::new(),
        };
        self.samples.retain(|at_ms, _| *at_ms < self.now_ms);
        self.samples.insert(self.now_ms, self.live.clone());
        self.latest_ms = self.latest_ms.max(self.now_ms);
        Sample { node: [0; fields::NODE.len()], vhosts: vec![vhost], connections: Vec::new() }
    }

    /// True if the queue was sampled at the time with the count, or had counted nothing at a time before its
    /// first sample.
    fn confirms(&self, number: u64, at_ms: u64, count: u64) -> bool {
        let Some(sample) = self.samples.get(&at_ms) else {
            return false;
        };
        let existed_before =
            || self.samples.range(..at_ms).any(|(_, sample)| sample.contains_key(&number));
        sample.get(&number).map_or_else(|| count == 0 && !existed_before(), |known| *known == count)
    }
}

fn window(trend: &Trend<{ QUEUE.len() }>) -> Vec<(u64, u64)> {
    let window = trend.window(StatsKind::Messages).unwrap();
    window.iter().map(|(at_ms, numbers)| (*at_ms, numbers[PUBLISHED])).collect()
}

/// Compares the answer for a range with the model.
fn check(history: &History, model: &Model, range: TimeRange, is_whole: bool) {
    let ranges = TimeRanges { messages: Some(range), ..TimeRanges::default() };
    for number in model.live.keys() {
        let trend = history.of_queue("/", QueueNumber(*number), &ranges);
        let answered = window(&trend);
        assert!(u64::try_from(answered.len()).unwrap() <= range.age_ms / range.step_ms + 1);
        assert!(answered.windows(2).all(|pair| pair[0].0 > pair[1].0), "latest first");
        for (at_ms, count) in &answered {
            assert!(model.confirms(*number, *at_ms, *count), "{number} at {at_ms}: {count}");
        }
        let sampled: Vec<(u64, u64)> = model
            .samples
            .iter()
            .rev()
            .filter_map(|(at, all)| Some((*at, *all.get(number)?)))
            .collect();
        if let Some(first) = sampled.first() {
            assert_eq!(answered.first(), Some(first), "the newest sample is in the answer");
        }
        if let ([(late, new), (early, old), ..], Some(rate)) =
            (&sampled[..], trend.rates.get(PUBLISHED))
        {
            let elapsed_s = f64::from(u32::try_from(late - early).unwrap()) / 1000.0;
            let change =
                f64::from(u32::try_from(*new).unwrap()) - f64::from(u32::try_from(*old).unwrap());
            assert!((rate - change / elapsed_s).abs() < 1e-9);
        }
        // Of each step with a sample of the last ten minutes there is one.
        let recent = (model.latest_ms + range.step_ms).saturating_sub(range.age_ms.min(600_000));
        for (at_ms, _) in sampled.iter().filter(|(at, _)| is_whole && *at >= recent) {
            let step_of = |time: u64| time / range.step_ms;
            assert!(
                answered.iter().any(|(at, _)| step_of(*at) == step_of(*at_ms)),
                "{number} has no sample of the step of {at_ms}: {answered:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn answers_contain_taken_samples_only(
        steps in prop::collection::vec(step(), 1..500),
        bytes_max in prop_oneof![Just(usize::MAX), 0..30_000_usize],
    ) {
        let history = SharedHistory::default();
        history.0.write().unwrap().bytes_max = bytes_max;
        let mut model = Model { now_ms: 1_700_000_000_123, ..Model::default() };
        for step in &steps {
            match step {
                Step::Sample { after_ms, published } => {
                    model.now_ms += after_ms;
                    for (name, published) in (0_u64..).zip(published) {
                        if let Some(number) = model.named.get(&name) {
                            *model.live.entry(*number).or_default() += u64::from(*published);
                        }
                    }
                    let sample = model.sample();
                    history.add(model.now_ms, sample);
                }
                Step::Declare(name) => model.declare(*name),
                Step::Delete(name) => model.delete(*name),
                Step::SetBack { by_ms } => model.now_ms -= by_ms,
                Step::Reset => {
                    history.clear();
                    history.0.write().unwrap().bytes_max = bytes_max;
                    model.samples.clear();
                }
            }
        }
        for (age_s, step_s) in [(60, 5), (600, 5), (600, 60), (3600, 60), (3600, 7), (86_400, 1800), (7, 1)] {
            let range = TimeRange { age_ms: age_s * 1000, step_ms: step_s * 1000 };
            history.read(|history| check(history, &model, range, bytes_max == usize::MAX));
        }
    }
}
