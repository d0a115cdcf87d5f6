//! What can go wrong with a table, and what the operator can do about it.

use crate::storage;

/// Why a table cannot be read, or must not be written by this program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Storage(#[from] storage::Error),
    /// Hudi's own words, which operators search for, and the place.
    #[error(
        "hoodie.properties is missing. Likely due to some external entity. Please populate the hoodie.properties and \
         restart the pipeline. ({path} is not there, but the timeline has instants)"
    )]
    PropertiesMissing { path: String },
    #[error("read {path}: {why}; restore the file, or its .backup, from a copy")]
    PropertiesMalformed { path: String, why: String },
    #[error("a table exists at {path} already; another writer has just created it: start again")]
    TableExists { path: String },
    #[error("table {path} has version {version}; this program writes version 6: {hint}")]
    TableVersion { path: String, version: String, hint: &'static str },
    #[error("table {path} has {key}={value}, which is not a value of Hudi 0.14 or 0.15; correct hoodie.properties")]
    UnknownValue { path: String, key: &'static str, value: String },
    #[error("table {path} has {key}={value}, which this program does not write yet: {hint}")]
    Unsupported { path: String, key: &'static str, value: String, hint: &'static str },
    #[error(
        "table {path} has a restore pending at {instant}; finish it first (`hudi-streamer restore`, or Spark: `CALL \
         rollback_to_savepoint`)"
    )]
    RestorePending { path: String, instant: String },
    #[error(
        "table {path} has a log compaction pending at {instant}, which this program does not do; let Hudi finish it, and \
         write with hoodie.log.compaction.inline=false"
    )]
    LogCompactionPending { path: String, instant: String },
    #[error(
        "commit {instant} of table {path} has a schema history (schema-on-read), which this program would lose; \
         write with Hudi, or rewrite the table without hoodie.schema.on.read.enable"
    )]
    SchemaOnRead { path: String, instant: String },
    #[error("read {path}: {why}; the file is not what Hudi writes there")]
    TimelineFile { path: String, why: String },
    #[error(
        "{doing} {path}: {missing} is not there; another writer has rolled the instant back: run one writer at a time"
    )]
    StateMissing { doing: &'static str, path: String, missing: String },
    #[error("create {path}: it exists already; another writer is at work on the table: run one writer at a time")]
    InstantExists { path: String },
    #[error("marker {path}: {why}")]
    Marker { path: String, why: String },
    #[error(transparent)]
    BaseFile(#[from] super::base_file::Error),
    #[error("read the block at byte {offset} of log file {path}: {error}")]
    LogBlock { path: String, offset: u64, error: super::log_file::BlockError },
    #[error("write log file {path}: {error}")]
    LogWrite { path: String, error: super::log_file::BlockError },
}

impl Error {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Storage(e) => e.code(),
            Error::PropertiesMissing { .. } => "table-properties-missing",
            Error::PropertiesMalformed { .. } => "table-properties-malformed",
            Error::TableExists { .. } => "table-exists",
            Error::TableVersion { .. } => "table-version",
            Error::UnknownValue { .. } => "table-unknown-value",
            Error::Unsupported { .. } => "table-unsupported",
            Error::RestorePending { .. } => "table-restore-pending",
            Error::LogCompactionPending { .. } => "table-log-compaction-pending",
            Error::SchemaOnRead { .. } => "table-schema-on-read",
            Error::TimelineFile { .. } => "table-timeline-file",
            Error::StateMissing { .. } => "table-instant-gone",
            Error::InstantExists { .. } => "table-instant-exists",
            Error::Marker { .. } => "table-marker",
            Error::BaseFile(e) => e.code(),
            Error::LogBlock { error, .. } | Error::LogWrite { error, .. } => error.code(),
        }
    }
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;
