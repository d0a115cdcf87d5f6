//! What the text of a checkpoint means, by its form (streamer-options.md §7.2).

use crate::source::kafka::Offsets;
use chrono::{DateTime, SecondsFormat};
use std::collections::BTreeSet;
use std::fmt;

/// Checkpoint of a first run that found no file (`Long.MIN_VALUE`, `DFSPathSelector` 0.15).
const NO_FILES_YET: i64 = i64::MIN;

/// A position that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    Kafka(Offsets),
    /// Milliseconds since 1970: the modification time of the newest file read.
    Files(i64),
}

impl Position {
    /// Reads the text; the error says what is wrong with it.
    pub fn read(text: &str) -> Result<Position, String> {
        match (text.trim().parse::<i64>(), Offsets::parse(text)) {
            (Ok(millis), _) => Ok(Position::Files(millis)),
            (_, Some(offsets)) => Ok(Position::Kafka(offsets)),
            _ => Err(why_none(text)),
        }
    }

    /// Whose form it is, in words.
    pub fn form(&self) -> &'static str {
        match self {
            Position::Kafka(_) => "a Kafka source",
            Position::Files(_) => "a file source",
        }
    }
}

/// As Hudi writes it.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Kafka(offsets) => offsets.fmt(f),
            Position::Files(millis) => millis.fmt(f),
        }
    }
}

/// What keeps a text from being a position.
fn why_none(text: &str) -> String {
    let Some((topic, rest)) = text.split_once(',') else {
        return "neither `topic,0:17,1:4` (Kafka) nor milliseconds since 1970 (files)".into();
    };
    if topic.is_empty() || topic.contains(':') {
        return format!("{topic:?}, before the first comma, is no name of a topic");
    }
    let mut seen = BTreeSet::new();
    for part in rest.split(',') {
        let alone = Offsets::parse(&format!("topic,{part}"));
        match alone.and_then(|alone| alone.next.into_keys().next()) {
            None => return format!("{part:?} is not `partition:offset`, two whole numbers of 0 or more"),
            Some(partition) if !seen.insert(partition) => return format!("partition {partition} stands in it twice"),
            Some(_) => {}
        }
    }
    "not a position".into()
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
    fn positions_are_read_and_written_as_hudi_does() {
        for (text, form, want) in [
            ("orders,0:123,1:456", "a Kafka source", "orders,0:123,1:456"),
            ("t,1:4,0:9223372036854775807", "a Kafka source", "t,0:9223372036854775807,1:4"),
            ("1700000000000", "a file source", "1700000000000"),
            ("-9223372036854775808", "a file source", "-9223372036854775808"),
        ] {
            let position = Position::read(text).expect(text);
            assert_eq!((position.form(), position.to_string().as_str()), (form, want), "{text}");
        }
        for (text, word) in [
            ("", "neither"),
            ("20240101000000000#s3://b/k", "neither"),
            ("orders", "neither"),
            ("orders,", "partition:offset"),
            ("orders,0", "\"0\""),
            ("orders,0:1,", "partition:offset"),
            ("orders,0:-1", "0:-1"),
            ("orders,0:1,0:2", "twice"),
            ("orders,0:9223372036854775808", "9223372036854775808"),
            (",0:1", "topic"),
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
