//! Any blocks, read back as they were written.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::table::InstantTime;

#[derive(Debug, Clone)]
enum Written {
    Data(Vec<Vec<u8>>),
    /// Key, partition, ordering value.
    Deletes(Vec<(String, String, OrderingValue)>),
    Parquet(Vec<u8>),
    Rollback,
}

fn instant() -> InstantTime {
    InstantTime::parse("20240101000000000").unwrap()
}

fn framed(records: &[Vec<u8>]) -> AvroContent {
    let mut content = AvroContent::new();
    for record in records {
        content.buffer().extend_from_slice(&(record.len() as u32).to_be_bytes());
        content.buffer().extend_from_slice(record);
        content.add(1);
    }
    content
}

fn deletes(records: &[(String, String, OrderingValue)]) -> Vec<DeleteRecord<'_>> {
    records.iter().map(|(key, partition, value)| DeleteRecord { key, partition, ordering: value.clone() }).collect()
}

impl Written {
    fn encode(&self, schema: &str) -> Bytes {
        let header = BlockHeader::of_write(&instant(), schema);
        match self {
            Written::Data(records) => encode_block(BlockKind::AvroData, &header, framed(records).content()),
            Written::Deletes(records) => encode_block(BlockKind::Delete, &header, &encode_deletes(&deletes(records))),
            Written::Parquet(bytes) => encode_block(BlockKind::ParquetData, &header, bytes),
            Written::Rollback => {
                encode_block(BlockKind::Command, &BlockHeader::of_rollback(&instant(), &instant()), b"")
            }
        }
        .unwrap()
    }

    fn is_read_from(&self, bytes: &[u8], block: &Block) {
        let data = content(bytes, block);
        match self {
            Written::Data(records) => {
                assert_eq!(block.kind, BlockKind::AvroData);
                let read: Vec<_> = avro_records(data).unwrap().map(|record| record.unwrap().to_vec()).collect();
                assert_eq!(read, *records);
                let source = read_all::Memory(Bytes::copy_from_slice(bytes));
                for piece in [1, 30, 10_000] {
                    let pieces = Pieces::new(&source, block, piece).unwrap().map(|piece| piece.unwrap());
                    let read: Vec<_> =
                        pieces.flat_map(|p| p.records().map(|r| r.unwrap().to_vec()).collect::<Vec<_>>()).collect();
                    assert_eq!(read, *records, "in pieces of {piece}");
                }
            }
            Written::Deletes(records) => {
                assert_eq!(block.kind, BlockKind::Delete);
                assert_eq!(all_deletes(data).unwrap(), deletes(records));
                let sizes: u64 = deletes(records).iter().map(DeleteRecord::size).sum();
                assert!(data.len() as u64 <= 8 + 11 + sizes, "{} bytes, not {sizes}", data.len());
            }
            Written::Parquet(content) => {
                assert_eq!(block.kind, BlockKind::ParquetData);
                assert_eq!(data, content);
            }
            Written::Rollback => assert!(block.header.is_rollback()),
        }
    }
}

fn ordering() -> impl Strategy<Value = OrderingValue> {
    prop_oneof![
        Just(OrderingValue::Null),
        any::<bool>().prop_map(OrderingValue::Boolean),
        any::<i32>().prop_map(OrderingValue::Int),
        any::<i64>().prop_map(OrderingValue::Long),
        any::<f32>().prop_map(OrderingValue::Float),
        any::<f64>().prop_map(OrderingValue::Double),
        vec(any::<u8>(), 0..9).prop_map(OrderingValue::Bytes),
        any::<String>().prop_map(OrderingValue::Text),
        any::<i32>().prop_map(OrderingValue::Date),
        (any::<i128>(), 0..128_u32).prop_map(|(unscaled, by)| OrderingValue::Decimal { unscaled: unscaled >> by }),
        any::<i64>().prop_map(OrderingValue::TimeMicros),
        any::<i64>().prop_map(OrderingValue::TimestampMicros),
    ]
}

fn written() -> impl Strategy<Value = Written> {
    let delete = (any::<String>(), any::<String>(), ordering());
    // Contents with a magic inside: no end of a block.
    let bytes = prop_oneof![vec(any::<u8>(), 0..60), Just(b"x#HUDI##HUDI#".to_vec())];
    prop_oneof![
        vec(bytes.clone(), 0..8).prop_map(Written::Data),
        vec(delete, 0..5).prop_map(Written::Deletes),
        bytes.prop_map(Written::Parquet),
        Just(Written::Rollback),
    ]
}

proptest! {
    #[test]
    fn blocks_come_back_as_written_up_to_any_cut(
        written in vec(written(), 1..6),
        schema in "[a-z\"{}]{0,40}",
        cut in any::<prop::sample::Index>(),
    ) {
        let blocks: Vec<_> = written.iter().map(|block| block.encode(&schema)).collect();
        let file = blocks.concat();
        let read = scan(&file).unwrap();
        prop_assert_eq!(read.len(), written.len());
        for (read, (written, bytes)) in read.iter().zip(written.iter().zip(&blocks)) {
            written.is_read_from(&file, read);
            if !matches!(written, Written::Rollback) {
                prop_assert_eq!(read.header.schema(), Some(&schema[..]));
            }
            prop_assert!(encode_block(read.kind, &read.header, content(&file, read)).unwrap() == bytes);
        }

        let cut = cut.index(file.len());
        let before = &file[..cut];
        let whole = read.iter().filter(|block| block.span.end <= cut as u64).count();
        let torn = scan(before).unwrap();
        prop_assert_eq!(&torn[..whole], &read[..whole]);
        prop_assert!(torn[whole..].iter().all(|block| block.kind == BlockKind::Corrupt));
    }
}
