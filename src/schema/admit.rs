//! What only incoming rows must keep to: stored ones were let in by whoever wrote them, and are carried along as they are.

use super::rewrite::{Conform, rows};
use super::{ENUM_SYMBOLS, Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::util::display::array_value_to_string;

/// How much of a value a message shows.
const SHOWN: usize = 200;

/// Brings incoming rows to the writer schema as [`super::rewrite`] does, and refuses what Hudi could store but not live with:
/// a number that a float does not hold exactly, a text that is none of its enum's symbols, and a null inside a list, after
/// which Hudi's own writer can neither upsert nor compact the file group (base-file.md §3.2).
pub fn admit(batch: &RecordBatch, writer: &SchemaRef) -> Result<RecordBatch> {
    let admitted = rows(batch, writer, Conform::Incoming)?;
    // Whoever made the rows with the writer schema has looked at the symbols.
    let symbols_known = batch.schema_ref().fields() == writer.fields();
    for (field, column) in writer.fields().iter().zip(admitted.columns()) {
        Check { symbols_known }.values(column, field, None, field.name())?;
    }
    Ok(admitted)
}

struct Check {
    symbols_known: bool,
}

impl Check {
    /// `hidden`: rows that are null further up, whose values nobody reads.
    fn values(&self, array: &ArrayRef, field: &Field, hidden: Option<&NullBuffer>, path: &str) -> Result<()> {
        let seen = NullBuffer::union(array.nulls(), hidden);
        match field.data_type() {
            DataType::Utf8 if !self.symbols_known => match field.metadata().get(ENUM_SYMBOLS) {
                Some(symbols) => is_symbol(array, symbols, seen.as_ref(), path),
                None => Ok(()),
            },
            DataType::Struct(fields) => {
                let columns = array.as_struct().columns();
                fields.iter().zip(columns).try_for_each(|(field, column)| {
                    self.values(column, field, seen.as_ref(), &format!("{path}.{}", field.name()))
                })
            }
            DataType::List(item) => {
                let list = array.as_list::<i32>();
                if let Some(nulls) = list.values().nulls().filter(|n| n.null_count() > 0) {
                    for row in (0..list.len()).filter(|row| seen.as_ref().is_none_or(|seen| seen.is_valid(*row))) {
                        let (start, end) = (list.offsets()[row] as usize, list.offsets()[row + 1] as usize);
                        if nulls.slice(start, end - start).null_count() > 0 {
                            return Err(null_element(array, row, path));
                        }
                    }
                }
                self.values(list.values(), item, None, &format!("{path}[]"))
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) if pair.len() == 2 => {
                    self.values(array.as_map().values(), &pair[1], None, &format!("{path}{{}}"))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

fn null_element(list: &ArrayRef, row: usize, path: &str) -> Error {
    let text = array_value_to_string(list, row).unwrap_or_default();
    Error::Row {
        column: path.to_string(),
        why: format!(
            "null inside the list {}, after which Hudi on Spark could not write to the file again; take the nulls out, \
             with array_compact({path}) in a transformer for instance",
            text.chars().take(SHOWN).collect::<String>()
        ),
    }
}

fn is_symbol(array: &ArrayRef, symbols: &str, seen: Option<&NullBuffer>, path: &str) -> Result<()> {
    let symbols: Vec<String> =
        serde_json::from_str(symbols).map_err(|e| Error::internal("read an enum's symbols", e))?;
    let texts = array.as_string::<i32>();
    let is_seen = |row: &usize| seen.is_none_or(|seen| seen.is_valid(*row));
    match (0..texts.len()).filter(is_seen).map(|row| texts.value(row)).find(|t| !symbols.iter().any(|s| s == t)) {
        None => Ok(()),
        Some(text) => Err(Error::Row {
            column: path.to_string(),
            why: format!(
                "{:?} is none of the enum's symbols {}",
                text.chars().take(SHOWN).collect::<String>(),
                symbols.join(", ")
            ),
        }),
    }
}
