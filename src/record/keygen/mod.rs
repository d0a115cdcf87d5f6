//! Key generators: Simple, Complex, NonPartitioned, TimestampBased (semantics.md §4), on whole batches.

mod joda;
mod partition;
mod text;
mod timestamp;
mod tombstone;

pub use partition::nested_clash;

use super::field::FieldPath;
use super::refuse::{Faults, Refuse};
use super::{Error, KeyedBatch, PartitionColumn, Result};
use crate::config::{KeyConfig, KeyGeneratorClass};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray, StringBuilder, UInt64Array};
use arrow::datatypes::{DataType, Schema, SchemaRef, UInt64Type};
use partition::PartitionPart;
use std::sync::Arc;
use tombstone::Tombstones;

/// Stands for a null part of a composite key (`KeyGenUtils.NULL_RECORDKEY_PLACEHOLDER`, 0.15).
const NULL_PART: &str = "__null__";
/// Stands for an empty part of a composite key.
const EMPTY_PART: &str = "__empty__";
/// Deletes a row where it is true (`HoodieRecord.HOODIE_IS_DELETED_FIELD`).
const DELETED_COLUMN: &str = "_hoodie_is_deleted";
/// How much of a row a message shows.
const SHOWN: usize = 200;

/// Whether rows of this schema may be deletes.
pub fn has_delete_flag(schema: &Schema) -> bool {
    schema.fields().find(DELETED_COLUMN).is_some_and(|(_, field)| *field.data_type() == DataType::Boolean)
}

/// Turns rows into records. Made once for a schema.
#[derive(Debug, Clone)]
pub struct KeyGenerator {
    keys: Vec<FieldPath>,
    /// Composite keys, and single ones of tables that store `field:value`.
    prefixed: bool,
    partitions: Vec<PartitionPart>,
    ordering: Option<FieldPath>,
    deleted: Option<FieldPath>,
    /// Where the hidden columns are that the rows carry.
    position: Option<usize>,
    tombstones: Option<usize>,
    consistent_logical_timestamp: bool,
    refuse: Option<Refuse>,
}

/// What besides the key configuration decides how records are made.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// Take ordering values from this field (upsert, or filter-dupes).
    pub ordering_field: Option<String>,
    /// A table's stored single-field Complex keys are `id:value` (true) or `value`.
    pub complex_single_key_prefixed: bool,
    /// Name of the source's hidden column that says where a row came from. Hidden columns stand behind all others.
    pub position_column: Option<&'static str>,
    /// Name of the source's hidden column (Binary) that makes a row a tombstone: it holds the message key.
    pub tombstone_column: Option<&'static str>,
}

impl KeyGenerator {
    /// `schema`: of the rows (with the hidden columns, if any). Missing fields are errors here, not at the first row.
    pub fn new(config: &KeyConfig, options: RecordOptions, schema: &SchemaRef) -> Result<KeyGenerator> {
        if config.record_key_fields.is_empty() {
            let what = "hoodie.datasource.write.recordkey.field is not set: keys made by Hudi are not supported".into();
            return Err(Error::Unsupported { what });
        }
        let keys = config.record_key_fields.iter().map(|f| FieldPath::resolve(schema, f, "record key field"));
        let partitions = match config.generator {
            KeyGeneratorClass::NonPartitioned => Vec::new(),
            _ => PartitionPart::all(config, schema)?,
        };
        let ordering = options.ordering_field.as_deref();
        let hidden = |name: Option<&str>| schema.index_of(name?).ok();
        Ok(KeyGenerator {
            keys: keys.collect::<Result<_>>()?,
            prefixed: config.record_key_fields.len() > 1
                || (config.generator == KeyGeneratorClass::Complex && options.complex_single_key_prefixed),
            partitions,
            ordering: ordering.map(|f| FieldPath::resolve(schema, f, "ordering field")).transpose()?,
            deleted: has_delete_flag(schema)
                .then(|| FieldPath::resolve(schema, DELETED_COLUMN, "delete flag"))
                .transpose()?,
            position: hidden(options.position_column),
            tombstones: hidden(options.tombstone_column),
            consistent_logical_timestamp: config.consistent_logical_timestamp,
            refuse: None,
        })
    }

    /// Hands rows that make no record to `refuse` and goes on with the others; without it the first such row is an error.
    pub fn refusing(self, refuse: Refuse) -> KeyGenerator {
        KeyGenerator { refuse: Some(refuse), ..self }
    }

    /// The records of a batch of rows.
    pub fn key(&self, rows: &RecordBatch) -> Result<KeyedBatch> {
        let width = self.position.into_iter().chain(self.tombstones).min();
        let data = width.map_or_else(|| rows.clone(), |width| rows.slice_columns(width));
        let positions = self.position.map(|at| rows.column(at).as_primitive::<UInt64Type>());
        let place = Place { rows: &data, positions };
        let mut faults = Faults::default();
        let tombstones = self.tombstones.and_then(|at| {
            Tombstones::read(rows.column(at).as_binary(), &self.keys, self.prefixed, &place, &mut faults)
        });
        if let Some(tombstones) = &tombstones {
            faults.spare(tombstones.rows());
        }
        let keys = match self.prefixed {
            true => self.composite_keys(rows, &place, &mut faults)?,
            false => self.single_keys(rows, &place, &mut faults)?,
        };
        let partitions = self.partition_paths(rows, &keys, &place, &mut faults)?;
        let ordering = self.ordering.as_ref().map(|f| ordering(f, rows, &keys, &place, &mut faults));
        let deleted = self.deleted.as_ref().and_then(|f| flags(&f.column(rows)));
        if let Some(deleted) = &deleted {
            for (row, field) in self.partitions.iter().flat_map(|p| p.deletes_in_1970(rows, deleted)) {
                faults.add(row, || Error::BadPartition {
                    value: "null".into(),
                    key: cut(keys.value(row)),
                    why: format!(
                        "a delete without {field} would look for its record in 1970; send {field} with deletes"
                    ),
                    position: place.position(row),
                });
            }
        }
        let keyed = KeyedBatch { keys, partitions, ordering, deleted, rows: data.clone() };
        let keyed = match tombstones {
            Some(tombstones) => tombstones.put_into(keyed)?,
            None => keyed,
        };
        faults.take_out(keyed, self.refuse.as_ref())
    }

    fn single_keys(&self, rows: &RecordBatch, place: &Place, faults: &mut Faults) -> Result<StringArray> {
        let field = &self.keys[0];
        let keys = text::texts(&field.name, &field.column(rows), self.consistent_logical_timestamp)?;
        let offsets = keys.value_offsets();
        for row in (0..keys.len()).filter(|&row| keys.is_null(row) || offsets[row] == offsets[row + 1]) {
            faults.add(row, || place.null_key(&field.name, row));
        }
        Ok(keys)
    }

    fn composite_keys(&self, rows: &RecordBatch, place: &Place, faults: &mut Faults) -> Result<StringArray> {
        let text_of = |f: &FieldPath| text::texts(&f.name, &f.column(rows), self.consistent_logical_timestamp);
        let parts = self.keys.iter().map(text_of).collect::<Result<Vec<_>>>()?;
        let mut keys = StringBuilder::with_capacity(rows.num_rows(), rows.num_rows() * 24);
        let mut key = String::new();
        for row in 0..rows.num_rows() {
            key.clear();
            let values = parts.iter().map(|part| part.is_valid(row).then(|| part.value(row)));
            if !compose(&mut key, self.keys.iter().zip(values)) {
                let names: Vec<&str> = self.keys.iter().map(|f| f.name.as_str()).collect();
                faults.add(row, || place.null_key(&names.join(","), row));
            }
            keys.append_value(&key);
        }
        Ok(keys.finish())
    }

    fn partition_paths(
        &self,
        rows: &RecordBatch,
        keys: &StringArray,
        place: &Place,
        faults: &mut Faults,
    ) -> Result<PartitionColumn> {
        let mut bad = |row: usize, value: &str, why: &str| {
            faults.add(row, || Error::BadPartition {
                value: cut(value),
                key: cut(keys.value(row)),
                why: why.to_string(),
                position: place.position(row),
            });
        };
        let mut whole = PartitionColumn { ids: vec![0; rows.num_rows()], paths: Arc::new(vec![String::new()]) };
        for (i, part) in self.partitions.iter().enumerate() {
            let next = part.paths(rows, self.consistent_logical_timestamp, &mut bad)?;
            whole = if i == 0 { next } else { partition::join(&whole, &next) };
        }
        Ok(whole)
    }
}

/// Appends `field:value,…`; false where no part says anything.
fn compose<'a>(key: &mut String, parts: impl Iterator<Item = (&'a FieldPath, Option<&'a str>)>) -> bool {
    let mut says_something = false;
    for (field, value) in parts {
        if !key.is_empty() {
            key.push(',');
        }
        key.push_str(&field.name);
        key.push(':');
        says_something |= value.is_some_and(|v| !v.is_empty());
        key.push_str(match value {
            None => NULL_PART,
            Some("") => EMPTY_PART,
            Some(value) => value,
        });
    }
    says_something
}

/// Ordering values; a null one cannot be compared, so it is refused, as Hudi does.
fn ordering(field: &FieldPath, rows: &RecordBatch, keys: &StringArray, place: &Place, faults: &mut Faults) -> ArrayRef {
    let values = field.column(rows);
    if let Some(nulls) = values.nulls().filter(|n| n.null_count() > 0) {
        for row in (0..nulls.len()).filter(|row| nulls.is_null(*row)) {
            faults.add(row, || Error::NullOrdering {
                field: field.name.clone(),
                key: cut(keys.value(row)),
                position: place.position(row),
            });
        }
    }
    values
}

/// The delete flags, null counting as false; `None` if no row is deleted.
fn flags(column: &ArrayRef) -> Option<BooleanArray> {
    let flags = column.as_boolean();
    if flags.true_count() == 0 {
        return None;
    }
    Some(BooleanArray::from_iter(flags.iter().map(|f| Some(f == Some(true)))))
}

/// Rows and where they came from, for messages.
struct Place<'a> {
    rows: &'a RecordBatch,
    positions: Option<&'a UInt64Array>,
}

impl Place<'_> {
    fn position(&self, row: usize) -> Option<u64> {
        self.positions.map(|p| p.value(row))
    }

    fn null_key(&self, field: &str, row: usize) -> Error {
        Error::NullKey { field: field.to_string(), position: self.position(row), row: self.show(row) }
    }

    /// The row as short text: `{id: , ts: 5}`.
    fn show(&self, row: usize) -> String {
        let options = arrow::util::display::FormatOptions::default().with_null("null");
        let mut text = String::from("{");
        for (field, column) in self.rows.schema_ref().fields().iter().zip(self.rows.columns()) {
            let Ok(formatter) = arrow::util::display::ArrayFormatter::try_new(column, &options) else { continue };
            if text.len() > 1 {
                text.push_str(", ");
            }
            text.push_str(&format!("{}: {}", field.name(), formatter.value(row)));
        }
        text.push('}');
        cut(&text)
    }
}

/// At most [`SHOWN`] characters.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

trait Columns {
    fn slice_columns(&self, count: usize) -> RecordBatch;
}

impl Columns for RecordBatch {
    /// The first columns.
    fn slice_columns(&self, count: usize) -> RecordBatch {
        let first: Vec<usize> = (0..count).collect();
        self.project(&first).expect("the columns are there")
    }
}

#[cfg(test)]
mod tests;
