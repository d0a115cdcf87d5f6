//! The rules, and the runs.

mod rules;
mod runs;
