//! Why a table is not looked at.

use crate::{slice, storage, table};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Table(#[from] table::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
    #[error(transparent)]
    Slice(#[from] slice::Error),
    #[error("there is no table at {path}: correct the path; a table has a folder .hoodie with hoodie.properties in it")]
    NoTable { path: String },
    #[error("the table at {path} is named {name}, not {wanted}: correct --target-table, or the path")]
    OtherTable { path: String, name: String, wanted: String },
    #[error("table {path} has no partition {partition:?}: `table files` lists those that it has")]
    NoPartition { path: String, partition: String },
    #[error("keep keys in {path}: {cause}; give a folder with room for 16 bytes a row by --spill")]
    Spill { path: String, cause: std::io::Error },
    #[error("write the answer: {0}")]
    Answer(std::io::Error),
    /// A bug here.
    #[error("{doing}: {why}")]
    Internal { doing: &'static str, why: String },
}

impl Error {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Table(e) => e.code(),
            Error::Storage(e) => e.code(),
            Error::Slice(e) => e.code(),
            Error::NoTable { .. } => "inspect-no-table",
            Error::OtherTable { .. } => "inspect-other-table",
            Error::NoPartition { .. } => "inspect-no-partition",
            Error::Spill { .. } => "inspect-spill",
            Error::Answer(_) => "inspect-answer",
            Error::Internal { .. } => "internal",
        }
    }
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;
