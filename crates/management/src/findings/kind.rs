//! Kinds of findings, each with the page that shows more and the way to mend the problem.

/// A kind of problem.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum FindingKind {
    MemoryAlarm,
    DiskAlarm,
    DiskFull,
    MetadataWithoutLeader,
    VhostWithoutLeader,
    VhostStandsStill,
    NodeDoubled,
    NodeUnreachable,
    ReplicaNotRebuilt,
    ClocksDiffer,
    VhostDown,
    LogDamaged,
    FilesDamaged,
    CertificateExpires,
    DeadLettersLost,
    ConnectionsBlocked,
    QueueRefuses,
    PublishesUnroutable,
    DeadLettersWithoutRoute,
    DeadLettersWait,
    DeadLettersWithoutConsumer,
    DeadLettersPartlyWithoutRoute,
    DeadLettersExpireSooner,
    DeadLettersMeetALimit,
    DeadLettersReturn,
    DeadlinesLate,
    QueueDrops,
    QueueGrows,
    ConsumersAtLimit,
    ConsumersSlow,
    MessagesDropped,
    SlowDisk,
    PagesInMemory,
    ClockStep,
    ListenersSuspended,
    NodeDrained,
    DescriptorsShort,
    MemoryShort,
    DiskShort,
    VhostLimitReached,
    ConnectionsRefused,
    LoginsRefused,
}

/// The place of a kind in the API, on the page and in the documentation.
struct About {
    name: &'static str,
    /// Address on the page.
    page: &'static str,
    /// Command that shows or mends the problem; empty without one.
    command: &'static str,
    /// Page of the documentation.
    docs: &'static str,
}

impl FindingKind {
    /// Name in the API.
    pub(crate) const fn as_str(self) -> &'static str {
        self.about().name
    }

    /// Address on the page.
    pub(crate) const fn page(self) -> &'static str {
        self.about().page
    }

    /// Command that shows or mends the problem.
    pub(crate) fn command(self) -> Option<&'static str> {
        Some(self.about().command).filter(|command| !command.is_empty())
    }

    /// Page of the documentation, relative to `docs/`.
    pub(crate) const fn docs(self) -> &'static str {
        self.about().docs
    }

    const fn about(self) -> About {
        match self {
            Self::MemoryAlarm => about(
                "memory_alarm",
                NODES,
                "leveretctl list_queues name messages message_bytes_ram",
                ALARMS,
            ),
            Self::DiskAlarm => about("disk_alarm", NODES, "leveretctl status", FULL_DISK),
            Self::DiskFull => about("disk_full", NODES, "leveretctl status", FULL_DISK),
            Self::MetadataWithoutLeader => of_replicas("metadata_without_leader"),
            Self::VhostWithoutLeader => of_replicas("vhost_without_leader"),
            Self::VhostStandsStill => of_replicas("vhost_stands_still"),
            Self::NodeDoubled => about("node_doubled", NODES, CLUSTER_STATUS, LOST_NODE),
            Self::NodeUnreachable => about("node_unreachable", NODES, CLUSTER_STATUS, LOST_NODE),
            Self::ReplicaNotRebuilt => of_replicas("replica_not_rebuilt"),
            Self::ClocksDiffer => about("clocks_differ", NODES, "", CLOCKS),
            Self::VhostDown => about("vhost_down", "#/admin/vhosts", "", "guides/back-up.md"),
            Self::LogDamaged => about("log_damaged", "#/admin/vhosts", "", "guides/back-up.md"),
            Self::FilesDamaged => FILES,
            Self::CertificateExpires => {
                about("certificate_expires", NODES, "", "guides/secure-with-tls.md")
            }
            Self::DeadLettersLost => about("dead_letters_lost", MAP, CHECK, LOST),
            Self::ConnectionsBlocked => about(
                "connections_blocked",
                "#/connections",
                "leveretctl list_connections name user state",
                ALARMS,
            ),
            Self::QueueRefuses => about("queue_refuses", QUEUES, LENGTHS, LIMIT),
            Self::PublishesUnroutable => UNROUTABLE,
            Self::DeadLettersWithoutRoute => about("dead_letters_without_route", MAP, CHECK, LOST),
            Self::DeadLettersWait => WAITING,
            Self::DeadLettersWithoutConsumer => UNCONSUMED,
            Self::DeadLettersPartlyWithoutRoute => {
                of_map("dead_letters_partly_without_route", LOST)
            }
            Self::DeadLettersExpireSooner => of_map("dead_letters_expire_sooner", MAP_WARNINGS),
            Self::DeadLettersMeetALimit => of_map("dead_letters_meet_a_limit", MAP_WARNINGS),
            Self::DeadLettersReturn => of_map("dead_letters_return", CYCLES),
            Self::DeadlinesLate => {
                about("deadlines_late", QUEUES, "leveretctl status", "concepts/expiry.md")
            }
            Self::QueueDrops => about("queue_drops", QUEUES, LENGTHS, LIMIT),
            Self::QueueGrows => about("queue_grows", QUEUES, CONSUMERS, "concepts/consumers.md"),
            Self::ConsumersAtLimit => {
                about("consumers_at_limit", QUEUES, CONSUMERS, "concepts/consumers.md#prefetch")
            }
            Self::ConsumersSlow => SLOW_CONSUMERS,
            Self::MessagesDropped => DROPPED,
            Self::SlowDisk => about("slow_disk", NODES, "leveretctl status", DURABILITY),
            Self::PagesInMemory => {
                about("pages_in_memory", NODES, "leveretctl status", "concepts/long-queues.md")
            }
            Self::ClockStep => about("clock_step", NODES, "", "concepts/expiry.md"),
            Self::ListenersSuspended => about(
                "listeners_suspended",
                NODES,
                "leveretctl resume_listeners",
                "reference/leveretctl.md",
            ),
            Self::NodeDrained => about("node_drained", NODES, "rabbitmq-upgrade revive", DRAINED),
            Self::DescriptorsShort => {
                about("descriptors_short", NODES, "leveretctl status", "reference/limits.md")
            }
            Self::MemoryShort => about("memory_short", NODES, "leveretctl status", ALARMS),
            Self::DiskShort => about("disk_short", NODES, "leveretctl status", FULL_DISK),
            Self::VhostLimitReached => VHOST_LIMIT,
            Self::ConnectionsRefused => CONNECTIONS,
            Self::LoginsRefused => LOGINS,
        }
    }
}

// ---- texts that several kinds share ----

const MAP: &str = "#/dead-letters?faults=1";
const QUEUES: &str = "#/queues?sort=total&reverse=1";
const UNACKED: &str = "#/queues?sort=unacked&reverse=1";
const NODES: &str = "#/nodes";
const REPLICAS: &str = "#/replicas";
const CLUSTER_STATUS: &str = "leveretctl cluster_status";
const LOST_NODE: &str = "reference/clusters.md#when-a-node-is-lost";
const CLOCKS: &str = "reference/clusters.md#what-comes-again";
const DRAINED: &str = "guides/three-nodes-in-production.md#restart-nodes-one-by-one";
const CHECK: &str = "leveretctl dlq check";
const LOST: &str = "guides/find-lost-messages.md";
const CYCLES: &str = "concepts/dead-lettering.md#cycles";
const MAP_WARNINGS: &str = "reference/dead-letter-map.md#warnings";
const LENGTHS: &str = "leveretctl list_queues name messages consumers policy";
const LIMIT: &str = "guides/limit-a-queue.md";
const CONSUMERS: &str = "leveretctl list_consumers";
const FULL_DISK: &str = "guides/when-the-disk-is-full.md";
const ALARMS: &str = "concepts/alarms.md";
const DURABILITY: &str = "concepts/durability.md";

const VHOST_LIMIT: About = about(
    "vhost_limit_reached",
    "#/admin/limits",
    "leveretctl list_vhost_limits --global",
    "reference/users.md",
);
const CONNECTIONS: About =
    about("connections_refused", "#/connections", "leveretctl status", "reference/limits.md");
const LOGINS: About =
    about("logins_refused", "#/admin/logins", "leveretctl list_users", "guides/troubleshoot.md");

const WAITING: About = about("dead_letters_wait", MAP, CHECK, "concepts/dead-lettering.md");
const FILES: About = about(
    "files_damaged",
    "#/admin/vhosts",
    "leveretctl check_files",
    "guides/back-up.md#files-that-have-changed",
);
const UNROUTABLE: About = about(
    "publishes_unroutable",
    "#/exchanges",
    "leveretctl list_bindings",
    "concepts/exchanges.md",
);
const SLOW_CONSUMERS: About =
    about("consumers_slow", UNACKED, CONSUMERS, "concepts/consumers.md#prefetch");
const DROPPED: About =
    about("messages_dropped", QUEUES, "leveretctl list_queues name dropped_without_dlx", LOST);

const UNCONSUMED: About = about(
    "dead_letters_without_consumer",
    MAP,
    "leveretctl dlq ls",
    "guides/redrive-dead-letters.md",
);

const fn of_map(name: &'static str, docs: &'static str) -> About {
    about(name, MAP, CHECK, docs)
}

const fn of_replicas(name: &'static str) -> About {
    about(name, REPLICAS, CLUSTER_STATUS, LOST_NODE)
}

const fn about(
    name: &'static str,
    page: &'static str,
    command: &'static str,
    docs: &'static str,
) -> About {
    About { name, page, command, docs }
}
