//! Which instants are old enough: a look at the timeline, and no more (`HoodieTimelineArchiver`, `ArchivalUtils`, Hudi 0.15).

use crate::config::ArchiveConfig;
use crate::table::{Action, Instant, InstantTime, Timeline};

/// What is kept, and what holds instants back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rules {
    /// Completed writes that stay, and with how many of them archiving begins; the same of cleans and of rollbacks.
    pub min: usize,
    pub max: usize,
    /// Delta commits that the next compaction has to find to come due; with fewer of them, the last one stays too.
    pub delta_commits: Option<usize>,
    pub replaced: Replaced,
    pub metadata: MetadataTable,
}

/// Until when the files of replaced groups are gone: a replacecommit that is not on the timeline hides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Replaced {
    /// No clean has completed.
    Never,
    /// The last clean retained everything from here on.
    Until(InstantTime),
}

/// Its reader needs every instant that its last compaction has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MetadataTable {
    None,
    NeverCompacted,
    Compacted(InstantTime),
}

/// Why writes stay that are older than those to be kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Hold {
    #[error("savepoint {0} keeps all that came after it")]
    Savepoint(InstantTime),
    #[error("{1} {0} is pending")]
    Pending(InstantTime, Action),
    #[error("the next compaction counts the delta commits from {0} on")]
    Compaction(InstantTime),
    #[error("the files that replacecommit {0} has replaced are not cleaned yet")]
    Replaced(InstantTime),
    #[error("{0} has left the timeline, but not all of its files: the next start of a job rolls it back")]
    Lost(InstantTime),
    #[error("the metadata table has not been compacted since")]
    MetadataTable,
    #[error("commit {0} is the newest with {1}: a job that has not committed since goes on from there")]
    Checkpoint(InstantTime, String),
}

/// What is to be archived, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub cleans: Vec<Instant>,
    pub rollbacks: Vec<Instant>,
    pub writes: Vec<Instant>,
    /// What keeps more writes than are to be kept.
    pub hold: Option<Hold>,
}

impl Chosen {
    pub fn is_empty(&self) -> bool {
        self.cleans.is_empty() && self.rollbacks.is_empty() && self.writes.is_empty()
    }

    /// In the order in which Hudi archives them.
    pub fn instants(&self) -> impl Iterator<Item = &Instant> {
        self.cleans.iter().chain(&self.rollbacks).chain(&self.writes)
    }

    /// Lets the write of a time and all later ones stay.
    pub fn stop_before(&mut self, time: &InstantTime, hold: Hold) {
        if self.writes.last().is_some_and(|last| last.time >= *time) {
            self.writes.retain(|write| write.time < *time);
            self.hold = Some(hold);
        }
    }
}

/// Completed instants of an action, oldest first.
fn completed(timeline: &Timeline, action: Action) -> impl DoubleEndedIterator<Item = &Instant> {
    timeline.instants.iter().filter(move |instant| instant.action == action && !instant.is_pending())
}

/// Whether anything is to be archived if nothing holds it back. Knows only the timeline, so that asking costs nothing.
pub(super) fn may_be_due(config: &ArchiveConfig, timeline: &Timeline) -> bool {
    let of_services = [Action::Clean, Action::Rollback].map(|action| completed(timeline, action).count());
    of_services.into_iter().chain([timeline.completed_writes().count()]).any(|count| count > config.max_commits)
}

/// The least and the greatest number of writes, by the configuration and by what a cleaner of the same configuration would
/// still have to look at: the writes after `earliest`, which it retains, and two more.
pub(super) fn limits(config: &ArchiveConfig, timeline: &Timeline, earliest: Option<&InstantTime>) -> (usize, usize) {
    let (min, max) = (config.min_commits, config.max_commits);
    let needed = earliest.map_or(0, |earliest| timeline.completed_writes().filter(|w| w.time > *earliest).count() + 2);
    if min < needed { (needed, needed + (max - min)) } else { (min, max) }
}

pub(super) fn choose(timeline: &Timeline, rules: &Rules) -> Chosen {
    let is_known = |instant: &&Instant| match &rules.metadata {
        MetadataTable::None => true,
        MetadataTable::NeverCompacted => false,
        MetadataTable::Compacted(time) => instant.time < *time,
    };
    let of_service = |action: Action| {
        let count = completed(timeline, action).count();
        let surplus = if count > rules.max { count - rules.min } else { 0 };
        completed(timeline, action).take(surplus).filter(is_known).cloned().collect()
    };
    let mut chosen =
        Chosen { cleans: of_service(Action::Clean), rollbacks: of_service(Action::Rollback), ..Chosen::default() };
    let writes: Vec<&Instant> = timeline.completed_writes().collect();
    if writes.len() <= rules.max {
        return chosen;
    }
    let surplus = &writes[..writes.len() - rules.min];
    chosen.writes = surplus.iter().copied().filter(is_known).cloned().collect();
    if chosen.writes.len() < surplus.len() {
        chosen.hold = Some(Hold::MetadataTable);
    }
    for (time, hold) in bounds(timeline, rules) {
        chosen.stop_before(&time, hold);
    }
    chosen
}

fn is_savepointed(timeline: &Timeline, write: &Instant) -> bool {
    timeline.instants.iter().any(|instant| instant.action == Action::Savepoint && instant.time == write.time)
}

/// Times from which on writes stay, and why.
fn bounds(timeline: &Timeline, rules: &Rules) -> Vec<(InstantTime, Hold)> {
    let mut bounds = Vec::new();
    let mut add = |time: &InstantTime, hold: Hold| bounds.push((time.clone(), hold));
    let savepoint = timeline.instants.iter().find(|instant| instant.action == Action::Savepoint);
    if let Some(Instant { time: savepoint, .. }) = savepoint {
        // Of what came after it, nothing: readers of Hudi 0.15 take the first write for the start of the timeline, and do not see
        // what is archived behind that. (Hudi does so with hoodie.archive.beyond.savepoint=true.)
        add(savepoint, Hold::Savepoint(savepoint.clone()));
        // Its writers take the first one without a savepoint for the start: one must be there.
        if let Some(plain) = timeline.completed_writes().rfind(|write| !is_savepointed(timeline, write)) {
            add(&plain.time, Hold::Savepoint(savepoint.clone()));
        }
    }
    // The write before it stays too: a timeline that begins with a pending instant would make its files count.
    let pending = timeline.pending_writes().chain(timeline.pending(Action::Compaction));
    if let Some(oldest) = pending.min_by_key(|instant| &instant.time) {
        let before = timeline.completed_writes().rfind(|write| write.time < oldest.time);
        add(&before.unwrap_or(oldest).time, Hold::Pending(oldest.time.clone(), oldest.action));
    }
    if let Some(count) = rules.delta_commits
        && let Some(time) = first_of_next_compaction(timeline, count)
    {
        add(time, Hold::Compaction(time.clone()));
    }
    let replacing = timeline.instants.iter().filter(|instant| instant.action == Action::ReplaceCommit);
    let uncleaned = |instant: &&Instant| match &rules.replaced {
        Replaced::Never => true,
        Replaced::Until(time) => instant.time >= *time,
    };
    if let Some(Instant { time, .. }) = replacing.into_iter().find(uncleaned) {
        add(time, Hold::Replaced(time.clone()));
    }
    bounds
}

/// The oldest instant that the trigger of the next compaction looks at (`CompactionUtils`, Hudi 0.15): so many delta commits
/// are left to it, or, where there are fewer since the last compaction, that compaction too.
fn first_of_next_compaction(timeline: &Timeline, count: usize) -> Option<&InstantTime> {
    let compaction = completed(timeline, Action::Commit).next_back();
    let deltas: Vec<&Instant> = completed(timeline, Action::DeltaCommit)
        .filter(|delta| compaction.is_none_or(|compaction| delta.time > compaction.time))
        .collect();
    let first = match deltas.len().checked_sub(count.max(1)) {
        Some(surplus) => deltas.get(surplus).copied(),
        None => compaction.or(deltas.first().copied()),
    };
    first.map(|instant| &instant.time)
}
