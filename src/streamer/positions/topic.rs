//! Positions of a Kafka source: held against what its topic has, or found there.

use super::{Error, Result};
use crate::config::{KafkaConfig, PositionsConfig, StartFrom};
use crate::source::kafka::{Client, Offsets};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Earliest offset and end of each partition.
type Bounds = BTreeMap<i32, (i64, i64)>;

/// One partition: where the job stands in it, and where it begins and ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Partition {
    pub partition: i32,
    /// The next offset to read.
    pub offset: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// Offsets that are still to be read; `None` where the next run cannot read on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<i64>,
    /// What the next run does about a position that is out of range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The partitions of a position alone.
pub(super) fn unbounded(offsets: &Offsets) -> Vec<Partition> {
    let partition =
        |(&partition, &offset): (&i32, &i64)| Partition { partition, offset: Some(offset), ..Partition::default() };
    offsets.next.iter().map(partition).collect()
}

/// The partitions of the position and of the topic; `Err` says why the topic cannot be asked.
pub(super) async fn held_against(
    config: &PositionsConfig,
    offsets: &Offsets,
) -> std::result::Result<Vec<Partition>, String> {
    if !config.source.is_kafka() {
        let by_default = if config.source_given { "" } else { " (the default)" };
        return Err(format!(
            "the source is {}{by_default}: for the lag, name a Kafka source with --source-class",
            config.source_name
        ));
    }
    let Some(kafka) = &config.kafka else {
        return Err("no brokers are configured: for the lag, set bootstrap.servers".into());
    };
    if kafka.topic != offsets.topic {
        let (stored, topic) = (&offsets.topic, &kafka.topic);
        return Err(format!("the position is one of topic {stored}, and the source reads {topic}: the next run fails"));
    }
    let bounds = bounds(kafka).await.map_err(|e| e.to_string())?;
    Ok(compare(&offsets.next, &bounds, kafka.fail_on_data_loss))
}

async fn bounds(kafka: &KafkaConfig) -> crate::source::Result<Bounds> {
    Client::open(kafka)?.bounds().await
}

/// What the next run will make of each partition: the rules of the source, in words.
fn compare(next: &BTreeMap<i32, i64>, bounds: &Bounds, fail_on_data_loss: bool) -> Vec<Partition> {
    let all: BTreeSet<i32> = next.keys().chain(bounds.keys()).copied().collect();
    let partition = |partition: i32| {
        let (offset, bounds) = (next.get(&partition).copied(), bounds.get(&partition).copied());
        let (earliest, end) = bounds.unzip();
        let (lag, note) = match (offset, bounds) {
            (_, None) => (None, Some("not in the topic: the next run fails".into())),
            (None, Some((earliest, end))) => {
                (Some(end - earliest), Some(format!("new: the next run starts at {earliest}")))
            }
            (Some(offset), Some((_, end))) if offset > end => {
                (None, Some("past the end: the next run fails (was the topic deleted and made anew?)".into()))
            }
            (Some(offset), Some((earliest, end))) if offset < earliest => {
                let lost = format!("{} offsets have expired: the next run ", earliest - offset);
                match fail_on_data_loss {
                    true => (None, Some(lost + "fails, as enable.failOnDataLoss=true wants")),
                    false => (Some(end - earliest), Some(format!("{lost}starts at {earliest}"))),
                }
            }
            (Some(offset), Some((_, end))) => (Some(end - offset), None),
        };
        Partition { partition, offset, earliest, end, lag, note }
    };
    all.into_iter().map(partition).collect()
}

/// What is odd about a position that is to be set.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Oddities {
    /// Wants `--force`.
    pub doubts: Vec<String>,
    /// The operator should know.
    pub warnings: Vec<String>,
}

pub(super) async fn oddities(config: &PositionsConfig, offsets: &Offsets) -> Oddities {
    let mut found = Oddities::default();
    if let Some(topic) = config.topic.as_ref().filter(|topic| **topic != offsets.topic) {
        found.doubts.push(format!("it is one of topic {}, and the source reads {topic}", offsets.topic));
        return found;
    }
    match &config.kafka {
        None => {
            found.doubts.extend(gaps(&offsets.next));
            found.warnings.push("no brokers are configured: the offsets are not checked".into());
        }
        Some(kafka) => match bounds(kafka).await {
            Ok(bounds) => against(&offsets.next, &bounds, &mut found),
            Err(e) => {
                found.doubts.extend(gaps(&offsets.next));
                found.warnings.push(format!("the offsets are not checked: {e}"));
            }
        },
    }
    found
}

/// Without a broker, only a hole tells that a partition is missing.
fn gaps(next: &BTreeMap<i32, i64>) -> Option<String> {
    let missing = next.keys().zip(0..).find(|(held, wanted)| **held != *wanted).map(|(_, wanted): (_, i32)| wanted);
    missing.map(|p| format!("partition {p} is missing"))
}

fn against(next: &BTreeMap<i32, i64>, bounds: &Bounds, found: &mut Oddities) {
    for Partition { partition, offset, earliest, end, .. } in compare(next, bounds, false) {
        match (offset, earliest.zip(end)) {
            (Some(_), None) => {
                found.doubts.push(format!("the topic has no partition {partition}, only {}", bounds.len()));
            }
            (None, Some((earliest, _))) => {
                found.doubts.push(format!("partition {partition} is missing: it would be read from {earliest}"));
            }
            (Some(offset), Some((_, end))) if offset > end => {
                found.doubts.push(format!("offset {offset} of partition {partition} is past its end, {end}"));
            }
            (Some(offset), Some((earliest, _))) if offset < earliest => found
                .warnings
                .push(format!("offset {offset} of partition {partition} has expired: the earliest is {earliest}")),
            _ => {}
        }
    }
}

/// The position of a place in the topic.
pub(super) async fn find(config: &PositionsConfig, start: &StartFrom) -> Result<Offsets> {
    let mut kafka = config.kafka.clone().ok_or(Error::NoBroker)?;
    let topic = kafka.topic.clone();
    let next = match start {
        StartFrom::Earliest => bounds(&kafka).await?.into_iter().map(|(p, (earliest, _))| (p, earliest)).collect(),
        StartFrom::Timestamp(millis) => Client::open(&kafka)?.offsets_for_times(*millis).await?,
        StartFrom::Group(group) => {
            kafka.client.retain(|(key, _)| key != "group.id");
            kafka.group = Some(group.clone());
            let committed = Client::open(&kafka)?.committed().await?;
            let without: Vec<String> =
                committed.iter().filter(|(_, offset)| offset.is_none()).map(|(p, _)| p.to_string()).collect();
            if !without.is_empty() {
                let (group, partitions) = (group.clone(), without.join(", "));
                return Err(Error::NoGroupOffset { group, topic, partitions }.into());
            }
            committed.into_iter().filter_map(|(p, offset)| Some((p, offset?))).collect()
        }
    };
    Ok(Offsets { topic, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(offsets: &[(i32, i64)]) -> BTreeMap<i32, i64> {
        offsets.iter().copied().collect()
    }

    fn topic() -> Bounds {
        BTreeMap::from([(0, (10, 50)), (1, (0, 5)), (2, (7, 7))])
    }

    #[test]
    fn each_partition_says_what_the_next_run_does() {
        let cases = [
            (next(&[(0, 10), (1, 5), (2, 7)]), false, [(Some(40), ""), (Some(0), ""), (Some(0), "")].as_slice()),
            (
                next(&[(0, 4), (1, 2)]),
                false,
                &[
                    (Some(40), "6 offsets have expired: the next run starts at 10"),
                    (Some(3), ""),
                    (Some(0), "new: the next run starts at 7"),
                ],
            ),
            (
                next(&[(0, 4), (1, 5), (2, 8)]),
                true,
                &[(None, "fails, as enable.failOnDataLoss"), (Some(0), ""), (None, "past the end")],
            ),
            (
                next(&[(0, 50), (1, 5), (2, 7), (9, 1)]),
                false,
                &[(Some(0), ""), (Some(0), ""), (Some(0), ""), (None, "not in the topic")],
            ),
        ];
        for (next, fails, want) in cases {
            let found = compare(&next, &topic(), fails);
            assert_eq!(found.len(), want.len(), "{next:?}");
            for (found, (lag, note)) in found.iter().zip(want) {
                assert_eq!(found.lag, *lag, "{next:?}: {found:?}");
                assert!(found.note.as_deref().unwrap_or_default().contains(note), "{next:?}: {found:?}");
                assert_eq!(found.note.is_none(), note.is_empty(), "{next:?}: {found:?}");
            }
        }
    }

    #[test]
    fn what_is_odd_about_a_new_position_is_found() {
        let odd = |offsets: &[(i32, i64)]| {
            let mut found = Oddities::default();
            against(&next(offsets), &topic(), &mut found);
            (found.doubts.len(), found.warnings.len())
        };
        assert_eq!(odd(&[(0, 10), (1, 5), (2, 7)]), (0, 0));
        assert_eq!(odd(&[(0, 9), (1, 6), (3, 0)]), (3, 1));
        assert_eq!(gaps(&next(&[(0, 1), (1, 1)])), None);
        assert_eq!(gaps(&next(&[(0, 1), (2, 1)])).as_deref(), Some("partition 1 is missing"));
        assert_eq!(gaps(&next(&[(1, 1)])).as_deref(), Some("partition 0 is missing"));
        assert_eq!(gaps(&next(&[(i32::MAX, 1)])).as_deref(), Some("partition 0 is missing"));
    }
}
