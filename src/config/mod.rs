//! Properties files, layering, the registry of every key; a typed [`StreamerConfig`] comes out.
//!
//! Seen by all rooms, sees none. Two levels: strings as the user gave them, with where they came from; then the checked
//! values of `model.rs`. Nothing below `cli` and `config` looks up a string key.

mod model;

pub use model::*;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0}")]
    Todo(String),
}

impl Error {
    pub fn code(&self) -> &'static str {
        "config"
    }
}
