//! Partition paths: one part a field, escaped and styled, each distinct path kept once a batch (semantics.md §4.2).

use super::super::field::FieldPath;
use super::super::{Error, PartitionColumn, Result};
use super::text;
use super::timestamp::TimestampPart;
use crate::config::{KeyConfig, KeyGeneratorClass};
use arrow::array::{Array, BooleanArray, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use foldhash::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// The path of a null or empty value (`PartitionPathEncodeUtils.DEFAULT_PARTITION_PATH`, 0.15).
const DEFAULT_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";
/// Bytes that a folder's name may have on common file systems.
const LONGEST_SEGMENT: usize = 255;
const WAY_OUT: &str = "set hoodie.datasource.write.partitionpath.urlencode=true (new tables only), or change the value";

/// One field's part of the partition path.
#[derive(Debug, Clone)]
pub(super) struct PartitionPart {
    field: FieldPath,
    hive_style: bool,
    url_encode: bool,
    timestamp: Option<TimestampPart>,
}

/// Takes note of a row whose value makes no partition path: row, value, why.
pub(super) type Bad<'a> = dyn FnMut(usize, &str, &str) + 'a;

impl PartitionPart {
    pub fn all(config: &KeyConfig, schema: &SchemaRef) -> Result<Vec<PartitionPart>> {
        let part = |name: &String| {
            let field = FieldPath::resolve(schema, name, "partition field")?;
            let timestamp = match (config.generator, &config.timestamp) {
                (KeyGeneratorClass::TimestampBased, Some(t)) => Some(TimestampPart::new(t, &field)?),
                (KeyGeneratorClass::TimestampBased, None) => {
                    let what = "TimestampBasedKeyGenerator needs hoodie.keygen.timebased.timestamp.type".into();
                    return Err(Error::Unsupported { what });
                }
                _ => None,
            };
            Ok(PartitionPart { field, hive_style: config.hive_style, url_encode: config.url_encode, timestamp })
        };
        config.partition_fields.iter().map(part).collect()
    }

    /// The part of each row; that of a bad one means nothing.
    pub fn paths(
        &self,
        rows: &RecordBatch,
        consistent_logical_timestamp: bool,
        bad: &mut Bad,
    ) -> Result<PartitionColumn> {
        let column = self.field.column(rows);
        let values = match &self.timestamp {
            Some(timestamp) => timestamp.texts(&column, bad)?,
            None => text::texts(&self.field.name, &column, consistent_logical_timestamp)?,
        };
        let mut faults: HashMap<u32, String> = HashMap::default();
        let paths = intern(&values, |id, value| {
            let path = self.path(value);
            if let Some(why) = self.fault(&path, value) {
                faults.insert(id, why);
            }
            path
        });
        if !faults.is_empty() {
            for (row, id) in paths.ids.iter().enumerate() {
                if let Some(why) = faults.get(id) {
                    bad(row, if values.is_null(row) { "" } else { values.value(row) }, why);
                }
            }
        }
        Ok(paths)
    }

    /// The rows of `deleted` whose null would be read as the epoch: deletes that look in 1970 and so delete nothing.
    pub fn deletes_in_1970(&self, rows: &RecordBatch, deleted: &BooleanArray) -> Vec<(usize, &str)> {
        if self.timestamp.is_none() {
            return Vec::new();
        }
        let column = self.field.column(rows);
        let lost = (0..deleted.len()).filter(|&row| deleted.value(row) && column.is_null(row));
        lost.map(|row| (row, self.field.name.as_str())).collect()
    }

    fn path(&self, value: Option<&str>) -> String {
        let value = value.filter(|v| !v.is_empty()).unwrap_or(DEFAULT_PARTITION);
        let mut path = String::with_capacity(value.len() + self.field.name.len() + 1);
        if self.hive_style {
            path.push_str(&self.field.name);
            path.push('=');
        }
        if self.url_encode {
            escape_path_name(value, &mut path)
        } else {
            path.push_str(value)
        }
        path
    }

    /// Why Hudi could not read the path back, or why it would leave the table.
    fn fault(&self, path: &str, value: Option<&str>) -> Option<String> {
        for segment in path.split('/') {
            if segment.is_empty() {
                return Some(format!("an empty folder name; {WAY_OUT}"));
            }
            if segment == "." || segment == ".." {
                return Some(format!("{segment} would leave the partition; change the value"));
            }
            if segment.starts_with(".hoodie") {
                return Some("names that begin with .hoodie are Hudi's own; change the value".into());
            }
            if segment.len() > LONGEST_SEGMENT {
                return Some(format!("a folder name of {} bytes, and {LONGEST_SEGMENT} are the most", segment.len()));
            }
        }
        let value = value.unwrap_or_default();
        if value.contains('\0') && !self.url_encode {
            return Some(format!("no file system has a name with a NUL in it; {WAY_OUT}"));
        }
        // Behind `field=` the first segment of `/abs` is not empty, but its value is.
        if !self.url_encode && self.hive_style && value.starts_with('/') {
            return Some(format!("an empty value before the slash; {WAY_OUT}"));
        }
        if !self.url_encode && value.contains(':') {
            return Some(format!("Hudi on Spark cannot write or read a path with a colon; {WAY_OUT}"));
        }
        if !self.url_encode && !self.hive_style && value.contains('=') {
            return Some(format!(
                "Hudi on Spark would read the text before the equals sign as a column name; {WAY_OUT}"
            ));
        }
        None
    }
}

/// Gives equal values one id; runs of one value cost a comparison each. `path_of`: the path of a new id's value.
fn intern(values: &StringArray, mut path_of: impl FnMut(u32, Option<&str>) -> String) -> PartitionColumn {
    let mut known: HashMap<Option<&str>, u32> = HashMap::default();
    let mut paths = Vec::new();
    let mut ids = Vec::with_capacity(values.len());
    let mut last: Option<(Option<&str>, u32)> = None;
    for row in 0..values.len() {
        let value = (!values.is_null(row)).then(|| values.value(row));
        let id = match last {
            Some((before, id)) if before == value => id,
            _ => match known.get(&value) {
                Some(id) => *id,
                None => {
                    let id = paths.len() as u32;
                    paths.push(path_of(id, value));
                    known.insert(value, id);
                    id
                }
            },
        };
        last = Some((value, id));
        ids.push(id);
    }
    PartitionColumn { ids, paths: Arc::new(paths) }
}

/// `outer/inner`, row by row.
pub(super) fn join(outer: &PartitionColumn, inner: &PartitionColumn) -> PartitionColumn {
    let mut known: HashMap<(u32, u32), u32> = HashMap::default();
    let mut paths = Vec::new();
    let ids = outer.ids.iter().zip(&inner.ids).map(|(&a, &b)| {
        *known.entry((a, b)).or_insert_with(|| {
            paths.push(format!("{}/{}", outer.paths[a as usize], inner.paths[b as usize]));
            paths.len() as u32 - 1
        })
    });
    let ids = ids.collect();
    PartitionColumn { ids, paths: Arc::new(paths) }
}

/// Hive's `escapePathName`, as `PartitionPathEncodeUtils` (0.15) has it.
fn escape_path_name(value: &str, out: &mut String) {
    for c in value.chars() {
        let special =
            matches!(c, '"' | '#' | '%' | '\'' | '*' | '/' | ':' | '=' | '?' | '\\' | '\u{7f}' | '{' | '[' | ']' | '^');
        if special || c < ' ' {
            write!(out, "%{:02X}", c as u32).expect("a string takes every text");
        } else {
            out.push(c);
        }
    }
}

/// Two paths of which one is a folder around the other: Hudi's reader stops at the outer one and loses the inner rows.
pub fn nested_clash(paths: &[&str]) -> Option<(String, String)> {
    let known: std::collections::HashSet<&str> = paths.iter().copied().collect();
    for inner in paths {
        let mut outer = *inner;
        while let Some((parent, _)) = outer.rsplit_once('/') {
            if known.contains(parent) {
                return Some((parent.to_string(), inner.to_string()));
            }
            outer = parent;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_hives() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../../tests/vectors/keygen.json")).expect("vectors");
        for case in vectors["escapePathName"].as_array().expect("a list") {
            let mut out = String::new();
            escape_path_name(case["in"].as_str().expect("text"), &mut out);
            assert_eq!(out, case["out"].as_str().expect("text"));
        }
    }

    #[test]
    fn a_folder_around_another_is_found() {
        assert_eq!(nested_clash(&["a/b", "c", "a"]), Some(("a".into(), "a/b".into())));
        assert_eq!(nested_clash(&["a/b", "a/c", "ab"]), None);
    }
}
