//! What can be wrong with the files of a slice.

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Table(#[from] crate::table::Error),
    #[error("file slices with log files are not merged yet")]
    NotDone,
}

impl Error {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Table(e) => e.code(),
            Error::NotDone => "slice-not-done",
        }
    }
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;
