//! Exchanges that route nothing: a publish to one is an operation. See `docs/guides/deliver-later.md` and
//! `docs/guides/retry-with-delays.md`.

use crate::refusal::Refusal;

/// The exchange whose publishes are operations on scheduled messages.
pub(crate) const SCHEDULE_EXCHANGE: &str = "amq.schedule";

/// The exchange whose publishes are operations on the deliveries of their channel.
pub(crate) const SETTLE_EXCHANGE: &str = "amq.settle";

/// Refuses a publish to `exchange` in a transaction.
pub(crate) fn in_transaction(exchange: &str) -> Refusal {
    let text = format!("exchange '{exchange}' takes no publishes in a transaction");
    Refusal::precondition_failed(text)
}

/// Refuses bindings of an exchange that routes nothing.
///
/// # Errors
/// 403 for `amq.schedule` and `amq.settle`.
pub(crate) fn refuse_control(name: &str) -> Result<(), Refusal> {
    if name == SCHEDULE_EXCHANGE || name == SETTLE_EXCHANGE {
        let text = format!("operation not permitted on exchange '{name}'");
        return Err(Refusal::access_refused(text));
    }
    Ok(())
}
