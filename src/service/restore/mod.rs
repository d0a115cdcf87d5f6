//! Restores: whatever was written after a completed write is undone, newest first, and the table is as it was then, its
//! checkpoint too (table-services.md §4).
//!
//! ```text
//! R.restore.requested   the plan: what to undo, and to where       no writer goes on from here on
//! R.restore.inflight
//!   of each, newest first: a rollback of its own, by which it leaves the timeline before its files go
//! R.restore             what was done
//!   rollbacks that are newer than the write go
//! ```
//!
//! A restore that died is finished by asking for it again, also where Spark began it. Readers see the table at ever older
//! writes meanwhile.
//!
//! The rollbacks of a restore come before R on the timeline, where Hudi draws their instants after it: they go in the end,
//! and a later write whose instant were less than theirs would be hidden behind their rollback blocks.

mod error;
mod plan;
mod run;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use plan::{Restore, plan_restore};
pub use run::{Restored, restore};
