//! What keeps a table whole: rollback of failed writes, compaction, cleaning, archival, ways back to an earlier write, and the
//! lock of several writers.
//!
//! Sees tables and storage, never a source. Invariant: every service can be run again after a crash at any point.

mod archive;
mod clean;
mod compaction;
mod concurrency;
pub mod lock;
mod metadata_table;
mod owner;
mod reach;
mod restore;
mod rollback;
mod savepoint;

pub use archive::{Archived, Archiver, Hold};
pub use clean::{CleanMemory, CleanPreview, Cleaner};
pub use compaction::{Compactor, Looked};
pub use concurrency::{Conflicts, Inserted, OpenWrite, Writers};
pub use restore::{Error as BackError, Restore, Restored, plan_restore, restore};
pub use rollback::{Lost, RolledBack, remove_lost, rollback, rollback_compaction, rollback_failed_writes};
pub use rollback::{find_newest, finish_rollbacks, newest_before, rollback_newest};
pub use savepoint::{Savepoint, create_savepoint, delete_savepoint, find_savepoint, prepare_savepoint, savepoints};

/// Why a service does not go on by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Table(#[from] crate::table::Error),
    #[error(transparent)]
    Write(#[from] crate::write::Error),
    #[error(transparent)]
    Schema(#[from] crate::schema::Error),
    #[error(transparent)]
    Index(#[from] crate::index::Error),
    #[error(transparent)]
    Lock(#[from] lock::Error),
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
        "undo {instant}: its writer, which has no heartbeat, was at work {seconds} s ago; stop it, and try again in {left} s"
    )]
    WriterMayBeAlive { instant: String, seconds: u64, left: u64 },
    #[error(transparent)]
    Back(#[from] restore::Error),
    #[error(
        "commit {instant}: {action} {other} {what}, which this write does not know of; it is rolled back, and can be done again"
    )]
    WriteConflict { instant: String, action: String, other: String, what: String },
    #[error(
        "commit {instant}: no heartbeat of it was written for {seconds} s, so that others may have taken this writer for dead \
         (hoodie.client.heartbeat.*); it is rolled back, and can be done again"
    )]
    WriterExpired { instant: String, seconds: u64 },
    #[error("commit {instant}: another writer has taken this one for dead, and rolls it back; it can be done again")]
    WriteTaken { instant: String },
    #[error("begin a write to {table}: {tries} instants that were drawn had just been taken by others; try again")]
    InstantsTaken { table: String, tries: u32 },
    #[error("roll back {instant}: the metadata table is on and would be left stale; disable it first")]
    MetadataTable { instant: String },
    #[error("archive {instant}: it is gone: another process archives the table too; the next run goes on")]
    ArchivedElsewhere { instant: String },
    /// A bug here.
    #[error("{doing}: {why}")]
    Panicked { doing: &'static str, why: String },
    #[error("clean plan {path}: {why}; let Hudi finish the clean, or remove its files if nothing was deleted by it")]
    CleanPlan { path: String, why: String },
    #[error("rollback plan {path}: {why}; let Hudi finish the rollback")]
    RollbackPlan { path: String, why: String },
    #[error(
        "plan a compaction: {action} {instant} is open, and may not know of the plan; try again when it has completed, or let \
         the job that writes make the plans (--disable-compaction with hoodie.compact.schedule.inline=true)"
    )]
    WriteOpen { instant: String, action: String },
    #[error("plan a compaction of {table}: another job commits all the time; let that job make the plans")]
    CompactionOvertaken { table: String },
    #[error(
        "plan a compaction at {instant}: {newest} is on the timeline, and a plan must come after all that is there"
    )]
    CompactionNotNewest { instant: String, newest: String },
    #[error(
        "plan a compaction by days: partition {partition:?} is no date (yyyy/MM/dd or yyyy-MM-dd); choose another \
         hoodie.compaction.strategy"
    )]
    CompactionDay { partition: String },
    #[error("execute compaction {instant}: no such compaction is pending")]
    NoSuchCompaction { instant: String },
    #[error("compaction plan {path}: {why}")]
    CompactionPlan { path: String, why: String },
    #[error("compaction needs {path}, which is gone; see what removed it")]
    CompactionFile { path: String },
    #[error(
        "execute compaction {instant}: another process does, and was alive {seconds} s ago (.hoodie/.heartbeat); one that \
         died on another machine is believed dead after 2 minutes"
    )]
    CompactorAlive { instant: String, seconds: i64 },
    #[error("execute compaction {instant}: another process took this one for dead and has taken it over")]
    CompactionTaken { instant: String },
    #[error(
        "execute compaction {instant}: another process has begun it, says no word of its own in .hoodie/.heartbeat, and wrote \
         a file of it {seconds} s ago; it is believed dead in {left} s"
    )]
    CompactorMayBeAlive { instant: String, seconds: i64, left: i64 },
    #[error("execute compaction {instant}: its plan is gone: whoever has made it takes it back")]
    CompactionTakenBack { instant: String },
    #[error(
        "plan a compaction at {instant}: {action} {write} was open and does not know of the plan, and an executor has begun \
         it already, so that it stands; the write is to be done again"
    )]
    CompactionBegun { instant: String, write: String, action: String },
    #[error(
        "{doing} {instant}: the table has a metadata table again, which is not disabled while {action} {write} is open; \
         tried again later"
    )]
    MetadataTableInUse { doing: &'static str, instant: String, write: String, action: String },
}

impl Error {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Table(e) => e.code(),
            Error::Write(e) => e.code(),
            Error::Schema(e) => e.code(),
            Error::Index(e) => e.code(),
            Error::Lock(e) => e.code(),
            Error::CommitsAfter { .. } => "service-rollback-commits-after",
            Error::WriterAlive { .. } => "service-rollback-writer-alive",
            Error::WriterMayBeAlive { .. } => "service-writer-may-be-alive",
            Error::Back(e) => e.code(),
            Error::WriteConflict { .. } => "service-write-conflict",
            Error::WriterExpired { .. } => "service-writer-expired",
            Error::WriteTaken { .. } => "service-write-taken",
            Error::InstantsTaken { .. } => "service-instants-taken",
            Error::MetadataTable { .. } => "service-rollback-metadata-table",
            Error::ArchivedElsewhere { .. } => "service-archived-elsewhere",
            Error::Panicked { .. } => "service-panicked",
            Error::CleanPlan { .. } => "service-clean-plan",
            Error::RollbackPlan { .. } => "service-rollback-plan",
            Error::WriteOpen { .. } => "service-compaction-write-open",
            Error::CompactionOvertaken { .. } => "service-compaction-overtaken",
            Error::CompactionNotNewest { .. } => "service-compaction-not-newest",
            Error::CompactionDay { .. } => "service-compaction-day",
            Error::NoSuchCompaction { .. } => "service-compaction-unknown",
            Error::CompactionPlan { .. } => "service-compaction-plan",
            Error::CompactionFile { .. } => "service-compaction-file",
            Error::CompactorAlive { .. } => "service-compactor-alive",
            Error::CompactionTaken { .. } => "service-compaction-taken",
            Error::CompactorMayBeAlive { .. } => "service-compactor-may-be-alive",
            Error::CompactionTakenBack { .. } => "service-compaction-taken-back",
            Error::CompactionBegun { .. } => "service-compaction-begun",
            Error::MetadataTableInUse { .. } => "service-metadata-table-in-use",
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
