//! The log: one line an event on standard error, as text or as JSON.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines: one JSON object a line (`--log-json`).
    Json,
}

/// Starts the log; `RUST_LOG` filters it, `info` by default. A second call is ignored.
pub fn init_log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
        LogFormat::Text => lines.with_target(false).with_ansi(std::io::stderr().is_terminal()).try_init(),
    };
    // Only a caller that runs several jobs in one process comes here twice: the first format stays.
    drop(started);
}
