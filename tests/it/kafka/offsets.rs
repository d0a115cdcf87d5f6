//! What is told of offsets: to the consumer group, and in columns of the table.

use super::*;

#[test]
fn the_group_is_told_the_position_after_each_commit() {
    needs_peers!();
    let mut job = job("audit", 2);
    let group = job.topic.name().to_owned();
    job.call = job.call.clone().conf("hoodie.streamer.source.kafka.enable.commit.offset", "true");
    job.call.run().fails_with_any(&["group.id"]);
    job.call = job.call.clone().conf("group.id", &group);
    job.upsert(&[event("a", 1), event("b", 1)]);
    assert_eq!(job.topic.group_position(&group), [Some(2), Some(0)]);
    job.topic.send(1, &[event("c", 1)]);
    job.commits(&job.call);
    assert_eq!(job.topic.group_position(&group), [Some(2), Some(1)]);
    // What the group says is nothing that the table goes by.
    job.topic.commit_group(&group, &[(0, 0), (1, 0)]);
    job.makes_no_instant(&job.call);
}

#[test]
fn a_rows_place_in_the_topic_can_be_had_as_columns() {
    needs_peers!();
    let mut job = job("audit", 2);
    job.call = job.call.clone().conf("hoodie.streamer.source.kafka.append.offsets", "true");
    job.topic.send(0, [Message::from(&event("a", 1)).key("key-a").at(1_700_000_000_001)]);
    job.topic
        .send(1, [Message::from(&event("b", 1)).at(1_700_000_000_002), Message::from(&event("c", 1)).key("").at(3)]);
    let instant = job.round("UPSERT");
    let placed = |id: &str, partition: i32, offset: i64, time: i64, key: Value| {
        row! {"id": id, "ts": 1, "v": null, "_hoodie_kafka_source_partition": partition, "_hoodie_kafka_source_offset": offset,
        "_hoodie_kafka_source_timestamp": time, "_hoodie_kafka_source_key": key}
    };
    let rows = [
        placed("a", 0, 0, 1_700_000_000_001, json!("key-a")),
        placed("b", 1, 0, 1_700_000_000_002, Value::Null),
        placed("c", 1, 1, 3, json!("")),
    ];
    job.model.upsert(&instant, &rows);
    job.check();
    job.topic.send(0, [Message::from(&event("a", 2)).key("other").at(4)]);
    let instant = job.round("UPSERT");
    let mut row = placed("a", 0, 1, 4, json!("other"));
    row.insert("ts".into(), json!(2));
    job.model.upsert(&instant, &[row]);
    job.check();
}
