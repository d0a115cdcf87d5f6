//! What can go wrong with one base file.

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "read base file {path}: {cause}; the file is torn or was changed after its commit: restore it, or roll its \
         commit back"
    )]
    Corrupt { path: String, cause: String },
    #[error("read base file {path}: there is no column {column}")]
    ColumnMissing { path: String, column: String },
    #[error("write base file {path}: {cause}")]
    Write { path: String, cause: String },
    #[error("write base file {path}: row {row} has no record key")]
    KeyMissing { path: String, row: u64 },
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Corrupt { .. } => "base-file-corrupt",
            Error::ColumnMissing { .. } => "base-file-column-missing",
            Error::Write { .. } => "base-file-write",
            Error::KeyMissing { .. } => "base-file-key-missing",
        }
    }
}
