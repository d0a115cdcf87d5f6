//! Against what Hudi 0.15 has archived.

use super::*;
use crate::table::tests::{golden, open};
use crate::table::{Action, State};
use bytes::Bytes;

fn time(text: &str) -> InstantTime {
    InstantTime::parse(text).expect("digits")
}

fn instants(timeline: &[ArchivedInstant]) -> Vec<String> {
    timeline.iter().map(|archived| archived.instant.file_name()).collect()
}

#[tokio::test]
async fn hudis_archived_timeline_is_read() {
    let (_folder, path) = golden("v6_cow_archived");
    let table = open(&path).await;
    let timeline = table.archived_timeline(usize::MAX).await.expect("read");
    let want = [
        "20261130015956913.commit",
        "20261130020000356.commit",
        "20261130020003378.commit",
        "20261130020007664.commit",
        "20261130020013710.clean",
        "20261130020016105.commit",
        "20261130020020785.clean",
        "20261130020024441.commit",
    ];
    assert_eq!(instants(&timeline), want);
    assert_eq!(instants(&table.archived_timeline(3).await.expect("read")), want[5..]);
    assert_eq!(timeline[0].since, Some(time("20261130020000134")));
    assert_eq!(timeline[4].commit, None);
    let commit = timeline[3].commit.as_ref().expect("a commit");
    assert_eq!(commit.operation_type, "UPSERT");
    assert_eq!((commit.files, commit.rows, commit.inserted, commit.updated), (1, 3, 1, 1));
    assert_eq!(commit.bytes, 435_796);
    assert!(commit.extra_metadata.keys().eq(["schema"]), "{:?}", commit.extra_metadata);

    let wanted = |found: &ArchivedInstant| found.commit.as_ref().is_some_and(|commit| commit.inserted == 1);
    let found = table.find_archived(wanted).await.expect("read").expect("found");
    assert_eq!(found.instant, Instant::new(time("20261130020024441"), Action::Commit, State::Completed));
    assert_eq!(table.find_archived(|_| false).await.expect("read"), None);

    let active = table.timeline().await.expect("a timeline");
    let schema = ["nothing".to_string(), "schema".to_string()];
    let found = table.archived_with(&active, &schema).await.expect("read").expect("found");
    assert_eq!(found.instant, Instant::new(time("20261130020024441"), Action::Commit, State::Completed));
    let nothing = ["nothing".to_string()];
    assert_eq!(table.archived_with(&active, &nothing).await.expect("read"), None);
    for file in table.archive_files().await.expect("files") {
        table.storage.delete(&file.path).await.expect("deleted");
    }
    assert_eq!(table.archived_with(&active, &schema).await.expect("nothing is there"), None);
}

#[tokio::test]
async fn a_table_that_was_never_archived_has_no_archived_timeline() {
    let (_folder, path) = golden("v6_cow_part");
    assert_eq!(open(&path).await.archived_timeline(10).await.expect("nothing is there"), []);
}

/// The states of an instant, with these contents.
fn states(number: u32, action: Action, contents: [&Bytes; 3]) -> Vec<ArchiveEntry> {
    let states = [State::Requested, State::Inflight, State::Completed].into_iter().zip(contents);
    states
        .map(|(state, content)| ArchiveEntry {
            instant: Instant::new(time(&format!("{number:0>17}")), action, state),
            since: time("20260101000000000"),
            content: content.clone(),
        })
        .collect()
}

fn commit(number: u32) -> Vec<ArchiveEntry> {
    let json = format!(r#"{{"operationType":"UPSERT","extraMetadata":{{"number":"{number}"}}}}"#);
    states(number, Action::Commit, [&Bytes::new(), &Bytes::new(), &json.into()])
}

async fn archive(table: &Table, file_bytes: u64, entries: &[ArchiveEntry]) -> String {
    let mut records = ArchiveRecords::new(2);
    entries.iter().for_each(|entry| records.push(table, entry).expect("a record"));
    table.archive_tail(file_bytes).await.expect("the end").append(records).await.expect("archived")
}

#[tokio::test]
async fn the_newest_file_grows_while_it_is_small() {
    let (_folder, path) = golden("v6_cow_part");
    let table = open(&path).await;
    let file = |number: u32| format!(".hoodie/archived/.commits_.archive.{number}_1-0-1");
    let first = archive(&table, 0, &commit(1)).await;
    let one_run = std::fs::metadata(std::path::Path::new(&path).join(&first)).expect("a file").len();
    for (number, file_bytes, want) in
        [(2, 0, 2), (3, 2 * one_run, 2), (4, 2 * one_run, 3), (5, 2 * one_run - 1, 4), (6, u64::MAX, 4)]
    {
        assert_eq!(archive(&table, file_bytes, &commit(number)).await, file(want), "run {number}");
    }
    let timeline = table.archived_timeline(usize::MAX).await.expect("read");
    let want: Vec<String> = (1..=6).map(|number| format!("{number:0>17}.commit")).collect();
    assert_eq!(instants(&timeline), want);
    let number =
        |archived: &ArchivedInstant| archived.commit.as_ref().expect("a commit").extra_metadata["number"].clone();
    assert_eq!(timeline.iter().map(number).collect::<String>(), "123456");

    let tail = table.archive_tail(0).await.expect("the end");
    let held = tail.archived().expect("read");
    let want = [5, 6].into_iter().flat_map(commit).map(|entry| entry.instant);
    assert_eq!(held, want.collect(), "of the newest file alone");
}

#[tokio::test]
async fn of_two_archivers_at_the_same_file_neither_loses_anything() {
    let (_folder, path) = golden("v6_cow_part");
    let table = open(&path).await;
    archive(&table, u64::MAX, &commit(1)).await;
    let mut ends = Vec::new();
    for number in [2, 3] {
        let mut records = ArchiveRecords::new(2);
        commit(number).iter().for_each(|entry| records.push(&table, entry).expect("a record"));
        ends.push((table.archive_tail(u64::MAX).await.expect("the end"), records));
    }
    let mut files = Vec::new();
    for (mut tail, records) in ends {
        files.push(tail.append(records).await.expect("archived"));
    }
    assert!(files[0].ends_with(".1_1-0-1") && files[1].ends_with(".2_1-0-1"), "{files:?}");
    let want: Vec<String> = (1..=3).map(|number| format!("{number:0>17}.commit")).collect();
    assert_eq!(instants(&table.archived_timeline(9).await.expect("read")), want);
}

#[tokio::test]
async fn what_is_archived_twice_is_seen_once() {
    let (_folder, path) = golden("v6_cow_part");
    let table = open(&path).await;
    archive(&table, 0, &commit(1)).await;
    archive(&table, 0, &[commit(1), commit(2)].concat()).await;
    assert_eq!(
        instants(&table.archived_timeline(9).await.expect("read")),
        ["00000000000000001.commit", "00000000000000002.commit"]
    );
}

#[tokio::test]
async fn damage_is_named_and_no_file_of_ours_is_half_there() {
    let (_folder, path) = golden("v6_cow_part");
    let table = open(&path).await;
    let name = archive(&table, 0, &commit(1)).await;
    let file = std::path::Path::new(&path).join(&name);
    let whole = std::fs::read(&file).expect("a file");
    // A torn block is passed over, as Hudi passes over it.
    std::fs::write(&file, &whole[..whole.len() - 1]).expect("written");
    assert_eq!(table.archived_timeline(9).await.expect("read").len(), 1);
    let mut schemaless = whole.clone();
    let at = schemaless.windows(14).position(|w| w == b"HoodieArchived").expect("the schema");
    schemaless[at - 20] = b'!';
    std::fs::write(&file, &schemaless).expect("written");
    let failure = table.archived_timeline(9).await.expect_err("no schema").to_string();
    assert!(failure.contains(&name) && failure.contains("the block at byte 0"), "{failure}");
}

#[test]
fn contents_that_are_none_are_refused() {
    let nonsense = Bytes::from_static(b"nonsense");
    for (action, contents) in [
        (Action::Commit, [&nonsense, &nonsense, &nonsense]),
        (Action::Clean, [&nonsense, &nonsense, &Bytes::new()]),
        (Action::Rollback, [&Bytes::new(), &Bytes::new(), &nonsense]),
    ] {
        let completed = states(1, action, contents).pop().expect("three of them");
        assert!(completed.to_datum().is_err(), "{action}");
    }
    for action in [Action::Commit, Action::Clean, Action::Rollback, Action::ReplaceCommit, Action::Compaction] {
        let empty = states(1, action, [&Bytes::new(); 3]);
        assert!(empty[..2].iter().all(|entry| entry.to_datum().is_ok()), "{action}: what is pending may be empty");
    }
}
