//! The dead-letter topic: records as they came, with what is known of them in headers.

use super::super::{Error, Result};
use super::Quarantined;
use crate::config::StreamerConfig;
use crate::source::kafka::{DeadLetter, produce_dead_letters};

/// Produces the records and waits until the brokers have them all: at least once.
pub(super) async fn produce(
    config: &StreamerConfig,
    topic: &str,
    records: Vec<Quarantined>,
    checkpoint: &str,
) -> Result<()> {
    let Some(kafka) = &config.source.kafka else {
        return Err(Error::Worker { what: "quarantine", why: "the source has no brokers".into() });
    };
    let letters = records.into_iter().map(|record| {
        let mut headers = vec![
            ("hudi.error.reason", record.reason.name().to_string()),
            ("hudi.error.code", record.code.to_string()),
            ("hudi.error.message", record.message),
            ("hudi.error.table", config.table.name.clone()),
            ("hudi.error.checkpoint", checkpoint.to_string()),
        ];
        if let Some(origin) = record.origin {
            headers.push(("hudi.error.topic", origin.source));
            headers.extend(origin.partition.map(|p| ("hudi.error.partition", p.to_string())));
            headers.push(("hudi.error.offset", origin.offset.to_string()));
        }
        headers.extend(record.timestamp_ms.map(|ms| ("hudi.error.timestamp", ms.to_string())));
        DeadLetter { key: record.key, value: record.value, headers }
    });
    Ok(produce_dead_letters(kafka, topic, letters.collect()).await?)
}
