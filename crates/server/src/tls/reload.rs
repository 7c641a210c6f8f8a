//! Reloads certificates and reopens the log file while the broker runs.

use std::sync::Arc;

use tokio::signal::unix::Signal;

use crate::limits::TLS_CHECK_INTERVAL;
use crate::logging::file::LogFile;
use crate::service_state;
use crate::tls::Tls;

/// On SIGHUP reopens the log file and reloads every certificate; also checks periodically whether
/// certificates have changed.
pub(crate) async fn watch(
    mut hangup: Signal,
    certificates: Vec<Arc<Tls>>,
    log_file: Option<Arc<LogFile>>,
) {
    loop {
        let is_told = tokio::select! {
            _ = hangup.recv() => true,
            () = tokio::time::sleep(TLS_CHECK_INTERVAL), if !certificates.is_empty() => false,
        };
        if is_told {
            service_state::reload(|| {
                if let Some(Err(error)) = log_file.as_ref().map(|file| file.reopen()) {
                    tracing::error!(%error, "cannot open the log file again");
                }
                certificates.iter().for_each(|tls| tls.reload(true));
            });
        } else {
            certificates.iter().for_each(|tls| tls.reload(false));
        }
    }
}
