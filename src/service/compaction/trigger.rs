//! Whether a compaction is due: a look at the timeline, and no more (`ScheduleCompactionActionExecutor`, Hudi 0.15).

use crate::config::{CompactionTrigger, TriggerStrategy};
use crate::table::{Action, Instant, InstantTime, Timeline};

/// What has come since a compaction.
struct Since {
    delta_commits: u64,
    seconds: i64,
}

/// Whether a compaction that would get the instant `at` is due. Without a delta commit none ever is.
pub(super) fn is_due(trigger: &CompactionTrigger, timeline: &Timeline, at: &InstantTime) -> bool {
    let completed = || timeline.completed_writes().rfind(|i| i.action == Action::Commit);
    let requested = || timeline.pending(Action::Compaction).next_back();
    let Some(done) = since(timeline, completed(), at) else { return false };
    let enough = done.delta_commits >= trigger.max_delta_commits;
    let long_ago = u64::try_from(done.seconds).is_ok_and(|seconds| seconds >= trigger.max_delta_seconds);
    match trigger.strategy {
        TriggerStrategy::NumCommits => enough,
        TriggerStrategy::NumCommitsAfterLastRequest => {
            let last = completed().into_iter().chain(requested()).max_by_key(|i| &i.time);
            since(timeline, last, at).is_some_and(|s| s.delta_commits >= trigger.max_delta_commits)
        }
        TriggerStrategy::TimeElapsed => long_ago,
        TriggerStrategy::NumOrTime => enough || long_ago,
        TriggerStrategy::NumAndTime => enough && long_ago,
    }
}

/// From `last` on, or, where there was none, from the first delta commit, which counts.
fn since(timeline: &Timeline, last: Option<&Instant>, at: &InstantTime) -> Option<Since> {
    let mut deltas = timeline.completed_writes().filter(|i| i.action == Action::DeltaCommit).peekable();
    let from = match last {
        Some(last) => &last.time,
        None => &deltas.peek()?.time,
    };
    let delta_commits = deltas.filter(|i| last.is_none_or(|last| i.time > last.time)).count() as u64;
    Some(Since { delta_commits, seconds: at.seconds_since(from).unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "20260101000000000";

    /// A timeline of entries like `3.deltacommit`: so many minutes after the start.
    fn timeline(entries: &str) -> Timeline {
        let names: Vec<String> = entries
            .split_whitespace()
            .map(|entry| {
                let (minutes, rest) = entry.split_once('.').expect("minutes.action");
                format!("202601010{minutes:0>3}00000.{rest}")
            })
            .collect();
        Timeline::from_file_names(names.iter().map(String::as_str))
    }

    fn due(strategy: TriggerStrategy, entries: &str, at_minute: u32) -> bool {
        let trigger = CompactionTrigger { strategy, max_delta_commits: 3, max_delta_seconds: 600 };
        let at = InstantTime::parse(&format!("202601010{at_minute:0>3}00000")).expect("digits");
        assert!(at.as_str().len() == START.len());
        is_due(&trigger, &timeline(entries), &at)
    }

    #[test]
    fn each_strategy_counts_its_own_way() {
        use TriggerStrategy::*;
        let three = "1.deltacommit 2.deltacommit 3.deltacommit";
        let after_one = "1.deltacommit 2.deltacommit 3.commit 4.deltacommit 5.deltacommit";
        let pending = "1.deltacommit 2.deltacommit 3.deltacommit 4.compaction.requested 5.deltacommit 6.deltacommit";
        let running = "1.deltacommit 2.commit 3.deltacommit 4.deltacommit 5.compaction.inflight 6.deltacommit";
        for (name, strategy, entries, at, want) in [
            ("nothing yet", NumCommits, "", 30, false),
            ("nothing yet, by time", NumOrTime, "", 30, false),
            ("enough without a compaction", NumCommits, three, 4, true),
            ("one short", NumCommits, "1.deltacommit 2.deltacommit 3.deltacommit.inflight", 4, false),
            ("only those after the last compaction", NumCommits, after_one, 6, false),
            ("a pending one is no compaction yet", NumCommits, pending, 7, true),
            ("but a request", NumCommitsAfterLastRequest, pending, 7, false),
            ("a running one is a request too", NumCommitsAfterLastRequest, running, 7, false),
            ("the newer of both counts", NumCommitsAfterLastRequest, after_one, 6, false),
            ("requests or none", NumCommitsAfterLastRequest, three, 4, true),
            ("not yet", TimeElapsed, three, 10, false),
            ("ten minutes after the first delta commit", TimeElapsed, three, 11, true),
            ("ten minutes after the compaction", TimeElapsed, after_one, 13, true),
            ("time alone, though nothing has come", TimeElapsed, "1.deltacommit 2.commit", 12, true),
            ("either: commits", NumOrTime, three, 4, true),
            ("either: time", NumOrTime, after_one, 13, true),
            ("either: none", NumOrTime, after_one, 12, false),
            ("both: only commits", NumAndTime, three, 4, false),
            ("both: only time", NumAndTime, after_one, 13, false),
            ("both", NumAndTime, three, 11, true),
        ] {
            assert_eq!(due(strategy, entries, at), want, "{name}");
        }
    }

    #[test]
    fn instants_that_are_no_dates_do_not_count_as_time() {
        let trigger =
            CompactionTrigger { strategy: TriggerStrategy::TimeElapsed, max_delta_commits: 3, max_delta_seconds: 600 };
        let timeline = Timeline::from_file_names(["00000000000000001.deltacommit"]);
        let at = InstantTime::parse(START).expect("digits");
        assert!(!is_due(&trigger, &timeline, &at));
    }
}
