//! Messages without a value, and rows that say they are deleted.

use super::*;

const SHELF: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"qty","type":["null","int"],"default":null},
 {"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}"#;
const PAYLOAD: &str = "org.apache.hudi.common.model.DefaultHoodieRecordPayload";

fn shelf(table_type: &str) -> KafkaJob {
    let model = Model::new(&["id", "ts", "qty", "_hoodie_is_deleted"]).rule(Rule::EventTime);
    KafkaJob::new(Broker::shared().topic("shelf", 1), SHELF, model, |call| {
        // The rounds must not compact what is compacted at the end.
        call.flag("--payload-class", PAYLOAD).flag("--table-type", table_type).switch("--disable-compaction")
    })
}

fn keyed(row: &Row) -> Message {
    Message::from(row).key(row["id"].as_str().expect("text"))
}

/// Case 05.
#[test]
fn tombstones_are_skipped_and_the_delete_flag_deletes() {
    needs_peers!();
    TABLE_TYPES.into_iter().for_each(deletes_by_flag);
}

fn deletes_by_flag(table_type: &str) {
    let mut job = shelf(table_type);
    let batches: [(&[Row], usize, i64); 4] = [
        (
            &[
                row! {"id": "a", "ts": 1, "qty": 5},
                row! {"id": "b", "ts": 1, "qty": 7},
                row! {"id": "b", "ts": 2, "_hoodie_is_deleted": true},
                row! {"id": "d", "ts": 1, "qty": 1, "_hoodie_is_deleted": false},
            ],
            2,
            6,
        ),
        // The delete of d is older than the row.
        (
            &[
                row! {"id": "a", "ts": 2, "_hoodie_is_deleted": true},
                row! {"id": "d", "ts": 0, "_hoodie_is_deleted": true},
            ],
            1,
            8,
        ),
        (&[row! {"id": "z", "ts": 1, "_hoodie_is_deleted": true}], 1, 9),
        (&[row! {"id": "a", "ts": 9, "qty": 3}], 2, 10),
    ];
    for (number, (rows, count, next)) in batches.into_iter().enumerate() {
        let mut messages: Vec<Message> = rows.iter().map(keyed).collect();
        if number == 0 {
            messages.splice(2..2, [Message::tombstone("a"), Message::from("").key("c")]);
        }
        job.topic.send(0, messages);
        let run = job.call.run().ok();
        if number == 0 {
            run.says(&["tombstones", "count=2"]);
        }
        let instant = job.table.last_write();
        job.model.upsert(&instant, rows);
        job.stands_at(&[next]);
        assert_eq!(job.model.len(), count);
        job.check();
    }
    job.topic.send(0, [Message::tombstone("k"), Message::tombstone("k")]);
    job.commits(&job.call);
    job.stands_at(&[12]);
    job.check_through_compaction();
}

/// Case 05, part B.
#[test]
fn a_delete_flag_that_the_schema_lacks_is_told() {
    needs_peers!();
    let mut job = job("shelf", 1);
    let rows = [event("a", 1), row! {"id": "a", "ts": 2, "_hoodie_is_deleted": true}];
    job.topic.send(0, &rows);
    job.call.run().ok().says(&["WARN", "_hoodie_is_deleted"]);
    let instant = job.table.last_commit();
    job.model.upsert(&instant, &[event("a", 2)]);
    job.check();
}
