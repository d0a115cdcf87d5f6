//! What the program says of itself: the log, the progress bar, one report a round.
//!
//! Seen by all rooms, sees nobody. Invariant: everything goes to standard error, so that standard output belongs to what
//! the user asked for (`--help`, `--explain`, `show`).

mod log;
mod progress;
mod round;

pub use log::{LogFormat, init_log};
pub use progress::Progress;
pub use round::{RoundReport, Stages};
