//! SIGINT and SIGTERM: the first asks the round to stop where it can, the second ends the process at once.

use super::{Error, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use tokio_util::sync::CancellationToken;

/// Listens on a thread of its own for the rest of the process. The returned token is cancelled by the first signal.
pub fn listen() -> Result<CancellationToken> {
    let token = CancellationToken::new();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(Error::Signals)?;
    let asked = token.clone();
    let thread = std::thread::Builder::new().name("signals".into());
    let listening = thread.spawn(move || {
        for signal in signals.forever() {
            if asked.is_cancelled() {
                tracing::warn!(signal, "second signal: ending at once; the next start rolls the open instant back");
                std::process::exit(128 + signal);
            }
            tracing::info!(signal, "signal received: finishing");
            asked.cancel();
        }
    });
    listening.map(|_| token).map_err(Error::Signals)
}
