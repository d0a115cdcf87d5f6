//! The room's behaviour on real files.

mod append;
mod bulk;
mod merge;
mod merge_on_read;
mod upsert;
