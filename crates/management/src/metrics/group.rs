//! Groups of families, as RabbitMQ's `family=` parameter names them.

/// Families that a query selects together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Group {
    ConnectionChurn,
    NodeCoarse,
    Node,
    NodePersister,
    AuthAttempts,
    QueueCoarse,
    QueueConsumerCount,
    Queue,
    QueueDelivery,
    QueuePublished,
    QueueTime,
    QueueDeath,
    ExpiryLateness,
    Channel,
    ChannelExchange,
    ChannelQueue,
    ConnectionCoarse,
    Connection,
    Exchange,
    QueueExchange,
    VhostStatus,
    ExchangeNames,
    ExchangeBindings,
}

impl Group {
    /// All groups, in the order of the output.
    pub(super) const ALL: [Self; 23] = [
        Self::ConnectionChurn,
        Self::NodeCoarse,
        Self::Node,
        Self::NodePersister,
        Self::AuthAttempts,
        Self::QueueCoarse,
        Self::QueueConsumerCount,
        Self::Queue,
        Self::QueueDelivery,
        Self::QueuePublished,
        Self::QueueTime,
        Self::QueueDeath,
        Self::ExpiryLateness,
        Self::Channel,
        Self::ChannelExchange,
        Self::ChannelQueue,
        Self::ConnectionCoarse,
        Self::Connection,
        Self::Exchange,
        Self::QueueExchange,
        Self::VhostStatus,
        Self::ExchangeNames,
        Self::ExchangeBindings,
    ];

    /// Value of the parameter `family`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::ConnectionChurn => "connection_churn_metrics",
            Self::NodeCoarse => "node_coarse_metrics",
            Self::Node => "node_metrics",
            Self::NodePersister => "node_persister_metrics",
            Self::AuthAttempts => "auth_attempt_metrics",
            Self::QueueCoarse => "queue_coarse_metrics",
            Self::QueueConsumerCount => "queue_consumer_count",
            Self::Queue => "queue_metrics",
            Self::QueueDelivery => "queue_delivery_metrics",
            Self::QueuePublished => "channel_queue_exchange_metrics",
            Self::QueueTime => "queue_time_metrics",
            Self::QueueDeath => "queue_death_metrics",
            Self::ExpiryLateness => "expiry_lateness_metrics",
            Self::Channel => "channel_metrics",
            Self::ChannelExchange => "channel_exchange_metrics",
            Self::ChannelQueue => "channel_queue_metrics",
            Self::ConnectionCoarse => "connection_coarse_metrics",
            Self::Connection => "connection_metrics",
            Self::Exchange => "exchange_metrics",
            Self::QueueExchange => "queue_exchange_metrics",
            Self::VhostStatus => "vhost_status",
            Self::ExchangeNames => "exchange_names",
            Self::ExchangeBindings => "exchange_bindings",
        }
    }

    /// True if sums over the group have the vhost as a label.
    pub(super) const fn names_vhosts(self) -> bool {
        matches!(self, Self::QueueDeath | Self::ExpiryLateness)
    }

    /// True if the group is part of `/metrics` and `/metrics/per-object`: families that are not in another
    /// group, and differ between nodes.
    pub(super) const fn is_general(self) -> bool {
        !matches!(
            self,
            Self::QueueConsumerCount
                | Self::VhostStatus
                | Self::ExchangeNames
                | Self::ExchangeBindings
        )
    }

    /// True if the group is about single queues.
    pub(super) const fn is_of_queues(self) -> bool {
        matches!(
            self,
            Self::QueueCoarse
                | Self::QueueConsumerCount
                | Self::Queue
                | Self::QueueDelivery
                | Self::QueuePublished
                | Self::QueueTime
                | Self::QueueDeath
        )
    }
}
