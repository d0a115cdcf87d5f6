//! What every kind of store must hold, as one test for all of them.

use std::io::Write;

use bytes::Bytes;

use super::{Error, FileInfo, Storage};

/// Names that something on the way to the store might change.
pub(super) const NAMES: [&str; 14] = [
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

/// Sizes around the parts that large files are sent in.
const SIZES: [usize; 6] = [0, 1, (8 << 20) - 1, 8 << 20, (8 << 20) + 1, 17 << 20];

/// On an empty root, and leaves it empty.
pub(super) async fn holds(storage: &Storage) {
    nothing_is_there(storage).await;
    names_are_kept(storage).await;
    files_are_created_once_and_replaced(storage).await;
    ranges_are_whole(storage).await;
    folders_are_listed(storage).await;
    a_staged_name_is_a_file_of_others(storage).await;
    uploads_are_whole(storage).await;
    drafts_keep_what_is_there(storage).await;
    storage.delete_folder("").await.expect("emptied");
    nothing_is_there(storage).await;
}

async fn nothing_is_there(storage: &Storage) {
    assert!(storage.list("").await.expect("listed").files.is_empty());
    assert!(storage.list_recursive("a/b", &|_| true).await.expect("listed").is_empty());
    assert!(!storage.exists_folder("").await.expect("looked"));
    assert_eq!(storage.size("x").await.expect("looked"), None);
    assert_eq!(storage.get_opt("x").await.expect("read"), None);
    storage.delete("x").await.expect("deleted");
    storage.delete_folder("x").await.expect("deleted");
    storage.discard_uploads("x/y").await.expect("discarded");
    assert!(matches!(storage.get("x").await, Err(Error::NotFound { .. })));
}

async fn names_are_kept(storage: &Storage) {
    for name in NAMES {
        storage.put(&format!("{name}/{name}.x"), Bytes::from(name)).await.expect(name);
        storage.create(&format!("{name}/created"), Bytes::from(name)).await.expect(name);
    }
    let mut want = NAMES.to_vec();
    want.sort();
    assert_eq!(storage.list("").await.expect("listed").folders, want);
    for name in NAMES {
        let path = format!("{name}/{name}.x");
        assert_eq!(storage.get(&path).await.expect(name), name);
        let mut want = vec![format!("{name}/created"), path.clone()];
        want.sort();
        assert_eq!(paths(&storage.list(name).await.expect(name).files), want);
        storage.delete(&path).await.expect(name);
        assert_eq!(storage.names(name).await.expect(name), ["created"]);
        storage.delete_folder(name).await.expect(name);
    }
    assert_eq!(storage.folders("").await.expect("listed"), Vec::<String>::new());
}

async fn files_are_created_once_and_replaced(storage: &Storage) {
    storage.create("a/b", "first".into()).await.expect("created");
    let error = storage.create("a/b", "second".into()).await.expect_err("it is there");
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert_eq!(storage.get("a/b").await.expect("read"), "first");
    storage.put("a/b", "third".into()).await.expect("put");
    assert_eq!(storage.get("a/b").await.expect("read"), "third");
    assert_eq!(storage.size("a/b").await.expect("looked"), Some(5));
    assert_eq!(storage.names("a").await.expect("listed"), ["b"]);
    let racing = (0..8).map(|n: u8| storage.create("a/raced", vec![n].into()));
    let won = futures::future::join_all(racing).await;
    let winner = won.iter().position(Result::is_ok).expect("one has won");
    assert_eq!(won.iter().filter(|won| won.is_ok()).count(), 1);
    assert_eq!(storage.get("a/raced").await.expect("read"), vec![winner as u8]);
    storage.delete_folder("a").await.expect("deleted");
}

async fn ranges_are_whole(storage: &Storage) {
    storage.put("f", "0123456789".into()).await.expect("put");
    assert_eq!(storage.get_range("f", 2..5).await.expect("read"), "234");
    assert_eq!(storage.get_range("f", 5..5).await.expect("read"), "");
    for behind in [5..11, 10..11, 20..21] {
        assert!(storage.get_range("f", behind.clone()).await.is_err(), "{behind:?}");
    }
    assert_eq!(storage.get_ranges("f", &[9..10, 3..3, 0..1]).await.expect("read"), ["9", "", "0"]);
    storage.delete("f").await.expect("deleted");
}

async fn folders_are_listed(storage: &Storage) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_millis() as i64;
    for path in ["a/1", "a/b/2", "a/b/c/3", "skip/4", "skip/x/6", "5"] {
        storage.put(path, Bytes::from(path)).await.expect(path);
    }
    let enter = |folder: &str| folder != "skip" && folder != "a/b/c";
    let files = storage.list_recursive("", &enter).await.expect("listed");
    assert_eq!(paths(&files), ["5", "a/1", "a/b/2"]);
    assert_eq!(files.iter().map(|f| f.size).collect::<Vec<_>>(), [1, 3, 5]);
    assert!(files.iter().all(|f| (f.modified_ms - now).abs() < 3_600_000), "{files:?}");
    let below = storage.list_recursive("a/b", &|folder| folder != "a/b").await.expect("listed");
    assert_eq!(paths(&below), ["a/b/2", "a/b/c/3"], "what is asked for is not asked about");
    let listing = storage.list("a").await.expect("listed");
    assert_eq!((paths(&listing.files), listing.folders), (vec!["a/1"], vec!["a/b".to_owned()]));
    assert!(storage.exists_folder("a/b").await.expect("looked"));
    for none in ["a/1", "a/1/x", "a/bb", "sk"] {
        assert!(!storage.exists_folder(none).await.expect("looked"), "{none}");
        assert!(storage.names(none).await.expect("listed").is_empty(), "{none}");
    }
    storage.delete_folder("a/b").await.expect("deleted");
    let left = storage.list_recursive("", &|_| true).await.expect("listed");
    assert_eq!(paths(&left), ["5", "a/1", "skip/4", "skip/x/6"]);
    storage.delete_folder("").await.expect("deleted");
}

async fn a_staged_name_is_a_file_of_others(storage: &Storage) {
    for path in ["a/export#7", "a/part"] {
        storage.put(path, Bytes::from(path)).await.expect(path);
    }
    let theirs = storage.clone().of_others();
    for (storage, want) in [(storage, &["a/part"][..]), (&theirs, &["a/export#7", "a/part"])] {
        assert_eq!(paths(&storage.list("a").await.expect("listed").files), want);
        assert_eq!(paths(&storage.list_recursive("", &|_| true).await.expect("listed")), want);
        assert_eq!(storage.names("a").await.expect("listed").len(), want.len());
    }
    assert_eq!(theirs.get("a/export#7").await.expect("read"), "a/export#7");
    storage.delete_folder("a").await.expect("deleted");
}

async fn uploads_are_whole(storage: &Storage) {
    for size in SIZES {
        let bytes = pattern(size);
        let (to, sent) = (storage.clone(), bytes.clone());
        let written = blocking(move || {
            let mut upload = to.upload("p/f").expect("begun");
            for piece in sent.chunks(3 << 20) {
                upload.write_all(piece).expect("written");
            }
            upload.finish().expect("finished")
        });
        assert_eq!(written.await, size as u64);
        assert!(storage.get("p/f").await.expect("read") == bytes, "{size}");
        let to = storage.clone();
        // Dropped, it leaves what was there.
        blocking(move || to.upload("p/f").expect("begun").write_all(&vec![7; size]).expect("written")).await;
        assert!(storage.get("p/f").await.expect("read") == bytes, "{size}");
    }
    assert_eq!(storage.names("p").await.expect("listed"), ["f"]);
    storage.delete("p/f").await.expect("deleted");
}

async fn drafts_keep_what_is_there(storage: &Storage) {
    storage.put("p/.f.1", "there".into()).await.expect("put");
    for size in SIZES {
        let bytes = pattern(size);
        let (to, sent) = (storage.clone(), bytes.clone());
        let written = blocking(move || {
            let mut draft = to.draft("p/.f.1").expect("begun");
            draft.write_all(&sent).expect("written");
            let taken = draft.publish("p/.f.1").expect_err("it is there");
            assert!(matches!(taken, Error::AlreadyExists { .. }), "{taken}");
            draft.publish("p/.f.2").expect("published")
        });
        assert_eq!(written.await, size as u64);
        assert_eq!(storage.get("p/.f.1").await.expect("read"), "there");
        assert!(storage.get("p/.f.2").await.expect("read") == bytes, "{size}");
        let mut names = storage.names("p").await.expect("listed");
        names.sort();
        assert_eq!(names, [".f.1", ".f.2"]);
        storage.delete("p/.f.2").await.expect("deleted");
    }
    storage.delete_folder("p").await.expect("deleted");
}

fn pattern(size: usize) -> Bytes {
    (0..size).map(|n| (n % 251) as u8).collect::<Vec<_>>().into()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("worked")
}

pub(super) fn paths(files: &[FileInfo]) -> Vec<&str> {
    files.iter().map(|f| f.path.as_str()).collect()
}
