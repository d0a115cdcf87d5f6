//! Writers that a restore overtakes.

use super::*;
use crate::service::Writers;
use crate::service::lock::Locks;
use crate::table::tests::{golden, open};
use crate::table::{Action, Instant, InstantTime, Marker, MarkerType, Markers, Table};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A table of Hudi's, its metadata table disabled, and the write before its newest.
async fn table() -> (tempfile::TempDir, PathBuf, Table, InstantTime) {
    let (folder, path) = golden("v6_cow_no_mdt");
    let mut table = open(&path).await;
    table.disable_metadata_table().await.expect("disabled");
    let timeline = table.timeline().await.expect("timeline");
    let to = timeline.completed_writes().nth_back(1).expect("two writes").time.clone();
    (folder, path, table, to)
}

/// A write that goes on: it has made one file.
async fn begin(table: &Table) -> (Instant, String) {
    let time = table.new_instant(&table.timeline().await.expect("timeline"));
    table.request(&time, Action::Commit).await.expect("requested");
    table.mark_inflight(&time, Action::Commit, Bytes::new()).await.expect("inflight");
    let file = format!("eu/f-0_0-1-2_{time}.parquet");
    let marker = Marker { path: file.clone(), marker_type: MarkerType::Create };
    Markers::new(&table.storage, &time).create(&marker).await.expect("marked");
    table.storage.put(&file, Bytes::from_static(b"x")).await.expect("written");
    (table.timeline().await.expect("timeline").write_at(&time).expect("pending").clone(), file)
}

#[tokio::test]
async fn what_begins_before_the_restore_is_to_be_seen_is_undone_too() {
    let (_folder, path, table, to) = table().await;
    let planned = plan_restore(&table, &Writers::none(), Some(&to)).await.expect("planned");
    let (write, file) = begin(&table).await;
    let held = Locks::none().lock("restore").await.expect("locked");
    let done = restore(&table, &held, &planned).await.expect("restored");
    let undone: Vec<&str> = done.undone.iter().map(|info| info.commit_time.as_str()).collect();
    let want: Vec<&str> = planned.undo.iter().map(|i| i.time.as_str()).chain([write.time.as_str()]).collect();
    assert_eq!(undone, want);
    let timeline = table.timeline().await.expect("timeline");
    assert_eq!(timeline.last_completed_write().map(|write| &write.time), Some(&to));
    assert_eq!(timeline.pending_writes().next(), None);
    assert!(!path.join(file).exists());
    assert_eq!(table.marked().await.expect("listed"), []);
}

#[tokio::test]
async fn a_write_that_may_be_going_on_is_in_the_way_until_it_has_been_silent() {
    let (_folder, path, table, to) = table().await;
    let (write, file) = begin(&table).await;
    let refused = async |why| {
        let error = plan_restore(&table, &Writers::none(), Some(&to)).await.expect_err(why);
        assert_eq!(error.code(), "service-writer-may-be-alive", "{why}: {error}");
        assert!(error.to_string().contains(write.time.as_str()), "{error}");
    };
    let age = |path: &Path| {
        let file = std::fs::File::options().write(true).open(path).expect("opened");
        file.set_modified(SystemTime::now() - Duration::from_secs(121)).expect("aged");
    };
    refused("all is young").await;
    for state in [crate::table::State::Requested, crate::table::State::Inflight] {
        age(&path.join(write.in_state(state).path()));
    }
    refused("a marker is young").await;
    age(&path.join(format!(".hoodie/.temp/{}/{file}.marker.CREATE", write.time)));
    let planned = plan_restore(&table, &Writers::none(), Some(&to)).await.expect("silent");
    assert!(planned.undo.contains(&write));
}
