//! Which blocks count, what is counted of them, and what is said of those that cannot be read.

use super::*;
use PayloadClass::OverwriteWithLatest;

fn texts(rows: &[Row]) -> Vec<&str> {
    rows.iter().filter_map(|row| row.text.as_deref()).collect()
}

#[test]
fn a_block_of_a_later_instant_ends_the_reading() {
    let mut group = Group::new(Some(&[row(&time(0), "a", 1, "base")]));
    group.log(vec![data(&time(1), &schema(), &[row(&time(1), "a", 2, "first")])], 0);
    group.log(vec![data(&time(9), &schema(), &[row(&time(9), "a", 3, "in flight")])], 0);
    group.log(vec![data(&time(2), &schema(), &[row(&time(2), "a", 4, "behind it")])], 0);
    group.completed(&time(1));
    group.completed(&time(2));
    group.timeline.push(format!("{}.deltacommit.inflight", time(9)));
    let (rows, counts) = group.merge(&options(OverwriteWithLatest)).unwrap();
    assert_eq!(texts(&rows), ["first"]);
    assert_eq!((counts.totals.log_blocks, counts.totals.log_records), (2, 1));

    // Command blocks too, unless the rollback itself is known.
    let mut group = Group::new(None);
    group.log(vec![rollback(&time(3), &time(1))], 0);
    group.log(vec![data(&time(2), &schema(), &[row(&time(2), "a", 1, "masked")])], 0);
    group.completed(&time(2));
    assert_eq!(texts(&group.merge(&options(OverwriteWithLatest)).unwrap().0), [""; 0]);
    group.timeline.push(format!("{}.rollback.inflight", time(3)));
    assert_eq!(texts(&group.merge(&options(OverwriteWithLatest)).unwrap().0), [""; 0]);
    group.timeline.push(format!("{}.rollback", time(3)));
    assert_eq!(texts(&group.merge(&options(OverwriteWithLatest)).unwrap().0), ["masked"]);
}

#[test]
fn blocks_are_counted_as_hudi_counts_them() {
    let mut group = Group::new(Some(&[row(&time(0), "a", 1, "base"), row(&time(0), "b", 1, "base")]));
    let write = |at: &str| data(at, &schema(), &[row(at, "a", 2, at), row(at, "c", 2, at)]);
    group.log(vec![write(&time(1)), deletes(&time(1), vec![("b".into(), OrderingValue::Int(0))])], 0);
    // Torn, and of a write that never completed.
    group.log(vec![write(&time(2))], 20);
    // Takes the torn block away with those of its target, which has been completed.
    group.log(vec![write(&time(3))], 0);
    group.log(vec![rollback(&time(4), &time(3))], 0);
    group.log(vec![write(&time(5))], 10);
    group.timeline = vec![format!("{}.commit", time(6)), format!("{}.deltacommit.inflight", time(2))];
    let (rows, counts) = group.merge(&options(OverwriteWithLatest)).unwrap();
    assert_eq!(texts(&rows), [time(1), time(1)]);
    let log_bytes = group.slice.log_files.iter().map(|log| log.size).sum();
    let totals = LogTotals {
        log_files: 5,
        log_bytes,
        log_blocks: 6,
        corrupt_blocks: 2,
        rollback_blocks: 2,
        log_records: 2,
        updated_records: 3,
        scan_ms: 0,
    };
    assert_eq!(counts, Counts { totals, batches: 2, updates: 1, inserts: 1, deletes: 1 });
}

#[test]
fn what_cannot_be_read_is_named() {
    let header = |at: &str| BlockHeader::of_write(&instant(at), &schema().with_meta_columns().avro);
    let block = |kind, content: &[u8]| encode_block(kind, &header(&time(1)), content).unwrap();
    let framed = |record: &[u8]| {
        let mut content = AvroContent::new();
        content.buffer().extend_from_slice(&(record.len() as u32).to_be_bytes());
        content.buffer().extend_from_slice(record);
        content.add(1);
        content.content().to_vec()
    };
    let nameless = Row { ts: None, ..row(&time(1), "nameless", 0, "") };
    let many = |last: Row| [row(&time(1), "a", 1, ""), row(&time(1), "b", 1, ""), last];
    for (name, bytes, code, words) in [
        ("an HFile", block(BlockKind::HfileData, b""), "log-block-unsupported", &["an HFile data block"][..]),
        ("change data", block(BlockKind::CdcData, b""), "log-block-unsupported", &["a CDC data block"]),
        (
            "half a record",
            block(BlockKind::AvroData, &framed(&[2, 9])),
            "avro-value",
            &["record 0: field _hoodie_commit_time"],
        ),
        ("no Parquet", block(BlockKind::ParquetData, b"PAR1"), "base-file-corrupt", &["log.1_0-0-0"]),
        (
            "no ordering value",
            data(&time(1), &schema(), &many(nameless)),
            "slice-null-ordering",
            &["ordering value ts of record nameless is null"],
        ),
        ("no deletes", block(BlockKind::Delete, &[0, 0, 0, 3]), "log-block-malformed", &["delete block"]),
    ] {
        let mut group = Group::new(None);
        let first = data(&time(1), &schema(), &[row(&time(1), "a", 1, "whole")]);
        let offset = first.len();
        group.log(vec![first, bytes], 0);
        group.completed(&time(1));
        let error = group.merge(&options(OverwriteWithLatest)).expect_err(name);
        let text = error.to_string();
        assert_eq!(error.code(), code, "{name}: {text}");
        let place = format!("block at byte {offset} of log file ");
        for word in words.iter().copied().chain([place.as_str(), ".log.1_0-0-0"]) {
            assert!(text.contains(word), "{name}: no `{word}` in: {text}");
        }
    }
}

#[test]
fn rows_come_out_in_fewer_columns_too() {
    let mut group = Group::new(Some(&[row(&time(0), "a", 5, "base"), row(&time(0), "b", 1, "base")]));
    group.log(vec![data(&time(1), &schema(), &[row(&time(1), "a", 2, "late"), row(&time(1), "b", 2, "new")])], 0);
    group.completed(&time(1));
    let full = options(PayloadClass::DefaultHoodieRecord);
    let wanted = ["_hoodie_record_key", "_hoodie_is_deleted", "ts"];
    let fields = full.schema.arrow.fields().iter().filter(|field| wanted.contains(&field.name().as_str()));
    let arrow = Arc::new(arrow::datatypes::Schema::new(fields.cloned().collect::<Vec<_>>()));
    let narrow = SliceOptions { schema: TableSchema { arrow, ..full.schema.clone() }, ..full };
    let (batches, _) = group.each(&narrow, |_, batch| batch.rows).unwrap();
    let ts: Vec<i64> =
        batches.iter().flat_map(|batch| batch["ts"].as_primitive::<Int64Type>().values().to_vec()).collect();
    assert_eq!((ts, batches[0].num_columns()), (vec![5, 2], 3));
}
