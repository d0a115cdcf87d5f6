//! Records in Avro's binary encoding to Arrow columns, by a plan made once a writer's schema: nothing boxed for a row.
//!
//! Knows one reader schema, the writers' schemas it was taught, and one record at a time; no Kafka and no registry. Look at
//! [`AvroDecoder`] first. `plan` brings a writer's schema together with the reader's, `default` writes out what the writer
//! lacks, `read` follows a plan into the `columns`; `tests/twin` compares with the `apache-avro` crate, which
//! decodes value by value. Invariants: rows stand in the order of [`AvroDecoder::decode`], whichever schemas their writers had;
//! an incoming value is stored exactly, or the record is refused; a refused record leaves no trace.
//!
//! Own code, and not `arrow-avro`'s decoder: that one cannot take back half a record, ends a batch wherever the schema id
//! changes, names no fields in its errors, and resolves by Avro's rules where Hudi's rewrite allows more.
//!
//! | writer → source schema | |
//! | --- | --- |
//! | int → long, float, double, string; long → float, double, string; float → double | exactly, or the record is refused (of a log block: rounded); `0.1f` is `0.1` |
//! | string ↔ bytes, fixed → bytes, enum → string, string → enum, date → string | |
//! | decimal → decimal | any size and precision; the scale may grow |
//! | int → date, long → timestamp, date → int, timestamp → long | the number is kept |
//! | field that the writer lacks | its default; else null, if it may be |
//! | field that the source schema lacks | passed over |
//! | null ↔ nullable | a null where none is allowed fails its record |
//! | all else: long → int, double → float, millis → micros, … | the schema is refused, whatever its values |

mod default;
mod encode;
mod plan;
mod read;

use super::columns::Unsupported;
use super::rows::Rows;
use crate::schema::TableSchema;
use apache_avro::Schema as AvroSchema;
use hashbrown::HashMap;
use plan::{RecordPlan, Whose};
use read::Cursor;
use std::fmt;

pub use encode::AvroEncoder;

/// How a record says which schema it was written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// A zero byte and the schema's id in the registry, four bytes, before the record (`KafkaAvroSerializer`).
    Confluent,
    /// Not at all: it was written with the source schema as it was given (`ByteArrayDeserializer` in Hudi).
    Bare,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// It is a row now.
    Row,
    /// Nothing yet: ask the registry for this schema, [`AvroDecoder::learn`] it, and decode the record again.
    UnknownSchema(u32),
}

/// Whose schema a record was written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// An id of the registry.
    Id(u32),
    /// The source schema itself.
    Same,
    /// The schema that a log block carries.
    Block,
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Writer::Id(id) => write!(f, "schema id {id}"),
            Writer::Same => f.write_str("the source schema"),
            Writer::Block => f.write_str("the log block's schema"),
        }
    }
}

/// Why a record cannot be taken; the caller adds where it came from. Bytes count from 1 at the start of the record, what
/// stands before it included; a value is cut to 200 characters; a field is a path like `a.b[].c`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AvroError {
    /// The record must be skipped, or the source is another one.
    #[error("not Avro from a writer that uses a schema registry: {why}")]
    Framing { why: String },
    /// The record must be skipped, or was written with another schema than it says.
    #[error("cannot be read as {writer}: {why} (at byte {at})")]
    Malformed { writer: Writer, why: String, at: usize },
    /// As with [`AvroError::Malformed`], where a field is to blame; or the source schema is.
    #[error("field {field}: {why} (at byte {at}, {writer})")]
    Value { writer: Writer, field: String, why: String, at: usize },
    /// No record of this writer can be taken before the source schema changes.
    #[error("field {field} of {writer}: {why}")]
    Mismatch { writer: Writer, field: String, why: String },
    /// Likewise, where no single field is to blame.
    #[error("{writer} is not usable: {why}")]
    Schema { writer: Writer, why: String },
    /// The source schema must change, whatever the records.
    #[error("field {field} is {data_type} in the schema, which Avro does not fill")]
    UnsupportedType { field: String, data_type: String },
    /// A value that cannot be written; rows count from 0 in the batch.
    #[error("field {field} of row {row} cannot be written as Avro: {why}")]
    Unwritable { field: String, row: usize, why: String },
    /// A batch that was not made for the schema.
    #[error("field {field} cannot be written as Avro: {why}")]
    Batch { field: String, why: String },
}

impl AvroError {
    /// Stable name, see the README.
    pub fn code(&self) -> &'static str {
        match self {
            AvroError::Framing { .. } => "avro-framing",
            AvroError::Malformed { .. } => "avro-malformed",
            AvroError::Value { .. } => "avro-value",
            AvroError::Mismatch { .. } => "avro-schema-mismatch",
            AvroError::Schema { .. } => "avro-schema",
            AvroError::UnsupportedType { .. } => "avro-unsupported-type",
            AvroError::Unwritable { .. } => "avro-unwritable",
            AvroError::Batch { .. } => "avro-batch",
        }
    }
}

impl From<Unsupported> for AvroError {
    fn from(Unsupported { field, data_type }: Unsupported) -> AvroError {
        AvroError::UnsupportedType { field, data_type }
    }
}

/// The zero byte and the id of [`Framing::Confluent`].
const HEADER: usize = 5;
/// How much of a value a message shows.
const SHOWN: usize = 200;

type Plans = HashMap<u32, Result<RecordPlan, AvroError>, foldhash::fast::FixedState>;

/// Decodes records of any writers into batches of one reader schema.
#[derive(Debug)]
pub struct AvroDecoder {
    pub rows: Rows,
    reader: AvroSchema,
    /// Of records that do not say who wrote them.
    bare: Option<(RecordPlan, Writer)>,
    /// By id. A schema that cannot be brought to the reader's fails each of its records.
    plans: Plans,
}

impl AvroDecoder {
    /// `with_positions` appends [`POSITION_COLUMN`](crate::codec::POSITION_COLUMN). Fails for a type that Avro does not fill,
    /// and none of those that [`TableSchema`] lets pass is one.
    pub fn new(reader: &TableSchema, framing: Framing, with_positions: bool) -> Result<AvroDecoder, AvroError> {
        let rows = Rows::new(&reader.arrow, with_positions)?;
        let schema = parse(&reader.given, Writer::Same)?;
        let bare = match framing {
            Framing::Confluent => None,
            Framing::Bare => {
                let plan = plan::plan(&schema, &schema, reader.arrow.fields(), Whose::Incoming);
                Some((plan.map_err(|misfit| refused(misfit, Writer::Same))?, Writer::Same))
            }
        };
        Ok(AvroDecoder { rows, reader: schema, bare, plans: Plans::default() })
    }

    /// For the records of a log block: all written with `writer_json`, without a header, and read as `reader`, which may have
    /// fewer fields (the rest is passed over, and what stands behind the last wanted one not even looked at) or more and wider
    /// ones. Meta columns are fields like others. Whole numbers are rounded where they became floats, as those of base files
    /// are: the table must stay readable.
    pub fn of_writer(reader: &TableSchema, writer_json: &str) -> Result<AvroDecoder, AvroError> {
        let rows = Rows::new(&reader.arrow, false)?;
        let schema = parse(&reader.given, Writer::Same)?;
        let writer = parse_writer(writer_json, Writer::Block)?;
        let plan = plan::plan(&writer, &schema, reader.arrow.fields(), Whose::Stored);
        let mut plan = plan.map_err(|misfit| refused(misfit, Writer::Block))?;
        plan.cut();
        Ok(AvroDecoder { rows, reader: schema, bare: Some((plan, Writer::Block)), plans: Plans::default() })
    }

    /// Takes in a writer's schema, in which all names are defined. An error is also that of every record of this schema
    /// from now on, so a caller that goes on with the next record may drop it.
    pub fn learn(&mut self, id: u32, writer_schema_json: &str) -> Result<(), AvroError> {
        let writer = Writer::Id(id);
        let made = parse_writer(writer_schema_json, writer).and_then(|schema| {
            let fields = self.rows.schema().fields();
            plan::plan(&schema, &self.reader, fields, Whose::Incoming).map_err(|misfit| refused(misfit, writer))
        });
        let result = made.as_ref().map(drop).map_err(AvroError::clone);
        self.plans.insert(id, made);
        result
    }

    /// One record, with its header where there is one; on an error the record leaves no trace in the columns.
    #[inline]
    pub fn decode(&mut self, bytes: &[u8], position: u64) -> Result<Decoded, AvroError> {
        let (plan, writer, start) = match &self.bare {
            Some((plan, writer)) => (plan, *writer, 0),
            None => {
                let id = schema_id(bytes)?;
                match self.plans.get(&id) {
                    Some(Ok(plan)) => (plan, Writer::Id(id), HEADER),
                    Some(Err(error)) => return Err(error.clone()),
                    None => return Ok(Decoded::UnknownSchema(id)),
                }
            }
        };
        let full = |why: &str| AvroError::Malformed { writer, why: why.to_owned(), at: 1 };
        self.rows.check_room(bytes.len()).map_err(full)?;
        let mut cursor = Cursor::new(bytes, start);
        let read = self
            .rows
            .add(bytes.len(), position, |record| plan.read(&mut cursor, record).and_then(|()| plan.end(&cursor)));
        read.map(|()| Decoded::Row).map_err(|fail| {
            let (field, at, why) = (fail.field(), fail.at + 1, fail.why.into_owned());
            match field.is_empty() {
                true => AvroError::Malformed { writer, why, at },
                false => AvroError::Value { writer, field, why, at },
            }
        })
    }
}

fn parse(text: &str, writer: Writer) -> Result<AvroSchema, AvroError> {
    AvroSchema::parse_str(text).map_err(|e| AvroError::Schema { writer, why: e.to_string() })
}

/// Without defaults, which mean nothing to who reads what a writer wrote: registries have let in some that the Avro crate
/// does not take.
fn parse_writer(text: &str, writer: Writer) -> Result<AvroSchema, AvroError> {
    fn strip(schema: &mut serde_json::Value) {
        match schema {
            serde_json::Value::Array(values) => values.iter_mut().for_each(strip),
            serde_json::Value::Object(object) => {
                object.remove("default");
                object.values_mut().for_each(strip);
            }
            _ => {}
        }
    }
    let unusable = |why: String| AvroError::Schema { writer, why };
    let mut schema = serde_json::from_str(text).map_err(|e| unusable(e.to_string()))?;
    strip(&mut schema);
    AvroSchema::parse(&schema).map_err(|e| unusable(e.to_string()))
}

fn refused(plan::Misfit { field, why }: plan::Misfit, writer: Writer) -> AvroError {
    match field.is_empty() {
        true => AvroError::Schema { writer, why },
        false => AvroError::Mismatch { writer, field, why },
    }
}

/// The id in front of a record.
fn schema_id(bytes: &[u8]) -> Result<u32, AvroError> {
    match *bytes {
        [0, a, b, c, d, ..] => Ok(u32::from_be_bytes([a, b, c, d])),
        [first, ..] if first != 0 => {
            let looks = match first {
                b'{' | b'[' => "; it looks like JSON, which JsonKafkaSource reads",
                b'O' if bytes.starts_with(b"Obj\x01") => "; it is a whole Avro file",
                0xc3 if bytes.starts_with(&[0xc3, 0x01]) => "; it has a fingerprint, as Avro's single objects do",
                _ => "",
            };
            Err(AvroError::Framing { why: format!("its first byte is {first:02x}, not 00{looks}") })
        }
        _ => Err(AvroError::Framing { why: format!("it has {} bytes, fewer than a header alone", bytes.len()) }),
    }
}

/// A text as a message shows it.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN).collect();
    format!("{cut:?}{}", if cut.len() < text.len() { "…" } else { "" })
}

#[cfg(test)]
mod tests;
