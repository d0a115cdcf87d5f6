//! How many messages make so many bytes: from what the last round's had.

/// Bytes of a message before any has been seen.
const UNKNOWN_MESSAGE_BYTES: f64 = 1024.0;
/// What a row costs at least, however short its message.
const LEAST_MESSAGE_BYTES: f64 = 100.0;

/// What has been measured.
#[derive(Debug, Default)]
pub(super) struct Pace {
    bytes_per_event: Option<f64>,
    /// Events of the round under way.
    events: u64,
}

impl Pace {
    /// Offsets that have so many bytes, about.
    pub fn events(&self, bytes: u64) -> u64 {
        // A float beyond the range of integers becomes the greatest of them.
        (bytes as f64 / self.bytes_per_event.unwrap_or(UNKNOWN_MESSAGE_BYTES)).max(1.0) as u64
    }

    /// Whether nothing is known yet.
    pub fn is_new(&self) -> bool {
        self.bytes_per_event.is_none()
    }

    /// So many bytes had so many messages, which stay to be read.
    pub fn sampled(&mut self, messages: usize, bytes: usize) {
        if messages > 0 {
            self.bytes_per_event = Some((bytes as f64 / messages as f64).max(LEAST_MESSAGE_BYTES));
        }
    }

    pub fn begin(&mut self, events: u64) {
        self.events = events;
    }

    /// The round is in the table; `bytes` of messages were read.
    pub fn end(&mut self, bytes: u64) {
        let events = std::mem::take(&mut self.events);
        if events == 0 {
            return;
        }
        // A round of tombstones or of few small messages says little of the next: the measure falls slowly.
        let before = self.bytes_per_event.unwrap_or(UNKNOWN_MESSAGE_BYTES);
        self.bytes_per_event = Some((bytes as f64 / events as f64).max(before / 2.0).max(LEAST_MESSAGE_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_follow_what_was_read() {
        let mut pace = Pace::default();
        let mut after = |events, bytes| {
            pace.begin(events);
            pace.end(bytes);
            pace.events(1 << 20)
        };
        assert_eq!(after(0, 0), 1024);
        assert_eq!(after(1000, 100_000), 2048);
        for _ in 0..5 {
            after(1000, 0);
        }
        assert_eq!(after(1000, 0), (1 << 20) / 100);
        assert_eq!(after(1, 1 << 30), 1);
    }
}
