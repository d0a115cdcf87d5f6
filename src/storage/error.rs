//! Why a call failed: what a backend knows of it, and what a caller is told.

use std::io::ErrorKind;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{doing} {path}: not found")]
    NotFound { doing: &'static str, path: String },
    #[error("{doing} {path}: exists already")]
    AlreadyExists { doing: &'static str, path: String },
    /// Another writer has replaced what was to be replaced.
    #[error("{doing} {path}: it has changed meanwhile")]
    Conflict { doing: &'static str, path: String },
    #[error("{doing} {path}: {cause}")]
    Io { doing: &'static str, path: String, cause: String, retryable: bool },
    #[error("{doing} {path}: {why}")]
    Unsupported { doing: &'static str, path: String, why: &'static str },
    #[error("{uri}: {why}")]
    BadLocation { uri: String, why: String },
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::NotFound { .. } => "storage-not-found",
            Error::AlreadyExists { .. } => "storage-already-exists",
            Error::Conflict { .. } => "storage-conflict",
            Error::Io { .. } => "storage-io",
            Error::Unsupported { .. } => "storage-unsupported",
            Error::BadLocation { .. } => "storage-bad-location",
        }
    }

    /// Whether the same call may succeed a little later: the machine was busy or the network broke, not the request.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Io { retryable: true, .. })
    }

    pub(crate) fn of_io(doing: &'static str, path: String, error: &std::io::Error) -> Self {
        Cause::of_io(error).at(doing, path)
    }
}

/// What a backend says of a failure. Who called for what is added by the face.
#[derive(Debug)]
pub(super) enum Cause {
    NotFound,
    AlreadyExists,
    Conflict,
    Unsupported(&'static str),
    Other { text: String, retryable: bool },
}

impl Cause {
    pub fn at(self, doing: &'static str, path: String) -> Error {
        match self {
            Cause::NotFound => Error::NotFound { doing, path },
            Cause::AlreadyExists => Error::AlreadyExists { doing, path },
            Cause::Conflict => Error::Conflict { doing, path },
            Cause::Unsupported(why) => Error::Unsupported { doing, path, why },
            Cause::Other { text, retryable } => Error::Io { doing, path, cause: text, retryable },
        }
    }

    pub fn of_io(error: &std::io::Error) -> Cause {
        match error.kind() {
            ErrorKind::NotFound => Cause::NotFound,
            ErrorKind::AlreadyExists => Cause::AlreadyExists,
            kind => Cause::Other { text: error.to_string(), retryable: is_passing(kind) },
        }
    }

    /// A file that ends too early is not what the caller takes it for.
    pub fn cut_off(end: u64, wanted: u64) -> Cause {
        let text = format!("the file ends at byte {end}, before byte {wanted}");
        Cause::Other { text, retryable: false }
    }
}

impl From<std::io::Error> for Cause {
    fn from(error: std::io::Error) -> Cause {
        Cause::of_io(&error)
    }
}

pub(super) fn is_passing(kind: ErrorKind) -> bool {
    use ErrorKind::*;
    matches!(
        kind,
        Interrupted | TimedOut | WouldBlock | ResourceBusy | StaleNetworkFileHandle | ConnectionReset | BrokenPipe
    )
}
