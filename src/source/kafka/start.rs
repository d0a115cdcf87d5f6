//! Where a round starts: the checkpoint, checked against what the topic holds, or the reset policy.
//!
//! Hudi (`KafkaOffsetGen`, 1.0.2) restarts all partitions when one has expired, reads nothing when a checkpoint is past the
//! end, and starts over when it cannot read the text. Here only the partition that is out of range moves, and the rest is an
//! error with the way out.

use super::super::{Error, Result};
use super::client::Client;
use super::offsets::Offsets;
use crate::config::{KafkaCheckpointType, KafkaConfig, OffsetReset};
use std::collections::BTreeMap;

/// Earliest offset and end of each partition.
pub(super) type Bounds = BTreeMap<i32, (i64, i64)>;

/// First offset to read of each partition of the topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Start {
    pub from: BTreeMap<i32, i64>,
    /// Offsets that expired before they were read.
    pub lost: u64,
    pub warnings: Vec<String>,
}

/// What a checkpoint text says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Position {
    Offsets(BTreeMap<i32, i64>),
    /// Epoch milliseconds.
    Time(i64),
}

/// The start of a round. Asks the brokers again where a time stamp or a group decides.
pub(super) async fn start(
    client: &Client,
    config: &KafkaConfig,
    checkpoint: Option<&str>,
    bounds: &Bounds,
) -> Result<Start> {
    let Some(text) = checkpoint else { return reset(client, config, bounds).await };
    match position(text, config, bounds)? {
        Position::Offsets(stored) => {
            let (bounds, warnings) = with_open_transactions(&stored, config, bounds).await?;
            let mut start = place(&stored, text, config, &bounds)?;
            start.warnings.extend(warnings);
            Ok(start)
        }
        Position::Time(ms) => {
            let from = client.offsets_for_times(ms).await?;
            let mut warnings = Vec::new();
            if text.trim().len() == 10 {
                warnings
                    .push(format!("checkpoint {text}: ten digits are taken as seconds, where Hudi takes milliseconds"));
            }
            let from = bounds.iter().map(|(p, (_, end))| (*p, from.get(p).copied().unwrap_or(*end))).collect();
            Ok(Start { from, lost: 0, warnings })
        }
    }
}

/// With `read_committed` an open transaction holds the end back, and a position that was read without it may be behind: there
/// is nothing to read then, which is no fault.
async fn with_open_transactions(
    stored: &BTreeMap<i32, i64>,
    config: &KafkaConfig,
    bounds: &Bounds,
) -> Result<(Bounds, Vec<String>)> {
    let mut bounds = bounds.clone();
    let past = |bounds: &Bounds| {
        let mut all = stored.iter().filter(|(p, offset)| bounds.get(p).is_some_and(|(_, end)| *offset > end));
        all.next().is_some()
    };
    let committed = config.client.iter().rev().find(|(key, _)| key == "isolation.level");
    if committed.is_none_or(|(_, level)| level != "read_committed") || !past(&bounds) {
        return Ok((bounds, Vec::new()));
    }
    let mut warnings = Vec::new();
    let written = Client::uncommitted(config)?.bounds().await?;
    for (partition, (_, end)) in &mut bounds {
        let Some(offset) = stored.get(partition).filter(|offset| **offset > *end) else { continue };
        if written.get(partition).is_some_and(|(_, written)| offset <= written) {
            warnings.push(format!(
                "topic {}: an open transaction holds partition {partition} back at offset {end}, and the checkpoint is at \
                 {offset} already: nothing is read of it",
                config.topic
            ));
            *end = *offset;
        }
    }
    Ok((bounds, warnings))
}

async fn reset(client: &Client, config: &KafkaConfig, bounds: &Bounds) -> Result<Start> {
    let (mut warnings, topic) = (Vec::new(), &config.topic);
    let ends = || bounds.iter().map(|(p, b)| (*p, b.1)).collect();
    let from: BTreeMap<i32, i64> = match config.reset {
        OffsetReset::Latest => ends(),
        OffsetReset::Earliest => bounds.iter().map(|(p, b)| (*p, b.0)).collect(),
        OffsetReset::Group => {
            let committed = client.committed().await?;
            let all: Option<BTreeMap<i32, i64>> = bounds.keys().map(|p| Some((*p, (*committed.get(p)?)?))).collect();
            match all {
                Some(all) => return place(&all, "of the group", config, bounds),
                None => {
                    let missing: Vec<String> = bounds
                        .keys()
                        .filter(|p| committed.get(p).copied().flatten().is_none())
                        .map(ToString::to_string)
                        .collect();
                    warnings.push(format!(
                        "topic {topic}: group {} has committed nothing for partition {}: all partitions start at their end, \
                         as in Hudi",
                        config.group.as_deref().unwrap_or_default(),
                        missing.join(", ")
                    ));
                    ends()
                }
            }
        }
    };
    Ok(Start { from, lost: 0, warnings })
}

fn position(text: &str, config: &KafkaConfig, bounds: &Bounds) -> Result<Position> {
    let foreign =
        |why: String| Error::KafkaCheckpoint { checkpoint: text.to_string(), topic: config.topic.clone(), why };
    if let Some(offsets) = Offsets::parse(text) {
        return match offsets.topic == config.topic {
            true => Ok(Position::Offsets(offsets.next)),
            false => Err(foreign(format!("it is one of topic {}", offsets.topic))),
        };
    }
    let digits = text.trim();
    let number = digits.parse::<i64>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
    match (config.checkpoint_type, number) {
        (KafkaCheckpointType::Timestamp, Some(number)) if digits.len() == 13 => Ok(Position::Time(number)),
        (KafkaCheckpointType::Timestamp, Some(number)) if digits.len() == 10 => Ok(Position::Time(number * 1000)),
        (KafkaCheckpointType::Timestamp, _) => {
            Err(foreign("a timestamp is 13 digits (milliseconds) or 10 (seconds)".into()))
        }
        (KafkaCheckpointType::SingleOffset, Some(number)) => match bounds.len() {
            1 => Ok(Position::Offsets(bounds.keys().map(|p| (*p, number)).collect())),
            n => Err(foreign(format!("a single offset is for a topic of one partition, and it has {n}"))),
        },
        (KafkaCheckpointType::SingleOffset, None) => Err(foreign("a single offset is a number".into())),
        (KafkaCheckpointType::String, Some(_)) => Err(foreign(
            "it looks like one of a file source, or like a timestamp (hoodie.streamer.source.kafka.checkpoint.type=timestamp)"
                .into(),
        )),
        (KafkaCheckpointType::String, None) => Err(foreign("it is not of the form topic,0:123,1:456".into())),
    }
}

/// Checks stored offsets against what the topic holds.
fn place(stored: &BTreeMap<i32, i64>, text: &str, config: &KafkaConfig, bounds: &Bounds) -> Result<Start> {
    let topic = &config.topic;
    let refused = |why: String| Error::KafkaCheckpoint { checkpoint: text.to_string(), topic: topic.clone(), why };
    if let Some((gone, offset)) = stored.iter().find(|(p, _)| !bounds.contains_key(p)) {
        return Err(refused(format!(
            "partition {gone} (offset {offset}) is not in the topic, which has {}",
            bounds.len()
        )));
    }
    let mut start = Start::default();
    let mut expired = Vec::new();
    for (&partition, &(earliest, end)) in bounds {
        let from = match stored.get(&partition) {
            None => {
                start
                    .warnings
                    .push(format!("topic {topic}: partition {partition} is new: it is read from offset {earliest}"));
                earliest
            }
            Some(&offset) if offset > end => {
                return Err(refused(format!(
                    "offset {offset} of partition {partition} is past its end, {end}: was the topic deleted and made anew?"
                )));
            }
            Some(&offset) if offset < earliest => {
                start.lost += (earliest - offset) as u64;
                expired.push((partition, offset, earliest));
                earliest
            }
            Some(&offset) => offset,
        };
        start.from.insert(partition, from);
    }
    if expired.is_empty() {
        return Ok(start);
    }
    let told = |(partition, stored, earliest): &(i32, i64, i64)| {
        format!("partition {partition}: stored {stored}, earliest {earliest}, {} offsets lost", earliest - stored)
    };
    let told = expired.iter().map(told).collect::<Vec<_>>().join("; ");
    if config.fail_on_data_loss {
        return Err(Error::KafkaDataLoss { topic: topic.clone(), partitions: told });
    }
    start.warnings.push(format!(
        "topic {topic}: messages have expired before they were read, and are lost ({told}); only these partitions move to \
         their earliest offset; set hoodie.streamer.source.kafka.enable.failOnDataLoss=true to stop instead"
    ));
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::kafka::tests::config as base;

    fn config(checkpoint_type: KafkaCheckpointType, fail_on_data_loss: bool) -> KafkaConfig {
        KafkaConfig { checkpoint_type, fail_on_data_loss, ..base("t") }
    }

    fn bounds() -> Bounds {
        BTreeMap::from([(0, (7, 10)), (1, (0, 10))])
    }

    #[test]
    fn only_what_has_expired_moves() {
        let stored = BTreeMap::from([(0, 4), (1, 4)]);
        let start = place(&stored, "t,0:4,1:4", &config(KafkaCheckpointType::String, false), &bounds()).expect("moved");
        assert_eq!(start.from, BTreeMap::from([(0, 7), (1, 4)]));
        assert_eq!(start.lost, 3);
        assert!(
            ["partition 0", "stored 4", "earliest 7", "3 offsets lost"].iter().all(|w| start.warnings[0].contains(w))
        );
        let error =
            place(&stored, "t,0:4,1:4", &config(KafkaCheckpointType::String, true), &bounds()).expect_err("loss");
        let error = error.to_string();
        assert!(["partition 0", "4", "7", "t"].iter().all(|w| error.contains(w)), "{error}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let config = config(KafkaCheckpointType::String, false);
        let cases = [
            (BTreeMap::from([(0, 7), (1, 11)]), &["11", "partition 1", "past its end", "10"][..]),
            (BTreeMap::from([(0, 7), (1, 1), (2, 5)]), &["partition 2", "5", "not in the topic"]),
        ];
        for (stored, words) in cases {
            let error = place(&stored, "x", &config, &bounds()).expect_err("refused").to_string();
            assert!(words.iter().all(|w| error.contains(w)) && error.contains("--checkpoint"), "{error}");
        }
        let start = place(&BTreeMap::from([(1, 3)]), "x", &config, &bounds()).expect("a new partition");
        assert_eq!(start.from, BTreeMap::from([(0, 7), (1, 3)]));
    }

    #[test]
    fn a_text_is_what_its_form_says() {
        use KafkaCheckpointType::{SingleOffset, String, Timestamp};
        let one = BTreeMap::from([(0, (0, 10))]);
        let offsets = |o: &[(i32, i64)]| Some(Position::Offsets(o.iter().copied().collect()));
        let cases = [
            (String, "t,0:8,1:2", &bounds(), offsets(&[(0, 8), (1, 2)])),
            // A stored position, though the type was meant for the first one.
            (Timestamp, "t,0:8,1:2", &bounds(), offsets(&[(0, 8), (1, 2)])),
            (Timestamp, "1700000000000", &bounds(), Some(Position::Time(1_700_000_000_000))),
            (Timestamp, "1700000000", &bounds(), Some(Position::Time(1_700_000_000_000))),
            (Timestamp, "17000000001", &bounds(), None),
            (SingleOffset, "5", &one, offsets(&[(0, 5)])),
            (SingleOffset, "5", &bounds(), None),
            (String, "1700000000000", &bounds(), None),
            (String, "other,0:1", &bounds(), None),
            (String, "-9223372036854775808", &bounds(), None),
        ];
        for (kind, text, bounds, want) in cases {
            assert_eq!(position(text, &config(kind, false), bounds).ok(), want, "{kind:?} {text}");
        }
    }
}
