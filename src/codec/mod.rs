//! Bytes to Arrow and back: push-style decoders and the encoder of log blocks, made once from a schema, without I/O.
//!
//! Knows schemas; no source, no table, and not what the bytes were framed in but a registry's five bytes and a log block's
//! length. Look at [`avro::AvroDecoder`], [`avro::AvroEncoder`] and [`json::JsonDecoder`] first. Invariants: a value is taken
//! exactly or refused with its field; a refused record leaves no trace; what bytes claim is believed as far as there are bytes.

pub mod avro;
mod columns;
pub mod infer;
pub mod json;
pub mod lines;
pub mod rows;

/// Name of the hidden column (UInt64, not null, last) that says where a row came from; present when asked for.
pub const POSITION_COLUMN: &str = "_hoodie_streamer_source_position";
