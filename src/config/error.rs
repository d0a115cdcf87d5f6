//! Everything that is wrong with a configuration, told at once.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stable code of its kind.
    pub code: &'static str,
    /// What, where, and what to do.
    pub text: String,
}

/// The configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// Never empty.
    pub problems: Vec<Problem>,
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// One problem.
    pub fn new(code: &'static str, text: impl Into<String>) -> Error {
        Error { problems: vec![Problem { code, text: text.into() }] }
    }

    /// The code of the first problem.
    pub fn code(&self) -> &'static str {
        self.problems.first().map_or("config", |p| p.code)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [only] => f.write_str(&only.text),
            several => {
                write!(f, "{} things are wrong with the configuration", several.len())?;
                several.iter().try_for_each(|p| write!(f, "\n  [{}] {}", p.code, p.text))
            }
        }
    }
}
