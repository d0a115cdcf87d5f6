//! Spark and we come to the same, and each goes on after the other.

use super::*;

/// What Spark is told, so that a table goes on as it is.
const SETTINGS: [&str; 3] =
    ["hoodie.metadata.enable=false", "hoodie.clean.automatic=false", "hoodie.compact.inline=false"];

/// Hadoop's side files, which Spark makes, left out.
fn without_sums((data, timeline): (BTreeSet<String>, BTreeSet<String>)) -> (BTreeSet<String>, BTreeSet<String>) {
    let keep = |name: &String| !name.ends_with(".crc");
    (data.into_iter().filter(keep).collect(), timeline.into_iter().filter(keep).collect())
}

fn without(timeline: &BTreeSet<String>, action: &str) -> BTreeSet<String> {
    timeline.iter().filter(|name| !name.contains(action)).cloned().collect()
}

#[test]
fn a_restore_of_ours_comes_to_what_sparks_comes_to() {
    needs_peers!();
    for table_type in TABLE_TYPES {
        let mut messed = messed(table_type);
        let planned = messed.job.table.pending_compactions();
        // The savepoint is ours, and Spark restores to it.
        let theirs = copy(&messed.job.table, &messed.job.scratch.path("theirs"));
        oracle(SPARK_0_15).at_instant(theirs.str(), "restore", &messed.savepoint);
        restore(&messed.job.table).run().ok();
        let (their_data, their_timeline) = without_sums(state(&theirs));
        let (our_data, our_timeline) = without_sums(state(&messed.job.table));
        assert_eq!(without(&our_timeline, ".restore"), without(&their_timeline, ".restore"), "{table_type}");
        // Hudi leaves the log files on a compaction that had not begun; they are of nobody.
        let left: Vec<&String> = their_data.difference(&our_data).collect();
        let of_plan = |file: &str| planned.iter().any(|plan| file.contains(&format!("_{plan}.log.")));
        assert!(left.iter().all(|file| of_plan(file)), "{table_type}: {left:?}");
        assert_eq!(left.is_empty(), planned.is_empty(), "{table_type}");
        assert_eq!(our_data.difference(&their_data).collect::<Vec<_>>(), [""; 0], "{table_type}");
        let want = oracle(SPARK_0_15).read(theirs.str());
        let got = oracle(SPARK_0_15).read(messed.job.table.str());
        assert_rows(table_type, &messed.job.table, &want, got, &[]);

        // Spark goes on after our restore, and the job after Spark's.
        let batch = rows(1..10, 7);
        let input = messed.job.scratch.lines("spark.json", &batch);
        let instant = oracle(SPARK_0_15).write(messed.job.table.str(), "upsert", &input, &SETTINGS);
        let mut model = Model::new(&["id", "ts", "v", "part"]).partitioned("part");
        model.load(&oracle(SPARK_0_15).read(theirs.str()));
        messed.job.model.upsert(&instant, &batch);
        messed.job.check_through_compaction();
        messed.job.table = theirs.clone();
        messed.job.call = messed.job.call.clone().flag("--target-base-path", &theirs.path);
        let instant = messed.job.round("UPSERT");
        model.upsert(&instant, &messed.later.concat());
        model.assert_equals(&theirs);
        oracle(SPARK_0_15).validate(theirs.str(), false);
    }
}

#[test]
fn a_restore_that_one_has_begun_the_other_finishes() {
    needs_peers!();
    for table_type in TABLE_TYPES {
        let messed = messed(table_type);
        // Ours dies after some of it.
        let ours = copy(&messed.job.table, &messed.job.scratch.path("ours"));
        restore(&ours).env("HUDI_STREAMER_STORAGE_FAULT", "kill:put:6").run().killed();
        oracle(SPARK_0_15).at_instant(ours.str(), "restore", &messed.savepoint);
        messed.job.model.assert_read_by(&ours, &[SPARK_0_15]);

        // Spark's plan, taken up at its beginning, and where one write has left the timeline already.
        let planned: Vec<String> =
            ours.timeline().into_iter().filter(|name| name.contains(".restore.") && !name.ends_with(".crc")).collect();
        assert_eq!(planned.len(), 2, "{planned:?}");
        for gone in [false, true] {
            let theirs = copy(&messed.job.table, &messed.job.scratch.path("theirs"));
            for name in &planned {
                let file = Path::new(".hoodie").join(name);
                std::fs::copy(ours.path.join(&file), theirs.path.join(&file)).expect("copied");
            }
            if gone {
                let newest = theirs.last_write();
                for file in theirs.files().iter().filter(|file| file.contains(&newest)) {
                    std::fs::remove_file(theirs.path.join(file)).expect("removed");
                }
            }
            let other = restore(&theirs).flag("--instant", &messed.job.table.writes()[0]).run();
            other.fails_with(1, &["service-restore-other", &messed.savepoint]);
            let run = restore(&theirs).run().ok();
            assert!(run.stdout.contains("had begun"), "{run}");
            messed.job.model.assert_read_by(&theirs, &[SPARK_0_15]);
            oracle(SPARK_0_15).validate(theirs.str(), false);
        }
    }
}

#[test]
fn a_rollback_and_a_savepoint_of_ours_come_to_what_sparks_come_to() {
    needs_peers!();
    for table_type in TABLE_TYPES {
        let mut job = job(table_type);
        job.upsert(&rows(0..6, 1));
        job.upsert(&rows(0..3, 2));
        let kept = job.table.last_write();
        job.feed(&rows(2..8, 3));
        let instant = job.round("UPSERT");
        let theirs = copy(&job.table, &job.scratch.path("theirs"));
        oracle(SPARK_0_15).at_instant(theirs.str(), "rollback", &instant);
        command(&job.table, &["rollback"]).run().ok();
        let (their_data, their_timeline) = without_sums(state(&theirs));
        let (our_data, our_timeline) = without_sums(state(&job.table));
        assert_eq!(our_data, their_data, "{table_type}");
        assert_eq!(without(&our_timeline, ".rollback"), without(&their_timeline, ".rollback"), "{table_type}");
        job.check();

        // A savepoint of an earlier write keeps the same files, whoever makes it.
        oracle(SPARK_0_15).at_instant(theirs.str(), "savepoint", &kept);
        command(&job.table, &["savepoint", "create"]).flag("--instant", &kept).run().ok();
        let list = |table: &Table| -> Value {
            let told = command(table, &["savepoint", "list", "--json"]).run().ok().stdout;
            serde_json::from_str::<Value>(&told).expect("JSON")[0].clone()
        };
        let (ours, theirs) = (list(&job.table), list(&theirs));
        assert_eq!((&ours["savepoint"], &ours["files"]), (&theirs["savepoint"], &theirs["files"]), "{table_type}");
        assert_eq!(theirs["user"], "oracle");
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}
