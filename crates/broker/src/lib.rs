//! The core of Leveret: every decision about a message.
//!
//! The core has no clock (time is an argument), no socket, no file, no thread, no lock, no source of
//! randomness (a seed is an argument), and no bytes of AMQP frames. A [`Vhost`] takes [`Command`]s of clients
//! at a given moment and produces [`Effect`]s. The same calls give the same effects, so that time-to-live can
//! be tested to the millisecond and the whole broker can be simulated.
//!
//! Queues and their parts are in `queue`, exchange types in `exchange`, dead-lettering in [`dead_letter`]
//! (the message) and `vhost/lifecycle/death.rs` (the move), policies in `policy`, limits with their reasons
//! in [`limits`].

pub mod access;
pub mod dead_letter;
pub mod limits;
pub mod page;
pub mod record;
pub mod redrive;
pub mod refusal;
pub mod statistics;
pub mod time;
pub mod words;

mod browse;
mod channel;
mod channel_key;
mod collections;
mod command;
mod dead_letter_map;
mod deadlines;
mod death_headers;
mod death_history;
mod delivery;
mod effect;
mod entry;
mod erlang_term;
mod exchange;
mod expiration;
mod generated_names;
mod ids;
mod message;
mod policy;
mod publish_properties;
mod queue;
mod queue_type;
mod route;
mod routing_key;
mod schedule;
mod scheduled;
mod setting;
mod timers;
mod vhost;

// The vhost, what it is asked and what it answers.
pub use command::{
    Bind, Command, Consume, DeclareExchange, DeclareQueue, DeleteQueue, Outcome, Publish, Request,
};
pub use effect::{Effect, Event, Outgoing};
pub use ids::{
    ChannelNumber, ConnectionId, ConsumerId, DeliveryTag, EntryId, ExchangeId, Lsn, PageId,
    PublishSeq, QueueId, QueueNumber, RedriveId,
};
pub use vhost::{
    Connection, GIVEN_REASON_HEADER, GivenReasons, OTHER_REASONS, Vhost, VhostOptions,
};

// Messages and deliveries.
pub use delivery::{Delivery, DeliveryCounts};
pub use message::{Content, Envelope, Message, MessageMeta, Name, RoutingKey};

// Exchanges, queues and channels.
pub use channel::Channel;
pub use exchange::{
    Alternate, Binding, BindingArguments, Destination, Exchange, ExchangeCounters, ExchangeType,
    UnroutablePublish,
};
pub use queue::{
    ByCause, ByReason, Consumer, DeadlineSpan, DeathCounters, DelayedRetry, Deliveries, DropCause,
    Entry, ExpiryCursor, ExpirySlice, Forecast, Ownership, PersistentMessages, Queue,
    QueueArguments, QueueCounters, QueueDefaults, RetryDelays, Settings, Span,
};
pub use queue_type::QueueType;

// Policies and the settings they have.
pub use policy::{
    ApplyTo, Definition, EffectivePolicies, ExplainedKey, Explanation, OverriddenValue, Pattern,
    Policies, Policy, PolicyKind, Source,
};
pub use setting::{
    DeadLetterStrategy, DelayedRetryOrder, DelayedRetryType, DeliveryCount, DeliveryLimitAction,
    ExpiryOrder, Group, Overflow, PolicyKey, PolicyValue, Ratio, RetrySchedule, Setting, Unit,
    ValueKind, WordList, settings,
};

// Scheduled messages.
pub use schedule::{
    NoScheduleTarget, NoScheduledCursor, ScheduleCounters, ScheduleId, ScheduleMode,
    ScheduleOperation, ScheduleRequest, ScheduleSelector, ScheduleTarget, ScheduledContent,
    ScheduledCursor, ScheduledFilter, ScheduledMessage, ScheduledPage, ScheduledPlace,
};

// The history of dead letters.
pub use vhost::{
    CircumstancesIds, DeadLetterHistoryLimits, DeathCircumstances, DeathOutcome, RecordedDeath,
    RecordedDeaths, RestoredDeath, SettledBy,
};

// Views: browsing, dry runs, the dead-letter map.
pub use browse::{BrowseCursor, Browsed, BrowsedMessage, DeliveryDetails, MessageState, NoCursor};
pub use dead_letter_map::{
    DeadLetterMap, DelayPlace, GivenBy, MapDelay, MapEdge, MapExchange, MapQueue, MapRoute,
    MapWarning, Severity, WarningKind,
};
pub use vhost::{
    DeadLetterMapBuilder, DryRun, ExchangeDryRun, Fate, PolicyChange, QueueDryRun, SettingChange,
};

// Records of the log, and recovery from them.
pub use record::{
    BindingRecord, DecodeError, Decoded, Digest, Entries, Envelopes, ExchangeRecord, QueueDigest,
    QueueRecord, Record, RecordRole, record_description,
};
pub use vhost::{Divergence, Recovered, RecoveredQueue, Replay, ReplayProblem};
