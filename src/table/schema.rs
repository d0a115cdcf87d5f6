//! What completed commits say of the table as a whole: its schema, and how large a row is.

use super::{Error, META_COLUMNS, Result, Table, Timeline};
use futures::stream::{StreamExt, TryStreamExt};
use serde_json::Value;

/// Key of the schema history that schema-on-read keeps in commits (`SerDeHelper.LATEST_SCHEMA` 0.15).
const SCHEMA_HISTORY: &str = "latest_schema";

/// Commits looked at for the size of a row. Hudi looks at the whole active timeline, which its archiver keeps at 20 to
/// 30 instants; a table that nobody archives must not cost more.
const SIZE_COMMITS: usize = 30;

/// Timeline files read ahead.
const READ_AHEAD: usize = 8;

impl Table {
    /// The table schema (Avro JSON text, without meta columns): newest commit whose operation may change it and that has
    /// one, else `hoodie.table.create.schema`; `None` for an empty table. Refuses a table with a schema history.
    pub async fn latest_schema(&self, timeline: &Timeline) -> Result<Option<String>> {
        for instant in timeline.completed_writes().rev() {
            let summary = self.commit_summary(instant).await?;
            let metadata = &summary.metadata;
            if metadata.extra(SCHEMA_HISTORY).is_some() {
                let instant = instant.time.to_string();
                return Err(Error::SchemaOnRead { path: self.storage.display(""), instant });
            }
            // `WriteOperationType.canUpdateSchema` 0.15
            let may_change =
                !matches!(metadata.operation_type.as_str(), "CLUSTER" | "COMPACT" | "INDEX" | "LOG_COMPACT");
            if let Some(schema) = metadata.extra("schema").filter(|_| may_change) {
                return Ok(Some(without_meta_columns(schema).map_err(|why| self.malformed(instant, why))?));
            }
        }
        let Some(schema) = self.properties.create_schema() else { return Ok(None) };
        let schema = without_meta_columns(schema);
        let path = self.storage.display(super::PROPERTIES);
        schema.map(Some).map_err(|why| Error::PropertiesMalformed { path, why })
    }

    /// Bytes a row takes in a base file (`AverageRecordSizeUtils` 0.15): from the newest commit that wrote more than
    /// `threshold` × `small_file_limit` bytes, else `estimate`.
    pub async fn average_record_size(
        &self,
        timeline: &Timeline,
        small_file_limit: u64,
        threshold: f64,
        estimate: u64,
    ) -> Result<u64> {
        let least = threshold * small_file_limit as f64;
        let newest = timeline.completed_writes().rev().take(SIZE_COMMITS);
        let reads = newest.map(|instant| self.commit_summary(instant));
        let mut reads = futures::stream::iter(reads).buffered(READ_AHEAD);
        while let Some(summary) = reads.try_next().await? {
            if summary.base_rows > 0 && summary.base_bytes as f64 > least {
                return Ok(summary.base_bytes.div_ceil(summary.base_rows));
            }
        }
        Ok(estimate)
    }
}

/// delete_partition writes the meta columns into the schema, where no other operation does.
fn without_meta_columns(schema: &str) -> std::result::Result<String, String> {
    let mut parsed: Value = serde_json::from_str(schema).map_err(|e| format!("schema: {e}"))?;
    let Some(fields) = parsed.get_mut("fields").and_then(Value::as_array_mut) else {
        return Err(format!("schema: it is no record: {schema:.200}"));
    };
    let all = fields.len();
    fields.retain(|f| !f["name"].as_str().is_some_and(|name| META_COLUMNS.contains(&name)));
    Ok(if fields.len() == all { schema.to_string() } else { parsed.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_columns_leave_the_schema() {
        let plain = r#"{ "type":"record", "name":"r", "fields":[{"name":"id","type":"string"}] }"#;
        assert_eq!(without_meta_columns(plain).as_deref(), Ok(plain), "as it was written");
        let with = r#"{"type":"record","name":"r","fields":[{"name":"_hoodie_record_key","type":"string"},{"name":"id","type":"string"}]}"#;
        let want = r#"{"type":"record","name":"r","fields":[{"name":"id","type":"string"}]}"#;
        assert_eq!(without_meta_columns(with).as_deref(), Ok(want));
        assert!(without_meta_columns("\"string\"").is_err());
        assert!(without_meta_columns("{").is_err());
    }
}
