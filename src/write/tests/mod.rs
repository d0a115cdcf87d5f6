//! The room's behaviour on real files.

mod bulk;
mod merge;
mod upsert;
