//! Exchanges that route nothing: a publish to one is an operation. See `docs/guides/deliver-later.md`.

use crate::refusal::Refusal;

/// The exchange whose publishes are operations on scheduled messages.
pub(crate) const SCHEDULE_EXCHANGE: &str = "amq.schedule";

/// Refuses bindings of an exchange that routes nothing.
///
/// # Errors
/// 403 for `amq.schedule`.
pub(crate) fn refuse_control(name: &str) -> Result<(), Refusal> {
    if name == SCHEDULE_EXCHANGE {
        let text = format!("operation not permitted on exchange '{SCHEDULE_EXCHANGE}'");
        return Err(Refusal::access_refused(text));
    }
    Ok(())
}
