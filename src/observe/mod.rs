//! What the program says of itself: the log, the progress bar, one report a round, metrics and health.
//!
//! Seen by all rooms, sees nobody. Invariant: everything goes to standard error, so that standard output belongs to what
//! the user asked for (`--help`, `--explain`, `show`).

mod archive;
mod clean;
mod compaction;
mod health;
mod log;
mod metrics;
mod names;
mod progress;
mod round;
mod server;

pub use archive::ArchiveReport;
pub use clean::CleanReport;
pub use compaction::CompactionReport;
pub use log::{LogFormat, init_log};
pub use metrics::Metrics;
pub use progress::Progress;
pub use round::{RoundReport, Stages};
pub use server::Server;
