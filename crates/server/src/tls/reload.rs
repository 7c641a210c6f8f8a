//! Reloads certificates and reopens the log file while the broker runs.

use std::sync::Arc;

use tokio::signal::unix::Signal;

use crate::limits::TLS_CHECK_INTERVAL;
use crate::logging::file::LogFile;
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
        if let Some(file) = log_file.as_ref().filter(|_| is_told)
            && let Err(error) = file.reopen()
        {
            tracing::error!(%error, "cannot open the log file again");
        }
        certificates.iter().for_each(|tls| tls.reload(is_told));
    }
}
