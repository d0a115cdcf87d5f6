//! Bytes to Arrow: push-style decoders, made once from the schema, without I/O.

pub mod json;
