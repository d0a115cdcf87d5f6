//! Log files: what the bytes of blocks mean, and new files that never overwrite another (log-file.md §1–§8).
//!
//! ```text
//! Storage ─▶ LogReader ─▶ Block ─▶ content ─┬─▶ avro_records     (data)
//!                                           └─▶ decode_deletes   (delete)
//! AvroContent, encode_deletes ─▶ encode_block ─▶ create_log_file, or LogWriter for any size
//! ```
//!
//! Knows nothing of schemas, rows, or which blocks count: rollbacks and instants are the reader's of the file slice.
//! Invariants: nothing read from a file, however torn, is taken for more than bytes, and no memory is asked for beyond the
//! bytes that are there; a log file that becomes visible is whole and replaces nothing. `block`, `scan`, `data` and
//! `delete` see no storage, so that `fuzz/` runs them on plain bytes.

mod block;
mod data;
mod delete;
mod error;
mod reader;
mod scan;
#[cfg(test)]
mod tests;
mod writer;

pub use block::{Block, BlockHeader, BlockKind, HeaderKey, encode_block};
pub use data::{AvroContent, AvroPiece, AvroRecords, avro_records};
pub use delete::{DeleteRecord, DeleteRecords, OrderingValue, decode_deletes, encode_deletes};
pub use error::BlockError;
pub use reader::LogReader;
pub use writer::{LogWriter, create_log_file};

use super::{Error, Result};
