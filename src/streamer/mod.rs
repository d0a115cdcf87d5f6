//! The daemon: one round, the loop around it, checkpoints, shutdown.
//!
//! May use every room, and is used by none but the program's front door. Look at `round.rs` first: it reads as
//! the list of stages. Invariants: data and checkpoint become visible in one atomic step, the completed instant; progress is
//! kept nowhere else; a round that fails leaves the table as it was.

mod among;
mod archive;
mod back;
mod beside;
mod checkpoint;
mod clean;
mod commands;
mod commit;
mod compact;
mod compaction;
mod continuous;
mod explain;
mod fetch;
mod input;
mod open;
mod overtaken;
mod pace;
pub mod positions;
mod prepare;
mod quarantine;
mod refuse;
mod round;
mod services;
mod shutdown;
mod undo;

pub use checkpoint::position;
pub use commands::serve;
pub use compact::compact;
pub use continuous::{run, run_until};
pub use shutdown::listen;

/// Why a round, or the job, ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Room(#[from] Box<crate::Error>),
    #[error("bad records cannot be put into the {target}, so that their round is not committed: {cause}")]
    Quarantine { target: String, cause: Box<Error> },
    #[error(
        "unable to find the previous checkpoint: commit {instant} of this table was made with --checkpoint but carries no \
         position; give --ignore-checkpoint <any text> to start anew, or --checkpoint with another position"
    )]
    NoStoredCheckpoint { instant: String },
    #[error(
        "the configuration conflicts with the table at {table}: {conflicts}; use the table's own settings, or another table"
    )]
    Conflict { table: String, conflicts: String },
    #[error(
        "no ordering field: upsert needs one, and neither --source-ordering-field is given nor has the schema a field `ts` \
         (its fields are {fields})"
    )]
    NoOrderingField { fields: String },
    #[error(
        "compaction {compaction} {what} while this round wrote to file group {file_id} of partition {partition:?}, beside \
         where the compaction's readers look: the round is rolled back and done again"
    )]
    Overtaken { compaction: String, what: &'static str, partition: String, file_id: String },
    #[error(
        "another writer has moved the position that this round went on from (commit {instant:?}): the round is rolled back and \
         done again; if two jobs read one source into this table, stop one, or else give each a \
         hoodie.streamer.multiwriter.source.checkpoint.id of its own"
    )]
    PositionMoved { instant: String },
    #[error(
        "another writer has changed the schema of table {table} while this round wrote: it is rolled back and done again"
    )]
    SchemaMoved { table: String },
    #[error(
        "the position of commit {instant} is one in {other}, and this job reads {source_name}: give each of the jobs that write \
         this table a hoodie.streamer.multiwriter.source.checkpoint.id of its own; if it is the same input at another place, \
         give --checkpoint with that position"
    )]
    OtherSource { instant: String, other: String, source_name: String },
    #[error(
        "the job has the id {id}, under which no commit keeps a position; commit {instant} keeps {position:?} without an id: if \
         it is this job's, give it once with --checkpoint; if the job is new here, say so with --ignore-checkpoint and any text"
    )]
    CheckpointHasNoId { instant: String, id: String, position: String },
    #[error(
        "the job has no id, and the table keeps a newer position of its source for a job with one: {ids}; give it that one \
         (hoodie.streamer.multiwriter.source.checkpoint.id), or, if it is new here, an id of its own"
    )]
    CheckpointsHaveIds { ids: String },
    #[error("clean failed: {cause}; every commit stands, and the next run goes on")]
    Clean { cause: Box<Error> },
    #[error(
        "write {instant}, which this round rests on, is taken back (hudi-streamer rollback or restore): the round is rolled \
         back and done again"
    )]
    TakenBack { instant: String },
    #[error("compaction failed: {cause}; every commit stands, and the next run tries again")]
    Compaction { cause: Box<Error> },
    #[error("archiving failed: {cause}; every commit stands, and the next run goes on")]
    Archive { cause: Box<Error> },
    #[error("there is no table at {table}")]
    NoTable { table: String },
    #[error("table {table} is {found}: only merge-on-read tables have log files to compact")]
    NothingToCompact { table: String, found: String },
    #[error("--instant-time {text}: an instant has 17 digits, as 20260131120000000")]
    NotAnInstant { text: String },
    #[error("the table at {table} is gone since the last round: see what removed it, then start the job anew")]
    Gone { table: String },
    #[error(
        "partition {outer} and, inside it, {inner} cannot both be read by Hudi: set hoodie.datasource.write.partitionpath.urlencode=true (new tables only), or change the values"
    )]
    NestedPartitions { outer: String, inner: String },
    #[error(transparent)]
    Position(#[from] positions::Error),
    #[error("{what}: {why}")]
    Worker { what: &'static str, why: String },
    #[error("interrupted before the commit; the table is as it was")]
    Interrupted,
    #[error(
        "metrics and health cannot be served at {address}: {cause}; choose another address with \
         hoodie.metrics.prometheus.port and hoodie.metrics.prometheus.host"
    )]
    Serve { address: String, cause: std::io::Error },
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Room(e) => e.code(),
            Error::Quarantine { cause, .. } => cause.code(),
            Error::NoStoredCheckpoint { .. } => "checkpoint-missing",
            Error::Conflict { .. } => "table-config-conflict",
            Error::NoOrderingField { .. } => "record-no-ordering-field",
            Error::Overtaken { .. } => "write-overtaken",
            Error::TakenBack { .. } => "write-taken-back",
            Error::PositionMoved { .. } => "write-position-moved",
            Error::SchemaMoved { .. } => "write-schema-moved",
            Error::OtherSource { .. } => "checkpoint-other-source",
            Error::CheckpointHasNoId { .. } => "checkpoint-without-id",
            Error::CheckpointsHaveIds { .. } => "checkpoint-with-ids",
            Error::Clean { cause } | Error::Archive { cause } | Error::Compaction { cause } => cause.code(),
            Error::NoTable { .. } => "table-missing",
            Error::NothingToCompact { .. } => "table-type",
            Error::NotAnInstant { .. } => "config-bad-value",
            Error::Gone { .. } => "table-gone",
            Error::NestedPartitions { .. } => "record-nested-partitions",
            Error::Position(e) => e.code(),
            Error::Worker { .. } => "internal",
            Error::Interrupted => "interrupted",
            Error::Serve { .. } => "metrics-address",
            Error::Signals(_) => "signals",
        }
    }

    /// Met in a compaction, which undoes no commit.
    fn in_compaction(self) -> Error {
        match self {
            Error::Interrupted => Error::Interrupted,
            cause => Error::Compaction { cause: Box::new(cause) },
        }
    }

    /// Whether flags, properties or schema files are at fault, so that nothing was started.
    pub fn is_configuration(&self) -> bool {
        match self {
            Error::Room(e) => {
                matches!(**e, crate::Error::Config(_) | crate::Error::Schema(crate::schema::Error::File { .. }))
            }
            Error::Position(e) => e.is_configuration(),
            Error::Conflict { .. } | Error::Serve { .. } | Error::NotAnInstant { .. } => true,
            Error::NoTable { .. } | Error::NothingToCompact { .. } => true,
            Error::Quarantine { cause, .. } => cause.is_configuration(),
            _ => false,
        }
    }

    /// How many records of the input are at fault.
    pub fn bad_records(&self) -> u64 {
        match self {
            Error::Room(e) => match &**e {
                crate::Error::Source(crate::source::Error::BadRecords(bad)) => bad.count(),
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Whether the same round may go through later without anybody's help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Room(e) if e.is_retryable() => true,
            Error::Quarantine { cause, .. } => cause.is_retryable(),
            Error::Clean { cause } | Error::Archive { cause } | Error::Compaction { cause } => cause.is_retryable(),
            e => e.is_conflict(),
        }
    }

    /// Whether another writer stood in the way, so that the same round may go through at once.
    pub fn is_conflict(&self) -> bool {
        use crate::service::Error::{WriteConflict, WriteTaken, WriterExpired};
        match self {
            Error::Overtaken { .. }
            | Error::TakenBack { .. }
            | Error::PositionMoved { .. }
            | Error::SchemaMoved { .. } => true,
            Error::Room(e) => {
                matches!(**e, crate::Error::Service(WriteConflict { .. } | WriteTaken { .. } | WriterExpired { .. }))
            }
            _ => false,
        }
    }
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! from_room {
    ($($room:ident),*) => {
        $(impl From<crate::$room::Error> for Error {
            fn from(e: crate::$room::Error) -> Error {
                Error::Room(Box::new(crate::Error::from(e)))
            }
        })*
    };
}
from_room!(index, record, schema, source, storage, table, transform);

impl From<crate::service::Error> for Error {
    fn from(e: crate::service::Error) -> Error {
        match e {
            crate::service::Error::Write(e) => e.into(),
            crate::service::Error::Lock(crate::service::lock::Error::GivenUp { .. }) => Error::Interrupted,
            e => Error::Room(Box::new(crate::Error::from(e))),
        }
    }
}

impl From<crate::service::lock::Error> for Error {
    fn from(e: crate::service::lock::Error) -> Error {
        crate::service::Error::from(e).into()
    }
}

impl From<crate::write::Error> for Error {
    fn from(e: crate::write::Error) -> Error {
        match e {
            crate::write::Error::Cancelled => Error::Interrupted,
            e => Error::Room(Box::new(crate::Error::from(e))),
        }
    }
}
