//! Looking keys up where log files lie on top of the base file.

use super::*;
use crate::config::{IndexType, PayloadClass};
use crate::slice::tests::{Group, data, deletes, options, row, schema, time};
use crate::table::log_file::OrderingValue;

/// A record that a log has deleted is new to a global index, and one that a log has replaced is compared as the log has it.
#[test]
fn moving_records_are_compared_with_merged_slices() {
    let stored = |key: &str, ts| row(&time(0), key, ts, "stored");
    let mut group = Group::new(Some(&[stored("dead", 9), stored("newer", 1), stored("older", 1), stored("kept", 9)]));
    let logged = [row(&time(1), "newer", 8, "logged"), row(&time(1), "older", 3, "logged")];
    let dead = deletes(&time(1), vec![("dead".to_string(), OrderingValue::Int(0))]);
    group.log(vec![data(&time(1), &schema(), &logged), dead], 0);
    group.completed(&time(1));

    let mut view = FileSystemView::default();
    view.partitions.insert(group.slice.partition.clone(), vec![group.slice.clone().into()]);
    let rule = MergeRule(PayloadClass::DefaultHoodieRecord);
    // A table may have no ordering field of its own: what its logs order by arrival, the job compares by its own.
    for table_field in [Some("ts"), None] {
        let cache = Some(Arc::new(KeyCache::new(1 << 20)));
        // The second time the cache knows the keys.
        for cache in [None, cache.clone(), cache] {
            let tag_options = TagOptions {
                index: IndexConfig {
                    index_type: IndexType::GlobalSimple,
                    update_partition_path: true,
                    cache_bytes: 0,
                    buckets: None,
                },
                stored_ordering: Some(StoredOrdering { rule, field: "ts".to_string() }),
                merging: Some(Merging {
                    timeline: group.timeline(),
                    options: SliceOptions {
                        ordering_field: table_field.map(str::to_string),
                        ..options(PayloadClass::DefaultHoodieRecord)
                    },
                }),
                workers: 1,
                cache,
            };
            let incoming =
                [("dead", "us", 5), ("newer", "us", 5), ("older", "us", 5), ("kept", "us", 5), ("new", "us", 5)];
            let rows = (0..incoming.len() as u32).map(|row| RowRef { batch: 0, row }).collect();
            let batches = vec![testing::keyed(&incoming)];
            let tagged = group.runtime.block_on(tag(&group.table, &view, tag_options, batches, rows)).unwrap();
            let name = |row: RowRef| incoming[row.row as usize].0;
            let rows: Vec<_> = tagged.rows.iter().map(|tagged| (name(tagged.row), tagged.group.is_some())).collect();
            assert_eq!(rows, [("dead", false), ("newer", true), ("older", false), ("kept", true), ("new", false)]);
            let moves: Vec<_> = tagged.moves.iter().map(|moved| name(moved.row)).collect();
            assert_eq!(moves, ["older"]);
        }
    }
}
