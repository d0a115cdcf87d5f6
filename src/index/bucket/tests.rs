use super::*;
use crate::index::testing;
use crate::table::InstantTime;
use serde_json::Value;

fn config(count: u32, fields: &str) -> BucketConfig {
    BucketConfig { count, hash_fields: fields.split(',').map(str::to_string).collect() }
}

/// `bucket_hash.json` is the output of Hudi's own class.
#[test]
fn keys_go_to_the_buckets_that_hudi_gives_them() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../../tests/vectors/bucket_hash.json")).expect("vectors");
    let cases = vectors["cases"].as_array().expect("a list");
    assert!(cases.len() > 30, "only {} cases", cases.len());
    for case in cases {
        let text = |name: &str| case[name].as_str().expect("text");
        let number = |name: &str| case[name].as_i64().expect("a number");
        let config = config(number("numBuckets") as u32, text("indexKeyFields"));
        let key = text("recordKey");
        assert_eq!(i64::from(hash(key, &config.hash_fields)), number("javaListHash"), "{case}");
        let bucket = bucket_of(key, &config);
        assert_eq!(i64::from(bucket), number("bucket"), "{case}");
        let file_id = new_file_id(bucket);
        assert!(file_id.starts_with(text("fileIdPrefix8")) && file_id.ends_with("-0"), "{file_id}: {case}");
        assert_eq!((file_id.len(), bucket_in(&file_id)), (38, Some(bucket)), "{file_id}");
    }
}

#[test]
fn parts_of_a_key_are_those_of_javas_split() {
    for (key, same_as) in [("id:1,,", "id:1"), ("a:1,", "a:1"), ("id:1,x:2", "id:1"), (",id:1", ",id:1,,")] {
        assert_eq!(hash(key, &["id".into()]), hash(same_as, &["id".into()]), "{key}");
    }
    assert_ne!(hash(",id:1", &["id".into()]), hash("id:1", &["id".into()]), "an empty part in front counts");
    assert_eq!(hash(":", &["id".into()]), 1);
}

fn slice(partition: &str, file_id: &str) -> FileSlice {
    FileSlice {
        partition: partition.to_string(),
        file_id: file_id.to_string(),
        base_instant: InstantTime::parse("20240101000000000").unwrap(),
        base_file: None,
        log_files: Vec::new(),
        pending_compaction: None,
    }
}

fn view(slices: &[(&str, &str)]) -> FileSystemView {
    let mut view = FileSystemView::default();
    for (partition, file_id) in slices {
        view.partitions.entry(partition.to_string()).or_default().push(slice(partition, file_id).into());
    }
    view
}

#[test]
fn a_row_goes_to_the_group_of_its_bucket_in_its_partition() {
    let four = config(4, "id");
    // Of 4 buckets k1 and k5 have 1, k2 has 2.
    assert_eq!(["k1", "k5", "k2"].map(|key| bucket_of(key, &four)), [1, 1, 2]);
    let stored = stored(&view(&[("p", "00000001-a"), ("p", "00000003-a"), ("q", "00000002-a")]), &four).unwrap();
    let batches = vec![
        testing::keyed(&[("k1", "p", 0), ("k2", "p", 0), ("k2", "q", 0)]),
        testing::keyed(&[("k5", "p", 0), ("k1", "q", 0), ("k1", "r", 0)]),
    ];
    let rows: Vec<RowRef> =
        [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)].map(|(batch, row)| RowRef { batch, row }).into();
    let tagged = tag(&four, stored, batches, &rows);
    let groups: Vec<_> = tagged.groups.iter().map(|slice| (&*slice.partition, &*slice.file_id)).collect();
    assert_eq!(groups, [("p", "00000001-a"), ("q", "00000002-a")], "groups without rows are none");
    assert_eq!(tagged.rows.iter().map(|row| row.row).collect::<Vec<_>>(), rows);
    let of_rows: Vec<_> = tagged.rows.iter().map(|row| row.group).collect();
    assert_eq!(of_rows, [Some(0), None, Some(1), Some(0), None, None]);
}

#[test]
fn groups_that_are_not_these_buckets_are_refused() {
    let four = config(4, "id");
    for (slices, code) in [
        (&[("p", "00000001-a"), ("p", "00000001-b")][..], "index-bucket-twice"),
        (&[("p", "00000004-a")], "index-bucket-count"),
        (&[("p", "99999999-a")], "index-bucket-count"),
        (&[("p", "3b0e6a12-0000-4000-8000-000000000000-0")], "index-no-bucket"),
        (&[("p", "+0000001-a")], "index-no-bucket"),
        (&[("p", "1-0")], "index-no-bucket"),
        (&[("p", "0000000ü-0")], "index-no-bucket"),
    ] {
        assert_eq!(stored(&view(slices), &four).unwrap_err().code(), code, "{slices:?}");
    }
}
