//! What is particular to local disks, and the faults that tests inject.

use std::io::Write;
use std::path::Path;

use super::contract::{self, NAMES, paths};
use super::*;

fn temporary() -> (tempfile::TempDir, Storage) {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::open(dir.path().join("root").to_str().unwrap()).unwrap();
    (dir, storage)
}

fn on_disk(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_local_disk_holds_the_contract() {
    for fsync in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let config = StorageConfig { fsync, ..StorageConfig::default() };
        let root = dir.path().join("deep/root");
        let storage = Storage::open_with(root.to_str().unwrap(), &config).unwrap();
        assert!(on_disk(dir.path()).is_empty(), "opening makes nothing");
        contract::holds(&storage).await;
        assert!(!root.exists());
    }
}

#[tokio::test]
async fn names_are_the_same_on_disk() {
    let (dir, storage) = temporary();
    for name in NAMES {
        storage.put(&format!("{name}/{name}.x"), Bytes::from(name)).await.unwrap();
        let path = dir.path().join("root").join(name).join(format!("{name}.x"));
        assert_eq!(std::fs::read(path).unwrap(), name.as_bytes());
    }
    let mut want = NAMES.to_vec();
    want.sort();
    assert_eq!(on_disk(&dir.path().join("root")), want);
}

#[tokio::test]
async fn a_stale_checksum_goes_before_its_file_changes() {
    let (dir, storage) = temporary();
    storage.put("f", "1".into()).await.unwrap();
    let checksum = dir.path().join("root/.f.crc");
    std::fs::write(&checksum, "old").unwrap();
    assert_eq!(paths(&storage.list("").await.unwrap().files), ["f"]);
    storage.put("f", "2".into()).await.unwrap();
    assert!(!checksum.exists());
    std::fs::write(&checksum, "old").unwrap();
    storage.upload("f").unwrap().finish().unwrap();
    assert!(!checksum.exists());
    std::fs::write(&checksum, "old").unwrap();
    storage.delete("f").await.unwrap();
    assert!(!checksum.exists());
}

#[tokio::test]
async fn an_upload_is_visible_when_it_is_finished() {
    let (dir, storage) = temporary();
    let mut upload = storage.upload("p/f.parquet").unwrap();
    upload.write_all(b"hello ").unwrap();
    upload.write_all(b"world").unwrap();
    assert!(storage.list("p").await.unwrap().files.is_empty());
    assert_eq!(upload.finish().unwrap(), 11);
    assert_eq!(storage.get("p/f.parquet").await.unwrap(), "hello world");
    assert_eq!(on_disk(&dir.path().join("root/p")), ["f.parquet"]);
}

#[tokio::test]
async fn a_name_that_was_given_up_is_another_writers() {
    let (dir, storage) = temporary();
    let first = storage.upload("p/f").unwrap();
    first.finish().unwrap();
    let mut second = storage.upload("p/f").unwrap();
    second.write_all(b"second").unwrap();
    assert_eq!(on_disk(&dir.path().join("root/p")), ["f", "f#1"]);
    second.finish().unwrap();
    assert_eq!(storage.get("p/f").await.unwrap(), "second");
}

#[tokio::test]
async fn delete_removes_what_killed_uploads_left() {
    let (dir, storage) = temporary();
    // Staged, nothing has the look of a log file.
    for (target, staged) in [("f", ["f#1", "f#2"]), (".f_1.log.1_0-0-0", ["f_1.log.1_0-0-0#1", "f_1.log.1_0-0-0#2"])] {
        let target = format!("p/{target}");
        for _ in 0..2 {
            std::mem::forget(storage.upload(&target).unwrap());
        }
        assert_eq!(on_disk(&dir.path().join("root/p")), staged);
        storage.delete(&target).await.unwrap();
        assert!(on_disk(&dir.path().join("root/p")).is_empty());
    }
}

#[tokio::test]
async fn times_are_those_of_the_disk() {
    let (dir, storage) = temporary();
    storage.put("a/1", "1".into()).await.unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_123);
    let file = std::fs::File::options().write(true).open(dir.path().join("root/a/1")).unwrap();
    file.set_modified(time).unwrap();
    let want = FileInfo { path: "a/1".into(), size: 1, modified_ms: 1_700_000_000_123 };
    assert_eq!(storage.list("a").await.unwrap().files, [want]);
}

#[tokio::test]
async fn locations_for_plans_and_for_people() {
    let storage = Storage::open("/t/x//y/").unwrap();
    assert_eq!(storage.absolute("a b/c%3D"), "file:/t/x/y/a b/c%3D");
    assert_eq!(storage.absolute(""), "file:/t/x/y");
    assert_eq!(storage.display("c"), "/t/x//y/c");
    assert!(storage.is_local());
    let error = storage.get("../z").await.unwrap_err();
    assert_eq!(error.code(), "storage-bad-location");
    assert_eq!(storage.get("").await.unwrap_err().code(), "storage-bad-location");
}

#[tokio::test]
async fn of_two_who_replace_what_they_have_both_read_one_does() {
    let (_dir, storage) = temporary();
    assert_eq!(storage.get_versioned("a").await.unwrap(), None);
    storage.create("a", "0".into()).await.unwrap();
    let (_, version) = storage.get_versioned("a").await.unwrap().unwrap();
    let (one, two) =
        tokio::join!(storage.replace_if("a", "0 1".into(), &version), storage.replace_if("a", "0 2".into(), &version));
    let conflict = |replaced: &Result<Version>| matches!(replaced, Err(Error::Conflict { .. }));
    let (won, text) = if conflict(&two) { (one, "0 1") } else { (two, "0 2") };
    assert_eq!(storage.get("a").await.unwrap(), text);
    storage.replace_if("a", "0 3".into(), &won.unwrap()).await.unwrap();
    assert!(conflict(&storage.replace_if("b", "1".into(), &version).await), "it is gone");
    assert_eq!(storage.names("").await.unwrap(), ["a"]);
}

fn with_fault(text: &str) -> (tempfile::TempDir, Storage) {
    let (dir, storage) = temporary();
    (dir, Storage { faults: Some(Arc::new(injected::parse(text).unwrap())), ..storage })
}

#[tokio::test]
async fn a_call_that_is_struck_fails_once_and_leaves_what_a_crash_would() {
    for (fault, left) in [("fail:put:2", vec!["a"]), ("tear:put:2", vec!["a", "b#1"])] {
        let (dir, storage) = with_fault(fault);
        storage.create("a", "whole".into()).await.unwrap();
        let error = storage.create("b", "whole".into()).await.unwrap_err();
        assert_eq!(error.code(), "storage-io", "{error}");
        let root = dir.path().join("root");
        assert_eq!(on_disk(&root), left, "{fault}");
        if let Some(torn) = left.get(1) {
            assert_eq!(std::fs::read(root.join(torn)).unwrap(), b"wh");
        }
        assert_eq!(storage.names("").await.unwrap(), ["a"]);
        storage.create("b", "whole".into()).await.unwrap();
        assert_eq!(storage.get("b").await.unwrap(), "whole");
    }
}

#[tokio::test]
async fn an_upload_that_is_struck_at_its_end_is_not_seen() {
    for (fault, left) in [("fail:rename:1", vec![]), ("tear:rename:1", vec!["f#1"]), ("fail:put:1", vec![])] {
        let (dir, storage) = with_fault(fault);
        std::fs::create_dir_all(dir.path().join("root")).unwrap();
        let finished = storage.upload("f").and_then(|mut upload| {
            upload.write_all(b"0123").unwrap();
            upload.finish()
        });
        assert_eq!(finished.unwrap_err().code(), "storage-io", "{fault}");
        assert_eq!(on_disk(&dir.path().join("root")), left, "{fault}");
        assert!(storage.names("").await.unwrap().is_empty());
        storage.delete("f").await.unwrap();
        assert!(on_disk(&dir.path().join("root")).is_empty());
    }
}

#[tokio::test]
async fn every_call_can_be_struck() {
    let calls =
        ["get", "size", "ranges", "list", "names", "folders", "folder?", "all", "delete", "folder", "uploads", "stale"];
    for (n, call) in calls.iter().enumerate() {
        let (_dir, storage) = with_fault(&format!("fail:any:{}", n + 2));
        storage.put("f", "1".into()).await.unwrap();
        let outcomes = [
            storage.get("f").await.is_err(),
            storage.size("f").await.is_err(),
            storage.get_range("f", 0..1).await.is_err(),
            storage.list("").await.is_err(),
            storage.names("").await.is_err(),
            storage.folders("").await.is_err(),
            storage.exists_folder("").await.is_err(),
            // Two calls here: the question whether the store lists all at once is one.
            storage.list_recursive("", &|_| true).await.is_err(),
        ];
        let late = [
            storage.delete("f").await.is_err(),
            storage.delete_folder("x").await.is_err(),
            storage.discard_uploads("f").await.is_err(),
            storage.discard_stale("", Duration::ZERO).await.is_err(),
        ];
        assert_eq!(outcomes.iter().chain(&late).filter(|failed| **failed).count(), 1, "{call}");
    }
}

#[tokio::test]
async fn what_is_done_fails_where_its_answer_is_lost() {
    let (dir, storage) = with_fault("lose:put:1");
    storage.create("a", "1".into()).await.unwrap_err();
    assert_eq!(on_disk(&dir.path().join("root")), ["a"]);
    let (dir, storage) = with_fault("lose:rename:1");
    let mut upload = storage.upload("a").unwrap();
    upload.write_all(b"1").unwrap();
    upload.finish().unwrap_err();
    assert_eq!(on_disk(&dir.path().join("root")), ["a"]);
}

#[tokio::test]
async fn only_old_uploads_of_the_folder_are_stale() {
    let (dir, storage) = temporary();
    storage.put("sub/f", "".into()).await.unwrap();
    let (root, hour) = (dir.path().join("root"), Duration::from_secs(3600));
    for (name, age) in [("a#1", 2 * hour), ("a#2", hour / 2), ("b#x", 2 * hour), ("c", 2 * hour), ("sub/d#1", 2 * hour)]
    {
        let file = std::fs::File::create(root.join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - age).unwrap();
    }
    storage.discard_stale("", hour).await.unwrap();
    storage.discard_stale("nothing", hour).await.unwrap();
    assert_eq!(on_disk(&root), ["a#2", "b#x", "c", "sub"]);
    assert_eq!(on_disk(&root.join("sub")), ["d#1", "f"]);
}
