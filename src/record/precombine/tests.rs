use super::super::PartitionColumn;
use super::*;
use arrow::array::{AsArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::datatypes::{Int64Type, Schema};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// Key, partition, ordering value: none for a tombstone.
type Row = (u8, u8, Option<i64>);

fn keyed(rows: &[Row], ordered: bool) -> KeyedBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let schema = Arc::new(Schema::empty());
    KeyedBatch {
        rows: RecordBatch::try_new_with_options(schema, vec![], &options).expect("no columns"),
        keys: StringArray::from_iter_values(rows.iter().map(|r| format!("k{}", r.0))),
        partitions: PartitionColumn {
            ids: rows.iter().map(|r| u32::from(r.1)).collect(),
            paths: Arc::new((0..4).map(|p| format!("p{p}")).collect()),
        },
        ordering: ordered.then(|| Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.2))) as ArrayRef),
        deleted: None,
    }
}

proptest! {
    #[test]
    fn the_newest_row_of_each_key_wins(
        batches in prop::collection::vec(prop::collection::vec((0u8..12, 0u8..4, prop::option::weighted(0.8, -3i64..3)), 0..30), 0..5),
        global: bool,
        ordered: bool,
    ) {
        // Of each key the row so far, and whether a tombstone came before it.
        let mut model: HashMap<(u8, u8), (Option<i64>, RowRef, bool)> = HashMap::new();
        for (batch, rows) in batches.iter().enumerate() {
            for (row, (key, partition, ts)) in rows.iter().enumerate() {
                let id = (*key, if global { 0 } else { *partition });
                let this = RowRef { batch: batch as u32, row: row as u32 };
                let (wins, reborn) = match (model.get(&id), ts) {
                    (None, _) => (true, false),
                    (Some(_), None) => (true, false),
                    (Some((None, ..)), Some(_)) => (true, true),
                    (Some((Some(old), _, reborn)), Some(new)) => (old <= new || !ordered, *reborn),
                };
                if wins {
                    model.insert(id, (*ts, this, reborn));
                }
            }
        }
        let mut keyed: Vec<KeyedBatch> = batches.iter().map(|b| keyed(b, ordered)).collect();
        let got = precombine(&mut keyed, global).expect("longs compare");
        let total: usize = batches.iter().map(Vec::len).sum();
        prop_assert_eq!(got.dropped as usize, total - got.winners.len());
        let mut want: Vec<(RowRef, Option<i64>)> =
            model.into_values().map(|(ts, row, reborn)| (row, ts.filter(|_| ordered && !reborn))).collect();
        want.sort();
        let ordering = |row: &RowRef| {
            let values = keyed[row.batch as usize].ordering.as_ref()?.as_primitive::<Int64Type>();
            values.is_valid(row.row as usize).then(|| values.value(row.row as usize))
        };
        let got: Vec<(RowRef, Option<i64>)> = got.winners.iter().map(|row| (*row, ordering(row))).collect();
        prop_assert_eq!(got, want);
    }
}
