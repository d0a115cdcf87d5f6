//! The daemon: one round, the loop around it, checkpoints, shutdown.

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0}")]
    Todo(String),
}

impl Error {
    pub fn code(&self) -> &'static str {
        "streamer"
    }
}
