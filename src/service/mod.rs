//! What keeps a table whole: rollback of failed writes (later compaction, cleaning, archival, locks).
//!
//! Sees tables and storage, never a source. Invariant: every service can be run again after a crash at any point.

mod rollback;

pub use rollback::{rollback, rollback_failed_writes};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Table(#[from] crate::table::Error),
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Table(e) => e.code(),
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;
