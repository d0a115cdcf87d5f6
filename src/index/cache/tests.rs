use super::*;
use crate::table::{FileSlice, InstantTime};

/// Bytes that a file of [`keep`] takes.
const FILE: usize = 60;

fn file(partition: &str, file_id: &str) -> BaseFile {
    let instant = InstantTime::parse("20260101000000001").expect("digits");
    let name = format!("{file_id}_0-0-0_{instant}.parquet");
    BaseFile { partition: partition.into(), name, file_id: file_id.into(), instant, size: 7 }
}

fn view(files: &[&BaseFile]) -> FileSystemView {
    let mut view = FileSystemView::default();
    for file in files {
        let slice = FileSlice {
            partition: file.partition.clone(),
            file_id: file.file_id.clone(),
            base_instant: file.instant.clone(),
            base_file: Some((*file).clone()),
            log_files: Vec::new(),
            pending_compaction: None,
        };
        view.partitions.entry(file.partition.clone()).or_default().push(slice.into());
    }
    view
}

fn keep(cache: &Arc<KeyCache>, file: &BaseFile) {
    cache.keep_keys(file, &[StringArray::from(vec![Some("a"), Some("b")]), StringArray::from(vec!["c"])]);
}

/// Each `files` in turn: whether it is known.
fn known<const N: usize>(cache: &KeyCache, files: [&BaseFile; N]) -> [bool; N] {
    files.map(|file| cache.get(file).is_some())
}

/// A round that looks at all of `files`, as [`super::super::tag`] does.
fn round(cache: &Arc<KeyCache>, table: &[&BaseFile], files: &[&BaseFile]) {
    cache.begin(&view(table), &files.iter().copied().cloned().collect::<Vec<_>>());
    for file in files {
        if cache.get(file).is_none() {
            keep(cache, file);
        }
    }
    let known = cache.known();
    let total: usize = known.files.values().map(|entry| entry.bytes).sum();
    assert!(known.bytes == total && total <= cache.budget, "{known:?}");
}

#[test]
fn a_table_beyond_the_budget_keeps_what_fits() {
    let [a, b, c] = ["a", "b", "c"].map(|id| file("p", id));
    let cache = Arc::new(KeyCache::new(2 * FILE));
    for _ in 0..3 {
        round(&cache, &[&a, &b, &c], &[&a, &b, &c]);
        assert_eq!(known(&cache, [&a, &b, &c]), [true, true, false]);
    }
}

#[test]
fn files_that_were_not_looked_at_for_longest_go_first() {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|id| file(id, id));
    let all = [&a, &b, &c, &d];
    let cache = Arc::new(KeyCache::new(3 * FILE));
    for seen in [&a, &b, &c, &a] {
        round(&cache, &all, &[seen]);
    }
    round(&cache, &all, &[&d]);
    assert_eq!(known(&cache, all), [true, false, true, true]);
    round(&cache, &all, &[&b]);
    assert_eq!(known(&cache, all), [true, true, false, true]);
}

#[test]
fn files_that_are_not_the_latest_any_more_go() {
    let [a, b, other] = [file("p", "a"), file("p", "b"), file("q", "c")];
    let cache = Arc::new(KeyCache::new(10 * FILE));
    round(&cache, &[&a, &b, &other], &[&a, &b, &other]);
    // The round looks at partition p alone: of q it says nothing.
    round(&cache, &[&a], &[]);
    assert_eq!(known(&cache, [&a, &b, &other]), [true, false, true]);
    let rewritten = BaseFile { size: 8, ..a.clone() };
    assert_eq!(known(&cache, [&rewritten]), [false], "of another size it is another file");
}

#[test]
fn a_file_that_is_written_is_known_when_it_is_whole() {
    let [old, new] = [file("p", "a"), BaseFile { name: "a_0-0-0_2.parquet".into(), ..file("p", "a") }];
    let cache = Arc::new(KeyCache::new(FILE + 20));
    round(&cache, &[&old], &[&old]);
    let keys = StringArray::from(vec!["d", "e"]);
    let mut given_up = cache.record();
    given_up.add_all(&keys);
    given_up.finish("p", new.path(), new.size, 2);
    assert_eq!(known(&cache, [&old, &new]), [true, false], "no room beside the file that the round looks at");
    cache.forget(&old.path());
    let mut recorder = cache.record();
    recorder.add_all(&keys);
    drop(recorder);
    assert_eq!(cache.known().bytes, 0, "an abandoned file gives its room back");
    let mut recorder = cache.record();
    recorder.add_all(&keys);
    recorder.finish("p", new.path(), new.size, 3);
    assert_eq!(known(&cache, [&new]), [false], "a key has not been given");
    let mut recorder = cache.record();
    recorder.add_all(&keys);
    recorder.add_all(&StringArray::from(vec!["f"]));
    assert_eq!(known(&cache, [&new]), [false]);
    recorder.finish("p", new.path(), new.size, 3);
    let found = cache.get(&new).expect("kept");
    let KnownFile::Keys(stored) = &*found else { panic!("keys were given: {found:?}") };
    let stored = |key| !stored.find(cache.hasher.hash(key)).is_empty();
    assert_eq!(["a", "d", "e", "f"].map(stored), [false, true, true, true]);
}

#[test]
fn keys_take_the_place_of_a_footer() {
    let a = file("p", "a");
    let cache = Arc::new(KeyCache::new(1000));
    cache.begin(&view(&[&a]), std::slice::from_ref(&a));
    let footer = KeyFooter { bloom: None, min_key: Some("a".into()), max_key: Some("c".into()) };
    cache.keep_footer(&a, footer);
    assert!(matches!(&*cache.get(&a).expect("kept"), KnownFile::Footer(_)));
    keep(&cache, &a);
    assert!(matches!(&*cache.get(&a).expect("kept"), KnownFile::Keys(_)));
    assert_eq!(cache.known().bytes, FILE);
}

#[test]
fn what_a_compaction_writes_waits_for_its_commit() {
    let [old, new] = [file("p", "a"), BaseFile { name: "a_0-0-0_2.parquet".into(), ..file("p", "a") }];
    let cache = Arc::new(KeyCache::new(2 * FILE));
    round(&cache, &[&old], &[&old]);
    let mut recorder = cache.record();
    recorder.add_all(&StringArray::from(vec!["a", "b", "c"]));
    recorder.finish("p", new.path(), new.size, 3);
    round(&cache, &[&old], &[&old]);
    assert_eq!(known(&cache, [&old, &new]), [true, true]);
    round(&cache, &[&new], &[&new]);
    assert_eq!(known(&cache, [&old, &new]), [false, true]);
    round(&cache, &[&file("p", "b")], &[]);
    assert_eq!(known(&cache, [&old, &new]), [false, false]);
}

#[test]
fn a_file_inherits_the_keys_of_the_one_before_it() {
    let [old, new] = [file("p", "a"), BaseFile { name: "a_0-0-0_2.parquet".into(), ..file("p", "a") }];
    let cache = Arc::new(KeyCache::new(2 * FILE));
    assert!(cache.inherit(&old).is_none());
    round(&cache, &[&old], &[&old]);
    let mut recorder = cache.inherit(&old).expect("its keys are known");
    recorder.add_all(&StringArray::from(vec!["d"]));
    assert_eq!(known(&cache, [&old, &new]), [false, false]);
    recorder.finish("p", new.path(), new.size, 4);
    let found = cache.get(&new).expect("kept");
    let KnownFile::Keys(stored) = &*found else { panic!("keys were given: {found:?}") };
    let stored = |key| !stored.find(cache.hasher.hash(key)).is_empty();
    assert_eq!(["a", "b", "c", "d", "e"].map(stored), [true, true, true, true, false]);
}
