//! What can be wrong with the files of a slice.

use crate::codec::avro::AvroError;
use crate::table::log_file::BlockError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Table(#[from] crate::table::Error),
    #[error(transparent)]
    Schema(#[from] crate::schema::Error),
    #[error("read the block at byte {offset} of log file {path}: {error}")]
    Block { path: String, offset: u64, error: BlockError },
    #[error(
        "read record {record} of the data block at byte {offset} of log file {path}: {error}; the block's commit is to be \
         rolled back, or the table's schema is not the one it was written for"
    )]
    Record { path: String, offset: u64, record: u32, error: AvroError },
    /// No record of the block can be read.
    #[error("read the data block at byte {offset} of log file {path}: {error}")]
    WriterSchema { path: String, offset: u64, error: AvroError },
    #[error("read the Parquet data block at byte {offset} of log file {path}: {error}")]
    Parquet { path: String, offset: u64, error: crate::table::Error },
    #[error("read the Parquet data block at byte {offset} of log file {path}: {error}")]
    ParquetRows { path: String, offset: u64, error: crate::schema::Error },
    /// Hudi's own readers fail on such a log too.
    #[error(
        "record {record} of the data block at byte {offset} of log file {path} has no record key: roll the block's commit \
         back"
    )]
    NullKey { path: String, offset: u64, record: u32 },
    /// Likewise.
    #[error(
        "ordering value {field} of record {key:.200} in the data block at byte {offset} of log file {path} is null, and \
         every record of a log needs one: roll the block's commit back, and write the record with a value"
    )]
    NullOrdering { path: String, offset: u64, field: String, key: String },
    #[error(
        "ordering field {field} is of type {data_type}, which has no order among log records; choose another field"
    )]
    Ordering { field: String, data_type: String },
    #[error("read the rows of base file {path}: {error}")]
    Base { path: String, error: crate::schema::Error },
    #[error("compare the rows of base file {path} with those of its log files: {error}")]
    Compare { path: String, error: crate::record::Error },
    #[error("merge file group {file_id} of partition {partition:?}: {error}")]
    Columns { partition: String, file_id: String, error: arrow::error::ArrowError },
}

impl Error {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Table(e) | Error::Parquet { error: e, .. } => e.code(),
            Error::Schema(e) => e.code(),
            Error::Block { error, .. } => error.code(),
            Error::Record { error, .. } | Error::WriterSchema { error, .. } => error.code(),
            Error::ParquetRows { error, .. } | Error::Base { error, .. } => error.code(),
            Error::NullKey { .. } => "slice-null-key",
            Error::NullOrdering { .. } => "slice-null-ordering",
            Error::Ordering { .. } => "slice-ordering-type",
            Error::Compare { error, .. } => error.code(),
            Error::Columns { .. } => "slice-columns",
        }
    }
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;
