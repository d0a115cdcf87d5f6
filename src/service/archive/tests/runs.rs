//! Runs over timelines, and runs that died anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::*;
use crate::table::tests::{golden, open};
use crate::table::{ArchivedInstant, InstantTime, Marker, MarkerType, Markers, State};
use crate::write::testing::table;

fn time(number: u32) -> InstantTime {
    InstantTime::parse(&format!("{number:0>17}")).expect("digits")
}

fn archiver(table: &Table, min_commits: usize, max_commits: usize) -> Archiver {
    Archiver {
        table: table.clone(),
        config: ArchiveConfig { automatic: true, min_commits, max_commits, batch: 10, file_bytes: 4 << 20 },
        retained: CleanPolicy::KeepLatestFileVersions { versions: 1 },
        trigger: CompactionTrigger {
            strategy: TriggerStrategy::TimeElapsed,
            max_delta_commits: 5,
            max_delta_seconds: 3600,
        },
        locks: Locks::none(),
        cancel: CancellationToken::new(),
    }
}

/// A commit of this table, with extra metadata.
async fn commit(table: &Table, number: u32, extra: &[(&str, &str)]) {
    let (time, action) = (time(number), Action::Commit);
    table.request(&time, action).await.expect("requested");
    table.mark_inflight(&time, action, "{}".into()).await.expect("inflight");
    let extra: BTreeMap<&str, &str> = extra.iter().copied().collect();
    let content = serde_json::json!({"operationType": "UPSERT", "extraMetadata": extra}).to_string();
    table.complete(&time, action, content.into()).await.expect("completed");
}

async fn commits(table: &Table, numbers: std::ops::RangeInclusive<u32>) {
    for number in numbers {
        commit(table, number, &[("number", &number.to_string())]).await;
    }
}

/// Names of the files of the timeline.
fn timeline_files(path: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(path.join(".hoodie")).expect("a timeline");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_digit())).collect()
}

fn files_of(number: u32) -> [String; 3] {
    let time = time(number);
    [format!("{time}.commit.requested"), format!("{time}.inflight"), format!("{time}.commit")]
}

async fn archived(table: &Table) -> Vec<ArchivedInstant> {
    table.archived_timeline(usize::MAX).await.expect("an archived timeline")
}

fn numbers<'a>(instants: impl IntoIterator<Item = &'a Instant>) -> Vec<u32> {
    instants.into_iter().map(|instant| instant.time.as_str().parse().expect("a number")).collect()
}

#[tokio::test]
async fn old_instants_go_whole_and_are_found_in_the_archived_timeline() {
    let (folder, table) = table();
    commits(&table, 1..=4).await;
    let archiver = archiver(&table, 2, 3);
    let plan = archiver.plan().await.expect("a plan");
    assert_eq!((numbers(&plan.instants), plan.files), (vec![1, 2], 0));
    assert_eq!(archived(&table).await, [], "a plan changes nothing");
    let done = archiver.archive().await.expect("archived");
    assert_eq!((numbers(&done.instants), done.files, done.hold), (vec![1, 2], 6, None));
    assert_eq!(done.written, [".hoodie/archived/.commits_.archive.1_1-0-1"]);
    assert_eq!(timeline_files(folder.path()), [3, 4].into_iter().flat_map(files_of).collect());
    let found = archived(&table).await;
    assert_eq!(numbers(found.iter().map(|archived| &archived.instant)), [1, 2]);
    assert!(found.iter().all(|archived| archived.instant.state == State::Completed));
    assert_eq!(found[1].commit.as_ref().expect("a commit").extra_metadata["number"], "2");

    assert_eq!(archiver.archive().await.expect("nothing to do"), Archived::default());
    commits(&table, 5..=5).await;
    assert_eq!(archiver.archive().await.expect("nothing to do"), Archived::default(), "not before there are four");
    commits(&table, 6..=7).await;
    let done = archiver.archive().await.expect("archived");
    assert_eq!(numbers(&done.instants), [3, 4, 5]);
    assert_eq!(done.written, [".hoodie/archived/.commits_.archive.1_1-0-1"], "the newest file grows");
    assert_eq!(numbers(archived(&table).await.iter().map(|archived| &archived.instant)), [1, 2, 3, 4, 5]);
}

/// Its files would count once it is older than all that is on the timeline.
#[tokio::test]
async fn a_write_that_left_the_timeline_but_not_its_files_holds_what_is_before_it() {
    let (_folder, table) = table();
    commits(&table, 1..=2).await;
    commits(&table, 4..=6).await;
    let marker = Marker { path: "f.parquet".to_string(), marker_type: MarkerType::Create };
    let markers = Markers::new(&table.storage, &time(3));
    markers.create(&marker).await.expect("marked");
    let archiver = archiver(&table, 1, 2);
    let done = archiver.archive().await.expect("archived");
    assert_eq!((numbers(&done.instants), done.hold), (vec![1], Some(Hold::Lost(time(3)))));
    table.sweep().await.expect("swept");
    assert_eq!(table.marked().await.expect("listed"), [time(3)]);
    markers.remove_all().await.expect("rolled back");
    assert_eq!(numbers(&archiver.archive().await.expect("archived").instants), [2, 4, 5]);
}

#[tokio::test]
async fn a_long_timeline_is_archived_by_portions() {
    let (folder, table) = table();
    let long = "x".repeat(1 << 20);
    for number in 1..=12 {
        commit(&table, number, &[("long", &long)]).await;
    }
    let done = archiver(&table, 1, 2).archive().await.expect("archived");
    assert_eq!(numbers(&done.instants), (1..=11).collect::<Vec<_>>());
    assert_eq!(done.written.len(), 3, "four megabytes at a time");
    assert_eq!(timeline_files(folder.path()), files_of(12).into());
    assert_eq!(archived(&table).await.len(), 11);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("copied")),
        }
    }
}

/// Records of the archived timeline's files.
fn records(path: &Path) -> usize {
    let folder = path.join(".hoodie/archived");
    let files = std::fs::read_dir(folder).expect("an archived timeline").map(|entry| entry.expect("an entry").path());
    let count = |file: PathBuf| {
        let bytes = std::fs::read(file).expect("a file");
        let [requested, inflight, completed] = ["REQUESTED", "INFLIGHT", "COMPLETED"]
            .map(|state| bytes.windows(state.len()).filter(|window| *window == state.as_bytes()).count());
        requested + inflight + completed
    };
    files.map(count).sum()
}

/// A run writes the archived timeline and deletes twelve files. Each state of the table in between, and a next run.
#[tokio::test]
async fn a_run_that_died_is_finished_by_the_next() {
    let (before, table) = table();
    commits(&table, 1..=6).await;
    let after = tempfile::tempdir().expect("a folder");
    copy(before.path(), after.path());
    let table_at = |path: &Path| Table { storage: crate::table::tests::storage(path), ..table.clone() };
    let whole = archiver(&table_at(after.path()), 2, 3).archive().await.expect("archived");
    assert_eq!(numbers(&whole.instants), [1, 2, 3, 4]);
    let deletes: Vec<String> = {
        let (pending, completed): (Vec<String>, Vec<String>) =
            (1..=4).flat_map(files_of).partition(|name| !name.ends_with(".commit"));
        pending.into_iter().chain(completed).collect()
    };
    for dead_after in 0..=deletes.len() {
        let died = tempfile::tempdir().expect("a folder");
        copy(before.path(), died.path());
        copy(&after.path().join(".hoodie/archived"), &died.path().join(".hoodie/archived"));
        for name in &deletes[..dead_after] {
            std::fs::remove_file(died.path().join(".hoodie").join(name)).expect("deleted");
        }
        let table = table_at(died.path());
        let seen = archived(&table).await;
        assert_eq!(numbers(seen.iter().map(|archived| &archived.instant)), [1, 2, 3, 4], "after {dead_after}");
        let timeline = table.timeline().await.expect("a timeline");
        assert!((1..=6).all(|number| timeline.is_valid(&time(number))), "after {dead_after}: all of it counts");

        archiver(&table, 2, 3).archive().await.expect("archived");
        let left = timeline.completed_writes().count();
        // Of few enough commits nothing more has to go: what is there is whole.
        let stay: Vec<u32> = if left > 3 { vec![5, 6] } else { numbers(timeline.completed_writes()) };
        let mut commits = table.timeline().await.expect("a timeline");
        assert_eq!(numbers(commits.completed_writes()), stay, "after {dead_after}");
        commits.instants.retain(Instant::is_pending);
        assert_eq!(commits.instants, [], "after {dead_after}");
        assert_eq!(archived(&table).await, seen, "after {dead_after}");
        assert_eq!(records(died.path()), 12, "after {dead_after}: nothing is archived twice");
    }
}

#[tokio::test]
async fn a_damaged_file_is_told_and_left_alone() {
    let (folder, table) = table();
    commits(&table, 1..=3).await;
    archiver(&table, 1, 2).archive().await.expect("archived");
    let first = folder.path().join(".hoodie/archived/.commits_.archive.1_1-0-1");
    std::fs::write(&first, "no log file").expect("damaged");
    commits(&table, 4..=5).await;
    let done = archiver(&table, 1, 2).archive().await.expect("archived");
    assert_eq!(done.written, [".hoodie/archived/.commits_.archive.2_1-0-1"]);
    assert_eq!(std::fs::read(&first).expect("there"), b"no log file");
}

#[tokio::test]
async fn the_newest_checkpoint_of_each_job_stays() {
    const OURS: &str = "deltastreamer.checkpoint.key";
    const SINK: &str = "_hudi_streaming_sink_checkpoint";
    for (name, carried, gone, held) in [
        (
            "every commit carries it",
            &[(1, OURS, "1"), (2, OURS, "2"), (3, OURS, "3"), (4, OURS, "4")][..],
            &[1, 2, 3][..],
            None,
        ),
        ("another writer came after it", &[(2, OURS, "2")], &[1], Some(2)),
        ("it is in a commit that stays", &[(1, OURS, "1"), (4, OURS, "4")], &[1, 2, 3], None),
        ("two jobs, one of them silent", &[(2, SINK, r#"{"a":"1"}"#), (3, OURS, "3"), (4, OURS, "4")], &[1], Some(2)),
        (
            "two jobs of one kind",
            &[
                (1, SINK, r#"{"a":"1"}"#),
                (2, SINK, r#"{"b":"1"}"#),
                (3, SINK, r#"{"a":"2"}"#),
                (4, SINK, r#"{"a":"3"}"#),
            ],
            &[1],
            Some(2),
        ),
        (
            "two jobs that carry each other's",
            &[(2, SINK, r#"{"a":"1"}"#), (4, SINK, r#"{"a":"1","b":"1"}"#)],
            &[1, 2, 3],
            None,
        ),
        ("none", &[], &[1, 2, 3], None),
    ] {
        let (_folder, table) = table();
        for number in 1..=4 {
            let extra: Vec<_> =
                carried.iter().filter(|c| c.0 == number).map(|(_, key, value)| (*key, *value)).collect();
            commit(&table, number, &extra).await;
        }
        let done = archiver(&table, 1, 2).archive().await.expect("archived");
        assert_eq!(numbers(&done.instants), gone, "{name}");
        let holding = match &done.hold {
            Some(Hold::Checkpoint(time, _)) => Some(time.clone()),
            other => {
                assert_eq!(*other, None, "{name}");
                None
            }
        };
        assert_eq!(holding, held.map(time), "{name}");
    }
}

#[tokio::test]
async fn the_position_of_a_job_that_is_gone_does_not_stay_for_good() {
    const SINK: &str = "_hudi_streaming_sink_checkpoint";
    for (commits, gone) in [(2 + 3 * 2, &[1][..]), (3 + 3 * 2, &[1, 2, 3, 4, 5, 6, 7, 8])] {
        let (_folder, table) = table();
        for number in 1..=commits {
            let sink: &[_] = if number == 2 { &[(SINK, r#"{"a":"1"}"#)] } else { &[] };
            let ours = ("deltastreamer.checkpoint.key", number.to_string());
            let extra = [&[(ours.0, ours.1.as_str())], sink].concat();
            commit(&table, number, &extra).await;
        }
        let done = archiver(&table, 1, 2).archive().await.expect("archived");
        assert_eq!(numbers(&done.instants), gone, "{commits} commits");
        let timeline = table.timeline().await.expect("a timeline");
        let archived = table.archived_with(&timeline, &[SINK.to_string()]).await.expect("read");
        assert_eq!(archived.map(|found| found.instant.time), (commits == 9).then(|| time(2)), "{commits} commits");
    }
}

#[tokio::test]
async fn a_replacecommit_stays_until_its_files_are_gone() {
    for name in ["v6_cow_insert_overwrite", "v6_cow_clustering"] {
        let (_folder, path) = golden(name);
        let mut table = open(&path).await;
        table.disable_metadata_table().await.expect("disabled");
        let timeline = table.timeline().await.expect("a timeline");
        let newest = timeline.newest().expect("instants").clone();
        let archiver = archiver(&table, 1, 2);
        let mut chosen = Chosen { writes: timeline.completed_writes().cloned().collect(), ..Chosen::default() };
        let replacing = timeline.completed_replacements().next().expect("a replacecommit").clone();
        archiver.hold_replaced(&mut chosen).await.expect("looked");
        assert_eq!(chosen.hold, Some(Hold::Replaced(replacing.time.clone())), "{name}");
        assert!(chosen.writes.iter().all(|write| write.time < replacing.time), "{name}");

        for replacing in timeline.completed_replacements() {
            let metadata = table.commit_metadata(replacing).await.expect("metadata");
            for (partition, groups) in metadata.partition_to_replace_file_ids.expect("replaced groups") {
                for file in table.storage.names(&partition).await.expect("a partition") {
                    if groups.iter().any(|group| file.starts_with(group.as_str())) {
                        table.storage.delete(&format!("{partition}/{file}")).await.expect("deleted");
                    }
                }
            }
        }
        let all: Vec<Instant> = timeline.completed_writes().cloned().collect();
        let mut chosen = Chosen { writes: all.clone(), ..Chosen::default() };
        archiver.hold_replaced(&mut chosen).await.expect("looked");
        assert_eq!((chosen.hold, chosen.writes), (None, all), "{name}: all is gone by {newest}");
    }
}

#[tokio::test]
async fn a_metadata_table_keeps_what_its_compaction_has_not_seen() {
    let (_folder, path) = golden("v6_cow_mdt_all");
    let table = open(&path).await;
    assert_eq!(archiver(&table, 1, 2).metadata_table().await.expect("looked"), MetadataTable::NeverCompacted);
    let (_folder, path) = golden("v6_cow_archived");
    let table = open(&path).await;
    let seen = archiver(&table, 1, 2).metadata_table().await.expect("looked");
    assert!(matches!(&seen, MetadataTable::Compacted(time) if time.as_str().starts_with("2026113002")), "{seen:?}");
    let (_folder, table) = crate::write::testing::table();
    assert_eq!(archiver(&table, 1, 2).metadata_table().await.expect("looked"), MetadataTable::None);
}

#[tokio::test]
async fn spark_has_archived_and_we_go_on() {
    let (_folder, path) = golden("v6_cow_archived");
    let mut table = open(&path).await;
    table.disable_metadata_table().await.expect("disabled");
    let before = archived(&table).await;
    let done = archiver(&table, 1, 2).archive().await.expect("archived");
    let names: Vec<String> = done.instants.iter().map(Instant::file_name).collect();
    let want = [
        "20261130020028866.clean",
        "20261130020035525.clean",
        "20261130020042647.clean",
        "20261130020031114.commit",
        "20261130020038393.commit",
    ];
    assert_eq!((names.iter().map(String::as_str).collect::<Vec<_>>(), done.hold), (want.to_vec(), None));
    assert_eq!(done.written, [".hoodie/archived/.commits_.archive.4_1-0-1"]);
    let after = archived(&table).await;
    assert_eq!(after.len(), before.len() + 5);
    assert!(before.iter().all(|instant| after.contains(instant)));
    assert!(
        timeline_files(&path)
            .iter()
            .all(|name| name.contains("20261130020044451") || name.contains("20261130020047555"))
    );
}

#[tokio::test]
async fn each_trigger_of_compactions_finds_what_it_counts() {
    use TriggerStrategy::*;
    let (_folder, mut table) = table();
    commits(&table, 1..=1).await;
    for (strategy, on_read, on_write) in [
        (NumCommits, Some(5), None),
        (NumCommitsAfterLastRequest, Some(5), None),
        (TimeElapsed, Some(usize::MAX), None),
        (NumOrTime, Some(usize::MAX), None),
        (NumAndTime, Some(usize::MAX), None),
    ] {
        for (properties, want) in [(crate::write::testing::merge_on_read(), on_read), (Default::default(), on_write)] {
            table.properties = properties;
            let mut archiver = archiver(&table, 1, 2);
            archiver.trigger.strategy = strategy;
            let timeline = table.timeline().await.expect("a timeline");
            assert_eq!(archiver.rules(&timeline).await.expect("rules").delta_commits, want, "{strategy:?}");
        }
    }
}
