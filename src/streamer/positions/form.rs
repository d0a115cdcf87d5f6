//! What the text of a checkpoint means, by its form (streamer-options.md §7.2).

use chrono::{DateTime, SecondsFormat};
use std::collections::BTreeMap;

/// Checkpoint of a first run that found no file (`Long.MIN_VALUE`, `DFSPathSelector` 0.15).
const NO_FILES_YET: i64 = i64::MIN;

/// A position that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    /// `topic,0:123,1:456`: the next offset to read, by partition.
    Kafka { topic: String, offsets: BTreeMap<i32, i64> },
    /// Milliseconds since 1970: the modification time of the newest file read.
    Files(i64),
}

impl Position {
    /// Reads the text strictly; the error says what is wrong with it.
    pub fn read(text: &str) -> Result<Position, String> {
        if let Ok(millis) = text.parse::<i64>() {
            return Ok(Position::Files(millis));
        }
        let Some((topic, rest)) = text.split_once(',') else {
            return Err("neither `topic,0:17,1:4` (Kafka) nor milliseconds since 1970 (files)".into());
        };
        if topic.is_empty() || topic.contains([':', '#']) || topic.contains(char::is_whitespace) {
            return Err(format!("{topic:?}, before the first comma, is no name of a topic"));
        }
        let mut offsets = BTreeMap::new();
        for part in rest.split(',') {
            let pair =
                part.split_once(':').and_then(|(p, o)| Some((digits(p)?.parse().ok()?, digits(o)?.parse().ok()?)));
            let Some((partition, offset)) = pair else {
                return Err(format!("{part:?} is not `partition:offset`, two whole numbers of 0 or more"));
            };
            if offsets.insert(partition, offset).is_some() {
                return Err(format!("partition {partition} stands in it twice"));
            }
        }
        Ok(Position::Kafka { topic: topic.into(), offsets })
    }

    /// Whose form it is, in words.
    pub fn form(&self) -> &'static str {
        match self {
            Position::Kafka { .. } => "a Kafka source",
            Position::Files(_) => "a file source",
        }
    }
}

fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

/// The time of a file position, for people; `None` where the number is no time.
pub(super) fn date(millis: i64) -> Option<String> {
    if millis == NO_FILES_YET {
        return Some("no file read yet".into());
    }
    DateTime::from_timestamp_millis(millis).map(|time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

/// What makes a file position a likely mistake.
pub(super) fn doubts_about_files(millis: i64, now: i64) -> Vec<String> {
    const DAY: i64 = 24 * 3_600_000;
    let date = date(millis).unwrap_or_default();
    match millis {
        NO_FILES_YET | 0 => Vec::new(),
        _ if millis < 0 => vec!["it is before 1970".into()],
        _ if millis < 100_000_000_000 => {
            vec![format!("it is {date}, which looks like seconds in place of milliseconds")]
        }
        _ if millis > now.saturating_add(DAY) => {
            vec![format!("it is {date}, and files until then would never be read")]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_strictly() {
        let kafka = |topic: &str, offsets: &[(i32, i64)]| {
            Ok(Position::Kafka { topic: topic.into(), offsets: offsets.iter().copied().collect() })
        };
        let cases = [
            ("orders,0:123,1:456", kafka("orders", &[(0, 123), (1, 456)])),
            ("a.b_c-d,7:0", kafka("a.b_c-d", &[(7, 0)])),
            ("t,1:4,0:9223372036854775807", kafka("t", &[(0, i64::MAX), (1, 4)])),
            ("1700000000000", Ok(Position::Files(1_700_000_000_000))),
            ("-9223372036854775808", Ok(Position::Files(i64::MIN))),
        ];
        for (text, want) in cases {
            assert_eq!(Position::read(text), want, "{text}");
        }
        for (text, word) in [
            ("", "neither"),
            ("20240101000000000#s3://b/k", "neither"),
            ("orders", "neither"),
            ("orders,", "partition:offset"),
            ("orders,0", "\"0\""),
            ("orders,0:1,", "partition:offset"),
            ("orders,0:-1", "0:-1"),
            ("orders,0:+1", "0:+1"),
            ("orders,0: 1", "0: 1"),
            ("orders,0:1,0:2", "twice"),
            ("orders,0:9223372036854775808", "9223372036854775808"),
            (",0:1", "topic"),
            ("or ders,0:1", "topic"),
            ("0:1,1:2", "topic"),
        ] {
            let why = Position::read(text).expect_err(text);
            assert!(why.contains(word), "{text}: {why}");
        }
    }

    #[test]
    fn file_positions_that_look_like_mistakes_are_doubted() {
        let now = 1_800_000_000_000;
        for (millis, word) in [
            (i64::MIN, None),
            (0, None),
            (1_700_000_000_000, None),
            (now, None),
            (-5, Some("before 1970")),
            (1_700_000_000, Some("seconds")),
            (now + 90_000_000, Some("never")),
            (i64::MAX, Some("never")),
        ] {
            let doubts = doubts_about_files(millis, now);
            assert_eq!(doubts.len(), usize::from(word.is_some()), "{millis}: {doubts:?}");
            assert!(doubts.iter().all(|d| d.contains(word.unwrap_or_default())), "{millis}: {doubts:?}");
        }
        assert_eq!(date(1_700_000_000_000).as_deref(), Some("2023-11-14T22:13:20Z"));
    }
}
