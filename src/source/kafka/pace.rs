//! How much a round of a continuous job takes, so that it fits its bounds of bytes and time: from what the last one took.

use crate::config::KafkaConfig;
use std::time::{Duration, Instant};

/// Bytes of a message before any has been seen.
const UNKNOWN_MESSAGE_BYTES: f64 = 1024.0;
/// What a row costs at least, however short its message.
const LEAST_MESSAGE_BYTES: f64 = 100.0;
/// A bound of time cuts no round below this: small rounds are slow because of what every round costs.
const LEAST_EVENTS: f64 = 100_000.0;

/// What has been measured.
#[derive(Debug, Default)]
pub(super) struct Pace {
    bytes_per_event: Option<f64>,
    events_per_second: Option<f64>,
    /// The round under way: events, when it began.
    round: Option<(u64, Instant)>,
}

impl Pace {
    /// Most offsets of the next round.
    pub fn limit(&self, config: &KafkaConfig) -> u64 {
        let bytes = config.round_bytes.map(|most| most as f64 / self.bytes_per_event.unwrap_or(UNKNOWN_MESSAGE_BYTES));
        let time = |most: Duration| Some((self.events_per_second? * most.as_secs_f64()).max(LEAST_EVENTS));
        let time = config.round_time.and_then(time);
        let least = bytes.unwrap_or(f64::MAX).min(time.unwrap_or(f64::MAX)).max(1.0);
        // A float beyond the range of integers becomes the greatest of them.
        config.max_events.min(least as u64)
    }

    pub fn begin(&mut self, events: u64) {
        self.round = Some((events, Instant::now()));
    }

    /// The round is in the table; `bytes` of messages were read.
    pub fn end(&mut self, bytes: u64) {
        let Some((events, begun)) = self.round.take().filter(|(events, _)| *events > 0) else { return };
        self.measured(events, bytes, begun.elapsed());
    }

    fn measured(&mut self, events: u64, bytes: u64, took: Duration) {
        // A round of tombstones or of few small messages says little of the next: the measure falls slowly.
        let before = self.bytes_per_event.unwrap_or(UNKNOWN_MESSAGE_BYTES);
        self.bytes_per_event = Some((bytes as f64 / events as f64).max(before / 2.0).max(LEAST_MESSAGE_BYTES));
        self.events_per_second = Some(events as f64 / took.as_secs_f64().max(0.001));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::kafka::tests::config;

    #[test]
    fn rounds_fit_their_bounds() {
        let mut pace = Pace::default();
        let mut bounds = config("t");
        bounds.max_events = 5_000_000;
        assert_eq!(pace.limit(&bounds), 5_000_000);
        bounds.round_bytes = Some(1 << 20);
        assert_eq!(pace.limit(&bounds), 1024);
        pace.measured(1000, 100_000, Duration::from_secs(1));
        assert_eq!(pace.limit(&bounds), 2048);
        for _ in 0..5 {
            pace.measured(1000, 0, Duration::from_secs(1));
        }
        assert_eq!(pace.limit(&bounds), (1 << 20) / 100);
        (bounds.round_bytes, bounds.round_time) = (None, Some(Duration::from_secs(60)));
        assert_eq!(pace.limit(&bounds), 100_000);
        pace.measured(50_000, 100, Duration::from_secs(1));
        assert_eq!(pace.limit(&bounds), 3_000_000);
        bounds.max_events = 7;
        assert_eq!(pace.limit(&bounds), 7);
    }
}
