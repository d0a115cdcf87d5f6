//! What can be wrong with the files of a slice.

use crate::codec::avro::AvroError;
use crate::table::log_file::BlockError;
use crate::{record, schema, storage, table};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Table(#[from] table::Error),
    #[error("read the block at byte {offset} of log file {path}: {fault}")]
    Log { path: String, offset: u64, fault: Box<Fault> },
    #[error("merge file group {file_id} of partition {partition:?}: {fault}")]
    Group { partition: String, file_id: String, fault: Box<Fault> },
}

/// What is wrong with one block of a log, or with a file group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    #[error(transparent)]
    Block(#[from] BlockError),
    #[error(
        "record {record}: {error}; roll the block's commit back, or see whether the table's schema is the one that it was \
         written for"
    )]
    Record { record: u32, error: AvroError },
    /// No record of the block can be read.
    #[error(transparent)]
    WriterSchema(AvroError),
    #[error(transparent)]
    Parquet(#[from] table::Error),
    #[error(transparent)]
    Rows(#[from] schema::Error),
    /// Hudi's own readers fail on such a log too.
    #[error("record {record} has no record key: roll the block's commit back")]
    NullKey { record: u32 },
    /// Likewise.
    #[error(
        "ordering value {field} of record {key:.200} is null, and every record of a log needs one: roll the block's \
         commit back, and write the record with a value"
    )]
    NullOrdering { field: String, key: String },
    #[error("ordering field {field} is {data_type}, which has no order; choose another one")]
    OrderingType { field: String, data_type: String },
    #[error("compare stored rows with those of the logs: {0}")]
    Compare(record::Error),
    #[error("put rows into columns: {0}")]
    Columns(#[from] arrow::error::ArrowError),
}

impl Error {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        let fault = match self {
            Error::Table(e) => return e.code(),
            Error::Log { fault, .. } | Error::Group { fault, .. } => fault,
        };
        match &**fault {
            Fault::Block(e) => e.code(),
            Fault::Record { error, .. } | Fault::WriterSchema(error) => error.code(),
            Fault::Parquet(e) => e.code(),
            Fault::Rows(e) => e.code(),
            Fault::NullKey { .. } => "slice-null-key",
            Fault::NullOrdering { .. } => "slice-null-ordering",
            Fault::OrderingType { .. } => "slice-ordering-type",
            Fault::Compare(e) => e.code(),
            Fault::Columns(_) => "slice-columns",
        }
    }

    /// Whether the same may go through later without anybody's help.
    pub fn is_retryable(&self) -> bool {
        let table = match self {
            Error::Table(e) => e,
            Error::Log { fault, .. } | Error::Group { fault, .. } => match &**fault {
                Fault::Parquet(e) => e,
                _ => return false,
            },
        };
        matches!(table, table::Error::Storage(storage::Error::Io { retryable: true, .. }))
    }
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;
