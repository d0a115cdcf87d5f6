//! What only incoming rows must keep to: stored ones were let in by whoever wrote them, and are carried along as they are.

use super::rewrite::{Conform, rows};
use super::{ENUM_SYMBOLS, Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::concat_batches;
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

/// The rows that can be admitted, and the others.
pub struct Sifted {
    /// In the writer schema.
    pub rows: RecordBatch,
    /// Number of the row in the batch, and what is wrong with it; in order.
    pub refused: Vec<(usize, Error)>,
}

/// As [`admit`], row by row where the batch as a whole is refused: it is halved until the bad rows are alone, which costs at
/// most the batch once for each time it can be halved, however many there are. An error is one of all rows: their types.
pub fn sift(batch: &RecordBatch, writer: &SchemaRef) -> Result<Sifted> {
    match admit(batch, writer) {
        Ok(rows) => return Ok(Sifted { rows, refused: Vec::new() }),
        Err(Error::Row { .. }) => _ = admit(&batch.slice(0, 0), writer)?,
        Err(e) => return Err(e),
    }
    let (mut admitted, mut refused) = (Vec::new(), Vec::new());
    // First row and number of rows of what is yet to be looked at, the next one last.
    let mut todo = vec![(0, batch.num_rows())];
    while let Some((first, count)) = todo.pop() {
        match admit(&batch.slice(first, count), writer) {
            Ok(rows) => admitted.push(rows),
            Err(e @ Error::Row { .. }) if count <= 1 => refused.push((first, e)),
            Err(Error::Row { .. }) => {
                let half = count / 2;
                todo.extend([(first + half, count - half), (first, half)]);
            }
            Err(e) => return Err(e),
        }
    }
    let rows = concat_batches(writer, &admitted).map_err(|e| Error::internal("put the good rows together", e))?;
    Ok(Sifted { rows, refused })
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
