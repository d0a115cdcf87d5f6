//! Bytes to Arrow: push-style decoders, made once from the schema, without I/O.

pub mod avro;
mod columns;
pub mod infer;
pub mod json;
pub mod lines;
pub mod rows;
