//! What is synced, and when.

use super::*;

/// Folders that are synced one after the other may be so in any order.
fn done(disk: &Disk) -> Vec<String> {
    let mut done = std::mem::take(&mut *disk.durability.done.lock().unwrap());
    let is_folder = |text: &String| text.starts_with("sync ") && text != "sync the file";
    done.chunk_by_mut(|a, b| is_folder(a) && is_folder(b)).for_each(<[String]>::sort);
    done
}

fn disk(folder: &Path, fsync: bool) -> Disk {
    Disk::new(folder.to_str().unwrap(), fsync)
}

#[tokio::test]
async fn a_file_is_synced_then_named_then_its_folder_synced() {
    let dir = tempfile::tempdir().unwrap();
    let disk = disk(dir.path(), true);
    let want = ["sync the file", "name a", &format!("sync {}", dir.path().file_name().unwrap().display())];
    for replaces in [false, true, true] {
        match replaces {
            false => disk.create("a", "1".into()).await.unwrap(),
            true => disk.put("a", "1".into()).await.unwrap(),
        }
        assert_eq!(done(&disk), want);
    }
}

#[tokio::test]
async fn names_of_data_wait_for_what_speaks_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let disk = disk(dir.path(), true);
    let root = format!("sync {}", dir.path().file_name().unwrap().display());
    let upload = |path: &str| {
        let mut upload = disk.upload(path, false).unwrap();
        upload.write_all(b"2").unwrap();
        upload.finish().unwrap();
    };
    disk.create("marks/a", Bytes::new()).await.unwrap();
    upload("p/a");
    let mut folders = [&root, "sync marks"];
    folders.sort();
    assert_eq!(done(&disk), [&["name a", "sync the file"], &folders[..], &["name a"]].concat(), "what came before");
    upload("p/b");
    upload("q/c");
    assert_eq!(done(&disk), ["sync the file", "name b", "sync the file", &root, "name c"], "not each other");
    disk.create_ahead("next", "1".into()).await.unwrap();
    assert_eq!(done(&disk), ["sync the file", "sync p", "sync q", "name next"], "all of it");
    disk.create("commit", "1".into()).await.unwrap();
    assert_eq!(done(&disk), ["sync the file", &root, "name commit", &root]);
}

#[tokio::test]
async fn what_has_no_bytes_is_synced_before_the_next_file_that_has() {
    let dir = tempfile::tempdir().unwrap();
    let disk = disk(dir.path(), true);
    let root = dir.path().file_name().unwrap().display().to_string();
    disk.create("marks/p/one", Bytes::new()).await.unwrap();
    disk.create("marks/p/two", Bytes::new()).await.unwrap();
    assert_eq!(done(&disk), ["name one", "name two"]);
    disk.create("p/data", "1".into()).await.unwrap();
    let mut folders = ["sync marks", "sync p", &format!("sync {root}")];
    folders.sort();
    assert_eq!(done(&disk), [&["sync the file"], &folders[..], &["name data", "sync p"]].concat());
    disk.delete("p/data").await.unwrap();
    disk.delete("p/never").await.unwrap();
    assert_eq!(done(&disk), Vec::<String>::new());
    disk.create("commit", "1".into()).await.unwrap();
    assert_eq!(done(&disk), ["sync the file", "sync p", "name commit", &format!("sync {root}")]);
    // A folder that is gone by then keeps nobody up.
    disk.delete("marks/p/one").await.unwrap();
    disk.delete_folder("marks").await.unwrap();
    disk.create("next", "1".into()).await.unwrap();
    assert_eq!(done(&disk).last().unwrap(), &format!("sync {root}"));
}

#[tokio::test]
async fn without_fsync_nothing_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let disk = disk(dir.path(), false);
    disk.create("p/a", "1".into()).await.unwrap();
    disk.delete("p/a").await.unwrap();
    disk.put("p/b", "1".into()).await.unwrap();
    assert_eq!(done(&disk), ["name a", "name b"]);
}

#[test]
fn a_link_that_was_made_without_an_answer_is_ours() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("f");
    let durability = Arc::new(Durability::new(true));
    let begin = || Staged::begin(&target, Kind::Record, durability.clone());
    let mut staged = begin().unwrap();
    staged.write_all(b"1").unwrap();
    fs::hard_link(dir.path().join("f#1"), &target).unwrap();
    staged.link(&target).unwrap();
    assert!(!dir.path().join("f#1").exists());
    let mut other = begin().unwrap();
    assert_eq!(other.link(&target).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn one_whose_staged_file_was_deleted_does_not_name_that_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("f");
    let begin = || Staged::begin(&target, Kind::Record, Arc::new(Durability::new(false))).unwrap();
    let mut ours = begin();
    ours.write_all(b"ours").unwrap();
    upload::remove_staged(&target);
    let mut theirs = begin();
    theirs.write_all(b"the").unwrap();
    assert_eq!(ours.link(&target).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(ours.is_lost());
    drop(ours);
    theirs.write_all(b"irs").unwrap();
    theirs.link(&target).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"theirs");
    assert!(!dir.path().join("f#1").exists());
}

/// A delete takes what is staged beside its target for a dead process's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_beside_deletes_of_their_target_find_it_there_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(disk(dir.path(), false));
    let one = |who: u8| {
        let disk = disk.clone();
        tokio::spawn(async move {
            let text = Bytes::from(vec![who; 100]);
            for _ in 0..100 {
                match disk.create("lock", text.clone()).await {
                    Ok(()) | Err(Cause::AlreadyExists) => {}
                    Err(e) => panic!("{e:?}"),
                }
                disk.put("lock", text.clone()).await.unwrap();
                disk.delete("lock").await.unwrap();
            }
        })
    };
    for all in futures::future::join_all((0..8).map(one)).await {
        all.unwrap();
    }
    assert_eq!(disk.names("").await.unwrap(), Vec::<String>::new());
}
