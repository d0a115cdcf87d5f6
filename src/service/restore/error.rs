//! Why a table is not brought back to an earlier write.

/// What stands against a savepoint, a rollback of a completed write, or a restore.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "roll back {instant}, which is completed: {newer} is newer; take that back first, or restore the table to a write \
         before both"
    )]
    NotNewest { instant: String, newer: String },
    #[error("roll back {instant}: it has a savepoint; delete that first (hudi-streamer savepoint delete)")]
    Savepointed { instant: String },
    #[error(
        "roll back {instant}: it is the only write on the active timeline, without which the table's archived writes would \
         not be seen any more"
    )]
    LastOfTimeline { instant: String },
    #[error("{instant} is a compaction that waits or runs: execute it (hudi-streamer compact), or restore the table")]
    CompactionPending { instant: String },
    #[error("{instant} is no completed write on the active timeline of {table}")]
    NoSuchWrite { instant: String, table: String },
    #[error(
        "bring the table back to {instant}: files of group {file_id} in partition {partition:?} that were read then have been \
         cleaned"
    )]
    Cleaned { instant: String, partition: String, file_id: String },
    #[error(
        "bring the table back to {instant}: clean {clean} is pending, and is going to delete {file}, which was read then; let it \
         end (hudi-streamer clean)"
    )]
    CleanPending { instant: String, clean: String, file: String },
    #[error("{table} has no completed write to make a savepoint of")]
    NothingToSave { table: String },
    #[error("{instant} has a savepoint already")]
    SavepointExists { instant: String },
    #[error("savepoint of {instant}: {file} of partition {partition:?} was cleaned meanwhile; take a newer write")]
    SavepointOvertaken { instant: String, partition: String, file: String },
    #[error("{table} has no savepoint of {instant}; hudi-streamer savepoint list shows those that it has")]
    NoSuchSavepoint { instant: String, table: String },
    #[error("{table} has no savepoint; name the completed write to restore it to with --instant")]
    NoSavepoint { table: String },
    #[error("restore to savepoint {instant}: its file {file} in partition {partition:?} is gone; see what removed it")]
    SavepointFileGone { instant: String, partition: String, file: String },
    #[error(
        "restore to savepoint {instant}: write {archived}, which is later, has been archived \
         (hoodie.archive.beyond.savepoint=true, by Spark), and cannot be taken back"
    )]
    ArchivedSince { instant: String, archived: String },
    #[error(
        "restore to {instant}: the later savepoint {savepoint} would be lost; delete it first (hudi-streamer savepoint delete)"
    )]
    SavepointLater { instant: String, savepoint: String },
    #[error(
        "restore to {instant}: a restore to {to} has begun ({restore}), and is to be finished first: restore to that"
    )]
    OtherRestore { instant: String, restore: String, to: String },
    #[error("{table} has several restores pending; let Hudi finish them")]
    SeveralRestores { table: String },
    #[error("restore plan {path}: {why}; let Hudi finish the restore")]
    RestorePlan { path: String, why: String },
}

impl Error {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::NotNewest { .. } => "service-rollback-not-newest",
            Error::Savepointed { .. } => "service-rollback-savepointed",
            Error::LastOfTimeline { .. } => "service-rollback-last",
            Error::CompactionPending { .. } => "service-rollback-compaction",
            Error::NoSuchWrite { .. } => "service-no-such-write",
            Error::Cleaned { .. } => "service-cleaned",
            Error::CleanPending { .. } => "service-clean-pending",
            Error::NothingToSave { .. } => "service-savepoint-nothing",
            Error::SavepointExists { .. } => "service-savepoint-exists",
            Error::SavepointOvertaken { .. } => "service-savepoint-overtaken",
            Error::NoSuchSavepoint { .. } | Error::NoSavepoint { .. } => "service-savepoint-unknown",
            Error::ArchivedSince { .. } => "service-restore-archived",
            Error::SavepointFileGone { .. } => "service-savepoint-file-gone",
            Error::SavepointLater { .. } => "service-restore-savepoint-later",
            Error::OtherRestore { .. } => "service-restore-other",
            Error::SeveralRestores { .. } => "service-restore-several",
            Error::RestorePlan { .. } => "service-restore-plan",
        }
    }
}
