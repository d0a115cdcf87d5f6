//! What can be wrong with a schema, or with rows that must fit one.

/// What is at fault when a registry gives no schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryFault {
    /// It cannot be reached, or fails itself: it may come back.
    Down,
    /// The schema: the registry does not have it, or it is not in Avro.
    Schema,
    /// How it is asked: address, credentials, certificates.
    Access,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("schema file {path}: {why}")]
    File { path: String, why: String },
    #[error("schema registry {address}: {what}: {why}; {instead}")]
    Registry { address: String, what: String, why: String, instead: &'static str, fault: RegistryFault },
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
        matches!(self, Error::Registry { fault: RegistryFault::Down, .. })
    }

    /// Whether the registry works, and it is this one schema that cannot be had.
    pub fn is_about_one_schema(&self) -> bool {
        matches!(self, Error::Registry { fault: RegistryFault::Schema, .. })
    }

    /// A failure that the checks before should have ruled out.
    pub fn internal(doing: &'static str, cause: impl std::fmt::Display) -> Error {
        Error::Internal { doing, why: cause.to_string() }
    }
}
