//! Slices, and writes, that the timeline has no more.

use super::*;
use crate::table::log_file::{BlockHeader, BlockKind, encode_block};
use crate::table::{Marker, MarkerType};
use std::time::{Duration, SystemTime};

/// The log file of a group in `eu`, with a block of `writer`.
async fn log(table: &Table, base: &InstantTime, version: u32, writer: &InstantTime) -> String {
    let file = format!("eu/.5e1f-0_{base}.log.{version}_0-1-2");
    let block = encode_block(BlockKind::Command, &BlockHeader::of_rollback(writer, base), &[]).expect("a block");
    table.storage.put(&file, block).await.expect("written");
    file
}

async fn mark(table: &Table, time: &InstantTime, path: &str, marker_type: MarkerType) {
    let marker = Marker { path: path.to_string(), marker_type };
    Markers::new(&table.storage, time).create(&marker).await.expect("marked");
}

async fn begin_write(table: &Table, action: Action) -> InstantTime {
    let time = table.new_instant(&table.timeline().await.expect("timeline"));
    table.request(&time, action).await.expect("requested");
    table.mark_inflight(&time, action, Bytes::new()).await.expect("inflight");
    time
}

fn logs_on(path: &Path, base: &InstantTime) -> Vec<String> {
    of_instant(&files(path), base)
        .into_iter()
        .filter(|file| file.contains(".log.") && !file.contains(".hoodie"))
        .collect()
}

/// A restore has undone the slice, or a compaction's plan was taken back.
#[tokio::test]
async fn a_slice_that_is_none_gets_no_rollback_block_but_loses_the_files_of_the_write() {
    let (_folder, path, table) = failed("v6_mor_inflight").await;
    rollback_failed_writes(&table, &Writers::none()).await.expect("cleared");
    let gone = table.new_instant(&table.timeline().await.expect("timeline"));
    // By markers alone; by a plan that was made while the slice stood, and by one that was made after.
    for planned in [None, Some(true), Some(false)] {
        let time = begin_write(&table, Action::DeltaCommit).await;
        let own = log(&table, &gone, 1, &time).await;
        // The name that the write had chosen was taken.
        let others = log(&table, &gone, 2, &gone).await;
        for file in [&own, &others] {
            mark(&table, &time, file, MarkerType::Append).await;
        }
        let write = pending(&table).await;
        if let Some(stood) = planned {
            let mut left = leftovers(&table, &write).await;
            assert_eq!((left.files.len(), left.slices.len()), (2, 0));
            if stood {
                let names = left.files.drain(..).map(|file| file.name).collect();
                let (partition, file_id) = ("eu".to_string(), "5e1f-0".to_string());
                left.add(leftovers::LogSlice { partition, file_id, base_instant: gone.clone(), logs: names });
            }
            let rollback = table.new_instant(&table.timeline().await.expect("timeline"));
            request(&table, &rollback, &write, &left).await.expect("planned");
        }
        let done = rollback_failed_writes(&table, &Writers::none()).await.expect("rolled back");
        assert_eq!((done[0].files_deleted, done[0].log_files_written), (1, 0), "{planned:?}");
        assert_eq!(logs_on(&path, &gone), [others], "{planned:?}");
        assert_eq!(of_instant(&files(&path), &time), [""; 0], "{planned:?}");
    }
}

#[tokio::test]
async fn what_a_write_has_left_that_is_not_on_the_timeline_goes_once_it_is_silent() {
    let (_folder, path, table) = failed("v6_cow_no_mdt").await;
    let timeline = table.timeline().await.expect("timeline");
    let completed = timeline.last_completed_write().expect("one").time.clone();
    let lost = table.new_instant(&timeline);
    let own = format!("eu/f-0_0-1-2_{lost}.parquet");
    table.storage.put(&own, Bytes::from_static(b"x")).await.expect("written");
    mark(&table, &completed, "eu/g.parquet", MarkerType::Create).await;
    mark(&table, &lost, &own, MarkerType::Create).await;
    let before = files(&path);
    let look = async || remove_lost(&table, &Writers::none()).await.expect("looked");

    let waits = Lost { wait: vec![lost.clone()], ..Lost::default() };
    assert_eq!((look().await, files(&path)), (waits.clone(), before.clone()), "its marker is young");
    let marker = path.join(format!(".hoodie/.temp/{lost}/{own}.marker.CREATE"));
    let marker = std::fs::File::options().write(true).open(marker).expect("opened");
    marker.set_modified(SystemTime::now() - Duration::from_secs(601)).expect("aged");
    let heartbeat = path_of(&lost);
    table.storage.put(&heartbeat, Bytes::new()).await.expect("beaten");
    assert_eq!(look().await, waits, "it is alive");
    table.storage.delete(&heartbeat).await.expect("stopped");

    let never = Writers { failed_writes: FailedWritesPolicy::Never, ..Writers::none() };
    assert_eq!(remove_lost(&table, &never).await.expect("left alone"), Lost::default());
    assert_eq!(files(&path), before);
    assert_eq!(earliest_lost(&table, &timeline.until(&completed)).await.expect("looked"), None, "newer than all");

    let done = look().await;
    assert_eq!((done.wait.len(), done.rolled_back.len()), (0, 1));
    assert_eq!((&done.rolled_back[0].instant.time, done.rolled_back[0].files_deleted), (&lost, 1));
    assert_eq!(of_instant(&files(&path), &lost), [""; 0]);
    assert_eq!(table.marked().await.expect("listed"), [completed], "whose markers the sweep takes");
    assert_eq!(look().await, Lost::default(), "nothing is left to do");
}

/// Its own rollback, which a dead process has begun, is the one to go on.
#[tokio::test]
async fn a_write_whose_rollback_is_pending_is_not_lost() {
    let (_folder, path, table) = failed("v6_cow_inflight").await;
    let write = pending(&table).await;
    let time = table.new_instant(&table.timeline().await.expect("timeline"));
    request(&table, &time, &write, &leftovers(&table, &write).await).await.expect("planned");
    for state in [State::Inflight, State::Requested] {
        std::fs::remove_file(path.join(write.in_state(state).path())).expect("removed");
    }
    assert_eq!(remove_lost(&table, &Writers::none()).await.expect("looked"), Lost::default());
}
