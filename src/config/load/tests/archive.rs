//! How many instants stay.

use super::*;

#[test]
fn as_many_instants_stay_as_is_said() {
    let plain = Call::new().ok().archive;
    let want = ArchiveConfig { automatic: true, min_commits: 20, max_commits: 30, batch: 10, file_bytes: 4 << 20 };
    assert_eq!(plain, want, "Hudi's defaults");
    let kept = Call::new().conf("hoodie.keep.min.commits=3").conf("hoodie.keep.max.commits=4").ok().archive;
    assert_eq!((kept.min_commits, kept.max_commits), (3, 4));
    for off in ["hoodie.archive.automatic=false", "hoodie.table.services.enabled=false"] {
        assert!(!Call::new().conf(off).ok().archive.automatic, "{off}");
    }
    assert_eq!(Call::new().conf("hoodie.archive.merge.enable=false").ok().archive.file_bytes, 0);
    assert_eq!(Call::new().conf("hoodie.archive.merge.small.file.limit.bytes=7").ok().archive.file_bytes, 7);
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    for (confs, word) in [
        (&["hoodie.keep.min.commits=30"][..], "hoodie.keep.max.commits=30"),
        (&["hoodie.keep.min.commits=5", "hoodie.keep.max.commits=5"], "greater than hoodie.keep.min.commits=5"),
        (&["hoodie.keep.min.commits=0"], "above 0"),
        (&["hoodie.commits.archival.batch=0"], "above 0"),
        (&["hoodie.archive.async=true"], "hoodie.archive.async"),
        (&["hoodie.archive.beyond.savepoint=true"], "readers of Hudi 0.15"),
    ] {
        let call = confs.iter().fold(Call::new(), |call, conf| call.conf(conf));
        let told = call.problem().text;
        assert!(told.contains(word), "{confs:?}: {told}");
    }
}
