//! Two writers at one place: one of them is done again.

use super::*;

/// The table with `old` rows, and a writer `a` that is stopped while it writes `mine`.
fn stopped(writers: &Writers, old: &[Row], mine: &[Row], with: impl Fn(Streamer) -> Streamer) -> (Model, Running) {
    stopped_at("before-complete", writers, old, mine, with)
}

fn stopped_at(
    point: &str,
    writers: &Writers,
    old: &[Row],
    mine: &[Row],
    with: impl Fn(Streamer) -> Streamer,
) -> (Model, Running) {
    let mut model = model();
    writers.feed("a", 1, old);
    writers.job("a").run().ok();
    model.upsert(&writers.table.last_write(), old);
    writers.feed("a", 2, mine);
    let running = writers.stopped_at(point, &with(writers.job("a")));
    (model, running)
}

fn theirs(writers: &Writers, model: &mut Model, rows: &[Row]) {
    writers.feed("b", 1, rows);
    writers.job("b").run().ok();
    model.upsert(&writers.table.last_write(), rows);
}

#[test]
fn the_one_that_comes_second_is_rolled_back_and_done_again() {
    for table_type in TABLE_TYPES {
        let writers = Writers::new(table_type);
        let mine = events(0..30, 2, "a");
        let with = |call: Streamer| call.conf("hoodie.write.num.retries.on.conflict.failures", "1");
        let (mut model, a) = stopped(&writers, &events(0..30, 1, "old"), &mine, with);
        theirs(&writers, &mut model, &events(10..20, 3, "b"));
        goes_on(a).ok().says(&["service-write-conflict", "has written to file group", "the round is done again"]);
        assert_eq!(writers.table.writes().len(), 3, "{table_type}");
        assert_eq!(writers.table.rollbacks(), 1, "{table_type}");
        model.upsert(&writers.table.last_write(), &mine);
        writers.check_clean();
        writers.check(&model);
    }
}

#[test]
fn without_a_retry_it_fails_and_leaves_the_table_to_the_other() {
    for table_type in TABLE_TYPES {
        let writers = Writers::new(table_type);
        let (mut model, a) = stopped(&writers, &events(0..30, 1, "old"), &events(0..30, 2, "a"), |call| call);
        theirs(&writers, &mut model, &events(10..20, 3, "b"));
        let id = writers.table.last_write();
        goes_on(a).fails_with(1, &["error[service-write-conflict]", &id, "has written to file group"]);
        assert_eq!(writers.table.writes().len(), 2, "{table_type}");
        writers.check_clean();
        writers.check(&model);
    }
}

/// Each has put it into a file group of its own, so that no group tells; with Hudi it would be there twice.
#[test]
fn a_key_that_both_insert_is_there_once() {
    for table_type in TABLE_TYPES {
        for small_files in ["0", "104857600"] {
            let writers = Writers::new(table_type);
            let (old, mine) = (events(0..30, 1, "old"), events(1000..1020, 2, "a"));
            let with = |call: Streamer| {
                call.conf("hoodie.write.num.retries.on.conflict.failures", "1")
                    .conf("hoodie.parquet.small.file.limit", small_files)
            };
            let (mut model, a) = stopped(&writers, &old, &mine, with);
            let rows = events(1015..1025, 3, "b");
            writers.feed("b", 1, &rows);
            writers.job("b").conf("hoodie.parquet.small.file.limit", "0").run().ok();
            model.upsert(&writers.table.last_write(), &rows);
            goes_on(a).ok().says(&["service-write-conflict", "has inserted the key"]);
            model.upsert(&writers.table.last_write(), &mine);
            writers.check_clean();
            writers.check(&model);
        }
    }
}

#[test]
fn writers_of_other_places_are_in_nobodys_way() {
    for table_type in TABLE_TYPES {
        let writers = Writers::new(table_type);
        let only = |p: &str, rows: Vec<Row>| rows.into_iter().filter(|row| row["p"] == p).collect::<Vec<_>>();
        let mine = only("p0", events(0..60, 2, "a"));
        let (mut model, a) = stopped(&writers, &events(0..30, 1, "old"), &mine, |call| call);
        theirs(&writers, &mut model, &only("p1", events(0..100, 3, "b")));
        let run = goes_on(a).ok();
        assert!(!run.stderr.contains("done again"), "{run}");
        assert_eq!(writers.table.rollbacks(), 0);
        let instants = writers.table.writes();
        // Its instant is the smaller one, though it was completed last.
        model.upsert(&instants[1], &mine);
        writers.check_clean();
        writers.check(&model);
    }
}

#[test]
fn one_that_was_taken_for_dead_does_not_commit_when_it_wakes_up() {
    for table_type in TABLE_TYPES {
        for point in ["while-writing", "before-complete"] {
            wakes_up_too_late(table_type, point);
        }
    }
}

fn wakes_up_too_late(table_type: &'static str, point: &str) {
    let writers = Writers::new(table_type);
    let short = |call: Streamer| call.conf("hoodie.client.heartbeat.interval_in_ms", "300");
    let mine = events(0..30, 2, "a");
    let (mut model, a) = stopped_at(point, &writers, &events(0..30, 1, "old"), &mine, short);
    let dead = writers.table.pending().pop().expect("an open write");
    let rows = events(10..20, 3, "b");
    for number in 1.. {
        writers.feed("b", number, &rows);
        short(writers.job("b")).run().ok();
        if writers.table.rollbacks() > 0 {
            break;
        }
        assert!(number < 100, "nobody rolls it back");
    }
    writers.table.writes()[1..].iter().for_each(|instant| model.upsert(instant, &rows));
    let run = goes_on(a);
    assert_eq!(run.code, Some(1), "{run}");
    let why = ["service-writer-expired", "service-write-taken"];
    assert!(why.iter().any(|code| run.stderr.contains(code)), "{run}");
    let left: Vec<_> = writers.table.files().into_iter().filter(|f| f.contains(&format!("_{dead}.parquet"))).collect();
    assert_eq!(left, Vec::<String>::new(), "{table_type}, {point}: it has written after it was rolled back");
    writers.check_clean();
    writers.check(&model);
}

#[test]
fn a_compaction_is_planned_around_what_others_write() {
    let writers = Writers::new("MERGE_ON_READ");
    let old = events(0..60, 1, "old");
    let never = |call: Streamer| call.switch("--disable-compaction");
    let mut model = model();
    writers.feed("a", 1, &old);
    never(writers.job("a")).run().ok();
    model.upsert(&writers.table.last_write(), &old);
    let updates = events(0..30, 2, "b");
    writers.feed("b", 1, &updates);
    never(writers.job("b")).run().ok();
    model.upsert(&writers.table.last_write(), &updates);

    let mine: Vec<Row> = events(0..60, 3, "a").into_iter().filter(|row| row["p"] == "p0").collect();
    writers.feed("a", 2, &mine);
    let a = writers.stopped_at("before-complete", &never(writers.job("a")));
    let command = Streamer::bare()
        .after(&["compact"])
        .flag("--target-base-path", &writers.table.path)
        .flag("--mode", "scheduleAndExecute")
        .conf("hoodie.compact.inline.max.delta.commits", "1");
    let command = writers.lock.iter().fold(command, |call, (key, value)| call.conf(key, value));
    command.run().ok();
    let compaction = writers.table.compactions();
    assert_eq!(compaction.len(), 1, "it need not wait");
    let metadata = writers.table.commit_metadata(&compaction[0]);
    let partitions: Vec<_> = metadata["partitionToWriteStats"].as_object().expect("stats").keys().collect();
    assert_eq!(partitions, ["p1", "p2"], "p0 is being written");
    goes_on(a).ok();
    let delta = writers.table.delta_commits();
    model.upsert(delta.last().expect("three"), &mine);
    writers.check_clean();
    writers.check(&model);
}
