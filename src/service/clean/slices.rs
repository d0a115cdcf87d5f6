//! Which slices of a file group nobody needs (`CleanPlanner`, Hudi 0.15). Pure.

#[cfg(test)]
mod tests;

use crate::table::{InstantTime, SliceFiles};
use std::collections::HashSet;

/// What is to stay of a group, but for its newest slice, which always does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep<'a> {
    /// What readers see who look at the table as of this write or a later one.
    ReadersSince(&'a InstantTime),
    /// So many slices.
    Newest(usize),
}

/// A file group, and what others want of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group<'a> {
    /// Newest first.
    pub slices: &'a [SliceFiles],
    /// Hidden from readers by this replacecommit.
    pub replaced_at: Option<&'a InstantTime>,
    /// A pending compaction reads the slice on this instant.
    pub compacted_from: Option<&'a InstantTime>,
}

/// Newest first. `kept`: names of files that stay, with all of their slice.
pub(super) fn unneeded<'a>(group: Group<'a>, keep: Keep, kept: &HashSet<String>) -> Vec<&'a SliceFiles> {
    let waits = |slice: &&SliceFiles| group.compacted_from.is_some_and(|from| slice.base_instant >= *from);
    let old: Vec<&SliceFiles> = match (keep, group.replaced_at) {
        (Keep::ReadersSince(earliest), Some(replaced_at)) if replaced_at >= earliest => Vec::new(),
        (_, Some(_)) => group.slices.iter().collect(),
        (Keep::ReadersSince(earliest), None) => {
            // The newest of these is what a reader sees as of `earliest`.
            let before = group.slices.iter().skip_while(|slice| slice.base_instant >= *earliest);
            before.skip(1).collect()
        }
        (Keep::Newest(count), None) => {
            // Those that a compaction is to make one of count as one.
            let count = count.saturating_sub(usize::from(group.compacted_from.is_some()));
            group.slices.iter().filter(|slice| !waits(slice)).skip(count).collect()
        }
    };
    let is_kept = |slice: &&SliceFiles| slice.names.iter().any(|name| kept.contains(name));
    old.into_iter().filter(|slice| !waits(slice) && !is_kept(slice)).collect()
}
