//! Settings of queues and exchanges, as arguments and policies give them.
//!
//! `table` is the one place that knows their names, values, checks and rules. `policy` resolves which of
//! several values counts; `queue::settings` has the values in force.

mod argument_checks;
pub(crate) mod merge;
mod ratio;
mod retry_schedule;
mod row;
mod table;
mod value;
mod words;

pub(crate) use argument_checks::unacceptable;
pub use ratio::Ratio;
pub use retry_schedule::RetrySchedule;
pub(crate) use row::Fallback;
pub use row::{Group, Setting};
pub(crate) use table::arguments;
pub use table::{PolicyKey, settings};
pub(crate) use value::SettingValue;
pub use value::{PolicyValue, Unit, ValueKind};
pub(crate) use words::Word;
pub use words::{
    DeadLetterStrategy, DelayedRetryOrder, DelayedRetryType, DeliveryCount, DeliveryLimitAction,
    ExpiryOrder, Overflow, WordList,
};
