//! Schemas: where they come from, Avro ⇄ Arrow, evolution.
//!
//! Sees config, storage and schema registries; knows no table and no source. Look at [`TableSchema`] first. Invariants: an
//! Avro schema and its Arrow twin always say the same; what one cannot say of the other is refused by name; unions have
//! null first.

mod admit;
mod avro;
mod changes;
mod error;
mod evolve;
mod from_arrow;
mod provider;
mod registry;
mod rewrite;

pub use admit::{Sifted, admit, sift};
pub use changes::changes;
pub use error::{Error, RegistryFault, Result};
pub use evolve::{EvolutionOptions, deduce_writer_schema};
pub use provider::{ProvidedSchemas, SchemaProvider};
pub use registry::Registry;
pub use rewrite::rewrite;

use arrow::datatypes::SchemaRef;
use serde_json::{Value, json};
use std::sync::Arc;

/// Metadata key of an Arrow text field that is an Avro enum: a JSON list of its symbols.
pub const ENUM_SYMBOLS: &str = "avro.enum.symbols";

/// Metadata key of a field's description.
const DOC: &str = "avro.doc";

/// The five meta columns, in front of every stored row (`HoodieRecord.HOODIE_META_COLUMNS`, 0.15).
const META_COLUMNS: [&str; 5] = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
];

/// A record schema in both worlds, without meta columns.
#[derive(Debug, Clone)]
pub struct TableSchema {
    /// Avro, JSON text.
    pub avro: String,
    pub arrow: SchemaRef,
    /// Avro as it was given, JSON text: unions in their own order, which is how values in Avro are written, and with them
    /// the defaults of fields whose first branch is not null.
    pub given: Arc<str>,
}

/// What it says, however it was given.
impl PartialEq for TableSchema {
    fn eq(&self, other: &TableSchema) -> bool {
        self.avro == other.avro && self.arrow == other.arrow
    }
}

impl TableSchema {
    /// Parses and checks. Recursive schemas, unions of more than one non-null branch and the types that Spark cannot read,
    /// or not write on (base-file.md §3.1), are refused by name. Meta columns, which some commits carry, are left out.
    pub fn from_avro(json: &str) -> Result<TableSchema> {
        let mut record = avro::parse(json)?;
        if let Some(fields) = record["fields"].as_array_mut() {
            fields.retain(|f| !f["name"].as_str().is_some_and(|n| META_COLUMNS.contains(&n)));
        }
        Ok(TableSchema { given: json.into(), ..TableSchema::from_record(record)? })
    }

    /// For inferred or transformed rows: names and namespaces as Hudi gives them (`hoodie.<table>.<table>_record`).
    pub fn from_arrow(schema: &SchemaRef, table_name: &str) -> Result<TableSchema> {
        TableSchema::from_record(from_arrow::record(schema, table_name)?)
    }

    /// The same columns, with nested records and decimals named as Hudi on Spark names them in a record called as that of
    /// `names`: Spark compares names when it writes to a table, and takes no others (enums, which it does not have, are
    /// text then).
    pub fn with_spark_names(&self, names: &TableSchema) -> Result<TableSchema> {
        let record = names.record()?;
        let text = |key: &str| record[key].as_str().unwrap_or_default().to_string();
        TableSchema::from_record(from_arrow::named(&self.arrow, &text("name"), &text("namespace"))?)
    }

    /// The same with the five meta columns in front.
    pub fn with_meta_columns(&self) -> TableSchema {
        let mut record: Value = serde_json::from_str(&self.avro).expect("the schema was parsed before");
        let meta =
            META_COLUMNS.iter().map(|n| json!({"name": n, "type": ["null", "string"], "doc": "", "default": null}));
        if let Some(fields) = record["fields"].as_array_mut() {
            fields.splice(0..0, meta);
        }
        let mut arrow: Vec<arrow::datatypes::FieldRef> = META_COLUMNS
            .iter()
            .map(|n| arrow::datatypes::Field::new(*n, arrow::datatypes::DataType::Utf8, true).into())
            .collect();
        arrow.extend(self.arrow.fields().iter().cloned());
        let avro = record.to_string();
        TableSchema { given: avro.as_str().into(), avro, arrow: Arc::new(arrow::datatypes::Schema::new(arrow)) }
    }

    /// The fields that are wanted, in the schema's order: what to read of rows that have more.
    pub fn select(&self, wanted: impl Fn(&str) -> bool) -> Result<TableSchema> {
        let mut record = self.record()?;
        if let Some(fields) = record["fields"].as_array_mut() {
            fields.retain(|f| f["name"].as_str().is_some_and(&wanted));
        }
        TableSchema::from_record(record)
    }

    /// From a record whose named types are all written out where they are used.
    fn from_record(record: Value) -> Result<TableSchema> {
        let arrow = avro::to_arrow(&record)?;
        let avro = avro::collapse(record).to_string();
        Ok(TableSchema { given: avro.as_str().into(), avro, arrow })
    }

    /// The record with its named types written out where they are used.
    fn record(&self) -> Result<Value> {
        avro::parse(&self.avro)
    }
}

#[cfg(test)]
mod tests;
