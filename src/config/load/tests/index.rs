//! Which index, and what goes with it.

use super::*;

fn bucketed() -> Call {
    Call::new().conf("hoodie.index.type=BUCKET")
}

fn buckets(call: &Call) -> (u32, Vec<String>) {
    let config = call.ok();
    assert_eq!(config.index.index_type, IndexType::Bucket);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let buckets = config.index.buckets.expect("buckets");
    (buckets.count, buckets.hash_fields)
}

#[test]
fn buckets_are_256_of_the_whole_key_unless_told() {
    assert_eq!(buckets(&bucketed()), (256, vec!["id".to_string()]));
    let told = bucketed()
        .conf("hoodie.index.bucket.engine=simple")
        .conf("hoodie.bucket.index.num.buckets=4")
        .conf("hoodie.datasource.write.recordkey.field=a,b")
        .conf("hoodie.bucket.index.hash.field=b");
    assert_eq!(buckets(&told), (4, vec!["b".to_string()]));
    assert_eq!(Call::new().ok().index.buckets, None);
}

#[test]
fn what_does_not_go_with_buckets_is_refused_by_name() {
    let mor = |call: Call| call.flag("--table-type", "MERGE_ON_READ");
    for (call, code, word) in [
        (bucketed().conf("hoodie.index.bucket.engine=CONSISTENT_HASHING"), "config-unsupported", "CONSISTENT_HASHING"),
        (bucketed().conf("hoodie.bucket.index.num.buckets=0"), "config-bad-value", "from 1"),
        (bucketed().conf("hoodie.bucket.index.num.buckets=100000001"), "config-bad-value", "from 1"),
        (bucketed().conf("hoodie.bucket.index.hash.field=other"), "config-conflict", "other"),
        (mor(bucketed()).flag("--op", "INSERT").switch("--filter-dupes"), "config-unsupported", "--filter-dupes"),
    ] {
        let problem = call.problem();
        assert!(problem.code == code && problem.text.contains(word), "{}: {}", problem.code, problem.text);
    }
    bucketed().flag("--op", "INSERT").switch("--filter-dupes").ok();
}

#[test]
fn what_buckets_make_idle_is_told() {
    for (call, word) in [
        (Call::new().conf("hoodie.bucket.index.num.buckets=4"), "hoodie.index.type=BUCKET"),
        (Call::new().conf("hoodie.bucket.index.hash.field=id"), "hoodie.index.type=BUCKET"),
        (bucketed().flag("--op", "BULK_INSERT").conf("hoodie.bulkinsert.sort.mode=GLOBAL_SORT"), "sort.mode"),
        (bucketed().conf("hoodie.storage.layout.type=BUCKET"), "hoodie.storage.layout.type"),
    ] {
        let warnings = call.ok().warnings;
        assert!(matches!(warnings.as_slice(), [w] if w.contains(word)), "{warnings:?}");
    }
}
