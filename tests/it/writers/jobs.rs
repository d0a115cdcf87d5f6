//! Several jobs, each with its own input: each goes on where it stood.

use super::*;

#[test]
fn each_job_goes_on_from_its_own_checkpoint() {
    for table_type in TABLE_TYPES {
        let writers = Writers::new(table_type);
        let mut model = model();
        let round = |name: &str, number: u64, rows: &[Row], model: &mut Model| {
            writers.feed(name, number, rows);
            writers.job(name).run().ok();
            model.upsert(&writers.table.last_write(), rows);
        };
        round("a", 5, &events(0..10, 1, "a"), &mut model);
        // Older than what the other has read: by its checkpoint it would be passed over.
        round("b", 1, &events(5..15, 2, "b"), &mut model);
        round("b", 2, &events(10..20, 3, "b"), &mut model);
        round("a", 6, &events(0..3, 4, "a"), &mut model);
        let before = writers.table.timeline();
        for name in ["a", "b"] {
            writers.job(name).run().ok().says(&["no new data"]);
        }
        assert_eq!(writers.table.timeline(), before);
        let metadata = writers.table.commit_metadata(&writers.table.last_write());
        let said = |key: &str| metadata["extraMetadata"][key].as_str().unwrap_or_default().to_string();
        assert_eq!(said("deltastreamer.checkpoint.key.a"), (BASE_TIME_MS + 6000).to_string());
        assert_eq!(said("deltastreamer.checkpoint.key.b"), (BASE_TIME_MS + 2000).to_string(), "carried on");
        assert_eq!(said("deltastreamer.checkpoint.key"), "", "it would be nobody's");
        writers.check_clean();
        writers.check(&model);
    }
}

#[test]
fn a_job_without_a_name_does_not_go_on_from_anothers_checkpoint() {
    let writers = Writers::new("COPY_ON_WRITE");
    writers.feed("a", 5, &events(0..10, 1, "a"));
    writers.unnamed("a").run().ok();
    writers.feed("b", 1, &events(0..10, 2, "b"));
    let before = writers.table.timeline();
    writers.unnamed("b").run().fails_with(
        1,
        &["error[checkpoint-other-source]", "in-a", "in-b", "hoodie.streamer.multiwriter.source.checkpoint.id"],
    );
    assert_eq!(writers.table.timeline(), before);
    writers.unnamed("a").run().ok().says(&["no new data"]);
}

/// A job that gets an id, or loses it, does not begin anew: its input would be in the table twice.
#[test]
fn a_job_that_gets_an_id_keeps_its_position() {
    let writers = Writers::new("COPY_ON_WRITE");
    let single = |call: Streamer| call.conf("hoodie.write.concurrency.mode", "single_writer");
    writers.feed("a", 5, &events(0..10, 1, "a"));
    single(writers.unnamed("a")).op("INSERT").run().ok();
    let before = writers.table.timeline();
    // A single writer's commit does not say of what source its position is.
    let told = ["error[checkpoint-without-id]", "--checkpoint", "--ignore-checkpoint"];
    writers.job("a").op("INSERT").run().fails_with(1, &told);
    assert_eq!(writers.table.timeline(), before);
    writers.feed("a", 6, &events(10..20, 1, "a"));
    let position = (BASE_TIME_MS + 5000).to_string();
    writers.job("a").op("INSERT").flag("--checkpoint", position).run().ok();
    writers.unnamed("a").op("INSERT").run().fails_with(1, &["error[checkpoint-with-ids]", "a"]);
    let mut model = model();
    let writes = writers.table.writes();
    model.insert(&writes[0], &events(0..10, 1, "a"));
    model.insert(&writes[1], &events(10..20, 1, "a"));
    writers.check(&model);
}

#[test]
fn the_position_of_a_source_without_an_id_is_taken_over() {
    let writers = Writers::new("COPY_ON_WRITE");
    writers.feed("a", 5, &events(0..10, 1, "a"));
    writers.unnamed("a").op("INSERT").run().ok();
    writers.job("a").op("INSERT").run().ok().says(&["taking over the position"]).says(&["no new data"]);
    writers.feed("b", 1, &events(10..20, 1, "b"));
    writers.job("b").op("INSERT").run().ok();
    assert_eq!(writers.table.writes().len(), 2);
}

/// Started twice by mistake: what one has read the other does not write again.
#[test]
fn one_job_that_runs_twice_writes_its_input_once() {
    for table_type in TABLE_TYPES {
        let writers = Writers::new(table_type);
        let rows = events(0..30, 1, "a");
        let call = || writers.unnamed("a").op("INSERT").conf("hoodie.write.num.retries.on.conflict.failures", "2");
        writers.feed("a", 1, &events(-3..0, 1, "old"));
        call().run().ok();
        let mut model = model();
        model.insert(&writers.table.last_write(), &events(-3..0, 1, "old"));
        writers.feed("a", 2, &rows);
        let first = writers.stopped_at("before-complete", &call());
        call().run().ok();
        model.insert(&writers.table.last_write(), &rows);
        goes_on(first).ok().says(&["the round is done again"]);
        assert_eq!(writers.table.writes().len(), 2, "{table_type}");
        writers.check_clean();
        writers.check(&model);
    }
}

/// The second finds the table that the first has just made, also where it began without one.
#[test]
fn two_jobs_that_both_make_the_table_share_it() {
    for table_type in TABLE_TYPES {
        let writers = Writers::new(table_type);
        let call = |name: &str| writers.job(name).conf("hoodie.write.num.retries.on.conflict.failures", "5");
        for name in ["a", "b", "c"] {
            writers.feed(name, 1, &events(0..50, 1, "x"));
        }
        let running: Vec<_> = ["a", "b", "c"].map(|name| call(name).start()).into_iter().collect();
        running.into_iter().for_each(|running| drop(running.finish().ok()));
        assert_eq!(writers.table.writes().len(), 3, "{table_type}");
        let mut model = model();
        // Of equal ordering values the later counts, which copy-on-write tables show by its commit.
        for instant in writers.table.writes() {
            model.upsert(&instant, &events(0..50, 1, "x"));
        }
        writers.check_clean();
        if table_type == "COPY_ON_WRITE" {
            writers.check(&model);
        }
    }
}
