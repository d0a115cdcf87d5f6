use super::*;
use crate::source::{Fetch, FetchRequest, Result};

/// Places as a broker's source has them.
#[derive(Debug)]
struct Offsets;

#[async_trait::async_trait]
impl Source for Offsets {
    async fn fetch(&self, _request: FetchRequest) -> Result<Fetch> {
        unreachable!("nothing is fetched here")
    }

    async fn describe(&self, position: u64) -> String {
        format!("topic orders, partition 0, offset {position}")
    }

    fn origin(&self, _position: u64) -> crate::source::Origin {
        unreachable!("nothing is quarantined here")
    }

    async fn on_commit(&self, _checkpoint: &str) -> Result<()> {
        Ok(())
    }
}

fn bad(position: u64) -> Rejected {
    Rejected {
        position: Some(position),
        reason: Reason::JsonDeserialization,
        code: "json-malformed",
        why: "not a JSON object".into(),
        value: Some(format!("line {position}").into_bytes()),
        key: None,
        timestamp_ms: None,
    }
}

fn rejects(policy: BadRecordPolicy, max_rows: Option<u64>, max_percent: Option<f64>) -> Rejects {
    Rejects::new(&BadRecordsConfig { policy, max_rows, max_percent, quarantine: None })
}

async fn verdict(rejects: &Rejects, rows_read: u64) -> Option<String> {
    rejects.verdict(&Offsets, rows_read).await.err().map(|e| e.to_string())
}

#[tokio::test]
async fn a_failed_round_names_the_first_bad_record_and_how_many_there_are() {
    let none = rejects(BadRecordPolicy::Fail, None, None);
    assert_eq!(verdict(&none, 5).await, None);
    let some = rejects(BadRecordPolicy::Fail, None, None);
    for position in [9, 3, 7, 3] {
        some.refuse(bad(position)).expect("reading goes on");
    }
    let error = some.verdict(&Offsets, 5).await.expect_err("it fails");
    assert_eq!(error.code(), "json-malformed");
    let text = error.to_string();
    let begin = "topic orders, partition 0, offset 3: not a JSON object in line 3 (the first of 3 bad records); ";
    assert!(text.starts_with(begin) && text.contains("policy=skip"), "{text}");
}

#[tokio::test]
async fn a_failed_round_stops_to_count_at_some_time() {
    let many = rejects(BadRecordPolicy::Fail, None, None);
    let stopped = (0..20_000).rev().find(|position| many.refuse(bad(*position)).is_err());
    assert_eq!(stopped, Some(10_000));
    let text = verdict(&many, 0).await.expect("it fails");
    assert!(text.contains("offset 10000: ") && text.contains("more than 10000 bad records"), "{text}");
}

#[tokio::test]
async fn more_than_the_ceiling_fails_a_round_that_skips() {
    let cases = [
        (None, None, 500, true),
        (Some(5), None, 100, true),
        (Some(4), None, 100, false),
        (Some(0), None, 100, false),
        // 5 of 100, the undecoded ones not being among the rows.
        (None, Some(5.0), 95, true),
        (None, Some(4.99), 95, false),
        (Some(5), Some(4.0), 95, false),
        (None, Some(0.0), 95, false),
        (None, Some(100.0), 0, true),
    ];
    for (max_rows, max_percent, rows_read, passes) in cases {
        let some = rejects(BadRecordPolicy::Skip, max_rows, max_percent);
        (0..5).for_each(|position| some.refuse(bad(position)).expect("reading goes on"));
        let text = verdict(&some, rows_read).await;
        assert_eq!(text.is_none(), passes, "{max_rows:?} {max_percent:?} {rows_read}: {text:?}");
        if let Some(text) = text {
            assert!(text.contains("offset 0") && text.contains("first of 5") && text.contains(".max."), "{text}");
        }
        assert!(verdict(&rejects(BadRecordPolicy::Skip, max_rows, max_percent), 0).await.is_none(), "none are bad");
    }
}

#[tokio::test]
async fn rows_that_were_refused_are_among_those_that_were_read() {
    let some = rejects(BadRecordPolicy::Skip, None, Some(50.0));
    some.refuse(Rejected { reason: Reason::RecordCreation, ..bad(1) }).expect("reading goes on");
    assert_eq!(verdict(&some, 2).await, None);
    assert!(verdict(&some, 1).await.expect("all are bad").contains("100.00 percent of the round's 1 records"));
}

#[tokio::test]
async fn quarantined_records_are_kept_in_the_order_of_the_input_up_to_a_bound() {
    let mut some = rejects(BadRecordPolicy::Quarantine, None, None);
    some.most_kept_bytes = 3000;
    for position in [2, 1, 2] {
        some.refuse(bad(position)).expect("there is room");
    }
    some.refuse(Rejected { position: None, ..bad(0) }).expect("there is room");
    let kept: Vec<_> = some.take_kept().iter().map(|r| r.position).collect();
    assert_eq!(kept, [Some(1), Some(2), None]);
    let large = Rejected { value: Some(vec![b'x'; 4000]), ..bad(3) };
    assert!(some.refuse(large).is_err(), "no room");
    assert!(matches!(some.verdict(&Offsets, 9).await, Err(Error::QuarantineFull { records: 4, .. })));
}

#[test]
fn a_message_shows_the_beginning_of_a_record() {
    assert_eq!(shown("ü".repeat(201).as_bytes()), "ü".repeat(200) + "…");
    assert_eq!(shown(b"\xff{"), "\u{fffd}{");
}

#[test]
fn a_record_is_shown_on_one_line() {
    assert_eq!(shown(b"{\"a\":\0\n\x1b[31m \xc3\xa9}"), "{\"a\":\\u{0}\\n\\u{1b}[31m é}");
    assert_eq!(shown("é".repeat(200).as_bytes()), "é".repeat(200));
    assert_eq!(shown("é".repeat(201).as_bytes()), "é".repeat(200) + "…");
}
