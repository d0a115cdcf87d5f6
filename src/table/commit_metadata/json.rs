//! The exact shape: field order of Hudi's classes, layout of Jackson's default pretty printer.

use super::{CommitMetadata, CompactionTotals, LogStat, WriteStat};
use bytes::Bytes;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;

pub(super) fn write(metadata: &CommitMetadata) -> Bytes {
    let mut out = Vec::with_capacity(1024);
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Jackson::default());
    Top(metadata).serialize(&mut serializer).expect("strings and numbers into memory");
    Bytes::from(out)
}

struct Top<'a>(&'a CommitMetadata);

impl Serialize for Top<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CommitMetadata {
            partition_to_write_stats,
            compacted,
            extra_metadata,
            operation_type,
            partition_to_replace_file_ids,
        } = self.0;
        let stats: BTreeMap<_, Vec<Stat<'_>>> =
            partition_to_write_stats.iter().map(|(p, stats)| (p, stats.iter().map(Stat).collect())).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("partitionToWriteStats", &stats)?;
        map.serialize_entry("compacted", compacted)?;
        map.serialize_entry("extraMetadata", extra_metadata)?;
        map.serialize_entry("operationType", operation_type)?;
        if let Some(replaced) = partition_to_replace_file_ids {
            map.serialize_entry("partitionToReplaceFileIds", replaced)?;
        }
        map.end()
    }
}

struct Stat<'a>(&'a WriteStat);

impl Serialize for Stat<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stat = self.0;
        let others = &stat.others;
        let partition = (!stat.partition_path.is_empty() || stat.path.is_some()).then_some(&stat.partition_path);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("fileId", &stat.file_id)?;
        map.serialize_entry("path", &stat.path)?;
        map.serialize_entry("cdcStats", others.get("cdcStats").unwrap_or(&Value::Null))?;
        map.serialize_entry("prevCommit", &stat.prev_commit)?;
        map.serialize_entry("numWrites", &stat.num_writes)?;
        map.serialize_entry("numDeletes", &stat.num_deletes)?;
        map.serialize_entry("numUpdateWrites", &stat.num_update_writes)?;
        map.serialize_entry("numInserts", &stat.num_inserts)?;
        map.serialize_entry("totalWriteBytes", &stat.total_write_bytes)?;
        map.serialize_entry("totalWriteErrors", &stat.total_write_errors)?;
        map.serialize_entry("tempPath", others.get("tempPath").unwrap_or(&Value::Null))?;
        map.serialize_entry("partitionPath", &partition)?;
        for (field, total) in totals(&mut stat.compaction.clone().unwrap_or_default()) {
            map.serialize_entry(field, total)?;
        }
        map.serialize_entry("fileSizeInBytes", &stat.file_size_in_bytes)?;
        map.serialize_entry("minEventTime", others.get("minEventTime").unwrap_or(&Value::Null))?;
        map.serialize_entry("maxEventTime", others.get("maxEventTime").unwrap_or(&Value::Null))?;
        map.serialize_entry("runtimeStats", &runtime(stat))?;
        if let Some(log) = &stat.log {
            map.serialize_entry("logVersion", &log.version)?;
            map.serialize_entry("logOffset", &log.offset)?;
            map.serialize_entry("baseFile", &log.base_file)?;
            map.serialize_entry("logFiles", &log.log_files[..])?;
            let none = serde_json::json!({ "val": null });
            map.serialize_entry("recordsStats", others.get("recordsStats").unwrap_or(&none))?;
        }
        for (field, value) in
            others.iter().filter(|(field, _)| !PLACED.contains(&field.as_str()) && *field != "recordsStats")
        {
            map.serialize_entry(field, value)?;
        }
        map.end()
    }
}

/// Hudi's names and order of them; 0 in the stats of a write.
fn totals(of: &mut CompactionTotals) -> [(&'static str, &mut u64); 7] {
    [
        ("totalLogRecords", &mut of.log_records),
        ("totalLogFilesCompacted", &mut of.log_files),
        ("totalLogSizeCompacted", &mut of.log_bytes),
        ("totalUpdatedRecordsCompacted", &mut of.updated_records),
        ("totalLogBlocks", &mut of.log_blocks),
        ("totalCorruptLogBlock", &mut of.corrupt_blocks),
        ("totalRollbackBlocks", &mut of.rollback_blocks),
    ]
}

/// Fields of `others` that have a place among the fields of every stat.
const PLACED: [&str; 4] = ["cdcStats", "tempPath", "minEventTime", "maxEventTime"];

/// A workload profile (no file yet) has none.
fn runtime(stat: &WriteStat) -> Option<Value> {
    stat.path.as_ref()?;
    Some(serde_json::json!({
        "totalScanTime": stat.compaction.as_ref().map_or(0, |totals| totals.scan_ms),
        "totalUpsertTime": stat.total_upsert_time,
        "totalCreateTime": stat.total_create_time,
    }))
}

pub(super) fn read(bytes: &[u8]) -> Result<CommitMetadata, String> {
    if bytes.is_empty() {
        return Ok(CommitMetadata { operation_type: "UNKNOWN".to_string(), ..CommitMetadata::default() });
    }
    let mut top: Map<String, Value> = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let mut metadata = CommitMetadata {
        compacted: top.get("compacted").and_then(Value::as_bool).unwrap_or(false),
        operation_type: text(top.shift_remove("operationType")).unwrap_or_else(|| "UNKNOWN".to_string()),
        ..CommitMetadata::default()
    };
    for (key, value) in object(&mut top, "extraMetadata")? {
        if let Some(value) = text(Some(value)) {
            metadata.extra_metadata.insert(key, value);
        }
    }
    for (partition, stats) in object(&mut top, "partitionToWriteStats")? {
        let stats = serde_json::from_value::<Vec<Map<String, Value>>>(stats)
            .map_err(|e| format!("partitionToWriteStats of `{partition}`: {e}"))?;
        metadata.partition_to_write_stats.insert(partition, stats.into_iter().map(stat).collect());
    }
    if top.contains_key("partitionToReplaceFileIds") {
        let replaced = Value::Object(object(&mut top, "partitionToReplaceFileIds")?);
        let replaced = serde_json::from_value(replaced).map_err(|e| format!("partitionToReplaceFileIds: {e}"))?;
        metadata.partition_to_replace_file_ids = Some(replaced);
    }
    Ok(metadata)
}

/// A missing or null object is an empty one.
fn object(top: &mut Map<String, Value>, field: &str) -> Result<Map<String, Value>, String> {
    match top.shift_remove(field) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map),
        Some(other) => Err(format!("{field} is not an object but {}", kind(&other))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "an array",
        Value::String(_) => "a string",
        _ => "a number or flag",
    }
}

fn text(value: Option<Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn stat(mut fields: Map<String, Value>) -> WriteStat {
    let mut runtime = match fields.shift_remove("runtimeStats") {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let stat = WriteStat {
        total_create_time: number(&mut runtime, "totalCreateTime"),
        total_upsert_time: number(&mut runtime, "totalUpsertTime"),
        file_id: text(fields.shift_remove("fileId")).unwrap_or_default(),
        path: text(fields.shift_remove("path")),
        prev_commit: text(fields.shift_remove("prevCommit")).unwrap_or_else(|| "null".to_string()),
        partition_path: text(fields.shift_remove("partitionPath")).unwrap_or_default(),
        num_writes: number(&mut fields, "numWrites"),
        num_deletes: number(&mut fields, "numDeletes"),
        num_update_writes: number(&mut fields, "numUpdateWrites"),
        num_inserts: number(&mut fields, "numInserts"),
        total_write_bytes: number(&mut fields, "totalWriteBytes"),
        total_write_errors: number(&mut fields, "totalWriteErrors"),
        file_size_in_bytes: number(&mut fields, "fileSizeInBytes"),
        log: log(&mut fields),
        compaction: compaction(&mut fields, &mut runtime),
        others: Map::new(),
    };
    let others = fields.into_iter().filter(|(field, value)| !is_default(field, value)).collect();
    WriteStat { others, ..stat }
}

fn log(fields: &mut Map<String, Value>) -> Option<LogStat> {
    let version = fields.shift_remove("logVersion")?.as_u64()?;
    let names = match fields.shift_remove("logFiles") {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    Some(LogStat {
        version: u32::try_from(version).ok()?,
        offset: number(fields, "logOffset"),
        base_file: text(fields.shift_remove("baseFile")).unwrap_or_default(),
        log_files: names.into_iter().filter_map(|name| text(Some(name))).collect(),
    })
}

/// `None` where there is nothing but zeros: the stat of a write.
fn compaction(fields: &mut Map<String, Value>, runtime: &mut Map<String, Value>) -> Option<CompactionTotals> {
    let mut of = CompactionTotals { scan_ms: number(runtime, "totalScanTime"), ..CompactionTotals::default() };
    for (field, total) in totals(&mut of) {
        *total = number(fields, field);
    }
    (of != CompactionTotals::default()).then_some(of)
}

fn number(fields: &mut Map<String, Value>, field: &str) -> u64 {
    fields.shift_remove(field).and_then(|v| v.as_u64()).unwrap_or(0)
}

/// What every stat has when nothing is to be said: not worth keeping.
fn is_default(field: &str, value: &Value) -> bool {
    match field {
        "recordsStats" => *value == serde_json::json!({ "val": null }),
        field => PLACED.contains(&field) && value.is_null(),
    }
}

/// Jackson's `DefaultPrettyPrinter`: objects a line a field, arrays on one line, a blank on both sides of each colon.
#[derive(Default)]
struct Jackson {
    depth: usize,
    has_value: bool,
}

impl Jackson {
    fn line<W: io::Write + ?Sized>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl serde_json::ser::Formatter for Jackson {
    fn begin_array<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.has_value = false;
        writer.write_all(b"[")
    }
    fn end_array<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.has_value = true;
        writer.write_all(b" ]")
    }
    fn begin_array_value<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b" " } else { b", " })
    }
    fn end_array_value<W: io::Write + ?Sized>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        writer.write_all(b"{")
    }
    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value {
            self.line(writer)?;
        } else {
            writer.write_all(b" ")?;
        }
        self.has_value = true;
        writer.write_all(b"}")
    }
    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }
    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }
    fn end_object_value<W: io::Write + ?Sized>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hudis_files_are_written_back_byte_for_byte() {
        let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/commit_metadata.json")).unwrap();
        let files = vectors["files"].as_array().unwrap();
        assert!(files.len() >= 7);
        for file in files {
            let (what, text) = (&file["what"], file["text"].as_str().unwrap());
            let metadata = read(text.as_bytes()).unwrap();
            let written = String::from_utf8(write(&metadata).to_vec()).unwrap();
            // Hudi writes hash maps: the order of partitions and of extra keys is free.
            let same = serde_json::from_str::<Value>(&written).unwrap() == serde_json::from_str::<Value>(text).unwrap();
            assert!(same, "{what}:\n{written}\n{text}");
            if is_sorted(text) {
                assert_eq!(written, text, "{what}");
            } else {
                let lines = |t: &str| {
                    let mut lines: Vec<String> = t.lines().map(|l| l.trim_end_matches(',').to_string()).collect();
                    lines.sort_unstable();
                    lines
                };
                assert_eq!(lines(&written), lines(text), "{what}");
            }
        }
    }

    fn is_sorted(text: &str) -> bool {
        let top: Value = serde_json::from_str(text).unwrap();
        ["partitionToWriteStats", "extraMetadata", "partitionToReplaceFileIds"]
            .iter()
            .filter_map(|field| top[*field].as_object())
            .all(|map| map.keys().is_sorted())
    }

    #[test]
    fn log_stats_of_delta_commits_are_read() {
        let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/commit_metadata.json")).unwrap();
        let logs: Vec<WriteStat> = vectors["files"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|f| read(f["text"].as_str().unwrap().as_bytes()).unwrap().partition_to_write_stats)
            .flat_map(|(_, stats)| stats)
            .filter(WriteStat::is_log)
            .collect();
        assert!(!logs.is_empty());
        for stat in logs {
            let name = stat.path.as_deref().and_then(|path| path.rsplit('/').next()).expect("a path");
            let log = stat.log.expect("a log");
            assert_eq!((log.version, log.offset), (1, 0));
            assert_eq!(*log.log_files, [name]);
            assert!(log.base_file.ends_with(".parquet") && stat.others.is_empty(), "{log:?} {:?}", stat.others);
        }
    }

    #[test]
    fn totals_of_compactions_are_read() {
        let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/commit_metadata.json")).unwrap();
        let files = vectors["files"].as_array().unwrap().iter();
        let (compactions, writes): (Vec<_>, Vec<_>) = files
            .map(|file| read(file["text"].as_str().unwrap().as_bytes()).unwrap())
            .partition(|metadata| metadata.operation_type == "COMPACT");
        let totals: Vec<_> = compactions.iter().flat_map(CommitMetadata::stats).map(|s| s.compaction.clone()).collect();
        let want = CompactionTotals {
            log_records: 1,
            log_files: 2,
            log_bytes: 1914,
            updated_records: 2,
            log_blocks: 2,
            scan_ms: 193,
            ..CompactionTotals::default()
        };
        assert_eq!((totals.len(), &totals[0]), (2, &Some(want)));
        assert!(writes.iter().flat_map(CommitMetadata::stats).all(|s| s.compaction.is_none()));
    }

    #[test]
    fn odd_files_are_read_as_hudi_reads_them() {
        let empty = read(b"").unwrap();
        assert_eq!((empty.operation_type.as_str(), empty.stats().count()), ("UNKNOWN", 0));
        let sparse = read(br#"{"partitionToWriteStats":null,"new":[1],"extraMetadata":{"a":"","b":null}}"#).unwrap();
        assert_eq!((sparse.extra("a"), sparse.extra("b"), sparse.stats().count()), (None, None, 0));
        let stat = read(br#"{"partitionToWriteStats":{"p":[{"fileId":"f","numWrites":7,"brandNew":"x"}]}}"#).unwrap();
        let stat = stat.stats().next().unwrap().clone();
        assert_eq!(
            (stat.num_writes, stat.prev_commit.as_str(), stat.others["brandNew"].as_str()),
            (7, "null", Some("x"))
        );
        assert!(read(b"[]").is_err() && read(b"{").is_err() && read(br#"{"extraMetadata":[]}"#).is_err());
    }

    #[test]
    fn an_empty_commit_has_hudis_shape() {
        let metadata = CommitMetadata { operation_type: "UPSERT".to_string(), ..CommitMetadata::default() };
        let want = "{\n  \"partitionToWriteStats\" : { },\n  \"compacted\" : false,\n  \"extraMetadata\" : { },\n  \
                    \"operationType\" : \"UPSERT\"\n}";
        assert_eq!(write(&metadata), want);
    }
}
