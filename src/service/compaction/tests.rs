//! What plans mean on storage, and a plan that another job's write overlooks.

use super::*;
use crate::config::{CompactionMode, CompactionSelection, CompactionTrigger, SelectionStrategy, TriggerStrategy};
use crate::service::Error;
use crate::table::tests::{golden, open};
use crate::table::{CompactionOperation, CompactionPlan, FileSlice, Instant, State, TimelineRecord};
use crate::write::testing;
use bytes::Bytes;
use std::time::{Duration, SystemTime};

const BASE: &str = "f-0_0-1-2_20260101000000001.parquet";
/// In the order in which they count.
const LOGS: [&str; 3] =
    [".f-0_20260101000000001.log.1_1-0-1", ".f-0_20260101000000001.log.2_0-1-2", ".f-0_20260101000000001.log.10_0-1-2"];

fn operation(prefix: &str) -> CompactionOperation {
    CompactionOperation {
        base_instant_time: Some("20260101000000001".into()),
        delta_file_paths: Some(LOGS.iter().rev().map(|log| format!("{prefix}{log}")).collect()),
        data_file_path: Some(format!("{prefix}{BASE}")),
        file_id: Some("f-0".into()),
        partition_path: Some("p".into()),
        metrics: None,
        bootstrap_file_path: None,
    }
}

async fn slices_of(operation: CompactionOperation) -> crate::service::Result<Vec<FileSlice>> {
    let (_folder, table) = testing::table();
    for (at, name) in std::iter::once(&BASE).chain(&LOGS).enumerate() {
        table.storage.put(&format!("p/{name}"), Bytes::from(vec![0; 10 + at])).await.expect("put");
    }
    let plan = CompactionPlan {
        operations: Some(vec![operation]),
        extra_metadata: None,
        version: Some(2),
        strategy: None,
        preserve_hoodie_metadata: None,
    };
    plan::slices(&table, &plan, "plan").await
}

#[tokio::test]
async fn names_and_whole_paths_mean_the_same_files() {
    for prefix in ["", "p/", "file:/somewhere/else/p/"] {
        let slices = slices_of(operation(prefix)).await.expect(prefix);
        let [slice] = &slices[..] else { panic!("{slices:?}") };
        assert_eq!((slice.partition.as_str(), slice.file_id.as_str()), ("p", "f-0"));
        assert_eq!(slice.base_file.as_ref().map(|b| (b.name.as_str(), b.size)), Some((BASE, 10)), "{prefix}");
        let logs: Vec<_> = slice.log_files.iter().map(|log| (log.name.to_string(), log.size)).collect();
        assert_eq!(logs, [(LOGS[0].into(), 11), (LOGS[1].into(), 12), (LOGS[2].into(), 13)], "{prefix}");
    }
    let alone = CompactionOperation { data_file_path: None, ..operation("") };
    assert_eq!(slices_of(alone).await.expect("logs alone")[0].base_file, None);
}

#[tokio::test]
async fn what_a_plan_cannot_mean_is_told() {
    let of = |change: fn(&mut CompactionOperation)| {
        let mut operation = operation("");
        change(&mut operation);
        operation
    };
    for (operation, code, word) in [
        (of(|o| o.file_id = None), "service-compaction-plan", "no file group"),
        (of(|o| o.base_instant_time = Some("soon".into())), "service-compaction-plan", "no base instant"),
        (of(|o| o.file_id = Some("g-0".into())), "service-compaction-plan", BASE),
        (of(|o| o.delta_file_paths = Some(vec![BASE.into()])), "service-compaction-plan", "no log file"),
        (of(|o| o.bootstrap_file_path = Some("x".into())), "service-compaction-plan", "bootstrapped"),
        (of(|o| o.partition_path = Some("q".into())), "service-compaction-file", BASE),
    ] {
        let error = slices_of(operation).await.expect_err(word);
        assert!(error.code() == code && error.to_string().contains(word), "{code}, {word}: {error}");
    }
}

fn compactor(table: Table) -> Compactor {
    let context = testing::context(table.clone(), "20260101000000000", crate::config::Operation::Upsert);
    Compactor {
        table,
        config: CompactionConfig {
            mode: CompactionMode::Off,
            trigger: CompactionTrigger {
                strategy: TriggerStrategy::NumCommits,
                max_delta_commits: 1,
                max_delta_seconds: 0,
            },
            selection: CompactionSelection {
                strategy: SelectionStrategy::Unbounded,
                target_io_mb: 0,
                log_size_threshold: 0,
                log_count_threshold: 0,
                target_partitions: 0,
            },
            memory: 1 << 20,
            workers: 1,
            max_pending: 1,
            retry_last_pending: false,
            fails_the_job: true,
        },
        write: context.config.clone(),
        index: context.index.clone(),
        rule: context.rule,
        ordering_field: None,
        cancel: CancellationToken::new(),
        rows_written: Arc::default(),
        key_cache: None,
        looked: Looked::default(),
        writers: Writers::none(),
    }
}

/// The write that another job has begun comes `seconds` after the plan.
async fn planned_with_a_write(seconds: i64) -> (crate::service::Result<()>, bool) {
    let (folder, table) = testing::table();
    let before = table.timeline().await.expect("a timeline");
    let plan = Instant::new(time("20260101000000003"), Action::Compaction, State::Requested);
    let write = Instant::new(time("20260101000000002"), Action::DeltaCommit, State::Requested);
    let epoch = |seconds: i64| SystemTime::UNIX_EPOCH + Duration::from_secs((1_700_000_000 + seconds) as u64);
    for (instant, at) in [(&plan, epoch(0)), (&write, epoch(seconds))] {
        table.storage.put(&instant.path(), Bytes::new()).await.expect("put");
        let file = std::fs::File::options().write(true).open(folder.path().join(instant.path())).expect("the file");
        file.set_modified(at).expect("a time");
    }
    let kept = compactor(table.clone()).take_back_if_overlooked(&plan, &before).await;
    let there = table.storage.size(&plan.path()).await.expect("a look").is_some();
    (kept, there)
}

#[tokio::test]
async fn a_plan_that_a_write_overlooks_is_taken_back() {
    let (kept, there) = planned_with_a_write(-1).await;
    assert_eq!(kept.expect_err("the write was there first").code(), "service-compaction-write-open");
    assert!(!there, "and the plan is gone");
    let (kept, there) = planned_with_a_write(1).await;
    kept.expect("the write came later: it knows, or looks before it commits");
    assert!(there);
}

#[tokio::test]
async fn a_plan_waits_for_open_writes() {
    let (_folder, table) = testing::table();
    for name in ["20260101000000001.deltacommit", "20260101000000002.deltacommit.inflight"] {
        table.storage.put(&format!(".hoodie/{name}"), Bytes::new()).await.expect("put");
    }
    match compactor(table).schedule(None).await {
        Err(Error::WriteOpen { instant, .. }) => assert_eq!(instant, "20260101000000002"),
        other => panic!("{other:?}"),
    }
}

fn time(text: &str) -> InstantTime {
    InstantTime::parse(text).expect("digits")
}

const PLAN: &str = "20260101000000003";

/// A table with a compaction that somebody has begun.
async fn begun() -> (tempfile::TempDir, Table) {
    let (folder, table) = testing::table();
    let table = Table::create(table.storage, testing::merge_on_read()).await.expect("created");
    let empty = CompactionPlan {
        operations: Some(vec![CompactionOperation { partition_path: Some("p".into()), ..operation("") }]),
        extra_metadata: None,
        version: Some(2),
        strategy: None,
        preserve_hoodie_metadata: None,
    };
    table.storage.put(&format!(".hoodie/{PLAN}.compaction.requested"), empty.to_file()).await.expect("put");
    table.mark_inflight(&time(PLAN), Action::Compaction, Bytes::new()).await.expect("begun");
    (folder, table)
}

fn age(folder: &tempfile::TempDir, path: &str, seconds: u64) {
    let file = std::fs::File::options().write(true).open(folder.path().join(path)).expect("the file");
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).expect("a time");
}

#[tokio::test]
async fn an_attempt_without_a_heartbeat_is_left_alone_while_its_files_are_young() {
    let (folder, table) = begun().await;
    let inflight = format!(".hoodie/{PLAN}.compaction.inflight");
    let (marker, file) = (format!("p/f-0_0-1-2_{PLAN}.parquet.marker.MERGE"), format!("p/f-0_0-1-2_{PLAN}.parquet"));
    let marker = format!(".hoodie/.temp/{PLAN}/{marker}");
    for path in [&marker, &file] {
        table.storage.put(path, Bytes::new()).await.expect("put");
    }
    for young in [&inflight, &marker, &file] {
        [&inflight, &marker, &file].iter().for_each(|path| age(&folder, path, 601));
        age(&folder, young, 60);
        let error = compactor(table.clone()).execute(&time(PLAN)).await.expect_err(young);
        let Error::CompactorMayBeAlive { left, .. } = error else { panic!("{young}: {error}") };
        assert!((500..=541).contains(&left), "{young}: {left} s are left");
        assert!(table.storage.size(&file).await.expect("a look").is_some(), "{young}");
        assert!(table.storage.size(&inflight).await.expect("a look").is_some(), "{young}");
        assert_eq!(table.storage.names(".hoodie/.heartbeat").await.expect("names"), Vec::<String>::new(), "{young}");
    }
    age(&folder, &inflight, 601);
    age(&folder, &marker, 601);
    age(&folder, &file, 601);
    let error = compactor(table.clone()).execute(&time(PLAN)).await.expect_err("the files of the plan are not there");
    assert_eq!(error.code(), "service-compaction-file");
    assert!(table.storage.size(&file).await.expect("a look").is_none(), "it is rolled back before");
    assert!(table.storage.size(&inflight).await.expect("a look").is_none());
}

#[tokio::test]
async fn an_attempt_of_ours_that_has_failed_is_not_waited_for() {
    let (_folder, table) = begun().await;
    let heartbeat = heartbeat::Heartbeat::begin(&table.storage, &time(PLAN), CancellationToken::new()).await;
    heartbeat.expect("nobody else").give_up().await.expect("ours");
    let error = compactor(table.clone()).execute(&time(PLAN)).await.expect_err("the files of the plan are not there");
    assert_eq!(error.code(), "service-compaction-file");
}

#[tokio::test]
async fn a_metadata_table_that_is_on_again_is_disabled_between_writes_alone() {
    let (_folder, path) = golden("v6_cow_part");
    let table = open(&path).await;
    // As the job knew it before the other writer came.
    let known = Table { properties: testing::table().1.properties, ..table.clone() };
    let plan = Instant::new(time(PLAN), Action::Compaction, State::Requested);

    let write = Instant::new(time("20990101000000002"), Action::DeltaCommit, State::Requested);
    table.create_instant(&write, Bytes::new()).await.expect("opened");
    let job = compactor(known);
    let refused = job.without_metadata_table(&plan).await.expect_err("another writer may rely on it");
    assert_eq!(refused.code(), "service-metadata-table-in-use");
    assert!(open(&path).await.has_metadata_table());

    table.storage.delete(&write.path()).await.expect("gone");
    assert!(!job.without_metadata_table(&plan).await.expect("nobody writes").has_metadata_table());
    assert!(!open(&path).await.has_metadata_table());
}

#[tokio::test]
async fn a_plan_that_somebody_has_begun_is_not_taken_back() {
    let (_folder, table) = testing::table();
    let before = table.timeline().await.expect("a timeline");
    let write = Instant::new(time("20260101000000002"), Action::DeltaCommit, State::Requested);
    let plan = Instant::new(time(PLAN), Action::Compaction, State::Requested);
    for instant in [&write, &plan, &plan.in_state(State::Inflight)] {
        table.create_instant(instant, Bytes::new()).await.expect("created");
    }
    let kept = compactor(table.clone()).take_back_if_overlooked(&plan, &before).await.expect_err("it stands");
    assert_eq!(kept.code(), "service-compaction-begun");
    assert!(table.storage.size(&plan.path()).await.expect("a look").is_some());
}

#[tokio::test]
async fn a_plan_that_has_been_taken_back_is_not_executed() {
    let (_folder, table) = begun().await;
    let plan = Instant::new(time(PLAN), Action::Compaction, State::Requested);
    table.storage.delete(&plan.path()).await.expect("deleted");
    let error = compactor(table.clone()).execute(&time(PLAN)).await.expect_err("there is no plan");
    assert_eq!(error.code(), "service-compaction-taken-back");
    guard::check_plan(&table, &plan).await.expect_err("nor right before the commit");
}
