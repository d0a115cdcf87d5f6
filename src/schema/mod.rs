//! Schemas: where they come from, Avro ⇄ Arrow, inference, evolution.
//!
//! Sees config and storage; knows no table and no source. Look at [`TableSchema`] first. Invariants: an Avro schema and
//! its Arrow twin always say the same; what one cannot say of the other is refused by name.

use arrow::datatypes::SchemaRef;

/// A record schema in both worlds, without meta columns.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSchema {
    /// Avro, JSON text.
    pub avro: String,
    pub arrow: SchemaRef,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{path}: {why}")]
    BadSchema { path: String, why: String },
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::BadSchema { .. } => "schema-bad",
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

impl TableSchema {
    /// Parses and checks; recursive schemas, unions of more than one non-null branch and the types that Spark cannot
    /// read are refused by name.
    pub fn from_avro(_json: &str) -> Result<TableSchema> {
        todo!()
    }
    /// For inferred or transformed rows: names and namespaces as Hudi gives them (`hoodie.<table>.<table>_record`).
    pub fn from_arrow(_schema: &SchemaRef, _table_name: &str) -> Result<TableSchema> {
        todo!()
    }
    /// The same with the five meta columns in front.
    pub fn with_meta_columns(&self) -> TableSchema {
        todo!()
    }
}

/// A schema provider's answer.
#[derive(Debug, Clone)]
pub struct ProvidedSchemas {
    pub source: TableSchema,
    /// `None`: same as source, or deduced from the transformed rows when there is a transformer.
    pub target: Option<TableSchema>,
}

/// Reads the provider's schemas; `Ok(None)` when there is no provider.
pub async fn provide(_config: &crate::config::SchemaProviderConfig) -> Result<Option<ProvidedSchemas>> {
    todo!()
}

/// What evolution allows (see `HoodieSchemaUtils.deduceWriterSchema`).
#[derive(Debug, Clone, Copy)]
pub struct EvolutionOptions {
    pub reconcile: bool,
    pub set_null_for_missing_columns: bool,
    pub allow_column_drop: bool,
}

/// The writer schema of a commit, from the incoming schema and the table's.
pub fn deduce_writer_schema(
    _incoming: &TableSchema,
    _table: Option<&TableSchema>,
    _options: EvolutionOptions,
) -> Result<TableSchema> {
    todo!()
}

/// Brings rows (of an older file, or of a batch) to `target`: columns by name, missing ones null, promotable types cast
/// (also inside structs, lists and maps); anything else is an error naming the column. Cheap when schemas are equal.
pub fn rewrite(_batch: &arrow::array::RecordBatch, _target: &SchemaRef) -> Result<arrow::array::RecordBatch> {
    todo!()
}
