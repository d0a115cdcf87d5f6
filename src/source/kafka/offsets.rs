//! A position in a topic, as the checkpoint text of Hudi's Kafka sources: `topic,0:123,1:456`.

use std::collections::BTreeMap;
use std::fmt;

/// The next offset to read of each partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets {
    pub topic: String,
    /// In the order of partitions, which is the order of the text.
    pub next: BTreeMap<i32, i64>,
}

impl Offsets {
    /// Reads the text; `None` if it is not one of Kafka (`KafkaOffsetGen.CheckpointUtils`, 1.0.2), a partition stands twice, or
    /// a number is negative.
    pub fn parse(text: &str) -> Option<Offsets> {
        let mut parts = text.trim().split(',');
        let topic = parts.next().filter(|t| !t.is_empty() && !t.contains(':'))?.to_string();
        let mut next = BTreeMap::new();
        for part in parts {
            let (partition, offset) = part.trim().split_once(':')?;
            let (partition, offset): (i32, i64) = (partition.parse().ok()?, offset.parse().ok()?);
            if partition < 0 || offset < 0 {
                return None;
            }
            if next.insert(partition, offset).is_some() {
                return None;
            }
        }
        (!next.is_empty()).then_some(Offsets { topic, next })
    }
}

impl fmt::Display for Offsets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.topic)?;
        self.next.iter().try_for_each(|(partition, offset)| write!(f, ",{partition}:{offset}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_hudis() {
        let text = "orders,0:123,1:456,10:0";
        let offsets = Offsets::parse(text).expect("a checkpoint");
        assert_eq!(offsets.topic, "orders");
        assert_eq!(offsets.next, BTreeMap::from([(0, 123), (1, 456), (10, 0)]));
        assert_eq!(offsets.to_string(), text);
        assert_eq!(Offsets::parse("o,2:1,0:7").expect("any order").to_string(), "o,0:7,2:1");
        let not =
            ["", "orders", "1700000000000", "o,", "o,0", "o,0:", "o,0:-1", "o,0:1,0:2", "o,x:1", "o,0:1:2", ",0:1"];
        not.iter().for_each(|text| assert_eq!(Offsets::parse(text), None, "{text}"));
    }
}
