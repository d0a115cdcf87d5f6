//! Log files: blocks as `HoodieLogFormat` 1 has them, and the Avro in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value as Avro;
use hudi_streamer::table::log_file::decode_deletes;

use super::super::{Row, Value};

const MAGIC: &[u8] = b"#HUDI#";
/// `HoodieLogBlockType` and `HeaderMetadataType`, by ordinal.
const COMMAND: u32 = 0;
const DELETE: u32 = 1;
const AVRO_DATA: u32 = 3;
const INSTANT: u32 = 0;
const TARGET: u32 = 1;
const SCHEMA: u32 = 2;

pub(super) struct Block {
    /// Empty in a corrupt block, and in those of the archived timeline.
    pub instant: String,
    pub kind: Kind,
}

pub(super) enum Kind {
    Rows(Vec<Row>),
    /// Record keys.
    Deletes(BTreeSet<String>),
    Rollback {
        target: String,
    },
    /// Bytes up to the end of the file that are no block.
    Corrupt,
}

pub(super) fn blocks(path: &Path) -> Vec<Block> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()));
    let (mut rest, mut blocks) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let Some(block) = next(&mut rest) else {
            blocks.push(Block { instant: String::new(), kind: Kind::Corrupt });
            break;
        };
        blocks.push(block);
    }
    blocks
}

/// Instants in a file of the archived timeline.
pub(super) fn archived_instants(path: &Path) -> BTreeSet<String> {
    let rows = blocks(path).into_iter().flat_map(|block| match block.kind {
        Kind::Rows(rows) => rows,
        _ => panic!("{} is no whole archive", path.display()),
    });
    rows.map(|row| row["commitTime"].as_str().expect("an archived instant has its time").to_owned()).collect()
}

/// Takes a block off the front; `None` where there is no whole one.
fn next(rest: &mut &[u8]) -> Option<Block> {
    let mut bytes = *rest;
    (take(&mut bytes, 6)? == MAGIC).then_some(())?;
    let length = number::<8>(&mut bytes)?;
    let mut body = take(&mut bytes, length)?;
    let (_version, kind) = (number::<4>(&mut body)?, number::<4>(&mut body)? as u32);
    let header = map(&mut body)?;
    let length = number::<8>(&mut body)?;
    let content = take(&mut body, length)?;
    let _footer = map(&mut body)?;
    let whole = number::<8>(&mut body)? as usize == rest.len() - bytes.len() - 8;
    (whole && body.is_empty()).then(|| *rest = bytes)?;
    let text = |key: u32| header.get(&key).cloned().unwrap_or_default();
    let kind = match kind {
        COMMAND => Kind::Rollback { target: text(TARGET) },
        DELETE => Kind::Deletes(deleted(content)),
        AVRO_DATA => Kind::Rows(rows(content, &text(SCHEMA))),
        other => panic!("no test of this reader has blocks of type {other}"),
    };
    Some(Block { instant: text(INSTANT), kind })
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}

fn number<const N: usize>(bytes: &mut &[u8]) -> Option<u64> {
    Some(take(bytes, N as u64)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn map(bytes: &mut &[u8]) -> Option<BTreeMap<u32, String>> {
    let count = number::<4>(bytes)?;
    let entry = |_| {
        let (key, length) = (number::<4>(bytes)?, number::<4>(bytes)?);
        Some((key as u32, String::from_utf8_lossy(take(bytes, length)?).into_owned()))
    };
    (0..count).map(entry).collect()
}

fn deleted(content: &[u8]) -> BTreeSet<String> {
    let records = decode_deletes(content).expect("a delete block");
    records.map(|record| record.expect("an entry of a delete block").key.to_owned()).collect()
}

fn rows(mut content: &[u8], schema: &str) -> Vec<Row> {
    let schema = Schema::parse_str(schema).expect("a block's schema");
    let reader = GenericDatumReader::builder(&schema).build().expect("a reader");
    let head = (number::<4>(&mut content), number::<4>(&mut content));
    let (Some(3), Some(count)) = head else { panic!("no data block of version 3: {head:?}") };
    let rows = (0..count).map(|_| {
        let record = number::<4>(&mut content).and_then(|length| take(&mut content, length)).expect("a record");
        let record = reader.read_value(&mut { record }).expect("a record of the block's schema");
        let Value::Object(row) = json(record) else { panic!("a row is a record") };
        row
    });
    rows.collect()
}

/// Values that no test compares are left out.
fn json(value: Avro) -> Value {
    match value {
        Avro::Union(_, value) => json(*value),
        Avro::Record(fields) => Value::Object(fields.into_iter().map(|(name, value)| (name, json(value))).collect()),
        Avro::String(text) | Avro::Enum(_, text) => text.into(),
        Avro::Long(number) => number.into(),
        Avro::Int(number) => number.into(),
        Avro::Double(number) => number.into(),
        Avro::Boolean(value) => value.into(),
        _ => Value::Null,
    }
}
