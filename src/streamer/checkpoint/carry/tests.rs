//! Commits of several jobs that become complete in any order.

use super::super::{latest, store};
use super::*;
use crate::storage::Storage;
use crate::table::{Action, NewTable, TableProperties};
use proptest::prelude::*;

async fn table() -> (tempfile::TempDir, Table) {
    let folder = tempfile::tempdir().expect("a folder");
    let storage = Storage::open(folder.path().to_str().expect("UTF-8")).expect("storage");
    let properties = TableProperties::for_new_table(&NewTable {
        name: "t".to_string(),
        table_type: crate::table::COPY_ON_WRITE.to_string(),
        record_key_fields: vec!["k".to_string()],
        keygen_class: "org.apache.hudi.keygen.NonpartitionedKeyGenerator".to_string(),
        ..NewTable::default()
    });
    (folder, Table::create(storage, properties).await.expect("a table"))
}

fn time(number: usize) -> InstantTime {
    InstantTime::parse(&format!("202601010000{number:05}")).expect("digits")
}

fn job(id: usize) -> CheckpointConfig {
    CheckpointConfig { id: Some(format!("job-{id}")), source: format!("/in/{id}"), ..CheckpointConfig::default() }
}

/// Commits with a position of its own, and what it knows of the others'.
async fn commit(table: &Table, job: &CheckpointConfig, at: &InstantTime, position: &str) {
    let now = table.timeline().await.expect("a timeline");
    let mut metadata = CommitMetadata::default();
    store(&mut metadata, job, Some(position), None, Some(at), Some(at));
    carry(&mut metadata, table, &now, at, job).await.expect("carried");
    table.complete(at, Action::Commit, metadata.to_json()).await.expect("completed");
}

async fn begin(table: &Table, at: &InstantTime) {
    table.request(at, Action::Commit).await.expect("requested");
    table.mark_inflight(at, Action::Commit, bytes::Bytes::new()).await.expect("inflight");
}

async fn position(table: &Table, job: &CheckpointConfig) -> Option<String> {
    let now = table.timeline().await.expect("a timeline");
    latest(table, &now, job.id.as_deref()).await.expect("looked").and_then(|stored| stored.key)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Three jobs begin and complete in any order; whoever looks finds the last position that each has committed, also when
    /// but a few of the newest instants are left.
    #[test]
    fn no_position_is_lost_or_taken_back(steps in proptest::collection::vec(0usize..3, 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (_folder, table) = table().await;
            let mut open: [Option<InstantTime>; 3] = Default::default();
            let mut last: [Option<String>; 3] = Default::default();
            for (number, id) in steps.iter().enumerate() {
                match open[*id].take() {
                    None => {
                        begin(&table, &time(number)).await;
                        open[*id] = Some(time(number));
                    }
                    Some(at) => {
                        commit(&table, &job(*id), &at, &number.to_string()).await;
                        last[*id] = Some(number.to_string());
                    }
                }
                for (id, last) in last.iter().enumerate() {
                    prop_assert_eq!(&position(&table, &job(id)).await, last, "after step {}", number);
                }
            }
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn a_job_that_rests_is_carried_on_and_a_plain_checkpoint_is_not() {
    let (_folder, table) = table().await;
    let plain = CheckpointConfig::default();
    for (number, job) in [plain.clone(), job(0), job(1), job(1), job(1)].iter().enumerate() {
        begin(&table, &time(number)).await;
        commit(&table, job, &time(number), &number.to_string()).await;
    }
    // As if archived.
    for number in 0..4 {
        for name in ["commit", "inflight", "commit.requested"] {
            table.storage.delete(&format!(".hoodie/{}.{name}", time(number))).await.expect("deleted");
        }
    }
    assert_eq!(position(&table, &job(0)).await.as_deref(), Some("1"));
    assert_eq!(position(&table, &job(1)).await.as_deref(), Some("4"));
    assert_eq!(position(&table, &plain).await, None);
    let timeline = table.timeline().await.unwrap();
    let all = super::super::positions(&table, &timeline).await.unwrap();
    assert_eq!(all.values().collect::<Vec<_>>(), ["1", "4"], "an operator is shown all of them");
    let newest = timeline.completed_writes().next_back().unwrap();
    let metadata = table.commit_metadata(newest).await.unwrap();
    assert_eq!(super::super::put_by(&metadata, &newest.time).as_deref(), Some("4"), "of all that it carries");
}

#[tokio::test]
async fn keys_that_are_asked_for_are_carried_on_and_ones_own_stay() {
    let (_folder, table) = table().await;
    let spark = r#"{"partitionToWriteStats":{},"extraMetadata":{"watch.a":"1","watch.b":"2","other":"3"}}"#;
    begin(&table, &time(0)).await;
    table.complete(&time(0), Action::Commit, spark.into()).await.expect("completed");
    let config = CheckpointConfig { carried_prefixes: vec!["watch.".to_string()], ..job(0) };
    let mut metadata = CommitMetadata::default();
    metadata.extra_metadata.insert("watch.b".to_string(), "mine".to_string());
    let now = table.timeline().await.expect("a timeline");
    carry(&mut metadata, &table, &now, &time(1), &config).await.expect("carried");
    let said: Vec<_> = metadata.extra_metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(said, [(AS_OF_KEY, time(1).as_str()), ("watch.a", "1"), ("watch.b", "mine")]);
}
