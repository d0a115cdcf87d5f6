//! What can be wrong inside a log block. The room that knows the file adds its name and the block's place.

/// Why a block, or its content, is not read or not written.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockError {
    #[error("{why}; the bytes are not what Hudi writes there: roll the block's commit back, or restore the file")]
    Malformed { why: String },
    #[error("{what} is not read here; {hint}")]
    Unsupported { what: String, hint: &'static str },
    #[error(
        "a block of {size} bytes is more than the format allows (2 GiB); set hoodie.logfile.data.block.max.size lower"
    )]
    TooLarge { size: u64 },
}

impl BlockError {
    pub fn code(&self) -> &'static str {
        match self {
            BlockError::Malformed { .. } => "log-block-malformed",
            BlockError::Unsupported { .. } => "log-block-unsupported",
            BlockError::TooLarge { .. } => "log-block-too-large",
        }
    }

    pub(super) fn malformed(why: impl Into<String>) -> BlockError {
        BlockError::Malformed { why: why.into() }
    }
}
