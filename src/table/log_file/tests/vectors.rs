//! What Hudi 0.15 wrote and what it reads from it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::*;

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/log_blocks.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The file of three blocks.
pub(super) fn file() -> Vec<u8> {
    BASE64_STANDARD.decode(vectors()["files"][0]["file_base64"].as_str().unwrap()).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn kind_of(name: &Value) -> BlockKind {
    match name.as_str().unwrap() {
        "AVRO_DATA_BLOCK" => BlockKind::AvroData,
        "DELETE_BLOCK" => BlockKind::Delete,
        "COMMAND_BLOCK" => BlockKind::Command,
        "CORRUPT_BLOCK" => BlockKind::Corrupt,
        other => panic!("{other}"),
    }
}

#[test]
fn blocks_of_hudi_are_read_as_hudi_reads_them() {
    let (vectors, file) = (vectors(), file());
    let blocks = scan(&file).unwrap();
    let want = vectors["files"][0]["hudi_reads"].as_array().unwrap();
    assert_eq!(blocks.len(), want.len());
    for (block, want) in blocks.iter().zip(want) {
        assert_eq!(block.kind, kind_of(&want["type"]));
        assert_eq!(block.kind as u64, want["typeOrdinal"].as_u64().unwrap());
        let header = want["header"].as_object().unwrap();
        for (key, value) in header {
            let ordinal = key.split(':').next().unwrap().parse().unwrap();
            assert_eq!(block.header.get(HeaderKey::of_ordinal(ordinal).unwrap()), value.as_str(), "{key}");
        }
    }
    let records: Vec<_> = avro_records(content(&file, &blocks[0])).unwrap().map(|record| record.unwrap()).collect();
    assert_eq!(records.iter().map(|r| r.len()).collect::<Vec<_>>(), [97, 97]);
    for (record, want) in records.iter().zip(want[0]["records"].as_array().unwrap()) {
        let key = want["_hoodie_record_key"].as_str().unwrap();
        assert!(record.windows(key.len()).any(|w| w == key.as_bytes()));
    }
    let deletes = all_deletes(content(&file, &blocks[1])).unwrap();
    let delete = |key, ordering| DeleteRecord { key, partition: "eu", ordering };
    assert_eq!(deletes, [delete("k2", OrderingValue::Long(250)), delete("k9", OrderingValue::Int(0))]);
    assert!(blocks[2].header.is_rollback());
    assert_eq!(blocks[2].header.target_instant().unwrap().as_str(), "20240103000000000");
}

#[test]
fn blocks_of_hudi_come_out_byte_for_byte() {
    let file = file();
    let (mut again, mut anew) = (Vec::new(), Vec::new());
    for block in scan(&file).unwrap() {
        let bytes = content(&file, &block);
        again.extend_from_slice(&encode_block(block.kind, &block.header, bytes).unwrap());
        // From what they mean.
        let instant = block.header.instant().unwrap();
        let (header, bytes) = match block.kind {
            BlockKind::AvroData => {
                let mut data = AvroContent::new();
                for record in avro_records(bytes).unwrap() {
                    let record = record.unwrap();
                    data.buffer().extend_from_slice(&(record.len() as u32).to_be_bytes());
                    data.buffer().extend_from_slice(record);
                    data.add(1);
                }
                (BlockHeader::of_write(instant, block.header.schema().unwrap()), data.content().to_vec())
            }
            BlockKind::Delete => {
                let deletes = all_deletes(bytes).unwrap();
                (BlockHeader::of_write(instant, block.header.schema().unwrap()), encode_deletes(&deletes))
            }
            _ => (BlockHeader::of_rollback(instant, block.header.target_instant().unwrap()), Vec::new()),
        };
        anew.extend_from_slice(&encode_block(block.kind, &header, &bytes).unwrap());
    }
    assert!(again == file);
    assert!(anew == file);
}

#[test]
fn damage_shows_as_in_hudi() {
    let (vectors, file) = (vectors(), file());
    let want = |i: usize| -> Vec<BlockKind> {
        vectors["files"][i]["hudi_reads_types"].as_array().unwrap().iter().map(kind_of).collect()
    };
    assert_eq!(kinds(&file[..file.len() - 20]), want(1));
    let junk = [&file[..865], b"garbage", &file[865..]].concat();
    assert_eq!(kinds(&junk), want(2));
}

#[test]
fn ordering_values_are_as_hudi_writes_them() {
    let values = [
        OrderingValue::Int(5),
        OrderingValue::Long(5),
        OrderingValue::Float(5.5),
        OrderingValue::Double(5.5),
        OrderingValue::Text("s".into()),
        OrderingValue::Boolean(true),
        OrderingValue::Bytes(vec![1, 2]),
        OrderingValue::Date(19_782),
        OrderingValue::Decimal { unscaled: 12_340_000_000_000_000 },
        OrderingValue::TimestampMicros(1_709_168_523_456_789),
    ];
    let vectors = vectors();
    let vectors = vectors["delete_block_ordering_values"].as_array().unwrap();
    assert_eq!(vectors.len(), values.len());
    for (vector, ordering) in vectors.iter().zip(values) {
        let bytes = hex(vector["content_hex"].as_str().unwrap());
        let want = vec![DeleteRecord { key: "k", partition: "p", ordering }];
        assert_eq!(all_deletes(&bytes).unwrap(), want, "{}", vector["inJava"]);
        assert_eq!(encode_deletes(&want), bytes, "{}", vector["inJava"]);
    }
}
