//! The table of loads: what is done to a broker, and which figures are the point of it.
//!
//! A load is data: the arguments of `leveret-perf`, who can bear it, what it is measured by, and what
//! Leveret is to reach.

use super::figures::Figure;

/// One way of loading a broker.
#[derive(Debug)]
pub(super) struct Load {
    /// The name people type.
    pub(super) name: &'static str,
    /// Description of the load, for the report.
    pub(super) what: &'static str,
    /// Program that makes the load.
    pub(super) action: Action,
    /// Measured figures; the first is the rate that other loads refer to.
    pub(super) figures: &'static [Figure],
    pub(super) goals: &'static [Goal],
    /// Subjects that are made for the load.
    pub(super) for_whom: ForWhom,
    /// Most rounds, where it takes long.
    pub(super) rounds_max: u32,
    /// The same for a broker that takes minutes to it.
    pub(super) rabbitmq_rounds_max: u32,
}

/// Program of a load.
#[derive(Debug)]
pub(super) enum Action {
    /// `leveret-perf` with these arguments, for a time.
    Timed(&'static str),
    /// The same, until it is done.
    Counted(&'static str),
    /// The same as another load, at half of the rate that the broker reached there.
    HalfOf(&'static str),
    /// No load: the broker has just been started.
    Idle,
}

/// Subjects that are made for a load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ForWhom {
    /// Leveret, RabbitMQ, and the floor, which only hands messages on.
    All,
    /// Leveret and RabbitMQ.
    Brokers,
    /// Programs that are started here.
    Leveret,
}

/// Figure that Leveret is to reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) figure: Figure,
    pub(super) bound: Bound,
}

/// A bound for a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    AtLeast(f64),
    Below(f64),
    /// As good as the same figure of another load, but for what two runs of one thing differ.
    AsInLoad(&'static str),
    /// As good as RabbitMQ, but for the same.
    AsRabbitmq,
}

const fn at_least(figure: Figure, least: f64) -> Goal {
    Goal { figure, bound: Bound::AtLeast(least) }
}

const fn below(figure: Figure, most: f64) -> Goal {
    Goal { figure, bound: Bound::Below(most) }
}

const NONE_EARLY: Goal = below(Figure::Early, 1.0);
const NONE_DOUBLED: Goal = below(Figure::Doubled, 1.0);

const RATES: &[Figure] = &[Figure::Consumed, Figure::Cpu];
const LATENESS: &[Figure] = &[
    Figure::LatenessP50,
    Figure::LatenessP99,
    Figure::LatenessP999,
    Figure::Early,
    Figure::Doubled,
    Figure::Cpu,
];
const LATENCY: &[Figure] = &[Figure::Consumed, Figure::P50, Figure::P99, Figure::P999, Figure::Cpu];

/// A load without goals, for the table to vary.
const PLAIN: Load = Load {
    name: "",
    what: "",
    action: Action::Idle,
    figures: RATES,
    goals: &[],
    for_whom: ForWhom::Brokers,
    rounds_max: u32::MAX,
    rabbitmq_rounds_max: u32::MAX,
};

/// All loads, in the order of their runs and of the report.
pub(super) const LOADS: &[Load] = &[
    Load {
        name: "idle",
        what: "a broker that was just started",
        figures: &[Figure::Resident],
        goals: &[below(Figure::Resident, 10e6)],
        for_whom: ForWhom::Leveret,
        ..PLAIN
    },
    Load {
        name: "transient-16",
        what: "16 bytes, transient, acknowledged automatically",
        action: Action::Timed("throughput --size 16 --auto-ack"),
        goals: &[at_least(Figure::Consumed, 2e6), below(Figure::Cpu, 0.4)],
        for_whom: ForWhom::All,
        ..PLAIN
    },
    Load {
        name: "transient-1k",
        what: "1 KB, transient, acknowledged automatically",
        action: Action::Timed("throughput --size 1024 --auto-ack"),
        goals: &[at_least(Figure::Consumed, 5e5), below(Figure::Cpu, 1.2)],
        for_whom: ForWhom::All,
        ..PLAIN
    },
    Load {
        name: "persistent-16",
        what: "16 bytes, persistent, confirmed (10,000 in flight), acknowledged by hundreds",
        action: Action::Timed("throughput --size 16 --persistent --confirm 10000"),
        goals: &[at_least(Figure::Consumed, 6e5), below(Figure::Cpu, 1.5)],
        ..PLAIN
    },
    Load {
        name: "persistent-1k",
        what: "the same with 1 KB",
        action: Action::Timed("throughput --size 1024 --persistent --confirm 10000"),
        goals: &[at_least(Figure::Consumed, 3e5), below(Figure::Cpu, 3.0)],
        ..PLAIN
    },
    Load {
        name: "persistent-64k",
        what: "the same with 64 KB and 500 in flight",
        action: Action::Timed(
            "throughput --size 65536 --persistent --confirm 500 --prefetch 500 --in-flight 2000",
        ),
        ..PLAIN
    },
    Load {
        name: "quorum-1k",
        what: "1 KB as persistent-1k, in a quorum queue",
        action: Action::Timed(
            "throughput --size 1024 --persistent --confirm 10000 -A x-queue-type=quorum",
        ),
        ..PLAIN
    },
    Load {
        name: "confirm-1",
        what: "100 bytes, persistent, each confirmed before the next is sent",
        action: Action::Timed("throughput --size 100 --persistent --confirm 1 --consumers 0"),
        figures: &[Figure::Confirmed, Figure::ConfirmP50, Figure::ConfirmP99, Figure::Cpu],
        goals: &[at_least(Figure::Confirmed, 7e3)],
        ..PLAIN
    },
    Load {
        name: "fanout-10",
        what: "100 bytes to a fanout exchange with 10 queues, each with a consumer; copies count",
        action: Action::Timed(
            "throughput --size 100 --auto-ack --exchange-type fanout --queues 10 --in-flight 20000",
        ),
        ..PLAIN
    },
    Load {
        name: "topic-10000",
        what: "100 bytes to a topic exchange with 10,000 bindings of 10 queues",
        action: Action::Timed(
            "throughput --size 100 --auto-ack --exchange-type topic --queues 10 --bindings 10000",
        ),
        rabbitmq_rounds_max: 1,
        ..PLAIN
    },
    Load {
        name: "queues-1000",
        what: "100 bytes through 1,000 queues, by 2 producers and 2 consumers",
        action: Action::Timed("throughput --size 100 --auto-ack --queues 1000 -x 2 -y 2"),
        ..PLAIN
    },
    Load {
        name: "connections-1000",
        what: "100 bytes from 500 producers over 500 queues to 500 consumers",
        action: Action::Timed("throughput --size 100 --auto-ack --queues 500 -x 500 -y 500"),
        ..PLAIN
    },
    Load {
        name: "body-200k",
        what: "200 KB, transient, acknowledged",
        action: Action::Timed("throughput --size 200000 --prefetch 200 --in-flight 500"),
        goals: &[Goal { figure: Figure::Consumed, bound: Bound::AsRabbitmq }],
        ..PLAIN
    },
    Load {
        name: "priority-5",
        what: "100 bytes with random priorities up to 5",
        action: Action::Timed(
            "throughput --size 100 --auto-ack -A x-max-priority=5 --priority-max 5",
        ),
        ..PLAIN
    },
    Load {
        name: "priority-255",
        what: "the same up to 255",
        action: Action::Timed(
            "throughput --size 100 --auto-ack -A x-max-priority=255 --priority-max 255",
        ),
        goals: &[Goal { figure: Figure::Consumed, bound: Bound::AsInLoad("priority-5") }],
        ..PLAIN
    },
    Load {
        name: "reject-16",
        what: "16 bytes, each rejected into a dead-letter queue, which is read",
        action: Action::Timed("throughput --size 16 --reject"),
        figures: &[Figure::DeadLettered, Figure::Cpu],
        goals: &[at_least(Figure::DeadLettered, 5e5), below(Figure::Cpu, 2.0)],
        ..PLAIN
    },
    Load {
        name: "reject-100",
        what: "the same with 100 bytes",
        action: Action::Timed("throughput --size 100 --reject"),
        figures: &[Figure::DeadLettered, Figure::Cpu],
        ..PLAIN
    },
    Load {
        name: "expiry-burst",
        what: "100,000 of 100 bytes and one TTL (2 s), published as fast as it goes",
        action: Action::Counted("expiry --count 100000 --size 100 --ttl-ms 2000 --confirm 5000"),
        figures: LATENESS,
        goals: &[below(Figure::LatenessP99, 25_000.0), NONE_EARLY, NONE_DOUBLED],
        ..PLAIN
    },
    Load {
        name: "expiry-random-20k",
        what: "20,000 with random TTLs of 1 to 4 s",
        action: Action::Counted("expiry --count 20000 --size 100 --ttl-ms 1000..4000"),
        figures: LATENESS,
        goals: &[
            below(Figure::LatenessP50, 2_000.0),
            below(Figure::LatenessP99, 20_000.0),
            NONE_EARLY,
            NONE_DOUBLED,
        ],
        rabbitmq_rounds_max: 1,
        ..PLAIN
    },
    Load {
        name: "expiry-queue-1m",
        what: "1,000,000 with one TTL (5 s)",
        action: Action::Counted("expiry --count 1000000 --size 100 --ttl-ms 5000"),
        figures: LATENESS,
        goals: &[NONE_EARLY, NONE_DOUBLED],
        rabbitmq_rounds_max: 1,
        ..PLAIN
    },
    Load {
        name: "expiry-random-1m",
        what: "1,000,000 with random TTLs of 1 to 10 s",
        action: Action::Counted("expiry --count 1000000 --size 100 --ttl-ms 1000..10000"),
        figures: LATENESS,
        goals: &[below(Figure::LatenessP99, 10_000.0), NONE_EARLY, NONE_DOUBLED],
        rabbitmq_rounds_max: 1,
        ..PLAIN
    },
    Load {
        name: "backlog-1m",
        what: "1,000,000 persistent messages of 100 bytes, published without a consumer, then consumed",
        action: Action::Counted("backlog --count 1000000 --size 100 --persistent"),
        figures: &[Figure::FillTime, Figure::DrainTime, Figure::FillCpu, Figure::DrainCpu],
        goals: &[below(Figure::FillTime, 0.6), below(Figure::DrainTime, 0.5)],
        rabbitmq_rounds_max: 1,
        ..PLAIN
    },
    Load {
        name: "backlog-10m",
        what: "the same with 10,000,000",
        action: Action::Counted("backlog --count 10000000 --size 100 --persistent"),
        figures: &[Figure::FillTime, Figure::DrainTime, Figure::FillResident],
        goals: &[below(Figure::FillResident, 60e6)],
        rounds_max: 1,
        rabbitmq_rounds_max: 1,
        ..PLAIN
    },
    Load {
        name: "half-transient-1k",
        what: "transient-1k at half of the rate that the broker reached there",
        action: Action::HalfOf("transient-1k"),
        figures: LATENCY,
        goals: &[below(Figure::P99, 1_000.0)],
        ..PLAIN
    },
    Load {
        name: "half-persistent-1k",
        what: "persistent-1k at half of the rate that the broker reached there",
        action: Action::HalfOf("persistent-1k"),
        figures: LATENCY,
        ..PLAIN
    },
];

impl Load {
    /// The load with this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        LOADS.iter().find(|load| load.name == name)
    }

    /// The load whose rate it needs.
    pub(super) fn base(&self) -> Option<&'static Self> {
        match self.action {
            Action::HalfOf(name) => Self::named(name),
            Action::Timed(_) | Action::Counted(_) | Action::Idle => None,
        }
    }

    /// The arguments of `leveret-perf`; `rate` is what the broker reached under the base load.
    pub(super) fn arguments(&self, seconds: f64, rate: Option<f64>) -> Vec<String> {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let timed = |text| [words(text), words(&format!("--time {seconds}"))].concat();
        match self.action {
            Action::Timed(text) => timed(text),
            Action::Counted(text) => words(text),
            Action::HalfOf(_) => {
                let mut arguments =
                    self.base().map(|base| base.arguments(seconds, None)).unwrap_or_default();
                let half = (rate.unwrap_or(0.0) / 2.0).round().max(1.0);
                arguments.extend(words(&format!("--rate {half}")));
                arguments
            }
            Action::Idle => Vec::new(),
        }
    }
}

/// The loads that are asked for, and those whose rates they need; all when none is named.
pub(super) fn selection(only: &[String]) -> Vec<&'static Load> {
    let is_asked = |load: &Load| only.is_empty() || only.iter().any(|name| name == load.name);
    let needed: Vec<&str> = LOADS
        .iter()
        .filter(|load| is_asked(load))
        .filter_map(|load| Some(load.base()?.name))
        .collect();
    LOADS.iter().filter(|load| is_asked(load) || needed.contains(&load.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_bases_come_before() {
        for (at, load) in LOADS.iter().enumerate() {
            let first = LOADS.iter().position(|other| other.name == load.name);
            assert_eq!(first, Some(at), "{}", load.name);
            let others = load.goals.iter().filter_map(|goal| match goal.bound {
                Bound::AsInLoad(name) => Some(name),
                Bound::AtLeast(_) | Bound::Below(_) | Bound::AsRabbitmq => None,
            });
            let base = match load.action {
                Action::HalfOf(name) => Some(name),
                Action::Timed(_) | Action::Counted(_) | Action::Idle => None,
            };
            for other in others.chain(base) {
                assert!(LOADS[..at].iter().any(|earlier| earlier.name == other), "{other}");
            }
            for goal in load.goals {
                assert!(load.figures.contains(&goal.figure), "{}: {goal:?}", load.name);
            }
        }
    }

    #[test]
    fn half_a_rate_needs_the_whole() {
        let asked = selection(&["half-persistent-1k".to_owned()]);
        let names: Vec<_> = asked.iter().map(|load| load.name).collect();
        assert_eq!(names, ["persistent-1k", "half-persistent-1k"]);
        let arguments = asked[1].arguments(4.0, Some(300_001.0)).join(" ");
        assert!(arguments.ends_with("--confirm 10000 --time 4 --rate 150001"), "{arguments}");
        assert_eq!(selection(&[]).len(), LOADS.len());
    }

    #[test]
    fn leveret_perf_understands_every_load() {
        for load in LOADS.iter().filter(|load| !matches!(load.action, Action::Idle)) {
            let arguments = load.arguments(0.5, Some(1_000.0));
            leveret_perf::understands(&arguments)
                .unwrap_or_else(|error| panic!("{}: {error:#}", load.name));
        }
    }
}
