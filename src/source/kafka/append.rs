//! `append.offsets`: columns that say where a row came from (`KafkaOffsetPostProcessor`, 1.0.2).

use super::super::{POSITION_COLUMN, Result};
use super::queue::Fetched;
use crate::schema::TableSchema;
use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringBuilder};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use serde_json::{Value, json};
use std::sync::Arc;

const OFFSET: &str = "_hoodie_kafka_source_offset";
const PARTITION: &str = "_hoodie_kafka_source_partition";
const TIMESTAMP: &str = "_hoodie_kafka_source_timestamp";
const KEY: &str = "_hoodie_kafka_source_key";
const COLUMNS: [&str; 4] = [OFFSET, PARTITION, TIMESTAMP, KEY];

/// The schema with the columns behind it and the record renamed `<name>_processed`, as Hudi does; unchanged where it has
/// them already.
pub fn with_offset_columns(schema: &TableSchema) -> crate::schema::Result<TableSchema> {
    let mut record: Value = serde_json::from_str(&schema.given)
        .map_err(|e| crate::schema::Error::Internal { doing: "append the offset columns", why: e.to_string() })?;
    let name = record["name"].as_str().unwrap_or_default().to_string();
    if let Some(fields) = record["fields"].as_array_mut() {
        if COLUMNS.iter().all(|c| fields.iter().any(|f| f["name"] == **c)) {
            return Ok(schema.clone());
        }
        fields.retain(|f| !COLUMNS.iter().any(|c| f["name"] == **c));
        fields.push(json!({"name": OFFSET, "type": "long", "default": 0}));
        fields.push(json!({"name": PARTITION, "type": "int", "default": 0}));
        fields.push(json!({"name": TIMESTAMP, "type": "long", "default": 0}));
        fields.push(json!({"name": KEY, "type": ["null", "string"], "default": null}));
    }
    record["name"] = json!(format!("{name}_processed"));
    TableSchema::from_avro(&record.to_string())
}

/// The Arrow fields of the columns, for a schema that is inferred.
fn fields() -> [FieldRef; 4] {
    [(OFFSET, DataType::Int64), (PARTITION, DataType::Int32), (TIMESTAMP, DataType::Int64), (KEY, DataType::Utf8)]
        .map(|(name, data_type)| Arc::new(Field::new(name, data_type, name == KEY)))
}

/// The same schema without the columns: what messages are decoded with.
pub(super) fn without_offset_columns(schema: &TableSchema) -> crate::schema::Result<TableSchema> {
    let mut record: Value = serde_json::from_str(&schema.given)
        .map_err(|e| crate::schema::Error::Internal { doing: "leave out the offset columns", why: e.to_string() })?;
    if let Some(fields) = record["fields"].as_array_mut() {
        fields.retain(|f| !COLUMNS.iter().any(|c| f["name"] == **c));
    }
    TableSchema::from_avro(&record.to_string())
}

/// Collects the columns of a batch, beside its decoder.
#[derive(Debug)]
pub(super) struct Appended {
    partition: i32,
    offsets: Vec<i64>,
    timestamps: Vec<i64>,
    keys: StringBuilder,
    schema: SchemaRef,
}

/// The decoder's schema with the columns, which stand before the position, if there is one.
pub(super) fn appended(decoded: &SchemaRef) -> SchemaRef {
    let mut all: Vec<FieldRef> = decoded.fields().iter().cloned().collect();
    let at = all.iter().position(|f| f.name() == POSITION_COLUMN).unwrap_or(all.len());
    all.splice(at..at, fields());
    Arc::new(Schema::new_with_metadata(all, decoded.metadata().clone()))
}

impl Appended {
    pub fn new(partition: i32, decoded: &SchemaRef) -> Appended {
        let schema = appended(decoded);
        Appended { partition, offsets: Vec::new(), timestamps: Vec::new(), keys: StringBuilder::new(), schema }
    }

    /// A message that became a row.
    pub fn push(&mut self, message: &Fetched) {
        self.offsets.push(message.offset());
        // What a Java client says of a message without a time.
        self.timestamps.push(message.timestamp().unwrap_or(-1));
        self.keys.append_option(message.key().map(String::from_utf8_lossy));
    }

    /// Puts the columns of the rows since the last call to their batch.
    pub fn attach(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = self.offsets.len();
        let made: [ArrayRef; 4] = [
            Arc::new(Int64Array::from(std::mem::take(&mut self.offsets))),
            Arc::new(Int32Array::from(vec![self.partition; rows])),
            Arc::new(Int64Array::from(std::mem::take(&mut self.timestamps))),
            Arc::new(self.keys.finish()),
        ];
        let mut columns = batch.columns().to_vec();
        let at = batch.schema_ref().index_of(POSITION_COLUMN).unwrap_or(columns.len());
        columns.splice(at..at, made);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|e| super::super::Error::Worker { what: "append the offset columns", why: e.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_extended_once() {
        let schema = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"}]}"#;
        let schema = TableSchema::from_avro(schema).expect("a schema");
        let with = with_offset_columns(&schema).expect("extended");
        assert!(with.avro.contains("R_processed"), "{}", with.avro);
        let names: Vec<&str> = with.arrow.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names, ["id", OFFSET, PARTITION, TIMESTAMP, KEY]);
        assert_eq!(with_offset_columns(&with).expect("again"), with);
        assert_eq!(without_offset_columns(&with).expect("back").arrow, schema.arrow);
        assert_eq!(appended(&schema.arrow), with.arrow);
    }
}
