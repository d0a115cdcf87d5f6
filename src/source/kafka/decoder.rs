//! Values to rows, whatever they are written in.

use super::super::{Error, Reason, Result};
use crate::codec::avro::{AvroDecoder, AvroError, Decoded, Framing};
use crate::codec::json::JsonDecoder;
use crate::codec::rows::Rows;
use crate::schema::{Registry, TableSchema};
use std::collections::HashMap;

/// What values are written in.
#[derive(Debug, Clone)]
pub(super) enum Format {
    Json,
    /// Avro that names its schema.
    Registered(Registry),
    /// Avro of the source schema.
    Bare,
}

/// Decodes the values of one piece.
#[derive(Debug)]
pub(super) enum Decoder {
    Json(JsonDecoder),
    /// And the schemas that the registry will not give, which fail each of their records.
    Avro(Box<AvroDecoder>, HashMap<u32, crate::schema::Error>),
}

/// What became of a value.
#[derive(Debug)]
pub(super) enum Made {
    Row,
    Nothing {
        reason: Reason,
        code: &'static str,
        why: String,
    },
    /// To be decoded again when the decoder has learnt this schema.
    Unknown(u32),
}

impl Decoder {
    /// Fails for a schema that the format cannot fill.
    pub fn new(format: &Format, reader: &TableSchema, positions: bool) -> Result<Decoder> {
        let avro = |framing| Ok(Decoder::Avro(Box::new(AvroDecoder::new(reader, framing, positions)?), HashMap::new()));
        match format {
            Format::Json => Ok(Decoder::Json(JsonDecoder::new(reader.arrow.clone(), positions)?)),
            Format::Registered(_) => avro(Framing::Confluent),
            Format::Bare => avro(Framing::Bare),
        }
    }

    pub fn rows(&mut self) -> &mut Rows {
        match self {
            Decoder::Json(json) => &mut json.rows,
            Decoder::Avro(avro, _) => &mut avro.rows,
        }
    }

    pub fn decode(&mut self, value: &[u8], position: u64) -> Made {
        match self {
            Decoder::Json(json) => match json.decode(value, position) {
                Ok(()) => Made::Row,
                Err(e) => Made::Nothing { reason: Reason::JsonDeserialization, code: e.code(), why: e.to_string() },
            },
            Decoder::Avro(avro, refused) => match avro.decode(value, position) {
                Ok(Decoded::Row) => Made::Row,
                Ok(Decoded::UnknownSchema(id)) => match refused.get(&id) {
                    Some(e) => nothing(e.code(), e.to_string()),
                    None => Made::Unknown(id),
                },
                Err(e) => nothing(e.code(), e.to_string()),
            },
        }
    }

    /// Asks the registry for the schema. One that it does not have fails its records; a registry that does not answer, or not
    /// to us, fails the reading, since no record is to blame.
    pub async fn learn(&mut self, format: &Format, id: u32) -> Result<()> {
        let (Decoder::Avro(avro, refused), Format::Registered(registry)) = (self, format) else { return Ok(()) };
        match registry.schema_by_id(id).await {
            // What is wrong with it is told with each of its records.
            Ok(schema) => _ = avro.learn(id, &schema),
            Err(e) if e.is_about_one_schema() => _ = refused.insert(id, e),
            Err(e) => return Err(e.into()),
        }
        Ok(())
    }
}

fn nothing(code: &'static str, why: String) -> Made {
    Made::Nothing { reason: Reason::AvroDeserialization, code, why }
}

impl From<AvroError> for Error {
    fn from(e: AvroError) -> Error {
        Error::Avro(e)
    }
}
