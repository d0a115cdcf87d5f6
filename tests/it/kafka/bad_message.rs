//! One message that is no row: named by topic, partition and offset, and nothing moves.

use super::*;
use crate::bad_input::{fails_and_leaves_no_trace, written};

const SKIP: &str = "hoodie.streamer.source.json.skip.invalid.records";

/// Case 07: the bad message is offset 1 of partition 0.
fn orders(bad: &str) -> KafkaJob {
    let job = job("orders", 2);
    job.topic.send(0, [r#"{"id":"o0","ts":1,"v":"a"}"#, bad, r#"{"id":"o2","ts":3,"v":"c"}"#]);
    job.topic.send(1, [r#"{"id":"o3","ts":4,"v":"d"}"#]);
    job
}

#[test]
fn one_bad_message_fails_the_round_or_is_skipped_by_setting() {
    needs_peers!();
    for (bad, field) in [
        (r#"{"id":"o1","ts":2,"#, ""),
        ("just text", ""),
        ("42", ""),
        (r#""text""#, ""),
        (r#"[{"id":"x","ts":1}]"#, ""),
        (r#"{"id":null,"ts":1}"#, "id"),
        (r#"{"id":"x","ts":"soon"}"#, "ts"),
        (r#"{"ts":1}"#, "id"),
    ] {
        println!("bad message {bad}");
        let job = orders(bad);
        let place = place(&job.topic, 0, 1);
        let names = [place.as_str(), field];
        fails_and_leaves_no_trace(&job.table, &job.call, &names);
        fails_and_leaves_no_trace(&job.table, &job.call.clone().switch("--commit-on-errors"), &names);
        let transformed = job.call.clone().flag("--transformer-class", "SqlQueryBasedTransformer");
        let transformed = transformed.conf("hoodie.streamer.transformer.sql", "SELECT * FROM <SRC>");
        transformed.run().fails_with(1, &[field]);
        assert!(job.table.commits().is_empty());

        job.call.clone().conf(SKIP, "true").run().ok().says(&["WARN", &place]).says(&["rows_skipped=1"]);
        job.stands_at(&[3, 1]);
        assert_eq!(written(&job.table), 3, "{bad}");
        if field.is_empty() {
            continue;
        }
        assert_eq!(ids(&job.table), ["o0", "o2", "o3"], "{bad}");
    }
}

#[test]
fn a_long_bad_message_is_cut() {
    needs_peers!();
    let job = orders(&format!("{{\"id\":\"{}\",\"ts\":\n", "x".repeat(5000)));
    let run = job.call.run().fails_with(1, &[&place(&job.topic, 0, 1)]);
    assert!(!run.stderr.contains(&"x".repeat(250)), "the value is shown at full length\n{run}");
}

/// A message may span lines, and is one row whatever line ends are in it.
#[test]
fn a_message_is_one_row_whatever_its_line_ends() {
    needs_peers!();
    let mut job = job("orders", 1);
    job.topic.send(0, ["{\n \"id\": \"a\",\r\n \"ts\": 1,\n \"v\": \"x\\ny\"\n}\n", " {\"id\":\"b\",\"ts\":1} "]);
    job.commits(&job.call);
    let instant = job.table.last_commit();
    job.model.upsert(&instant, &[row! {"id": "a", "ts": 1, "v": "x\ny"}, event("b", 1)]);
    job.check();
    // Two values in one message are not two rows.
    job.topic.send(0, [r#"{"id":"c","ts":1}{"id":"d","ts":1}"#]);
    job.call.run().fails_with(1, &[&place(&job.topic, 0, 2)]);
}
