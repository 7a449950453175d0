//! New certificates take force while we run.

use std::time::Duration;

use crate::TlsError;

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_secs(2);

/// Reads files again, for ever.
///
/// * `reload`: see [`crate::Server::reload`].
/// * `renewed`: called after each change.
pub(crate) async fn follow(reload: impl Fn() -> Result<bool, TlsError>, renewed: impl Fn()) {
    let mut has_failed = false;
    loop {
        tokio::time::sleep(INTERVAL).await;
        match reload() {
            Ok(false) => has_failed = false,
            Ok(true) => {
                has_failed = false;
                renewed();
            }
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(error, "new certificates are not usable; the old ones stay");
                }
            }
        }
    }
}
