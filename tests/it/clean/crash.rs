//! A clean that died is finished by whoever comes next.

use super::*;

const POINTS: [&str; 5] = ["after-clean-plan", "in-clean", "in-clean:2", "in-clean:4", "before-clean-complete"];

/// A job killed at `point`, in the clean behind its fourth commit.
fn killed(point: &str) -> Job {
    let mut job = after("COPY_ON_WRITE", 3, &[VERSIONS, NEVER]);
    job.feed(&rows(4));
    job.call = job.call.conf(NEVER.0, "true");
    job.call.clone().env("HUDI_STREAMER_FAULT", point).run().killed();
    let commits = job.table.commits();
    assert_eq!(commits.len(), 4, "{point}: the commit stands");
    job.model.upsert(&commits[3], &rows(4));
    assert_eq!(instants(&job.table, ".clean.requested").len(), 1, "{point}");
    assert_eq!(cleans(&job.table), Vec::<String>::new(), "{point}");
    job
}

#[track_caller]
fn assert_finished(job: &Job, point: &str) {
    let commits = job.table.commits();
    assert_versions(&job.table, &commits[3..4]);
    let cleans = cleans(&job.table);
    assert_eq!(cleans.len(), 1, "{point}");
    let done = record(&job.table, &format!("{}.clean", cleans[0]));
    for partition in ["a", "b"] {
        let of = &done["partitionMetadata"][partition];
        let count = |field: &str| of[field].as_array().map_or(0, Vec::len);
        assert_eq!(count("deletePathPatterns"), 3, "{point}: {of}");
        assert_eq!(count("successDeleteFiles") + count("failedDeleteFiles"), 3, "{point}: {of}");
    }
    assert_eq!(job.table.pending(), Vec::<String>::new(), "{point}");
}

#[test]
fn the_next_start_finishes_a_clean_that_died() {
    for point in POINTS {
        let job = killed(point);
        job.call.run().ok();
        assert_finished(&job, point);
        if peers_enabled() && point == "in-clean:2" {
            job.check();
            oracle(SPARK_0_15).validate(job.table.str(), false);
        }
    }
}

#[test]
fn the_command_finishes_it_too() {
    let job = killed("in-clean:2");
    let call = clean(&job.table, &[VERSIONS]);
    let would = call.clone().switch("--dry-run").run().ok().stdout;
    assert!(would.contains("is pending, and would be finished"), "{would}");
    call.run().ok();
    assert_finished(&job, "command");
}

#[test]
fn spark_finishes_it_too() {
    needs_peers!();
    let job = killed("in-clean:2");
    oracle(SPARK_0_15).service(
        job.table.str(),
        "clean",
        &[
            "hoodie.metadata.enable=false",
            "hoodie.cleaner.policy=KEEP_LATEST_FILE_VERSIONS",
            "hoodie.cleaner.fileversions.retained=1",
        ],
    );
    assert_finished(&job, "Spark");
    job.check();
}

/// Spark's own plan, in a table from which nothing has gone yet.
#[test]
fn we_finish_what_spark_has_begun() {
    needs_peers!();
    for states in [&["requested"][..], &["requested", "inflight"]] {
        let job = after("COPY_ON_WRITE", 4, &[VERSIONS, NEVER]);
        let copy = spark::copy_of(&job.table, &job.scratch, "spark");
        spark::spark_cleans(&copy, &[VERSIONS]);
        let theirs = cleans(&copy);
        assert_eq!(theirs.len(), 1);
        for state in states {
            let name = format!(".hoodie/{}.clean.{state}", theirs[0]);
            fs::copy(copy.path.join(&name), job.table.path.join(&name)).expect("copy the plan");
        }
        job.call.clone().conf(NEVER.0, "true").run().ok();
        assert_eq!(cleans(&job.table), theirs, "without anything new to read");
        assert_finished(&job, "Spark's");
        job.check();
    }
}

/// Spark does not look whether a plan's files are needed by now: what we spare is out of the plan before anything goes.
#[test]
fn what_we_spare_spark_spares_that_goes_on_with_the_plan() {
    needs_peers!();
    let job = killed("after-clean-plan");
    // What the plan takes for old is the newest then.
    oracle(SPARK_0_15).at_instant(job.table.str(), "rollback", &job.table.last_commit());
    job.call.clone().env("HUDI_STREAMER_FAULT", "in-clean:2").run().killed();
    spark::spark_cleans(&job.table, &[VERSIONS]);
    assert_eq!(job.table.pending(), Vec::<String>::new());
    assert_versions(&job.table, &job.table.commits()[2..]);
}
