use std::io::{Read, Write};

use super::*;

/// Names that something on the way to the disk might change.
const NAMES: [&str; 14] = [
    "a%2Fb",
    "50%25",
    "blank here",
    "ü",
    "x%3Dy",
    "k%3Av",
    "k:v",
    "a#b",
    "q?x=1&y",
    "back\\slash",
    "%2e%2e",
    "~t",
    "C:",
    "{x}[y]*",
];

fn temporary() -> (tempfile::TempDir, Storage) {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::open(dir.path().join("root").to_str().unwrap()).unwrap();
    (dir, storage)
}

fn on_disk(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn names(files: &[FileInfo]) -> Vec<&str> {
    files.iter().map(|f| f.path.as_str()).collect()
}

#[tokio::test]
async fn opening_creates_nothing_and_a_missing_root_is_empty() {
    let (dir, storage) = temporary();
    assert!(storage.list("").await.unwrap().files.is_empty());
    assert!(storage.list_recursive("a/b", &|_| true).await.unwrap().is_empty());
    assert!(!storage.exists_folder("").await.unwrap());
    assert_eq!(storage.size("x").await.unwrap(), None);
    assert_eq!(storage.get_opt("x").await.unwrap(), None);
    storage.delete("x").await.unwrap();
    storage.delete_folder("x").await.unwrap();
    assert!(on_disk(dir.path()).is_empty());
    assert!(matches!(storage.get("x").await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn names_are_kept_byte_for_byte() {
    let (dir, storage) = temporary();
    for name in NAMES {
        storage.put(&format!("{name}/{name}.x"), Bytes::from(name)).await.unwrap();
        storage.create(&format!("{name}/created"), Bytes::from(name)).await.unwrap();
    }
    let root = dir.path().join("root");
    let mut want: Vec<_> = NAMES.map(str::to_owned).to_vec();
    want.sort();
    assert_eq!(on_disk(&root), want);
    let mut folders = storage.list("").await.unwrap().folders;
    folders.sort();
    assert_eq!(folders, want);
    for name in NAMES {
        let path = format!("{name}/{name}.x");
        assert_eq!(std::fs::read(root.join(&path)).unwrap(), name.as_bytes(), "{name}");
        assert_eq!(storage.get(&path).await.unwrap(), name);
        let mut want = vec![format!("{name}/created"), path.clone()];
        want.sort();
        assert_eq!(names(&storage.list(name).await.unwrap().files), want);
        storage.delete(&path).await.unwrap();
        assert_eq!(on_disk(&root.join(name)), ["created"]);
        storage.delete_folder(name).await.unwrap();
    }
    assert!(on_disk(&root).is_empty());
}

#[tokio::test]
async fn create_keeps_what_is_there() {
    let (dir, storage) = temporary();
    storage.create("a/b", "first".into()).await.unwrap();
    let error = storage.create("a/b", "second".into()).await.unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert_eq!(storage.get("a/b").await.unwrap(), "first");
    assert_eq!(on_disk(&dir.path().join("root/a")), ["b"]);
    storage.put("a/b", "third".into()).await.unwrap();
    assert_eq!(storage.get("a/b").await.unwrap(), "third");
    assert_eq!(storage.size("a/b").await.unwrap(), Some(5));
}

#[tokio::test]
async fn a_stale_checksum_goes_before_its_file_changes() {
    let (dir, storage) = temporary();
    storage.put("f", "1".into()).await.unwrap();
    let checksum = dir.path().join("root/.f.crc");
    std::fs::write(&checksum, "old").unwrap();
    assert_eq!(names(&storage.list("").await.unwrap().files), ["f"]);
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
async fn an_upload_that_is_dropped_leaves_nothing() {
    let (dir, storage) = temporary();
    storage.put("p/f", "old".into()).await.unwrap();
    let mut upload = storage.upload("p/f").unwrap();
    upload.write_all(b"new").unwrap();
    drop(upload);
    assert_eq!(on_disk(&dir.path().join("root/p")), ["f"]);
    assert_eq!(storage.get("p/f").await.unwrap(), "old");
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
async fn listings_tell_sizes_and_times_and_stay_out_of_unwanted_folders() {
    let (dir, storage) = temporary();
    for path in ["a/1", "a/b/2", "a/b/c/3", "skip/4", "5"] {
        storage.put(path, Bytes::from(path)).await.unwrap();
    }
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_123);
    let file = std::fs::File::options().write(true).open(dir.path().join("root/a/1")).unwrap();
    file.set_modified(time).unwrap();
    let files = storage.list_recursive("", &|folder| folder != "skip" && folder != "a/b/c").await.unwrap();
    assert_eq!(names(&files), ["5", "a/1", "a/b/2"]);
    assert_eq!(files[1], FileInfo { path: "a/1".into(), size: 3, modified_ms: 1_700_000_000_123 });
    assert_eq!(names(&storage.list_recursive("a/b", &|_| true).await.unwrap()), ["a/b/2", "a/b/c/3"]);
    let listing = storage.list("a").await.unwrap();
    assert_eq!((names(&listing.files), listing.folders), (vec!["a/1"], vec!["a/b".to_owned()]));
    assert!(storage.exists_folder("a/b").await.unwrap());
    assert!(!storage.exists_folder("a/1").await.unwrap());
    assert!(!storage.exists_folder("a/1/x").await.unwrap());
}

#[tokio::test]
async fn ranges_are_whole_or_an_error() {
    let (_dir, storage) = temporary();
    storage.put("f", "0123456789".into()).await.unwrap();
    assert_eq!(storage.get_range("f", 2..5).await.unwrap(), "234");
    assert_eq!(storage.get_range("f", 5..5).await.unwrap(), "");
    assert!(storage.get_range("f", 5..11).await.is_err());
    let read = move |range| {
        let storage = storage.clone();
        tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            storage.read_blocking("f", range).unwrap().read_to_string(&mut text).unwrap();
            text
        })
    };
    assert_eq!(read(Some(2..5)).await.unwrap(), "234");
    assert_eq!(read(None).await.unwrap(), "0123456789");
}

#[tokio::test]
async fn locations_for_plans_and_for_people() {
    let storage = Storage::open("/t/x//y/").unwrap();
    assert_eq!(storage.absolute("a b/c%3D"), "file:/t/x/y/a b/c%3D");
    assert_eq!(storage.absolute(""), "file:/t/x/y");
    assert_eq!(storage.display("c"), "/t/x//y/c");
    let error = storage.get("../z").await.unwrap_err();
    assert_eq!(error.code(), "storage-bad-location");
    assert_eq!(storage.get("").await.unwrap_err().code(), "storage-bad-location");
}
