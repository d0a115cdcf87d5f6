//! Which writes stay whole, and whether a clean is due: a look at the timeline, and no more (`CleanerUtils`,
//! `CleanPlanActionExecutor`, Hudi 0.15).

use crate::config::CleanPolicy;
use crate::table::{Action, Instant, InstantTime, Table, Timeline};
use chrono::{TimeDelta, Utc};

/// The earliest write that a reader may still look at the table as of. `None`: nothing is old enough, or the policy goes by
/// versions.
pub(in crate::service) fn earliest_to_retain<'t>(
    table: &Table,
    policy: CleanPolicy,
    timeline: &'t Timeline,
) -> Option<&'t Instant> {
    let hours_ago = |hours: u32| table.instant_at(Utc::now() - TimeDelta::hours(i64::from(hours)));
    earliest(policy, timeline, hours_ago)
}

/// Never later than a write or a compaction that is pending, whose reader began with what was there then. (Hudi does not
/// look at these for hours.)
fn earliest(policy: CleanPolicy, timeline: &Timeline, hours_ago: impl FnOnce(u32) -> InstantTime) -> Option<&Instant> {
    let mut completed = timeline.completed_writes();
    let candidate = match policy {
        CleanPolicy::KeepLatestCommits { commits } => {
            let count = timeline.completed_writes().count();
            completed.nth(count.checked_sub(commits).filter(|index| *index > 0)?)
        }
        CleanPolicy::KeepLatestByHours { hours } => {
            let bound = hours_ago(hours);
            completed.find(|write| write.time >= bound)
        }
        CleanPolicy::KeepLatestFileVersions { .. } => None,
    }?;
    let pending = timeline.pending_writes().chain(timeline.pending(Action::Compaction));
    match pending.map(|instant| &instant.time).min() {
        Some(oldest) if candidate.time > *oldest => timeline.completed_writes().rfind(|write| write.time < *oldest),
        _ => Some(candidate),
    }
}

/// Whether enough was written since a clean that had seen everything up to `last`.
pub(super) fn is_due(max_commits: usize, timeline: &Timeline, last: Option<&str>) -> bool {
    let since = timeline.completed_writes().filter(|write| last.is_none_or(|last| write.time.as_str() > last));
    since.count() >= max_commits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries like `3.commit`.
    fn timeline(entries: &str) -> Timeline {
        let full = entries.split_whitespace().map(|entry| match entry.split_once('.') {
            Some((time, rest)) => format!("{time:0>17}.{rest}"),
            None => format!("{entry:0>17}.commit"),
        });
        let names: Vec<String> = full.collect();
        Timeline::from_file_names(names.iter().map(String::as_str))
    }

    #[test]
    fn the_earliest_write_to_retain_is_hudis() {
        let commits = |commits| CleanPolicy::KeepLatestCommits { commits };
        let hours = CleanPolicy::KeepLatestByHours { hours: 3 };
        for (name, policy, entries, want) in [
            ("as many as are retained", commits(2), "1 2", None),
            ("one more", commits(2), "1 2 3", Some(2)),
            ("cleans and savepoints do not count", commits(2), "1 1.savepoint 2 3.clean 4.rollback", None),
            ("replacecommits and compactions do", commits(2), "1.deltacommit 2 3.replacecommit 4.deltacommit", Some(3)),
            ("of a later pending write nothing is to be feared", commits(2), "1 2 3 4 5.inflight", Some(3)),
            ("a pending write holds", commits(2), "1 2 3.inflight 4 5 6", Some(2)),
            ("a pending compaction holds", commits(1), "1.deltacommit 2.compaction.requested 3.deltacommit", Some(1)),
            ("clustering that waits holds", commits(1), "1 2.replacecommit.requested 3 4", Some(1)),
            ("nothing before the pending write", commits(1), "1.inflight 2 3", None),
            ("hours", hours, "1 2 3 4", Some(3)),
            ("hours without anything young", hours, "1 2", None),
            ("hours without anything old", hours, "5 6", Some(5)),
            ("hours behind a pending write", hours, "1 2.inflight 3 4", Some(1)),
            ("versions", CleanPolicy::KeepLatestFileVersions { versions: 1 }, "1 2 3", None),
        ] {
            let timeline = timeline(entries);
            let ago = |hours: u32| InstantTime::parse(&format!("{hours:0>17}")).expect("digits");
            let got =
                earliest(policy, &timeline, ago).map(|instant| instant.time.as_str().parse::<u64>().expect("a number"));
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn a_clean_is_due_after_so_many_writes() {
        let timeline = timeline("1 2 3 4.clean 5.inflight");
        let padded = |time: u32| format!("{time:0>17}");
        for (max_commits, last, want) in [
            (3, None, true),
            (4, None, false),
            (1, Some(2), true),
            (2, Some(2), false),
            (1, Some(3), false),
            (0, Some(3), true),
        ] {
            assert_eq!(
                is_due(max_commits, &timeline, last.map(padded).as_deref()),
                want,
                "{max_commits} after {last:?}"
            );
        }
    }
}
