//! The one error of the program: a room's own error, its stable code, and whether trying again can help.

/// Any failure, by the room that met it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Config(#[from] crate::config::Error),
    #[error(transparent)]
    Source(#[from] crate::source::Error),
    #[error(transparent)]
    Schema(#[from] crate::schema::Error),
    #[error(transparent)]
    Transform(#[from] crate::transform::Error),
    #[error(transparent)]
    Record(#[from] crate::record::Error),
    #[error(transparent)]
    Index(#[from] crate::index::Error),
    #[error(transparent)]
    Write(#[from] crate::write::Error),
    #[error(transparent)]
    Table(#[from] crate::table::Error),
    #[error(transparent)]
    Inspect(#[from] crate::inspect::Error),
    #[error(transparent)]
    Service(#[from] crate::service::Error),
    #[error(transparent)]
    Storage(#[from] crate::storage::Error),
    #[error(transparent)]
    Streamer(#[from] crate::streamer::Error),
}

impl Error {
    /// Stable, documented in the README: scripts may match on it; the wording of the message may change.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Config(e) => e.code(),
            Error::Source(e) => e.code(),
            Error::Schema(e) => e.code(),
            Error::Transform(e) => e.code(),
            Error::Record(e) => e.code(),
            Error::Index(e) => e.code(),
            Error::Write(e) => e.code(),
            Error::Table(e) => e.code(),
            Error::Inspect(e) => e.code(),
            Error::Service(e) => e.code(),
            Error::Storage(e) => e.code(),
            Error::Streamer(e) => e.code(),
        }
    }

    /// Whether the same round may go through later without anybody's help: the storage, or the schema registry, said so.
    pub fn is_retryable(&self) -> bool {
        use crate::{index, service, source, storage, table};
        if let Error::Source(e) = self
            && e.is_retryable()
        {
            return true;
        }
        let storage = match self {
            Error::Storage(e)
            | Error::Source(source::Error::Storage(e))
            | Error::Table(table::Error::Storage(e))
            | Error::Index(index::Error::Table(table::Error::Storage(e)))
            | Error::Service(service::Error::Table(table::Error::Storage(e))) => e,
            Error::Write(e) | Error::Service(service::Error::Write(e)) => return e.is_retryable(),
            Error::Index(index::Error::Slice(e)) => return e.is_retryable(),
            Error::Schema(e) => return e.is_retryable(),
            Error::Service(service::Error::MetadataTableInUse { .. } | service::Error::InstantsTaken { .. }) => {
                return true;
            }
            Error::Service(service::Error::Lock(e)) => return e.is_retryable(),
            // Somebody is at it, or will be.
            Error::Table(table::Error::RestorePending { .. })
            | Error::Service(service::Error::Table(table::Error::RestorePending { .. })) => return true,
            _ => return false,
        };
        matches!(storage, storage::Error::Io { retryable: true, .. })
    }
}

pub type Result<T> = std::result::Result<T, Error>;
