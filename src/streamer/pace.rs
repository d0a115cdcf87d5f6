//! How much a round takes, so that what it holds fits the memory and what it lasts fits the time: judged by the last one.

use crate::config::{RoundConfig, SourceClass, SourceConfig};
use std::time::{Duration, Instant};

/// A bound of time cuts no round below this: small rounds are slow because of what every round costs.
const LEAST_BYTES: f64 = (32 << 20) as f64;
/// Bytes that a row of Avro takes as columns, for each of its own (measured: trips, 2.8); of JSON as many as it has.
const HELD_PER_BYTE_OF_AVRO: f64 = 3.0;

/// What has been measured.
#[derive(Debug)]
pub(super) struct Pace {
    config: RoundConfig,
    /// Bytes held for a byte of input.
    held_per_byte: f64,
    bytes_per_second: Option<f64>,
    begun: Instant,
    held: u64,
}

impl Pace {
    pub fn new(config: RoundConfig, source: &SourceConfig) -> Pace {
        let held_per_byte = if source.class == SourceClass::AvroKafka { HELD_PER_BYTE_OF_AVRO } else { 1.0 };
        Pace { config, held_per_byte, bytes_per_second: None, begun: Instant::now(), held: 0 }
    }

    /// Bytes of input at which the next round is to be cut; it begins now.
    pub fn begin(&mut self) -> Option<u64> {
        (self.begun, self.held) = (Instant::now(), 0);
        let held = self.config.held.map(|most| most as f64 / self.held_per_byte);
        let time = self
            .config
            .time
            .zip(self.bytes_per_second)
            .map(|(most, rate)| (rate * most.as_secs_f64()).max(LEAST_BYTES));
        let input = self.config.input.map(|most| most as f64);
        [held, time, input].into_iter().flatten().min_by(f64::total_cmp).map(|least| least.max(1.0) as u64)
    }

    /// The round under way holds so many bytes of rows.
    pub fn holds(&mut self, bytes: u64) {
        self.held = bytes;
    }

    /// The round is in the table; `read`: bytes of input.
    pub fn end(&mut self, read: u64) {
        self.measured(read, self.begun.elapsed());
    }

    fn measured(&mut self, read: u64, took: Duration) {
        if read == 0 {
            return;
        }
        // Batches of few rows have room for many: a round of little says nothing of a large one.
        if self.config.held.is_some_and(|most| self.held > most / 16) {
            self.held_per_byte = (self.held as f64 / read as f64).max(self.held_per_byte / 2.0);
        }
        self.bytes_per_second = Some(read as f64 / took.as_secs_f64().max(0.001));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(config: RoundConfig) -> Pace {
        Pace { config, held_per_byte: 1.0, bytes_per_second: None, begun: Instant::now(), held: 0 }
    }

    #[test]
    fn rounds_fit_their_bounds() {
        const MB: u64 = 1_000_000;
        let round = |pace: &mut Pace, held, read, seconds| {
            pace.holds(held);
            pace.measured(read, Duration::from_secs(seconds));
            pace.begin()
        };
        let mut pace = pace(RoundConfig::default());
        assert_eq!(pace.begin(), None);
        pace.config.held = Some(256 * MB);
        assert_eq!(pace.begin(), Some(256 * MB));
        // Twice as much was held as was read; then half as much, which is believed at the second time.
        assert_eq!(round(&mut pace, 200 * MB, 100 * MB, 1), Some(128 * MB));
        assert_eq!(round(&mut pace, 50 * MB, 100 * MB, 1), Some(256 * MB));
        assert_eq!(round(&mut pace, 50 * MB, 100 * MB, 1), Some(512 * MB));
        // Nothing was read, or little: nothing is learnt.
        assert_eq!(round(&mut pace, 0, 0, 1), Some(512 * MB));
        assert_eq!(round(&mut pace, 4 * MB, MB, 1), Some(512 * MB));
        pace.config.time = Some(Duration::from_secs(60));
        assert_eq!(round(&mut pace, 50 * MB, 100 * MB, 60), Some(100 * MB));
        assert_eq!(round(&mut pace, 5 * MB, 10 * MB, 60), Some(32 << 20));
        pace.config.input = Some(7);
        assert_eq!(pace.begin(), Some(7));
    }
}
