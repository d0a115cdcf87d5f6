//! What can be wrong with a schema, or with rows that must fit one.

/// Why a schema cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("schema file {path}: {why}")]
    File { path: String, why: String },
    /// `retryable`: the registry could not be reached, or failed itself.
    #[error("schema registry {address}: {what}: {why}; {instead}")]
    Registry { address: String, what: String, why: String, instead: &'static str, retryable: bool },
    #[error("schema {address}: {why}")]
    Subject { address: String, why: String },
    #[error("not a usable Avro schema: {why}")]
    Parse { why: String },
    #[error("schema field {field}: {what}; {instead}")]
    Unsupported { field: String, what: String, instead: &'static str },
    #[error("the incoming schema does not fit the table's: {why}")]
    Evolution { why: String },
    #[error("column {column}: {why}")]
    Row { column: String, why: String },
    #[error("{doing}: {why}")]
    Internal { doing: &'static str, why: String },
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Stable code of the kind of failure.
    pub fn code(&self) -> &'static str {
        match self {
            Error::File { .. } => "schema-file",
            Error::Registry { .. } => "schema-registry",
            Error::Subject { .. } => "schema-subject",
            Error::Parse { .. } => "schema-parse",
            Error::Unsupported { .. } => "schema-unsupported-type",
            Error::Evolution { .. } => "schema-evolution",
            Error::Row { .. } => "schema-row",
            Error::Internal { .. } => "internal",
        }
    }

    /// Whether the same may go through later without anybody's help.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Registry { retryable: true, .. })
    }

    /// A failure that the checks before should have ruled out.
    pub fn internal(doing: &'static str, cause: impl std::fmt::Display) -> Error {
        Error::Internal { doing, why: cause.to_string() }
    }
}
