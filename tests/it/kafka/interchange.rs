//! A job changes hands between Hudi's Streamer and us, by what the commits say.

use super::*;

/// Each of Hudi's ways to write a position into a commit.
const SPELLINGS: [(Reader, &str, &str); 3] = [
    (SPARK_0_15, "deltastreamer.checkpoint.", CHECKPOINT_KEYS[0]),
    (SPARK_1_0, "deltastreamer.checkpoint.", CHECKPOINT_KEYS[0]),
    (SPARK_1_0, "streamer.checkpoint.", CHECKPOINT_KEYS[1]),
];

#[test]
fn a_table_that_hudis_streamer_made_is_continued() {
    needs_peers!();
    for (spark, prefix, key) in SPELLINGS {
        let mut job = job("orders", 2);
        let (first, second) = ([event("a", 1), event("b", 1)], [event("c", 1)]);
        job.topic.send(0, &first);
        job.topic.send(1, &second);
        // Hudi has read all but the last, as its commit says.
        let file = job.scratch.lines("spark.json", &first);
        let [prefix, position] = [
            format!("hoodie.datasource.write.commitmeta.key.prefix={prefix}"),
            format!("{key}={}", job.topic.position(&[2, 0])),
        ];
        let settings = ["hoodie.table.name=trips", &prefix, &position];
        let instant = oracle(spark).create("cow", job.table.str(), &job.scratch.path("schema.avsc"), &file, &settings);
        job.model.upsert(&instant, &first);

        let instant = job.round("UPSERT");
        job.model.upsert(&instant, &second);
        // Compares the two spellings too.
        job.stands_at(&[2, 1]);
        job.check();

        // Hudi goes on with our table, and we after it.
        let third = [event("d", 1)];
        job.topic.send(0, &third);
        let file = job.scratch.lines("spark.json", &third);
        let position = format!("{key}={}", job.topic.position(&[3, 1]));
        // A Streamer of 1.x reads the second spelling before the first, so ours must not outlive theirs.
        let instant = oracle(spark).write(job.table.str(), "upsert", &file, &[&prefix, &position]);
        job.model.upsert(&instant, &third);
        job.makes_no_instant(&job.call);
        job.upsert(&[event("e", 1)]);
        job.stands_at(&[4, 1]);
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

/// A job of Hudi's that read files is none of ours that reads a topic, and the other way round.
#[test]
fn a_position_of_another_source_is_refused() {
    needs_peers!();
    let mut of_files = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call);
    of_files.upsert(&[event("a", 1)]);
    let position = of_files.position();
    let topic = Broker::shared().topic("orders", 1);
    topic.send(0, &[event("b", 1)]);
    let before = of_files.table.timeline();
    Streamer::kafka(&of_files.scratch, &topic).run().fails_with(1, &[&position, topic.name(), "--ignore-checkpoint"]);
    assert_eq!(before, of_files.table.timeline());

    let mut job = on(topic);
    job.upsert(&[event("c", 1)]);
    let call = Streamer::json(&job.scratch);
    call.run().fails_with(1, &[&job.topic.position(&[2]), "--ignore-checkpoint"]);
    // The way out.
    job.scratch.lines("in/a.json", &[event("d", 1)]);
    job.commits(&call.flag("--ignore-checkpoint", "moved to files"));
    assert_eq!(ids(&job.table), ["b", "c", "d"]);
}

#[test]
fn a_stored_position_of_another_topic_is_refused() {
    needs_peers!();
    let mut job = job("orders", 1);
    job.upsert(&[event("a", 1)]);
    let position = job.topic.position(&[1]);
    let other = Broker::shared().topic("returns", 1);
    other.send(0, &[event("b", 1)]);
    let call = job.call.clone().conf("hoodie.streamer.source.kafka.topic", other.name());
    let before = job.table.timeline();
    call.run().fails_with(1, &[&position, other.name()]);
    assert_eq!(before, job.table.timeline());
    job.commits(&call.flag("--checkpoint", other.position(&[0])));
    assert_eq!(ids(&job.table), ["a", "b"]);
}
