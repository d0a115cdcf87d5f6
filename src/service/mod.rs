//! What keeps a table whole: rollback of failed writes (later compaction, cleaning, archival, locks).
//!
//! Sees tables and storage, never a source. Invariant: every service can be run again after a crash at any point.

mod rollback;

pub use rollback::{RolledBack, rollback, rollback_failed_writes};

/// Why a service does not go on by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Table(#[from] crate::table::Error),
    #[error(
        "roll back {action} {instant}: merge-on-read is not done yet; let Hudi roll it back (any write with Spark does, or \
         `CALL rollback_to_instant`)"
    )]
    MergeOnRead { instant: String, action: String },
    /// Hudi says "Found commits after time".
    #[error(
        "roll back {instant}: found commits after time {instant}, the next is {later}, and it has no heartbeat, so it is \
         not left by a concurrent writer; see whose it is, then let Hudi roll it back with \
         hoodie.cleaner.policy.failed.writes=LAZY"
    )]
    CommitsAfter { instant: String, later: String },
    #[error(
        "roll back {instant}: its writer was alive {seconds} s ago (.hoodie/.heartbeat); stop the other writer, or try \
         again once it has been silent for 2 minutes"
    )]
    WriterAlive { instant: String, seconds: i64 },
    #[error(
        "rollback {rollback} of {instant}, which is a completed write, is pending; it was asked for by hand: let Hudi \
         finish it"
    )]
    CompletedWrite { rollback: String, instant: String },
    #[error("roll back {instant}: the metadata table is on and would be left stale; disable it first")]
    MetadataTable { instant: String },
    #[error("rollback plan {path}: {why}; let Hudi finish the rollback")]
    RollbackPlan { path: String, why: String },
}

impl Error {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Table(e) => e.code(),
            Error::MergeOnRead { .. } => "service-rollback-merge-on-read",
            Error::CommitsAfter { .. } => "service-rollback-commits-after",
            Error::WriterAlive { .. } => "service-rollback-writer-alive",
            Error::CompletedWrite { .. } => "service-rollback-completed-write",
            Error::MetadataTable { .. } => "service-rollback-metadata-table",
            Error::RollbackPlan { .. } => "service-rollback-plan",
        }
    }
}

impl From<crate::storage::Error> for Error {
    fn from(error: crate::storage::Error) -> Error {
        Error::Table(error.into())
    }
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;
