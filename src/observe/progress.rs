//! A progress bar on a terminal; nothing anywhere else.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Follows a counter of bytes read while a round runs; gone when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    ticker: Option<tokio::task::JoinHandle<()>>,
}

/// How often the bar is drawn: quick enough to look alive, slow enough to cost nothing.
const TICK: Duration = Duration::from_millis(200);

impl Progress {
    /// Whether somebody can see a bar.
    pub fn is_seen() -> bool {
        std::io::stderr().is_terminal()
    }

    /// A bar up to `total` bytes that shows what `read` counts. Hidden when standard error is no terminal.
    pub fn follow(total: u64, read: Arc<AtomicU64>, enabled: bool) -> Progress {
        if !enabled || !Progress::is_seen() {
            return Progress { bar: ProgressBar::hidden(), ticker: None };
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{spinner} {bytes}/{total_bytes} read [{bar:30}] {bytes_per_sec} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let drawn = bar.clone();
        let ticker = tokio::spawn(async move {
            loop {
                drawn.set_position(read.load(Ordering::Relaxed));
                tokio::time::sleep(TICK).await;
            }
        });
        Progress { bar, ticker: Some(ticker) }
    }

    /// Names what is being done.
    pub fn stage(&self, name: &'static str) {
        self.bar.set_message(name);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(ticker) = self.ticker.take() {
            ticker.abort();
        }
        self.bar.finish_and_clear();
    }
}
