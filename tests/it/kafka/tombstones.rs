//! `tombstones=delete`: a message without a value deletes the row of its key, by arrival and not by ordering value.

use crate::support::*;

const TOMBSTONES: &str = "hoodie.streamer.source.kafka.tombstones";
const OVERWRITE: &str = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload";
const BY_EVENT_TIME: &str = "org.apache.hudi.common.model.DefaultHoodieRecordPayload";
const IDS: [&str; 3] = ["id", "ts", "v"];

fn event(id: &str, ts: i64, v: &str) -> Message {
    Message::from(&row! {"id": id, "ts": ts, "v": v}).key(id)
}

/// Key, ordering value and text of each row, by key, as every reader has it; Hudi's own classes find no fault in the table.
#[track_caller]
fn has(table: &Table, want: &[(&str, i64, &str)]) {
    let want: Vec<_> = want.iter().map(|(id, ts, v)| (id.to_string(), *ts, v.to_string())).collect();
    oracle(SPARK_0_15).validate(table.str(), false);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let told = |row: &Row| (text(&row["id"]), row["ts"].as_i64().expect("a number"), text(&row["v"]));
    for reader in READERS {
        let mut rows: Vec<_> = oracle(reader).read(table.str()).iter().map(told).collect();
        rows.sort();
        assert_eq!(rows, want, "{reader:?}");
    }
}

#[test]
fn a_tombstone_deletes_whatever_is_older() {
    needs_peers!();
    for (class, table_type) in
        [OVERWRITE, BY_EVENT_TIME].into_iter().flat_map(|rule| TABLE_TYPES.map(|kind| (rule, kind)))
    {
        println!("{table_type}, {class}");
        let topic = Broker::shared().topic("tombstones", 1);
        let mut job = KafkaJob::new(topic, BASE_SCHEMA, Model::new(&IDS), |call| {
            let call = call.flag("--table-type", table_type).switch("--disable-compaction");
            call.conf(TOMBSTONES, "delete").flag("--payload-class", class)
        });
        // An empty text is no tombstone, and is left out as ever.
        job.topic.send(0, ["a", "b", "c"].map(|id| event(id, 5, "old")));
        job.topic.send(0, [Message::from("").key("c"), event("d", 7, "short"), Message::tombstone("d")]);
        job.round("UPSERT");
        has(&job.table, &[("a", 5, "old"), ("b", 5, "old"), ("c", 5, "old")]);

        job.topic.send(0, [Message::tombstone("a"), event("b", 9, "drowned"), Message::tombstone("b")]);
        job.topic.send(0, [event("b", 1, "anew"), event("b", 0, "less"), Message::tombstone("unknown")]);
        job.round("UPSERT");
        has(&job.table, &[("b", 1, "anew"), ("c", 5, "old")]);
        job.stands_at(&[12]);

        // Logs order their own records under either rule, for Hudi 0.15; later readers take the last.
        let ts = if class == OVERWRITE && table_type == "MERGE_ON_READ" { 1 } else { 0 };
        job.topic.send(0, [event("b", ts, "late")]);
        job.round("UPSERT");
        let stays = if class == OVERWRITE { ("b", ts, "late") } else { ("b", 1, "anew") };
        has(&job.table, &[stays, ("c", 5, "old")]);

        job.topic.send(0, [Message::tombstone("b"), Message::tombstone("c"), Message::tombstone("c")]);
        job.round("UPSERT");
        has(&job.table, &[]);
        job.stands_at(&[16]);

        // The default: they are passed over.
        job.call = job.call.clone().without(TOMBSTONES);
        job.topic.send(0, [event("b", 2, "back"), Message::tombstone("b")]);
        job.round("UPSERT");
        has(&job.table, &[("b", 2, "back")]);
        if job.table.is_merge_on_read() {
            job.compact("scheduleAndExecute").run().ok();
            has(&job.table, &[("b", 2, "back")]);
        }
    }
}

#[test]
fn a_tombstone_finds_its_row_in_any_partition_of_a_global_index() {
    needs_peers!();
    let schema = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"v","type":"string"}]}"#;
    let topic = Broker::shared().topic("tombstones", 2);
    let job = KafkaJob::new(topic, schema, Model::new(&IDS), |call| {
        call.conf(TOMBSTONES, "delete").flag("--payload-class", BY_EVENT_TIME).partitioned("v")
    });
    job.call.run().fails_with(2, &["error[config-conflict]", TOMBSTONES, "GLOBAL_SIMPLE"]);

    let call = job.call.clone().conf("hoodie.index.type", "GLOBAL_SIMPLE");
    let call = call.conf("hoodie.simple.index.update.partition.path", "true");
    job.topic.send(0, [event("a", 5, "x"), event("b", 5, "x"), event("c", 5, "x")]);
    job.topic.send(1, [event("d", 5, "y"), event("e", 5, "y")]);
    job.commits(&call);
    // `b` comes back to its partition, `c` and `e` to others, all of them older than what is stored.
    job.topic.send(0, [Message::tombstone("a"), Message::tombstone("b"), event("b", 1, "x")]);
    job.topic.send(0, [Message::tombstone("c"), event("c", 1, "z")]);
    job.topic.send(1, [event("d", 4, "z"), Message::tombstone("e"), event("e", 1, "x")]);
    job.commits(&call);
    has(&job.table, &[("b", 1, "x"), ("c", 1, "z"), ("d", 5, "y"), ("e", 1, "x")]);
}

/// Connect's keys, beside columns that say where a row came from.
#[test]
fn tombstones_stand_among_avro_values() {
    needs_peers!();
    let avro = |id: u8, ts: u8| Message::from(vec![2, id, ts * 2, 0]).key(&format!(r#"{{"id":"{}"}}"#, id as char));
    let grave =
        |id: &str| Message::tombstone(&format!(r#"{{"schema":{{"type":"struct"}},"payload":{{"id":"{id}"}}}}"#));
    let topic = Broker::shared().topic("tombstones", 1);
    let job = KafkaJob::new(topic, BASE_SCHEMA, Model::new(&IDS), |call| {
        call.flag("--source-class", "AvroKafkaSource")
            .conf(
                "hoodie.streamer.source.kafka.value.deserializer.class",
                "org.apache.kafka.common.serialization.ByteArrayDeserializer",
            )
            .conf("hoodie.streamer.source.kafka.append.offsets", "true")
            .conf(TOMBSTONES, "delete")
    });
    job.topic.send(0, [avro(b'a', 1), grave("b"), avro(b'b', 1), avro(b'c', 1), grave("a"), avro(b'd', 1), grave("z")]);
    job.round("UPSERT");
    job.topic.send(0, [grave("b"), avro(b'd', 2), avro(b'c', 2), grave("c"), avro(b'c', 0)]);
    job.round("UPSERT");
    has(&job.table, &[("c", 0, ""), ("d", 2, "")]);
    let offsets = oracle(SPARK_0_15).read(job.table.str());
    let offsets: Vec<_> = offsets.iter().map(|r| (r["id"].clone(), r["_hoodie_kafka_source_offset"].clone())).collect();
    assert_eq!(offsets, [(json!("c"), json!(11)), (json!("d"), json!(8))]);
}

#[test]
fn a_tombstone_without_a_usable_key_is_a_bad_record() {
    needs_peers!();
    const POLICY: &str = "hoodie.streamer.source.bad.records.policy";
    let topic = Broker::shared().topic("tombstones", 1);
    let job = KafkaJob::new(topic, BASE_SCHEMA, Model::new(&IDS), |call| call.conf(TOMBSTONES, "delete"));
    job.topic.send(0, [event("a", 1, "x"), event("b", 1, "x"), Message::tombstone("a"), Message::default()]);
    job.topic.send(0, [Message::tombstone("\0\0\0\0\u{1}\u{2}b"), Message::tombstone(r#"{"key":"b"}"#)]);
    let place = format!("topic {}, partition 0, offset 3", job.topic.name());
    job.call.run().fails_with(1, &["error[record-tombstone-key]", &place, "first of 3 bad records"]);
    assert!(job.table.commits().is_empty());

    let errors = job.scratch.path("errors");
    let call = job.call.clone().conf(POLICY, "quarantine");
    let call = call.conf("hoodie.errortable.enable", "true").conf("hoodie.errortable.base.path", &errors);
    job.commits(&call.conf("hoodie.errortable.target.table.name", "errors"));
    has(&job.table, &[("b", 1, "x")]);
    let kept = oracle(SPARK_0_15).read(errors.to_str().expect("UTF-8"));
    let of = |column: &str| kept.iter().map(|r| r[column].clone()).collect::<Vec<_>>();
    assert_eq!(of("code"), vec![json!("record-tombstone-key"); 3]);
    assert_eq!(of("source_offset"), [json!(3), json!(4), json!(5)]);
    assert_eq!(of("value"), vec![Value::Null; 3]);
}
