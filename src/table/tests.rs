//! Tables made by Hudi, read and continued.

use super::*;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Unpacks `tests/tables/<name>.tar.zst`: the folder to keep alive, and the table's path.
pub(crate) fn golden(name: &str) -> (tempfile::TempDir, PathBuf) {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/tables/{name}.tar.zst"));
    let folder = tempfile::tempdir().expect("a folder");
    let status = Command::new("tar").arg("--zstd").arg("-xf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(status.expect("tar runs").success(), "unpack {}: is zstd installed?", archive.display());
    let table = folder.path().join(name);
    (folder, table)
}

pub(crate) fn storage(path: &Path) -> Storage {
    Storage::open(path.to_str().expect("utf-8")).expect("a local path")
}

pub(crate) async fn open(path: &Path) -> Table {
    Table::open(storage(path)).await.expect("opened").expect("a table")
}

fn time(text: &str) -> InstantTime {
    InstantTime::parse(text).expect("digits")
}

fn names(view: &FileSystemView) -> Vec<String> {
    view.latest_base_files().map(BaseFile::path).collect()
}

/// The files that Hudi's commits say are the newest of their groups, from the stats alone.
async fn newest_by_stats(table: &Table, timeline: &Timeline) -> Vec<String> {
    let mut newest = std::collections::BTreeMap::new();
    for instant in timeline.completed_writes() {
        let metadata = table.commit_metadata(instant).await.expect("metadata");
        for stat in metadata.stats() {
            newest.insert((stat.partition_path.clone(), stat.file_id.clone()), stat.path.clone().expect("a path"));
        }
        for (partition, ids) in metadata.partition_to_replace_file_ids.unwrap_or_default() {
            ids.into_iter().for_each(|id| drop(newest.remove(&(partition.clone(), id))));
        }
    }
    newest.into_values().collect()
}

#[tokio::test]
async fn the_view_of_hudis_tables_is_what_their_commits_say() {
    for (name, partitions) in [
        ("v6_cow_part", 3),
        ("v6_cow_nonpart", 1),
        ("v6_cow_inflight", 3),
        ("v6_cow_rollback", 3),
        ("v6_cow_clustering", 1),
        ("v6_cow_insert_overwrite", 3),
        ("v6_cow_hive", 5),
        ("cow_v6_by_1x_1.0.2", 3),
    ] {
        let (_folder, path) = golden(name);
        let table = open(&path).await;
        let timeline = table.timeline().await.expect("timeline");
        let view = FileSystemView::load(&table, &timeline, None).await.expect("view");
        let mut got = names(&view);
        let mut want = newest_by_stats(&table, &timeline).await;
        got.sort();
        want.sort();
        assert!(!got.is_empty(), "{name}");
        assert_eq!(got, want, "{name}");
        assert_eq!(view.partitions.len(), partitions, "{name}: {:?}", view.partitions.keys());
        assert_eq!(table.partitions().await.expect("partitions"), view.partitions.keys().cloned().collect::<Vec<_>>());
        for file in view.latest_base_files() {
            assert_eq!(std::fs::metadata(path.join(file.path())).expect("there").len(), file.size, "{name}");
        }
        let some = [view.partitions.keys().next().expect("one").clone(), "not-there".to_string()];
        let part = FileSystemView::load(&table, &timeline, Some(&some)).await.expect("view");
        assert_eq!(part.partitions[&some[0]], view.partitions[&some[0]], "{name}");
        assert_eq!(part.partitions["not-there"], []);
        let schema = table.latest_schema(&timeline).await.expect("schema").expect("has one");
        assert!(schema.contains("\"record\"") && !schema.contains("_hoodie_record_key"), "{name}: {schema}");
    }
}

#[tokio::test]
async fn the_size_of_a_row_comes_from_a_large_enough_commit() {
    let (_folder, path) = golden("v6_cow_nonpart");
    let table = open(&path).await;
    let timeline = table.timeline().await.expect("timeline");
    let newest = timeline.last_completed_write().expect("one");
    let metadata = table.commit_metadata(newest).await.expect("metadata");
    let (bytes, rows) = metadata.stats().fold((0, 0), |(b, r), s| (b + s.total_write_bytes, r + s.num_writes));
    let size = table.average_record_size(&timeline, 1000, 1.0, 1024).await.expect("size");
    assert_eq!(size, bytes.div_ceil(rows));
    let size = table.average_record_size(&timeline, 100 << 20, 1.0, 1024).await.expect("size");
    assert_eq!(size, 1024, "no commit is that large");
}

#[tokio::test]
async fn tables_that_we_cannot_keep_up_are_refused_by_name() {
    let whole = TableProperties::for_new_table(&NewTable {
        name: "t".into(),
        table_type: COPY_ON_WRITE.into(),
        ..NewTable::default()
    });
    for (key, value, code, says) in [
        (keys::VERSION, "5", "table-version", "upgrade the table with Hudi 0.15"),
        (keys::VERSION, "8", "table-version", "Hudi 1.x"),
        (keys::VERSION, "9", "table-version", "Hudi 1.x"),
        (keys::VERSION, "six", "table-version", "correct"),
        (keys::LAYOUT, "0", "table-unsupported", keys::LAYOUT),
        (keys::BASE_FILE_FORMAT, "ORC", "table-unsupported", "ORC"),
        (keys::TYPE, "COPY", "table-unknown-value", "COPY"),
        (keys::TIMEZONE, "Mars", "table-unknown-value", "Mars"),
        (keys::POPULATE_META_FIELDS, "false", "table-unsupported", keys::POPULATE_META_FIELDS),
        (keys::DROP_PARTITION_COLUMNS, "true", "table-unsupported", keys::DROP_PARTITION_COLUMNS),
        (keys::CDC_ENABLED, "true", "table-unsupported", "change data capture"),
        (keys::BOOTSTRAP_BASE_PATH, "/old", "table-unsupported", "/old"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut properties = whole.clone();
        properties.0.insert(key.to_string(), value.to_string());
        let storage = storage(folder.path());
        storage.put(PROPERTIES, properties.to_bytes("Updated")).await.expect("put");
        let error = Table::open(storage).await.expect_err(key);
        assert_eq!(error.code(), code, "{key}={value}");
        assert!(error.to_string().contains(says), "{key}={value}: {error}");
    }
}

#[tokio::test]
async fn tables_of_hudi_1x_are_refused_and_merge_on_read_is_told() {
    for name in ["v8_cow_part", "v9_cow_part"] {
        let (_folder, path) = golden(name);
        assert_eq!(Table::open(storage(&path)).await.expect_err(name).code(), "table-version", "{name}");
    }
    let (_folder, path) = golden("v6_mor_logs");
    let table = open(&path).await;
    assert!(table.properties.is_merge_on_read());
    let timeline = table.timeline().await.expect("timeline");
    let view = FileSystemView::load(&table, &timeline, None).await.expect("view");
    let with_logs = view.partitions.values().flatten().filter(|s| s.base_file.is_some() && !s.log_files.is_empty());
    assert!(with_logs.count() > 0);
}

#[tokio::test]
async fn a_table_is_made_once_and_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = NewTable { name: "t".into(), table_type: COPY_ON_WRITE.into(), ..NewTable::default() };
    let properties = TableProperties::for_new_table(&new);
    let at = storage(folder.path());
    assert!(Table::open(at.clone()).await.expect("looked").is_none());
    let table = Table::create(at.clone(), properties.clone()).await.expect("created");
    assert_eq!(open(folder.path()).await.properties, properties);
    assert_eq!(Table::create(at.clone(), properties).await.expect_err("twice").code(), "table-exists");

    let timeline = table.timeline().await.expect("timeline");
    let first = table.new_instant(&timeline);
    table.request(&first, Action::Commit).await.expect("requested");
    at.delete(PROPERTIES).await.expect("lost");
    let error = Table::open(at).await.expect_err("lost");
    assert_eq!(error.code(), "table-properties-missing");
    assert!(error.to_string().starts_with("hoodie.properties is missing. Likely due to some external entity."));
}

#[tokio::test]
async fn an_instant_goes_through_its_states_in_order() {
    let (_folder, path) = golden("v6_cow_no_mdt");
    let table = open(&path).await;
    let timeline = table.timeline().await.expect("timeline");
    let time = table.new_instant(&timeline);
    assert!(timeline.newest().is_some_and(|newest| time > *newest));
    let content = || Bytes::from_static(b"{}");

    let error = table.mark_inflight(&time, Action::Commit, content()).await.expect_err("not requested");
    assert_eq!(error.code(), "table-instant-gone");
    table.request(&time, Action::Commit).await.expect("requested");
    assert_eq!(table.request(&time, Action::Commit).await.expect_err("twice").code(), "table-instant-exists");
    assert_eq!(table.complete(&time, Action::Commit, content()).await.expect_err("early").code(), "table-instant-gone");
    table.mark_inflight(&time, Action::Commit, content()).await.expect("inflight");
    let pending = table.timeline().await.expect("timeline");
    assert_eq!(pending.pending_writes().map(|i| (&i.time, i.state)).collect::<Vec<_>>(), [(&time, State::Inflight)]);
    assert!(!pending.is_valid(&time));
    table.complete(&time, Action::Commit, content()).await.expect("completed");
    let again = table.complete(&time, Action::Commit, content()).await.expect_err("twice");
    assert_eq!(again.code(), "table-instant-exists");
    assert!(table.timeline().await.expect("timeline").is_valid(&time));
    for name in [format!("{time}.commit.requested"), format!("{time}.inflight"), format!("{time}.commit")] {
        assert!(path.join(".hoodie").join(&name).exists(), "{name}");
    }
}

#[tokio::test]
async fn partition_metadata_says_depth_and_instant_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = NewTable { name: "t".into(), table_type: COPY_ON_WRITE.into(), ..NewTable::default() };
    let table = Table::create(storage(folder.path()), TableProperties::for_new_table(&new)).await.expect("created");
    for (partition, depth) in [("", 0), ("a=1", 1), ("a=2/b=x%2Fy", 2)] {
        table.ensure_partition_metadata(partition, &time("20260101000000001")).await.expect("written");
        table.ensure_partition_metadata(partition, &time("20260101000000002")).await.expect("there already");
        let text = std::fs::read_to_string(folder.path().join(partition).join(PARTITION_METAFILE)).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "#partition metadata");
        assert_eq!(lines[2..], ["commitTime=20260101000000001".to_string(), format!("partitionDepth={depth}")]);
    }
}

#[tokio::test]
async fn a_metadata_table_is_disabled_as_hudi_does_it() {
    let (_folder, path) = golden("v6_cow_part");
    let mut table = open(&path).await;
    assert!(table.has_metadata_table() && path.join(METADATA_TABLE).exists());
    table.disable_metadata_table().await.expect("disabled");
    assert!(!table.has_metadata_table() && !path.join(METADATA_TABLE).exists());
    let again = open(&path).await;
    assert_eq!(again.properties, table.properties);
    assert_eq!(again.properties.get(keys::METADATA_PARTITIONS), Some(""));
    assert_eq!(again.properties.name(), "v6_cow_part");

    std::fs::create_dir_all(path.join(METADATA_TABLE)).expect("what a crash leaves");
    table.disable_metadata_table().await.expect("finished");
    assert!(!path.join(METADATA_TABLE).exists());
}

#[tokio::test]
async fn clustering_that_waits_is_known_by_its_groups() {
    let (_folder, path) = golden("v6_cow_clustering");
    let meta = path.join(META_FOLDER);
    let done = open(&path).await.timeline().await.expect("timeline");
    let clustering = done.completed_replacements().next().expect("one").clone();
    // Back to a clustering that waits: as before it ran.
    for state in [State::Completed, State::Inflight] {
        std::fs::remove_file(meta.join(clustering.in_state(state).file_name())).expect("removed");
    }
    let table = open(&path).await;
    let timeline = table.timeline().await.expect("timeline");
    let view = FileSystemView::load(&table, &timeline, None).await.expect("view");
    assert!(!view.pending_clustering.is_empty());
    let (partition, file_id) = view.pending_clustering.first().expect("one").clone();
    assert!(view.is_in_pending_clustering(&partition, &file_id) && !view.is_in_pending_clustering("x", &file_id));
    assert!(view.latest_base_files().any(|f| f.partition == partition && f.file_id == file_id), "still read");
}

#[tokio::test]
async fn a_pending_restore_and_a_schema_history_are_refused() {
    let (_folder, path) = golden("v6_cow_no_mdt");
    let table = open(&path).await;
    let timeline = table.timeline().await.expect("timeline");
    let at = table.new_instant(&timeline);
    let metadata = CommitMetadata {
        extra_metadata: [("latest_schema".to_string(), "{}".to_string())].into(),
        ..CommitMetadata::default()
    };
    std::fs::write(path.join(format!(".hoodie/{at}.commit")), metadata.to_json()).expect("written");
    let timeline = table.timeline().await.expect("timeline");
    assert_eq!(table.latest_schema(&timeline).await.expect_err("history").code(), "table-schema-on-read");
    std::fs::write(path.join(format!(".hoodie/{at}.restore.requested")), "").expect("written");
    assert_eq!(table.timeline().await.expect_err("pending").code(), "table-restore-pending");
}
