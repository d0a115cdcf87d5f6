//! What other processes have done to the table while a round wrote: compactions that were planned, or taken back
//! (table-services.md §2.2), and writes that an operator has taken back.
//!
//! A log file counts in the slice whose base instant it names: that of the base file, or that of the pending compaction whose
//! plan has the file group. Written on the wrong one, its rows are gone with the compaction.

use super::{Error, Result};
use crate::storage;
use crate::table::TimelineRecord;
use crate::table::{self, Action, CompactionPlan, Instant, InstantTime, RollbackPlan, State, Table, Timeline};
use crate::write::WriteStatus;
use std::collections::{BTreeMap, BTreeSet};

/// The last look before a commit: fails it, so that it can be done again, where files went beside what is planned by now.
/// `timeline`: what the round knew when it chose its files. Costs one listing, and one read a new compaction or rollback.
pub(super) async fn check(table: &Table, timeline: &Timeline, statuses: &[WriteStatus]) -> Result<()> {
    let now = table.timeline().await?;
    check_standing(table, timeline, &now).await?;
    // By group, the base instant that its file was written on.
    let written: BTreeMap<(&str, &str), &str> = statuses
        .iter()
        .map(|status| &status.stat)
        .filter(|stat| stat.prev_commit != "null")
        .map(|stat| ((stat.partition_path.as_str(), stat.file_id.as_str()), stat.prev_commit.as_str()))
        .collect();
    if written.is_empty() || table.write_action() != Action::DeltaCommit {
        return Ok(());
    }
    let there: BTreeSet<&InstantTime> = compactions(&now).map(|instant| &instant.time).collect();
    for gone in timeline.pending(Action::Compaction).filter(|known| !there.contains(&known.time)) {
        if let Some(((partition, file_id), _)) = written.iter().find(|(_, on)| **on == gone.time.as_str()) {
            return Err(overtaken(gone, "was taken back", partition, file_id));
        }
    }
    let known: BTreeSet<&InstantTime> = compactions(timeline).map(|instant| &instant.time).collect();
    for new in compactions(&now).filter(|instant| !known.contains(&instant.time)) {
        let plan = match plan(table, new).await? {
            Some(plan) => plan,
            // Taken back in time.
            None if new.state == State::Requested => continue,
            None => {
                let Some(((partition, file_id), _)) = written.first_key_value() else { continue };
                return Err(overtaken(new, "has begun, and its plan is gone,", partition, file_id));
            }
        };
        for operation in plan.operations.unwrap_or_default() {
            let group = (operation.partition_path.unwrap_or_default(), operation.file_id.unwrap_or_default());
            let group = (group.0.as_str(), group.1.as_str());
            if written.get(&group).is_some_and(|on| *on != new.time.as_str()) {
                return Err(overtaken(new, "was planned", group.0, group.1));
            }
        }
    }
    Ok(())
}

/// Fails the round where a write that it rests on is taken back, or is about to be: its position with it.
async fn check_standing(table: &Table, timeline: &Timeline, now: &Timeline) -> Result<()> {
    let Some(newest) = timeline.last_completed_write() else { return Ok(()) };
    let taken_back = |time: &InstantTime| Err(Error::TakenBack { instant: time.to_string() });
    if !now.is_valid(&newest.time) {
        return taken_back(&newest.time);
    }
    for rollback in now.pending(Action::Rollback).filter(|new| !timeline.instants.iter().any(|i| i.time == new.time)) {
        let plan = table.storage.get_opt(&rollback.in_state(State::Requested).path()).await?.unwrap_or_default();
        // Of one that cannot be read (yet) nobody knows.
        let target = RollbackPlan::from_file(&plan).ok().and_then(|plan| plan.instant_to_rollback?.parse());
        match target {
            Some((target, _)) if !timeline.completed_writes().any(|write| write.time == target) => {}
            _ => return taken_back(&newest.time),
        }
    }
    Ok(())
}

/// Compactions, pending and completed: on a merge-on-read table a commit is one.
fn compactions(timeline: &Timeline) -> impl Iterator<Item = &Instant> {
    timeline.instants.iter().filter(|instant| matches!(instant.action, Action::Commit | Action::Compaction))
}

/// `None`: it is gone.
async fn plan(table: &Table, instant: &Instant) -> Result<Option<CompactionPlan>> {
    let requested = Instant::new(instant.time.clone(), Action::Compaction, State::Requested);
    match table.compaction_plan(&requested).await {
        Ok(plan) => Ok(Some(plan)),
        Err(table::Error::Storage(storage::Error::NotFound { .. })) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

fn overtaken(compaction: &Instant, what: &'static str, partition: &str, file_id: &str) -> Error {
    let (partition, file_id) = (partition.to_string(), file_id.to_string());
    Error::Overtaken { compaction: compaction.time.to_string(), what, partition, file_id }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{CompactionOperation, TimelineRecord, WriteStat};
    use crate::write::testing::{merge_on_read, table};

    const BASE: &str = "20240101000000000";
    const COMPACTION: &str = "20240102000000000";

    fn compaction(state: State) -> Instant {
        Instant::new(InstantTime::parse(COMPACTION).expect("digits"), Action::Compaction, state)
    }

    /// Makes a plan for group `f-0` of partition `p`.
    async fn plan(table: &Table) {
        let operation = CompactionOperation {
            base_instant_time: Some(BASE.into()),
            delta_file_paths: Some(Vec::new()),
            data_file_path: None,
            file_id: Some("f-0".into()),
            partition_path: Some("p".into()),
            metrics: None,
            bootstrap_file_path: None,
        };
        let plan = CompactionPlan {
            operations: Some(vec![operation]),
            extra_metadata: None,
            version: Some(2),
            strategy: None,
            preserve_hoodie_metadata: Some(false),
        };
        table.create_instant(&compaction(State::Requested), plan.to_file()).await.expect("a plan");
    }

    fn written(file_id: &str, on: &str) -> Vec<WriteStatus> {
        let (file_id, prev_commit) = (file_id.to_string(), on.to_string());
        let stat = WriteStat { file_id, prev_commit, partition_path: "p".into(), ..WriteStat::default() };
        vec![WriteStatus { stat }]
    }

    #[tokio::test]
    async fn a_plan_that_came_meanwhile_fails_the_round_that_wrote_beside_it() {
        for (name, known, completed, statuses, want) in [
            ("planned meanwhile", false, false, written("f-0", BASE), Some("was planned")),
            ("planned and executed meanwhile", false, true, written("f-0", BASE), Some("was planned")),
            ("another file group", false, false, written("f-1", BASE), None),
            ("a new file group", false, false, written("f-0", "null"), None),
            ("nothing", false, false, vec![], None),
            ("known, and heeded", true, false, written("f-0", COMPACTION), None),
            ("known, heeded, and executed meanwhile", true, true, written("f-0", COMPACTION), None),
        ] {
            let (_folder, mut table) = table();
            table.properties = merge_on_read();
            let before = table.timeline().await.expect("a timeline");
            plan(&table).await;
            let timeline = if known { table.timeline().await.expect("a timeline") } else { before };
            if completed {
                for state in [State::Inflight, State::Completed] {
                    table.create_instant(&compaction(state), "{}".into()).await.expect("an instant");
                }
            }
            let found = check(&table, &timeline, &statuses).await;
            let told = found.as_ref().err().map(Error::to_string).unwrap_or_default();
            assert_eq!(found.is_err(), want.is_some(), "{name}: {told}");
            assert!(told.contains(want.unwrap_or_default()), "{name}: {told}");
            assert!(found.err().is_none_or(|e| e.is_retryable() && e.code() == "write-overtaken"), "{name}");
        }
    }

    #[tokio::test]
    async fn a_plan_that_was_taken_back_fails_the_round_that_heeded_it() {
        let (folder, mut table) = table();
        table.properties = merge_on_read();
        plan(&table).await;
        let timeline = table.timeline().await.expect("a timeline");
        std::fs::remove_file(folder.path().join(compaction(State::Requested).path())).expect("taken back");
        let failure = check(&table, &timeline, &written("f-0", COMPACTION)).await.expect_err("its slice is none");
        assert!(failure.to_string().contains("was taken back"), "{failure}");
        check(&table, &timeline, &written("f-0", BASE)).await.expect("written where it counts");
    }

    #[tokio::test]
    async fn what_has_begun_without_a_plan_may_be_about_any_group() {
        let (_folder, mut table) = table();
        table.properties = merge_on_read();
        let before = table.timeline().await.expect("a timeline");
        plan(&table).await;
        table.create_instant(&compaction(State::Inflight), "".into()).await.expect("an instant");
        table.storage.delete(&compaction(State::Requested).path()).await.expect("deleted");
        let failure = check(&table, &before, &written("f-1", BASE)).await.expect_err("it may be this one");
        assert!(failure.to_string().contains("its plan is gone"), "{failure}");
    }

    #[tokio::test]
    async fn a_round_that_rests_on_a_write_which_is_taken_back_is_done_again() {
        let (folder, table) = table();
        let write = Instant::new(InstantTime::parse(BASE).expect("digits"), Action::Commit, State::Completed);
        let at = |time: &str, action, state| Instant::new(InstantTime::parse(time).expect("digits"), action, state);
        let put = |instant: &Instant, content: bytes::Bytes| {
            std::fs::create_dir_all(folder.path().join(".hoodie")).expect("made");
            std::fs::write(folder.path().join(instant.path()), content).expect("written");
        };
        put(&write, "{}".into());
        let timeline = table.timeline().await.expect("a timeline");
        check(&table, &timeline, &[]).await.expect("it stands");

        let rollback = at("20240103000000000", Action::Rollback, State::Requested);
        for (of, taken_back) in [(BASE, true), (COMPACTION, false)] {
            let target = crate::table::InstantInfo { commit_time: of.into(), action: "commit".into() };
            let plan = RollbackPlan {
                instant_to_rollback: Some(target),
                rollback_requests: Some(Vec::new()),
                version: Some(1),
            };
            put(&rollback, plan.to_file());
            let found = check(&table, &timeline, &[]).await.err();
            let code = found.as_ref().map(Error::code);
            assert_eq!(code, taken_back.then_some("write-taken-back"), "a rollback of {of} is pending");
            assert!(found.is_none_or(|e| e.is_retryable() && e.to_string().contains(BASE)));
        }
        put(&rollback, "".into());
        check(&table, &timeline, &[]).await.expect_err("nobody knows of what it is");
        std::fs::remove_file(folder.path().join(rollback.path())).expect("removed");

        std::fs::remove_file(folder.path().join(write.path())).expect("taken back");
        let gone = check(&table, &timeline, &[]).await.expect_err("gone");
        assert_eq!(gone.code(), "write-taken-back");

        put(&at("20240103000000000", Action::Restore, State::Requested), "".into());
        let restoring = check(&table, &timeline, &[]).await.expect_err("being restored");
        assert!(restoring.code() == "table-restore-pending" && restoring.is_retryable());
    }
}
