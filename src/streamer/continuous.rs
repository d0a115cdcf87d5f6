//! The loop around the round: pace, retries, when to stop.

use super::round::{Outcome, Streamer, Tokens};
use super::services::Services;
use super::{Error, Result, shutdown};
use crate::config::{MetricsConfig, StreamerConfig, TableType, mask_urls};
use crate::observe::{Metrics, Server};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// First and longest wait between tries after a failure that may pass.
pub(super) const FIRST_BACKOFF: Duration = Duration::from_secs(1);
pub(super) const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// How soon a job looks again after its first round without new data; then after twice the time, up to what the source asks
/// for. What follows a commit closely does not wait for long, and an idle job costs nothing.
const SOON: Duration = Duration::from_millis(10);

/// Rounds of a one-shot job that plans made elsewhere may undo, one after the other.
const OVERTAKEN_TRIES: u32 = 4;

/// Runs the job: one round, or rounds until stopped by a signal.
pub async fn run(config: StreamerConfig) -> Result<()> {
    run_until(config, shutdown::listen()?).await
}

/// The same, until `asked`.
pub async fn run_until(config: StreamerConfig, asked: CancellationToken) -> Result<()> {
    let only_looks = config.run.explain || config.run.dry_run;
    let continuous = config.run.continuous && !only_looks;
    let (metrics, _server) = match config.metrics.as_ref().filter(|_| !only_looks) {
        Some(wanted) => serve(wanted, config.table.table_type)?,
        None => (Metrics::off(), None),
    };
    let (stop, cancel) = match continuous {
        true => (asked.clone(), after(asked, config.run.shutdown_grace)),
        false => (asked.clone(), asked),
    };
    let mut streamer = Streamer::open(config, Tokens { stop: stop.clone(), cancel }, metrics).await?;
    if continuous { with_services(&mut streamer, &stop).await } else { one_shot(&mut streamer).await }
}

async fn one_shot(streamer: &mut Streamer) -> Result<()> {
    let mut tries = OVERTAKEN_TRIES;
    loop {
        match counted(streamer).await {
            Ok(Outcome::Committed) => {
                streamer.services_behind_commit().await?;
                if !streamer.cut {
                    return Ok(());
                }
                tries = OVERTAKEN_TRIES;
            }
            Ok(Outcome::NoNewData | Outcome::NothingWritten) => return Ok(()),
            Err(e @ (Error::Overtaken { .. } | Error::TakenBack { .. })) if tries > 1 => {
                tries -= 1;
                tracing::warn!(code = e.code(), error = %e, "the round is done again");
            }
            Err(e) => return Err(e),
        }
    }
}

/// Rounds, and the services of their table behind or beside them.
async fn with_services(streamer: &mut Streamer, stop: &CancellationToken) -> Result<()> {
    let mut services = Services::start(streamer, stop).await?;
    let done = rounds(streamer, stop, &mut services).await;
    streamer.tidied().await;
    match done {
        Ok(()) => services.end(streamer, false).await,
        Err(e) => {
            if let Err(other) = services.end(streamer, true).await {
                tracing::error!(code = other.code(), error = %other, "a service of the table failed too");
            }
            Err(e)
        }
    }
}

/// A token that is cancelled so long after the other.
fn after(asked: CancellationToken, grace: Duration) -> CancellationToken {
    let cancel = CancellationToken::new();
    let late = cancel.clone();
    tokio::spawn(async move {
        asked.cancelled().await;
        tokio::time::sleep(grace).await;
        tracing::warn!(seconds = grace.as_secs(), "the round is not done within the time for it: it is given up");
        late.cancel();
    });
    cancel
}

/// Metrics and health, answering from before the table is opened until the job ends.
fn serve(config: &MetricsConfig, table_type: TableType) -> Result<(Metrics, Option<Server>)> {
    let commit_action = match table_type {
        TableType::CopyOnWrite => "commit",
        TableType::MergeOnRead => "deltacommit",
    };
    let metrics = Metrics::on(&config.prefix, commit_action, config.stall);
    let server = Server::start(&config.host, config.port, metrics.clone())
        .map_err(|cause| Error::Serve { address: format!("{}:{}", config.host, config.port), cause })?;
    tracing::info!(address = %server.address(), "serving /metrics, /healthz and /readyz");
    Ok((metrics, Some(server)))
}

/// One round, and what became of it told to the metrics; a commit tells of itself.
async fn counted(streamer: &mut Streamer) -> Result<Outcome> {
    let metrics = streamer.metrics.clone();
    metrics.round_started();
    let outcome = streamer.sync_once().await;
    match &outcome {
        Ok(Outcome::Committed | Outcome::NothingWritten) => {}
        Ok(Outcome::NoNewData) => metrics.idle(),
        Err(Error::Interrupted) => metrics.interrupted(),
        Err(e) => metrics.failed(e.code(), &mask_urls(&e.to_string()), e.bad_records()),
    }
    outcome
}

async fn rounds(streamer: &mut Streamer, stop: &CancellationToken, services: &mut Services) -> Result<()> {
    let interval = streamer.config().run.min_sync_interval;
    // Empty commits on purpose would otherwise follow each other without a pause.
    let least =
        if streamer.config().checkpoint.allow_commit_on_no_change { interval.max(FIRST_BACKOFF) } else { interval };
    let idle_limit = streamer.config().run.max_rounds_without_new_data;
    let most_failures = streamer.config().run.failures_to_give_up;
    let (mut idle_rounds, mut failures) = (0, 0);
    let mut backoff = FIRST_BACKOFF;
    let seldom = streamer.source.idle_wait();
    // Where rounds are counted, each stands for a time.
    let soon = if idle_limit.is_some() { seldom } else { SOON.min(seldom) };
    let mut idle_wait = soon;
    while !stop.is_cancelled() {
        services.hold_back(&streamer.metrics, stop).await?;
        if stop.is_cancelled() {
            break;
        }
        let started = Instant::now();
        let wait = match counted(streamer).await {
            Ok(Outcome::Committed) => {
                services.committed(streamer).await?;
                (idle_rounds, failures, backoff) = (0, 0, FIRST_BACKOFF);
                idle_wait = soon;
                // What waits already need not wait for the interval.
                if streamer.cut { Duration::ZERO } else { least.saturating_sub(started.elapsed()) }
            }
            Ok(_) => {
                (failures, backoff) = (0, FIRST_BACKOFF);
                idle_rounds += 1;
                if idle_limit.is_some_and(|limit| idle_rounds >= limit) {
                    tracing::info!(rounds = idle_rounds, "no new data: stopping as the termination strategy says");
                    return Ok(());
                }
                // Hudi polls an idle source in a hot loop.
                let wait = interval.max(idle_wait).saturating_sub(started.elapsed());
                idle_wait = (idle_wait * 2).min(seldom);
                wait
            }
            Err(Error::Interrupted) => break,
            Err(e) if e.is_retryable() && most_failures.is_none_or(|most| failures + 1 < most) => {
                failures += 1;
                tracing::error!(code = e.code(), error = %e, retry_in_seconds = backoff.as_secs(), "round failed; trying again");
                let wait = backoff;
                backoff = (backoff * 2).min(LONGEST_BACKOFF);
                wait
            }
            Err(e) => return Err(e),
        };
        streamer.metrics.waiting(wait);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => {}
        }
    }
    tracing::info!("stopped: every completed round is in the table, and the next start goes on from its checkpoint");
    Ok(())
}
