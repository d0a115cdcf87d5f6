//! When compactions are planned and by whom they are executed; what each process leaves alone.

use super::*;

/// Plans are made by the job and executed by nobody: `hudi-streamer compact` does that.
fn planning(every: &str) -> MorJob {
    MorJob::new(OVERWRITE, |call| {
        call.switch("--disable-compaction")
            .conf("hoodie.compact.schedule.inline", "true")
            .conf("hoodie.compact.inline.max.delta.commits", every)
    })
}

fn rows(keys: std::ops::Range<i64>, ts: i64) -> Vec<Row> {
    keys.map(|key| event(key, ts)).collect()
}

/// Readers are asked where they are installed.
fn check(job: &MorJob) {
    if peers_enabled() {
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

/// Incremental queries of Spark 1.0 lose what is in a log on a base file that is newer than where they begin.
fn check_snapshot(job: &MorJob) {
    if peers_enabled() {
        job.model.check(&job.table, &[]);
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

/// What a command says on standard output.
#[track_caller]
fn answers(run: &Run, words: &[&str]) {
    assert!(words.iter().all(|word| run.stdout.contains(word)), "{words:?} in the answer of {run}");
}

/// The write stats of a commit.
fn stats(job: &MorJob, instant: &str) -> Vec<Value> {
    let metadata = job.table.commit_metadata(instant);
    let partitions = metadata["partitionToWriteStats"].as_object().expect("partitions").values();
    partitions.flat_map(|stats| stats.as_array().expect("stats").clone()).collect()
}

fn sum(stats: &[Value], field: &str) -> i64 {
    stats.iter().map(|stat| stat[field].as_i64().unwrap_or_else(|| panic!("{field} in {stat}"))).sum()
}

#[test]
fn a_one_shot_job_compacts_whenever_so_many_delta_commits_have_come() {
    let mut job = MorJob::new(OVERWRITE, |call| call.conf("hoodie.compact.inline.max.delta.commits", "2"));
    for round in 1..=5 {
        job.upsert(&rows(0..30, round));
        assert_eq!(job.table.compactions().len() as i64, round / 2, "after round {round}");
        assert_eq!(job.table.pending(), Vec::<String>::new(), "after round {round}");
        check(&job);
    }
    let compaction = job.table.compactions().pop().expect("the second");
    let metadata = job.table.commit_metadata(&compaction);
    assert_eq!((&metadata["compacted"], &metadata["operationType"]), (&true.into(), &"COMPACT".into()));
    let extra = metadata["extraMetadata"].as_object().expect("extra metadata");
    assert_eq!(extra.keys().collect::<Vec<_>>(), ["schema"], "a compaction carries no checkpoint");
    let stats = stats(&job, &compaction);
    assert_eq!((sum(&stats, "numWrites"), sum(&stats, "totalUpdatedRecordsCompacted")), (30, 30));
    assert_eq!((sum(&stats, "totalLogRecords"), sum(&stats, "totalLogFilesCompacted")), (60, 6), "two rounds of logs");
    let first = job.table.compactions().swap_remove(0);
    assert!(stats.iter().all(|stat| stat["prevCommit"] == first.as_str()), "{stats:?}");
    assert!(!job.table.files().iter().any(|f| f.starts_with(".hoodie/.temp/") || f.contains(".heartbeat/")));
}

#[test]
fn a_job_that_only_plans_leaves_the_execution_to_the_command() {
    let mut job = planning("2");
    job.upsert(&rows(0..30, 1));
    job.upsert(&rows(0..20, 2));
    let [plan] = &job.table.pending_compactions()[..] else { panic!("no plan after two delta commits") };
    let plan = plan.clone();
    job.upsert(&rows(10..30, 3));
    assert_eq!(job.table.pending_compactions(), std::slice::from_ref(&plan), "one plan at a time");
    let on_plan = |log: &&String| log.contains(&format!("_{plan}.log."));
    assert_eq!(job.table.log_files().iter().filter(on_plan).count(), 3, "what is new goes on the plan's instant");
    check(&job);

    let execute = job.compact("execute");
    answers(&job.run(&execute), &["completed", &plan]);
    assert_eq!(job.table.pending(), Vec::<String>::new());
    check(&job);
    answers(&job.run(&execute), &["no compaction is pending"]);
    let schedule = job.compact("schedule").conf("hoodie.compact.inline.max.delta.commits", "2");
    answers(&job.run(&schedule), &["no compaction is due"]);
    let both = job.compact("scheduleAndExecute");
    answers(&job.run(&both), &["planned", "completed"]);
    check(&job);
}

#[test]
fn an_execution_that_died_is_begun_anew_at_once() {
    for point in ["in-compaction", "before-compaction-complete", "after-compaction-complete"] {
        println!("killed {point}");
        let mut job = planning("2");
        job.upsert(&rows(0..30, 1));
        job.upsert(&rows(0..20, 2));
        let files = job.table.base_files().len();
        let execute = job.compact("execute");
        job.killed_at(point, &execute);
        let completed = point == "after-compaction-complete";
        assert_eq!(job.table.pending_compactions().is_empty(), completed, "{point}");
        if !completed {
            check(&job);
            // Nor need anybody wait for one that dies as it takes the place of the first.
            job.killed_at("in-claim", &execute);
            answers(&job.run(&execute), &["completed"]);
            assert_eq!(job.table.rollbacks(), 1, "{point}: what the first attempt left is rolled back");
        } else {
            answers(&job.run(&execute), &["no compaction is pending"]);
        }
        assert_eq!(job.table.base_files().len(), files + 3, "{point}: a base file a group");
        job.upsert(&rows(5..25, 3));
        check(&job);
        let both = job.compact("scheduleAndExecute");
        answers(&job.run(&both), &["completed"]);
        assert!(!job.table.files().iter().any(|f| f.starts_with(".hoodie/.temp/")), "{point}");
        check(&job);
    }
}

#[test]
fn execution_leaves_an_open_write_alone_and_planning_refuses() {
    let mut job = planning("2");
    job.upsert(&rows(0..30, 1));
    job.upsert(&rows(0..20, 2));
    job.upsert(&rows(5..25, 3));
    job.upsert_killed_at("before-complete", &rows(10..30, 4));
    let open = |job: &MorJob| {
        job.table
            .timeline()
            .into_iter()
            .filter(|n| n.contains(".deltacommit.inflight"))
            .max()
            .expect("an inflight file")
    };
    let write = open(&job);
    let execute = job.compact("execute");
    answers(&job.run(&execute), &["completed"]);
    assert_eq!(open(&job), write);
    check(&job);

    let before = job.table.timeline();
    let schedule = job.compact("schedule");
    let instant = write.split('.').next().expect("an instant");
    schedule.run().fails_with(1, &["service-compaction-write-open", instant, "hoodie.compact.schedule.inline"]);
    assert_eq!(before, job.table.timeline());
    job.upsert(&[]);
    check(&job);
}

#[test]
fn a_plan_that_another_process_executes_is_left_to_it() {
    let mut job = planning("2");
    job.upsert(&rows(0..30, 1));
    job.upsert(&rows(0..20, 2));
    let plan = job.table.pending_compactions().pop().expect("a plan");
    // Of another machine, which nobody can look into from here.
    job.scratch.file(&format!("table/.hoodie/.heartbeat/{plan}"), "elsewhere pid:[1] 1 1 x");
    let execute = job.compact("execute");
    execute.clone().flag("--instant-time", &plan).run().fails_with(1, &["service-compactor-alive", &plan]);
    answers(&job.run(&execute), &["left alone", &plan]);
    let inline = job.call.clone().without("--disable-compaction").without("hoodie.compact.schedule.inline");
    job.upsert_by(&inline, &rows(10..20, 3));
    assert_eq!(job.table.pending_compactions(), std::slice::from_ref(&plan));

    // A continuous job holds its rounds back for it.
    let held = inline.switch("--continuous").flag("--max-pending-compactions", "0");
    let running = held.start();
    wait_for("rounds to be held back", || running.said().contains("held back"));
    running.signal("TERM");
    running.finish().ok();
    std::fs::remove_file(job.scratch.path(&format!("table/.hoodie/.heartbeat/{plan}"))).expect("it has ended");
    answers(&job.run(&execute), &["completed"]);
    check(&job);
}

#[test]
fn the_last_plan_is_executed_before_a_round_that_is_told_so() {
    let mut job = planning("2");
    job.upsert(&rows(0..30, 1));
    job.upsert(&rows(0..20, 2));
    let plan = job.table.pending_compactions().pop().expect("a plan");
    let call = job.call.clone().without("--disable-compaction").without("hoodie.compact.schedule.inline");
    let call = call.switch("--retry-last-pending-inline-compaction");
    job.feed(&rows(0..9, 3));
    for looks in ["--dry-run", "--explain"] {
        let before = job.table.files();
        call.clone().switch(looks).run().ok();
        assert_eq!(before, job.table.files(), "{looks} changes nothing");
    }
    job.upsert_by(&call, &rows(0..9, 3));
    assert_eq!(job.table.compactions().first(), Some(&plan));
    let delta = job.table.delta_commits().pop().expect("the round's");
    let on_new_files =
        |stat: &Value| stat["baseFile"].as_str().is_some_and(|f| f.ends_with(&format!("_{plan}.parquet")));
    assert!(stats(&job, &delta).iter().all(on_new_files), "the round wrote on what the compaction made");
    check(&job);
}

#[test]
fn a_compaction_that_fails_behind_the_commit_is_told_and_undoes_nothing() {
    let by_days = "org.apache.hudi.table.action.compact.strategy.DayBasedCompactionStrategy";
    let mut job = MorJob::new(OVERWRITE, |call| {
        call.conf("hoodie.compaction.strategy", by_days).conf("hoodie.compact.inline.max.delta.commits", "2")
    });
    job.upsert(&rows(0..30, 1));
    job.feed(&rows(0..20, 2));
    job.call.run().fails_with(1, &["service-compaction-day", "p0", "hoodie.compaction.strategy"]);
    assert_eq!(job.table.delta_commits().len(), 2, "the commit stands");
    assert_eq!(job.table.checkpoint(), job.position());
    job.feed(&rows(0..20, 3));
    let lenient = job.call.clone().conf("hoodie.fail.writes.on.inline.table.service.exception", "false");
    lenient.run().ok().says(&["the compaction behind the commit failed", "p0"]);
    assert_eq!(job.table.delta_commits().len(), 3);
}

#[test]
fn a_group_whose_rows_are_all_gone_keeps_an_empty_base_file() {
    let mut job = MorJob::new(OVERWRITE, |call| call.conf("hoodie.compact.inline.max.delta.commits", "2"));
    job.upsert(&rows(0..9, 1));
    job.upsert(&(0..9).filter(|key| key % 3 == 0).map(|key| gone(key, 2)).collect::<Vec<_>>());
    let compaction = job.table.compactions().pop().expect("a compaction");
    let stats = stats(&job, &compaction);
    let [stat] = &stats[..] else { panic!("only one group has logs: {stats:?}") };
    assert_eq!((&stat["numWrites"], &stat["numDeletes"]), (&0.into(), &3.into()));
    check(&job);
    job.upsert(&rows(0..9, 3));
    check(&job);
}

#[test]
fn a_key_that_the_plan_deletes_comes_back_once() {
    for payload in [OVERWRITE, BY_EVENT_TIME] {
        let mut job = MorJob::new(payload, |call| call.switch("--disable-compaction"));
        let (schedule, execute) = (job.compact("schedule"), job.compact("execute"));
        job.upsert(&rows(0..9, 1));
        job.upsert(&[gone(1, 2), gone(2, 2)]);
        answers(&job.run(&schedule), &["planned"]);
        job.upsert(&rows(1..4, 3));
        job.upsert(&[event(1, 4), gone(4, 4)]);
        check_snapshot(&job);
        job.upsert(&[event(4, 5)]);
        answers(&job.run(&execute), &["completed"]);
        job.upsert(&rows(1..5, 6));
        check_snapshot(&job);
    }
}

#[test]
fn plans_go_to_and_fro_between_spark_and_us() {
    needs_peers!();
    let mut job = MorJob::new(OVERWRITE, |call| call.switch("--disable-compaction"));
    job.upsert(&rows(0..30, 1));
    let schedule = job.compact("schedule");
    let execute = job.compact("execute");
    for (turn, spark) in [(1, SPARK_0_15), (2, SPARK_1_0)] {
        job.upsert(&[rows(0..20, turn * 10), vec![gone(turn + 20, turn * 10)]].concat());
        answers(&job.run(&schedule), &["planned"]);
        job.upsert(&rows(10..20, turn * 10 + 1));
        check(&job);
        job.spark_compacts(spark, "run_compact");
        assert_eq!(job.table.pending_compactions(), Vec::<String>::new(), "Spark has executed our plan");
        check(&job);
        job.upsert(&rows(5..15, turn * 10 + 2));
        job.spark_compacts(spark, "schedule_compact");
        job.upsert(&rows(10..20, turn * 10 + 3));
        check(&job);
        answers(&job.run(&execute), &["completed"]);
        check(&job);
    }
}

#[test]
fn the_command_refuses_what_it_cannot_do() {
    let mut job = planning("2");
    job.upsert(&rows(0..30, 1));
    let at = |mode: &str, instant: &str| job.compact(mode).flag("--instant-time", instant);
    let old = "20200101000000000";
    at("execute", old).run().fails_with(1, &["service-compaction-unknown", old]);
    at("schedule", old).run().fails_with(1, &["service-compaction-not-newest", old]);
    at("execute", "yesterday").run().fails_with(2, &["config-bad-value", "yesterday"]);
    let execute = job.compact("execute");
    execute.clone().flag("--target-table", "other").run().fails_with(2, &["table-config-conflict", "other"]);
    let other_rule = execute.flag("--payload-class", BY_EVENT_TIME);
    other_rule.run().fails_with(2, &["table-config-conflict", "DefaultHoodieRecord"]);
    let nowhere = Streamer::bare().flag("--base-path", job.scratch.path("nowhere")).after(&["compact"]);
    nowhere.run().fails_with(2, &["table-missing", "nowhere"]);
}
