//! Tombstones: rows that hold a message key and nothing else, and delete the record of that key (ours; Hudi's Kafka sources
//! drop such messages).
//!
//! | key of the message | record key |
//! | --- | --- |
//! | text | as it stands |
//! | a JSON text | without its quotes |
//! | a JSON object | the fields of the record key in it; of Kafka Connect's `{"schema": …, "payload": …}` in the payload |
//! | nothing, no UTF-8, bytes that begin with 0 (a registry's Avro, numbers) | none: refused |

use super::super::field::FieldPath;
use super::super::refuse::Faults;
use super::super::{Error, KeyedBatch, Result};
use super::{Place, compose, cut};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, StringArray, StringBuilder};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{is_not_null, nullif, or};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use serde_json::{Map, Value};

/// The tombstones among the rows of a batch.
pub(super) struct Tombstones {
    /// Record keys; null for ordinary rows.
    keys: StringArray,
}

impl Tombstones {
    /// `None`: there are none. Those whose key makes no record key are faults.
    pub fn read(
        message_keys: &BinaryArray,
        fields: &[FieldPath],
        prefixed: bool,
        place: &Place,
        faults: &mut Faults,
    ) -> Option<Tombstones> {
        if message_keys.null_count() == message_keys.len() {
            return None;
        }
        let mut keys = StringBuilder::with_capacity(message_keys.len(), message_keys.values().len());
        for (row, bytes) in message_keys.iter().enumerate() {
            let Some(bytes) = bytes else {
                keys.append_null();
                continue;
            };
            match record_key(fields, prefixed, bytes) {
                Ok(key) => keys.append_value(key),
                Err(why) => {
                    let key = cut(&String::from_utf8_lossy(bytes));
                    faults.add(row, || Error::TombstoneKey { key, why, position: place.position(row) });
                    keys.append_value("");
                }
            }
        }
        Some(Tombstones { keys: keys.finish() })
    }

    /// True where a row is a tombstone.
    pub fn rows(&self) -> BooleanArray {
        is_not_null(&self.keys).expect("validity needs no values")
    }

    /// Makes the rows what they are: deletes, by their own key, of no partition, newer than all before.
    pub fn put_into(self, keyed: KeyedBatch) -> Result<KeyedBatch> {
        let rows = self.rows();
        let failed = |e: ArrowError| Error::Unsupported { what: format!("put tombstones among the records: {e}") };
        let without = |ordering: ArrayRef| nullif(&ordering, &rows).map_err(failed);
        Ok(KeyedBatch {
            keys: zip(&rows, &self.keys, &keyed.keys).map_err(failed)?.as_string().clone(),
            ordering: keyed.ordering.map(without).transpose()?,
            deleted: Some(match keyed.deleted {
                Some(deleted) => or(&deleted, &rows).map_err(failed)?,
                None => rows.clone(),
            }),
            partitions: keyed.partitions.without_path(&rows),
            rows: keyed.rows,
        })
    }
}

type Told<T> = std::result::Result<T, String>;

/// The record key that a message key names, or why it names none.
fn record_key(fields: &[FieldPath], prefixed: bool, message_key: &[u8]) -> Told<String> {
    let text = match message_key {
        [] => return Err("the message has none".into()),
        [0, ..] => {
            return Err("it is binary, Avro of a schema registry perhaps, and only text and JSON are understood".into());
        }
        _ => std::str::from_utf8(message_key).map_err(|_| "it is not UTF-8 text")?,
    };
    let json = matches!(message_key[0], b'{' | b'"').then(|| serde_json::from_str(text).ok()).flatten();
    let values = match json {
        Some(value) => values(fields, value)?,
        None => vec![Some(alone(fields, |field| of_text(field, text))?)],
    };
    let mut key = String::new();
    if prefixed {
        let parts = fields.iter().zip(values.iter().map(Option::as_deref));
        return if compose(&mut key, parts) { Ok(key) } else { Err("nothing in it names a record".into()) };
    }
    match values.into_iter().next().flatten() {
        Some(key) if !key.is_empty() => Ok(key),
        _ => Err("nothing in it names a record".into()),
    }
}

/// The values of the record key's fields.
fn values(fields: &[FieldPath], key: Value) -> Told<Vec<Option<String>>> {
    match key {
        Value::Object(mut object) if is_connects(fields, &object) => {
            values(fields, object.remove("payload").unwrap_or_default())
        }
        Value::Object(object) => fields.iter().map(|field| of_json(field, find(&object, &field.name)?)).collect(),
        value => Ok(vec![alone(fields, |field| of_json(field, &value))?]),
    }
}

/// `JsonConverter` with `schemas.enable`.
fn is_connects(fields: &[FieldPath], object: &Map<String, Value>) -> bool {
    let both = object.len() == 2 && object.contains_key("schema") && object.contains_key("payload");
    both && fields.iter().any(|field| find(object, &field.name).is_err())
}

/// A member by its name, or by dotted path.
fn find<'a>(object: &'a Map<String, Value>, name: &str) -> Told<&'a Value> {
    let nested = || {
        let (head, tail) = name.split_once('.')?;
        find(object.get(head)?.as_object()?, tail).ok()
    };
    object.get(name).or_else(nested).ok_or_else(|| format!("the record key field {name} is not in it"))
}

/// A value that is no object is the one field's.
fn alone<T>(fields: &[FieldPath], make: impl Fn(&FieldPath) -> Told<T>) -> Told<T> {
    match fields {
        [field] => make(field),
        _ => {
            let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
            Err(format!("only a JSON object can have the record key fields {}", names.join(", ")))
        }
    }
}

fn of_json(field: &FieldPath, value: &Value) -> Told<Option<String>> {
    match (value, &field.data_type) {
        (Value::Null, _) => Ok(None),
        (Value::String(text), _) => of_text(field, text).map(Some),
        (Value::Bool(flag), DataType::Boolean | DataType::Utf8) => Ok(Some(flag.to_string())),
        (Value::Number(number), DataType::Int32 | DataType::Int64 | DataType::Utf8)
            if number.is_i64() || number.is_u64() =>
        {
            Ok(Some(number.to_string()))
        }
        (value, data_type) => {
            let name = &field.name;
            Err(format!(
                "{} is not how a record key of {name}, which is {data_type}, is written",
                cut(&value.to_string())
            ))
        }
    }
}

/// A text as the record key has it. One that no value of the field could have made would delete nothing, and nobody would know.
fn of_text(field: &FieldPath, text: &str) -> Told<String> {
    let whole = matches!(field.data_type, DataType::Int32 | DataType::Int64);
    match whole.then(|| text.parse::<i64>()) {
        None => Ok(text.to_string()),
        Some(Ok(number)) => Ok(number.to_string()),
        Some(Err(_)) => Err(format!("{} is no whole number, as the record key field {} is", cut(text), field.name)),
    }
}

#[cfg(test)]
mod tests;
