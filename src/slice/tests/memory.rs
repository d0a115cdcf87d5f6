//! A budget of memory: it holds, and changes nothing in the rows.

use super::*;
use PayloadClass::OverwriteWithLatest;
use arrow::array::{Int64Builder, ListBuilder};

/// Bytes of the rows in memory, and how many they are.
fn in_memory(merged: &Merged) -> (usize, usize) {
    let batches = &merged.window.batches;
    (batches.iter().map(RecordBatch::get_array_memory_size).sum(), batches.iter().map(RecordBatch::num_rows).sum())
}

fn numbered(at: &str, count: usize, text: impl Fn(usize) -> usize) -> Vec<Row> {
    (0..count).map(|n| row(at, &format!("key-{n:05}"), n as i64, &"x".repeat(text(n)))).collect()
}

#[test]
fn windows_stay_within_the_budget() {
    let stored = numbered(&time(0), 3000, |_| 1);
    let mut group = Group::new(Some(&stored));
    // Each block has every third key, and new ones; the later ones win.
    for write in 1..=6 {
        let at = time(write);
        let mut rows = numbered(&at, 4000, |n| n % 50);
        rows.retain(|row| row.ts.unwrap() as usize % 3 == write % 3);
        group.log(vec![data(&at, &schema(), &rows)], 0);
        group.completed(&at);
    }
    let enough = options(OverwriteWithLatest);
    let (want, counts) = group.merge(&enough).unwrap();
    assert_eq!((want.len(), counts.updates, counts.inserts), (4000, 3000, 1000));
    for memory in [1 << 20, 600_000, 100_000] {
        let little = SliceOptions { memory, batch_rows: 500, ..enough.clone() };
        assert_eq!(group.merge(&little).unwrap().0, want, "{memory} bytes");
        let (windows, _) = group.each(&little, |merged, _| (in_memory(merged), merged.window.budget)).unwrap();
        for ((bytes, rows), budget) in &windows {
            // Buffers grow ahead of their need.
            assert!(
                *bytes <= budget * 2,
                "{bytes} bytes of {rows} rows in memory, the budget of {memory} has {budget}"
            );
        }
        let rows = windows.iter().map(|((_, rows), _)| *rows).max().unwrap();
        assert!(rows < 4000 && rows > memory / 4 / 400, "{rows} rows with {memory} bytes");
    }
}

#[test]
fn one_row_may_be_larger_than_the_budget() {
    let sizes = |n: usize| if n == 1 { 100_000 } else { 10 };
    let mut group = Group::new(Some(&numbered(&time(0), 4, |_| 1)));
    let rows = numbered(&time(1), 3, sizes);
    group.log(vec![data(&time(1), &schema(), &rows)], 0);
    group.completed(&time(1));
    let little = SliceOptions { memory: 1000, ..options(OverwriteWithLatest) };
    let (got, _) = group.merge(&little).unwrap();
    assert_eq!(got[..3], rows);
    assert_eq!(got[3], numbered(&time(0), 4, |_| 1)[3]);
}

/// One byte in the log may become many in memory: a list of small numbers.
#[test]
fn lists_are_weighed_by_what_they_become() {
    let with_list = r#"{"type":"record","name":"row","fields":[{"name":"ts","type":"long"},
        {"name":"list","type":{"type":"array","items":["null","long"]}}]}"#;
    let written = TableSchema::from_avro(with_list).unwrap().with_meta_columns();
    let mut list = ListBuilder::new(Int64Builder::new()).with_field(
        written
            .arrow
            .field_with_name("list")
            .map(|f| match f.data_type() {
                arrow::datatypes::DataType::List(item) => item.clone(),
                other => panic!("{other}"),
            })
            .unwrap(),
    );
    let rows = numbered(&time(1), 200, |_| 0);
    for n in 0..rows.len() {
        list.append_value((0..n as i64).map(|value| Some(value % 60)));
    }
    let meta = batch(&schema(), &rows);
    let mut columns = meta.columns()[..5].to_vec();
    columns.push(meta.column_by_name("ts").unwrap().clone());
    columns.push(Arc::new(list.finish()));
    let rows = RecordBatch::try_new(written.arrow.clone(), columns).unwrap();
    let mut group = Group::new(None);
    group.log(vec![data_of(&time(1), &written, &rows)], 0);
    group.completed(&time(1));
    let little = SliceOptions { schema: written, memory: 80_000, ..options(OverwriteWithLatest) };
    let (windows, _) =
        group.each(&little, |merged, batch| (in_memory(merged).0, merged.window.budget, batch.rows)).unwrap();
    for (bytes, budget, _) in &windows {
        assert!(*bytes <= budget * 2, "{bytes} bytes in memory, the budget is {budget}");
    }
    let got: Vec<&RecordBatch> = windows.iter().map(|(_, _, rows)| rows).collect();
    assert!(got.len() > 1);
    assert_eq!(arrow::compute::concat_batches(&rows.schema(), got).unwrap(), rows);
}
