//! What message keys mean, and what tombstones do to a table over several rounds.

use super::super::super::{MergeRule, Refuse, precombine};
use super::super::{KeyGenerator, RecordOptions};
use super::*;
use crate::config::{KeyConfig, KeyGeneratorClass, PayloadClass};
use arrow::array::{Int64Array, RecordBatch, UInt64Array};
use arrow::datatypes::{Field, Int64Type, Schema};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

fn fields(named: &[(&str, DataType)]) -> Vec<FieldPath> {
    let schema = Schema::new(named.iter().map(|(n, t)| Field::new(*n, t.clone(), true)).collect::<Vec<_>>());
    let schema = Arc::new(schema);
    named.iter().map(|(n, _)| FieldPath::resolve(&schema, n, "record key field").expect("it is there")).collect()
}

#[test]
fn a_message_key_names_a_record() {
    use DataType::{Boolean, Date32, Int64, Utf8};
    let text = fields(&[("id", Utf8)]);
    let long = fields(&[("id", Int64)]);
    let date = fields(&[("id", Date32)]);
    let dotted = fields(&[("a.b", Utf8)]);
    let two = fields(&[("id", Utf8), ("n", Int64)]);
    let connects = fields(&[("schema", Utf8), ("payload", Boolean)]);
    type Case<'a> = (&'a [FieldPath], bool, &'a [u8], std::result::Result<&'a str, &'a str>);
    let cases: &[Case] = &[
        (&text, false, b"k1", Ok("k1")),
        (&text, false, b" k 1,", Ok(" k 1,")),
        (&text, false, "ü".as_bytes(), Ok("ü")),
        (&text, false, b"17", Ok("17")),
        (&text, false, b"null", Ok("null")),
        (&text, false, br#""k\u00fc""#, Ok("kü")),
        (&text, false, br#"{"id":"k1","more":[1]}"#, Ok("k1")),
        (&text, false, br#"{"id":17}"#, Ok("17")),
        (&text, false, br#"{"id":true}"#, Ok("true")),
        (&text, false, br#"{"schema":{"type":"struct"},"payload":{"id":"k1"}}"#, Ok("k1")),
        (&text, false, br#"{"schema":{"type":"string"},"payload":"k1"}"#, Ok("k1")),
        // No JSON after all.
        (&text, false, b"{k1}", Ok("{k1}")),
        (&text, false, br#""k1"#, Ok("\"k1")),
        (&text, true, b"k1", Ok("id:k1")),
        (&text, true, br#"{"id":"k1"}"#, Ok("id:k1")),
        (&long, false, b"17", Ok("17")),
        (&long, false, b"-017", Ok("-17")),
        (&long, false, br#"{"id":17}"#, Ok("17")),
        (&long, false, br#"{"id":"17"}"#, Ok("17")),
        (&date, false, b"2024-02-29", Ok("2024-02-29")),
        (&date, false, br#"{"id":"2024-02-29"}"#, Ok("2024-02-29")),
        (&dotted, false, br#"{"a.b":"k1"}"#, Ok("k1")),
        (&dotted, false, br#"{"a":{"b":"k1"}}"#, Ok("k1")),
        (&two, true, br#"{"n":1,"id":"k1"}"#, Ok("id:k1,n:1")),
        (&two, true, br#"{"n":null,"id":"k1"}"#, Ok("id:k1,n:__null__")),
        (&two, true, br#"{"n":1,"id":""}"#, Ok("id:__empty__,n:1")),
        (&connects, true, br#"{"schema":"s","payload":true}"#, Ok("schema:s,payload:true")),
        (&text, false, b"", Err("has none")),
        (&text, false, b"k\xff", Err("not UTF-8")),
        (&text, false, b"\0\0\0\0\x05\x02a", Err("schema registry")),
        (&long, false, b"\0\0\0\0\0\0\0\x01", Err("binary")),
        (&text, false, br#""""#, Err("names a record")),
        (&text, false, br#"{"id":null}"#, Err("names a record")),
        (&text, false, br#"{"ID":"k1"}"#, Err("field id is not in it")),
        (&text, false, br#"{"id":1.5}"#, Err("1.5 is not how")),
        (&text, false, br#"{"id":{"a":1}}"#, Err("is not how")),
        (&long, false, b"k1", Err("k1 is no whole number")),
        (&date, false, br#"{"id":19782}"#, Err("19782 is not how")),
        (&two, true, b"k1", Err("only a JSON object")),
        (&two, true, br#"{"id":"k1"}"#, Err("field n is not in it")),
        (&two, true, br#"{"id":null,"n":null}"#, Err("names a record")),
    ];
    for (fields, prefixed, key, want) in cases {
        let shown = String::from_utf8_lossy(key);
        match (record_key(fields, *prefixed, key), want) {
            (Ok(got), Ok(want)) => assert_eq!(got, *want, "{shown}"),
            (Err(why), Err(word)) => assert!(why.contains(word), "{shown}: {why}"),
            (got, want) => panic!("{shown}: {got:?}, and not {want:?}"),
        }
    }
}

/// An event: a row with its ordering value, or none for a tombstone, of a key.
type Event = (u8, Option<i64>);

/// Record key and ordering value of a row, message key of a tombstone.
type Made = (Option<String>, Option<i64>, Option<Vec<u8>>);

/// A tombstone's own fields mean nothing, whatever a source puts there.
fn batch(events: &[Made]) -> RecordBatch {
    let ids = StringArray::from_iter_values(events.iter().map(|e| e.0.clone().unwrap_or_default()));
    let ts = Int64Array::from_iter(events.iter().map(|e| e.1));
    let day = StringArray::from_iter(events.iter().map(|e| e.1.map(|ts| format!("day{}", ts.rem_euclid(3)))));
    let positions = UInt64Array::from_iter_values(100..100 + events.len() as u64);
    let keys = BinaryArray::from_iter(events.iter().map(|e| e.2.as_deref()));
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(ids), false),
        ("ts", Arc::new(ts), true),
        ("day", Arc::new(day), true),
        ("pos", Arc::new(positions), false),
        ("key", Arc::new(keys), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).expect("one length")
}

fn generator(rows: &RecordBatch, partitioned: bool) -> KeyGenerator {
    let config = KeyConfig {
        generator: if partitioned { KeyGeneratorClass::Simple } else { KeyGeneratorClass::NonPartitioned },
        record_key_fields: vec!["id".into()],
        partition_fields: if partitioned { vec!["day".into()] } else { Vec::new() },
        hive_style: false,
        url_encode: false,
        consistent_logical_timestamp: false,
        timestamp: None,
    };
    let options = RecordOptions {
        ordering_field: Some("ts".into()),
        position_column: Some("pos"),
        tombstone_column: Some("key"),
        ..RecordOptions::default()
    };
    KeyGenerator::new(&config, options, rows.schema_ref()).expect("fields")
}

#[test]
fn a_tombstone_deletes_by_its_own_key_and_has_no_partition() {
    let row = |id: &str, ts| (Some(id.to_string()), Some(ts), None);
    let grave = |key: &[u8]| (None, None, Some(key.to_vec()));
    let rows = batch(&[row("a", 1), grave(b"b"), grave(b""), row("c", 2), grave(br#"{"id":"d"}"#), grave(b"\xff")]);
    let refused = Arc::new(Mutex::new(Vec::new()));
    let seen = refused.clone();
    let keys = generator(&rows, true).refusing(Refuse::new(move |r| {
        assert_eq!(r.rows.num_columns(), 3, "no hidden column");
        seen.lock().expect("one thread").push((r.row, r.cause.code(), r.cause.position()));
        ControlFlow::Continue(())
    }));
    let keyed = keys.key(&rows).expect("the good ones");
    let code = "record-tombstone-key";
    assert_eq!(*refused.lock().expect("one thread"), [(2, code, Some(102)), (5, code, Some(105))]);
    assert_eq!(keyed.keys, StringArray::from(vec!["a", "b", "c", "d"]));
    assert_eq!((0..4).map(|row| keyed.partitions.path(row)).collect::<Vec<_>>(), ["day1", "", "day2", ""]);
    assert_eq!(*keyed.partitions.paths, ["day1", "", "day2"], "nor is the path of its null looked at");
    assert_eq!(keyed.deleted, Some(vec![false, true, false, true].into()));
    let ordering = keyed.ordering.expect("there is an ordering field");
    assert_eq!(*ordering.as_primitive::<Int64Type>(), Int64Array::from(vec![Some(1), None, Some(2), None]));
    assert_eq!((keyed.rows.num_rows(), keyed.rows.num_columns()), (4, 3));

    let ordinary = generator(&rows, true).key(&rows.slice(0, 1)).expect("one row");
    assert_eq!((ordinary.deleted, ordinary.keys.len()), (None, 1));
    let error = generator(&rows, true).key(&rows).expect_err("nobody takes it").to_string();
    assert!(error.contains("tombstone") && error.contains("has none"), "{error}");
}

/// What a key's record is after its events, told without batches and merges: `None`, or number and ordering value of the
/// event it comes from.
fn told(stored: Option<(usize, i64)>, events: &[(usize, Option<i64>)], by_event_time: bool) -> Option<(usize, i64)> {
    let grave = events.iter().rposition(|(_, ts)| ts.is_none());
    let alive = &events[grave.map_or(0, |at| at + 1)..];
    let newest = alive.iter().filter_map(|(n, ts)| Some((*n, (*ts)?))).max_by_key(|(n, ts)| (*ts, *n));
    match (newest, stored.filter(|_| grave.is_none())) {
        (Some(new), Some(old)) if by_event_time && old.1 > new.1 => Some(old),
        (Some(new), _) => Some(new),
        (None, old) => old,
    }
}

proptest! {
    /// Key generator, precombine and merge rule on one side, a map on the other.
    #[test]
    fn rounds_with_tombstones_leave_what_a_map_has(
        rounds in prop::collection::vec(
            prop::collection::vec(prop::collection::vec((0u8..6, prop::option::weighted(0.75, -4i64..4)), 0..12), 0..4),
            1..6,
        ),
        by_event_time: bool,
    ) {
        let class = if by_event_time { PayloadClass::DefaultHoodieRecord } else { PayloadClass::OverwriteWithLatest };
        let rule = MergeRule(class);
        let mut model: BTreeMap<String, (usize, i64)> = BTreeMap::new();
        let mut table: BTreeMap<String, (usize, i64)> = BTreeMap::new();
        let mut count = 0;
        for round in &rounds {
            let mut batches = Vec::new();
            let mut numbers = Vec::new();
            let mut by_key: BTreeMap<String, Vec<(usize, Option<i64>)>> = BTreeMap::new();
            for events in round {
                let made = |(key, ts): &Event| {
                    let key = format!("k{key}");
                    match ts {
                        Some(ts) => (Some(key), Some(*ts), None),
                        None => (None, None, Some(key.into_bytes())),
                    }
                };
                let rows = batch(&events.iter().map(made).collect::<Vec<_>>());
                batches.push(generator(&rows, false).key(&rows).expect("good keys"));
                for (key, ts) in events {
                    by_key.entry(format!("k{key}")).or_default().push((count, *ts));
                    numbers.push(count);
                    count += 1;
                }
            }
            for (key, events) in by_key {
                match told(model.get(&key).copied(), &events, by_event_time) {
                    Some(record) => _ = model.insert(key, record),
                    None => _ = model.remove(&key),
                }
            }

            let starts: Vec<usize> = round.iter().scan(0, |at, events| {
                let start = *at;
                *at += events.len();
                Some(start)
            }).collect();
            for winner in precombine(&mut batches, false).expect("longs compare").winners {
                let (keyed, row) = (&batches[winner.batch as usize], winner.row as usize);
                let key = keyed.keys.value(row).to_string();
                let incoming = keyed.ordering.as_ref().expect("ordered").slice(row, 1);
                let stays = table.get(&key).is_some_and(|(_, stored)| {
                    let stored: ArrayRef = Arc::new(Int64Array::from(vec![*stored]));
                    rule.keeps_stored(&stored, &incoming).expect("longs compare").value(0)
                });
                if stays {
                    continue;
                }
                if keyed.deleted.as_ref().is_some_and(|deleted| deleted.value(row)) {
                    table.remove(&key);
                } else {
                    let ts = keyed.rows.column(1).as_primitive::<Int64Type>().value(row);
                    table.insert(key, (numbers[starts[winner.batch as usize] + row], ts));
                }
            }
            prop_assert_eq!(&table, &model);
        }
    }
}
