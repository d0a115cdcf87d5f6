//! Time stamps keep their value and their unit.

use super::*;
use crate::values::unit;

/// Case 08.
#[test]
fn time_stamps_keep_their_value_and_their_unit() {
    needs_peers!();
    let sql = |call: Streamer| {
        call.flag("--transformer-class", "SqlQueryBasedTransformer")
            .conf("hoodie.streamer.transformer.sql", "SELECT * FROM <SRC>")
    };
    for (transformed, table_type) in [(false, TABLE_TYPES[0]), (true, TABLE_TYPES[0]), (false, TABLE_TYPES[1])] {
        let topic = Broker::shared().topic("tick", 1);
        let mut job = KafkaJob::new(topic, TICKS, Model::new(&TICK_COLUMNS), |call| {
            let call = call.flag("--table-type", table_type);
            if transformed { sql(call) } else { call }
        });
        let mut round = |op: &str, written: &[Row], read: &[Row]| {
            job.topic.send(0, written);
            let instant = job.round(op);
            match op {
                "UPSERT" => job.model.upsert(&instant, read),
                _ => job.model.insert(&instant, read),
            }
        };
        round("UPSERT", &ticks_written(1), &ticks_read(1));
        round("UPSERT", &ticks_written(2)[..1], &ticks_read(2)[..1]);
        round("BULK_INSERT", &[tick_written("r6", 3)], &[tick_read("r6", 3)]);
        for log in job.table.log_files() {
            let bytes = std::fs::read(job.table.path.join(&log)).expect("read a log file");
            let units =
                ["timestamp-millis", "timestamp-micros"].map(|unit| String::from_utf8_lossy(&bytes).contains(unit));
            assert_eq!(units, [true, true], "the schema of {log}");
        }
        if table_type == "MERGE_ON_READ" {
            // Spark with Hudi 1.0 takes a log's milliseconds for microseconds, whoever wrote them.
            job.model.assert_read_by(&job.table, &[SPARK_0_15, HUDI_RS]);
            job.compacts();
        }
        job.check();
        for file in job.table.base_files() {
            assert_eq!(unit(&job.table, &file, "tm"), "MILLIS", "of tm in {file}");
            assert_eq!(unit(&job.table, &file, "tu"), "MICROS", "of tu in {file}");
        }
        if !transformed {
            // Spark goes on. Hudi before 1.1 takes stored milliseconds for microseconds in the files that it rewrites,
            // whoever wrote them; all else stays.
            let theirs = [tick_read("r7", 4)];
            let file = job.scratch.lines("spark.json", &theirs);
            let instant = oracle(SPARK_1_0).write(job.table.str(), "upsert", &file, &[]);
            job.model.upsert(&instant, &theirs);
            job.model = std::mem::replace(&mut job.model, Model::new(&[])).ignoring("tm");
            job.check();
        }
        job.topic.send(0, [r#"{"id":"r9","ts":1,"tm":"08/03/2024"}"#]);
        job.call.run().fails_with(1, &["tm"]);
    }
}

/// Case 08, then 6: a table of Spark's whose `tm` is in microseconds.
#[test]
fn a_table_with_another_unit_keeps_the_moment() {
    needs_peers!();
    let topic = Broker::shared().topic("tick", 1);
    let mut job = KafkaJob::new(topic, TICKS, Model::new(&TICK_COLUMNS), |call| call);
    let micros = job.scratch.file("micros.avsc", TICKS.replace("timestamp-millis", "timestamp-micros"));
    let theirs = [tick_read("r0", 1)];
    let file = job.scratch.lines("spark.json", &theirs);
    let instant = oracle(SPARK_0_15).create("cow", job.table.str(), &micros, &file, &["hoodie.table.name=trips"]);
    job.model.upsert(&instant, &theirs);
    job.topic.send(0, &[tick_written("r1", 1)]);
    let run = job.call.run();
    if run.code == Some(0) {
        let instant = job.table.last_commit();
        job.model.upsert(&instant, &[tick_read("r1", 1)]);
    } else {
        run.fails_with_any(&["tm", "millis", "micros"]);
    }
    job.check();
}
