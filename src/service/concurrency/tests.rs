//! What stands in the way of a commit, on timelines made by hand.

use super::*;
use crate::config::{IndexConfig, IndexType};
use crate::table::log_file::{BlockHeader, BlockKind, encode_block};
use crate::table::{CommitMetadata, LogFileName, LogStat, RollbackPlan, TimelineRecord, WriteStat};
use crate::write::testing;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn time(number: u32) -> InstantTime {
    InstantTime::parse(&format!("20260101{number:09}")).expect("digits")
}

const OWN: u32 = 50;

fn index() -> IndexConfig {
    IndexConfig { index_type: IndexType::Simple, update_partition_path: true, cache_bytes: 0, buckets: None }
}

fn stat(partition: &str, file_id: &str, on: &str) -> WriteStat {
    WriteStat {
        partition_path: partition.to_string(),
        file_id: file_id.to_string(),
        prev_commit: on.to_string(),
        ..WriteStat::default()
    }
}

fn metadata(groups: &[(&str, &str)]) -> CommitMetadata {
    let mut metadata = CommitMetadata::default();
    for (partition, file_id) in groups {
        let stats = metadata.partition_to_write_stats.entry(partition.to_string()).or_default();
        stats.push(stat(partition, file_id, "null"));
    }
    metadata
}

async fn put(table: &Table, name: &str, content: Bytes) {
    table.storage.put(&format!(".hoodie/{name}"), content).await.expect("put");
}

async fn check(table: &Table, based_on: &Timeline, stats: &[WriteStat], index: &IndexConfig) -> Result<()> {
    let own = time(OWN);
    let conflicts =
        Conflicts { table, instant: &own, based_on, stats: stats.iter().collect(), inserted: None, index, workers: 1 };
    conflicts.check(&table.timeline().await.expect("a timeline")).await
}

/// Over a table of one commit, with a write of ours open to groups `g` of `p` and `new` of `q`.
async fn with(files: &[(&str, Bytes)], index: &IndexConfig) -> Result<()> {
    let (_folder, table) = testing::table();
    put(&table, &format!("{}.commit", time(1)), metadata(&[("p", "g")]).to_json()).await;
    put(&table, &format!("{}.inflight", time(40)), Bytes::new()).await;
    let based_on = table.timeline().await.expect("a timeline");
    put(&table, &format!("{}.inflight", time(OWN)), Bytes::new()).await;
    for (name, content) in files {
        put(&table, name, content.clone()).await;
    }
    let stats = [stat("p", "g", time(1).as_str()), stat("q", "00000003-new", "null")];
    check(&table, &based_on, &stats, index).await
}

#[tokio::test]
async fn what_has_become_complete_since_is_held_against_it_whatever_its_instant() {
    let other = |groups: &[(&str, &str)]| metadata(groups).to_json();
    let replaced = CommitMetadata {
        partition_to_replace_file_ids: Some([("p".to_string(), vec!["g".to_string()])].into()),
        ..CommitMetadata::default()
    };
    let rollback = RollbackPlan {
        instant_to_rollback: Some(crate::table::InstantInfo::from(&Instant::new(
            time(OWN),
            Action::Commit,
            State::Inflight,
        ))),
        rollback_requests: Some(Vec::new()),
        version: Some(1),
    };
    let conflict = Some("service-write-conflict");
    for (name, file, content, want) in [
        ("nothing", "60.commit.requested", Bytes::new(), None),
        ("another group", "60.commit", other(&[("p", "h"), ("q", "g")]), None),
        ("the same group", "60.commit", other(&[("p", "g")]), conflict),
        ("by an instant that was open then", "40.commit", other(&[("p", "g")]), conflict),
        ("by one that was drawn before and came late", "30.commit", other(&[("p", "g")]), conflict),
        ("replaced", "60.replacecommit", replaced.to_json(), conflict),
        ("a restore", "60.restore", Bytes::new(), conflict),
        ("a rollback of it", "60.rollback.requested", rollback.to_file(), Some("service-write-taken")),
        ("a rollback without a plan yet", "60.rollback.inflight", Bytes::new(), None),
    ] {
        let (number, rest) = file.split_once('.').expect("a name");
        let file = format!("{}.{rest}", time(number.parse().expect("a number")));
        let got = with(&[(&file, content)], &index()).await.err().map(|e| e.code());
        assert_eq!(got, want, "{name}");
    }
}

#[tokio::test]
async fn two_that_open_one_bucket_clash_though_their_file_ids_differ() {
    let file = format!("{}.commit", time(60));
    let other = || metadata(&[("q", "00000003-other")]).to_json();
    with(&[(&file, other())], &index()).await.expect("other groups");
    let buckets = crate::config::BucketConfig { count: 8, hash_fields: vec!["id".to_string()] };
    let index = IndexConfig { index_type: IndexType::Bucket, buckets: Some(buckets), ..index() };
    assert_eq!(with(&[(&file, other())], &index).await.expect_err("one bucket").code(), "service-write-conflict");
}

#[tokio::test]
async fn a_write_whose_instant_is_gone_or_whose_basis_is_does_not_commit() {
    let (_folder, table) = testing::table();
    for number in [1, 2] {
        put(&table, &format!("{}.commit", time(number)), metadata(&[]).to_json()).await;
    }
    let based_on = table.timeline().await.expect("a timeline");
    let code = async || check(&table, &based_on, &[], &index()).await.err().map(|e| e.code());
    assert_eq!(code().await, Some("service-write-taken"), "there is no instant");
    let own = format!("{}.inflight", time(OWN));
    put(&table, &own, Bytes::new()).await;
    assert_eq!(code().await, None);
    table.storage.delete(&format!(".hoodie/{}.commit", time(2))).await.expect("deleted");
    assert_eq!(code().await, Some("service-write-conflict"), "rolled back");
    put(&table, &format!("{}.commit", time(60)), metadata(&[]).to_json()).await;
    table.storage.delete(&format!(".hoodie/{}.commit", time(1))).await.expect("deleted");
    assert_eq!(code().await, Some("service-write-conflict"), "all that was known is archived");
}

#[tokio::test]
async fn what_another_writer_archives_behind_a_savepointed_commit_was_not_rolled_back() {
    let (_folder, table) = testing::table();
    for number in [1, 2, 3, 4] {
        put(&table, &format!("{}.commit", time(number)), metadata(&[]).to_json()).await;
    }
    put(&table, &format!("{}.savepoint", time(1)), Bytes::new()).await;
    let based_on = table.timeline().await.expect("a timeline");
    put(&table, &format!("{}.inflight", time(OWN)), Bytes::new()).await;
    for (number, want) in [(2, None), (3, None), (4, Some("service-write-conflict"))] {
        let gone = format!(".hoodie/{}.commit", time(number));
        if number == 4 {
            put(&table, &format!("{}.commit", time(5)), metadata(&[]).to_json()).await;
        }
        table.storage.delete(&gone).await.expect("deleted");
        let got = check(&table, &based_on, &[], &index()).await.err().map(|e| e.code());
        assert_eq!(got, want, "without {number}");
    }
}

#[tokio::test]
async fn a_log_file_behind_blocks_of_a_greater_instant_would_not_be_seen() {
    let log = |version: u32, token: &str| LogFileName {
        file_id: "g".to_string(),
        base_instant: time(1),
        version,
        token: Some(token.to_string()),
        cdc: false,
    };
    let block = |instant: u32| {
        encode_block(BlockKind::Command, &BlockHeader::of_rollback(&time(instant), &time(7)), &[]).expect("a block")
    };
    let known = log(1, "0-0-1");
    for (name, other, of, want) in [
        ("behind ours", log(4, "0-0-9"), 60, None),
        ("before ours, of a smaller instant", log(2, "0-0-9"), 40, None),
        ("before ours, of a greater one", log(2, "0-0-9"), 60, Some("service-write-conflict")),
        ("of one version, sorted before ours", log(3, "0-0-1"), 60, Some("service-write-conflict")),
        ("known when the write began", known.clone(), 60, None),
    ] {
        let (_folder, table) = testing::table();
        put(&table, &format!("{}.deltacommit", time(1)), metadata(&[]).to_json()).await;
        let based_on = table.timeline().await.expect("a timeline");
        put(&table, &format!("{}.deltacommit.inflight", time(OWN)), Bytes::new()).await;
        put(&table, &format!("{}.rollback", time(60)), Bytes::new()).await;
        table.storage.put(&format!("p/{other}"), block(of)).await.expect("put");
        let ours = log(3, "0-0-2");
        let stat = WriteStat {
            path: Some(format!("p/{ours}")),
            log: Some(LogStat {
                version: 3,
                offset: 0,
                base_file: String::new(),
                log_files: [known.to_string(), ours.to_string()].into(),
            }),
            ..stat("p", "g", time(1).as_str())
        };
        let got = check(&table, &based_on, &[stat], &index()).await.err().map(|e| e.code());
        assert_eq!(got, want, "{name}");
    }
}

/// What writers do, one after the other: begin with what is complete, or try to commit what they have written to.
#[derive(Debug, Clone)]
enum Step {
    Begin(usize),
    Commit(usize, BTreeSet<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let groups = proptest::collection::btree_set(0u8..6, 1..3);
    let step = prop_oneof![
        (0usize..4).prop_map(Step::Begin),
        ((0usize..4), groups).prop_map(|(writer, groups)| Step::Commit(writer, groups)),
    ];
    proptest::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A write is committed exactly if nobody has committed to one of its groups since it began.
    #[test]
    fn of_those_that_overlap_the_first_to_commit_stands(steps in steps()) {
        testing::runtime().block_on(async {
            let (_folder, table) = testing::table();
            let writers = Writers::none();
            let mut open: BTreeMap<usize, OpenWrite> = BTreeMap::new();
            // By group the number of the commit that wrote it last, and by writer how many there were when it began.
            let (mut last, mut count, mut begun) = (BTreeMap::<u8, usize>::new(), 0, BTreeMap::<usize, usize>::new());
            for step in steps {
                match step {
                    Step::Begin(writer) if !open.contains_key(&writer) => {
                        let write = writers.begin(&table, None, false, CancellationToken::new()).await.expect("begun");
                        table.mark_inflight(&write.time, write.action, Bytes::new()).await.expect("inflight");
                        open.insert(writer, write);
                        begun.insert(writer, count);
                    }
                    Step::Commit(writer, groups) => {
                        let Some(write) = open.remove(&writer) else { continue };
                        let stats: Vec<WriteStat> = groups.iter().map(|g| stat("p", &g.to_string(), "x")).collect();
                        let index = index();
                        let conflicts = Conflicts {
                            table: &table,
                            instant: &write.time,
                            based_on: &write.timeline,
                            stats: stats.iter().collect(),
                            inserted: None,
                            index: &index,
                            workers: 1,
                        };
                        let got = conflicts.check(&table.timeline().await.expect("a timeline")).await;
                        let lost = groups.iter().any(|group| last.get(group).is_some_and(|at| *at > begun[&writer]));
                        prop_assert_eq!(got.is_err(), lost, "{:?}", got);
                        if lost {
                            super::super::rollback(&table, &write.instant(), &several()).await.expect("rolled back");
                            continue;
                        }
                        let mut metadata = CommitMetadata::default();
                        metadata.partition_to_write_stats.insert("p".to_string(), stats);
                        table.complete(&write.time, write.action, metadata.to_json()).await.expect("completed");
                        count += 1;
                        last.extend(groups.into_iter().map(|group| (group, count)));
                    }
                    Step::Begin(_) => {}
                }
            }
            Ok(())
        })?;
    }
}

/// As several writers roll back: whatever has been committed since.
fn several() -> Writers {
    let lock = crate::config::LockConfig {
        provider: crate::config::LockProvider::InProcess,
        wait: std::time::Duration::from_secs(10),
        retries: 0,
        pause: std::time::Duration::ZERO,
    };
    let config = ConcurrencyConfig {
        mode: crate::config::ConcurrencyMode::Optimistic,
        failed_writes: FailedWritesPolicy::Lazy,
        retries_on_conflict: 0,
        heartbeat: HeartbeatConfig::default(),
        lock: Some(lock),
    };
    let storage = Storage::open(&std::env::temp_dir().to_string_lossy()).expect("storage");
    Writers::open(&config, &storage, "t").expect("writers")
}
