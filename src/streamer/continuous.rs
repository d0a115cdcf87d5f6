//! The loop around the round: pace, retries, when to stop.

use super::round::{Outcome, Streamer};
use super::{Error, Result, shutdown};
use crate::config::StreamerConfig;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// With `--min-sync-interval-seconds 0` Hudi polls an idle source in a hot loop; we wait this long.
const IDLE_WAIT: Duration = Duration::from_secs(1);
/// First and longest wait between tries after a failure that may pass.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// Runs the job: one round, or rounds until stopped.
pub async fn run(config: StreamerConfig) -> Result<()> {
    let cancel = shutdown::listen().map_err(Error::Signals)?;
    let continuous = config.run.continuous && !config.run.explain && !config.run.dry_run;
    let mut streamer = Streamer::open(config, cancel.clone()).await?;
    if continuous { rounds(&mut streamer, &cancel).await } else { streamer.sync_once().await.map(|_| ()) }
}

async fn rounds(streamer: &mut Streamer, cancel: &CancellationToken) -> Result<()> {
    let interval = streamer.config().run.min_sync_interval;
    let idle_limit = streamer.config().run.max_rounds_without_new_data;
    let mut idle_rounds = 0;
    let mut backoff = FIRST_BACKOFF;
    while !cancel.is_cancelled() {
        let started = Instant::now();
        let wait = match streamer.sync_once().await {
            Ok(Outcome::Committed) => {
                (idle_rounds, backoff) = (0, FIRST_BACKOFF);
                interval.saturating_sub(started.elapsed())
            }
            Ok(_) => {
                backoff = FIRST_BACKOFF;
                idle_rounds += 1;
                if idle_limit.is_some_and(|limit| idle_rounds >= limit) {
                    tracing::info!(rounds = idle_rounds, "no new data: stopping as the termination strategy says");
                    return Ok(());
                }
                interval.max(IDLE_WAIT).saturating_sub(started.elapsed())
            }
            Err(Error::Interrupted) => break,
            Err(e) if e.is_retryable() => {
                tracing::error!(code = e.code(), error = %e, retry_in_seconds = backoff.as_secs(), "round failed; trying again");
                let wait = backoff;
                backoff = (backoff * 2).min(LONGEST_BACKOFF);
                wait
            }
            Err(e) => return Err(e),
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = cancel.cancelled() => {}
        }
    }
    tracing::info!("stopped: every completed round is in the table, and the next start goes on from its checkpoint");
    Ok(())
}
