//! The Avro schema of Arrow rows, named as Hudi on Spark names it (`SchemaConverters`, `HoodieAvroUtils`, 0.15).

use super::{DOC, Error, Result};
use arrow::datatypes::{DataType, FieldRef, Fields, SchemaRef, TimeUnit};
use serde_json::{Value, json};

/// The record `hoodie.<table>.<table>_record`.
pub(super) fn record(schema: &SchemaRef, table_name: &str) -> Result<Value> {
    let table = legal(table_name);
    named(schema, &format!("{table}_record"), &format!("hoodie.{table}"))
}

/// A record of that name; what is named inside it is named after its place, as Spark's converter does.
pub(super) fn named(schema: &SchemaRef, name: &str, namespace: &str) -> Result<Value> {
    let mut record = record_of(schema.fields(), name, namespace, "")?;
    if namespace.is_empty()
        && let Some(record) = record.as_object_mut()
    {
        record.shift_remove("namespace");
    }
    Ok(record)
}

/// Characters that Avro does not allow in a name become `__` (`HoodieAvroUtils.sanitizeName`, 0.15).
fn legal(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_ascii_alphabetic() || c == '_' || (i > 0 && c.is_ascii_digit()) {
            out.push(c)
        } else {
            out.push_str("__")
        }
    }
    out
}

fn record_of(fields: &Fields, name: &str, namespace: &str, path: &str) -> Result<Value> {
    let inner = if namespace.is_empty() { name.to_string() } else { format!("{namespace}.{name}") };
    let field = |f: &FieldRef| {
        let path = if path.is_empty() { f.name().clone() } else { format!("{path}.{}", f.name()) };
        if legal(f.name()) != *f.name() {
            return Err(Error::Unsupported {
                field: path,
                what: "not a name that Avro allows (letters, digits and _, no digit first)".into(),
                instead: "rename the column, with `AS` in a transformer for instance",
            });
        }
        let schema = schema_of(f, f.name(), &inner, &path)?;
        let mut field = json!({"name": f.name(), "type": schema});
        if let Some(doc) = f.metadata().get(DOC) {
            field["doc"] = json!(doc);
        }
        if field["type"].is_array() {
            field["default"] = Value::Null;
        }
        Ok(field)
    };
    let fields = fields.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(json!({"type": "record", "name": name, "namespace": namespace, "fields": fields}))
}

fn schema_of(field: &FieldRef, name: &str, namespace: &str, path: &str) -> Result<Value> {
    let schema = type_of(field.data_type(), name, namespace, path)?;
    Ok(if field.is_nullable() { json!(["null", schema]) } else { schema })
}

/// Bytes of the smallest two's complement that holds `precision` digits (`AvroConversionUtils`, Spark's `minBytesForPrecision`).
pub(super) fn decimal_size(precision: u8) -> u64 {
    let most = 10i128.checked_pow(u32::from(precision)).map_or(i128::MAX, |p| p - 1);
    (1..16).find(|bytes| most < 1i128 << (8 * bytes - 1)).unwrap_or(16)
}

fn type_of(data_type: &DataType, name: &str, namespace: &str, path: &str) -> Result<Value> {
    let refuse = |instead: &'static str| Error::Unsupported {
        field: path.to_string(),
        what: format!("Hudi has no type for {data_type}"),
        instead,
    };
    Ok(match data_type {
        DataType::Boolean => json!("boolean"),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => json!("int"),
        DataType::Int64 | DataType::UInt32 => json!("long"),
        DataType::UInt64 => return Err(refuse("CAST it AS BIGINT or DECIMAL(20, 0)")),
        DataType::Float32 => json!("float"),
        DataType::Float64 => json!("double"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => json!("string"),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => json!("bytes"),
        DataType::Date32 => json!({"type": "int", "logicalType": "date"}),
        DataType::Timestamp(TimeUnit::Millisecond, Some(_)) => {
            json!({"type": "long", "logicalType": "timestamp-millis"})
        }
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
            json!({"type": "long", "logicalType": "timestamp-micros"})
        }
        DataType::Timestamp(_, _) => {
            return Err(refuse("use arrow_cast(column, 'Timestamp(Microsecond, Some(\"UTC\"))') in the transformer"));
        }
        DataType::Decimal128(precision, scale) if *scale >= 0 => json!({
            "type": "fixed", "name": "fixed", "namespace": format!("{namespace}.{name}"),
            "size": decimal_size(*precision), "logicalType": "decimal", "precision": precision, "scale": scale
        }),
        DataType::Struct(fields) => record_of(fields, name, namespace, path)?,
        DataType::List(item) | DataType::LargeList(item) => {
            json!({"type": "array", "items": schema_of(item, name, namespace, &format!("{path}[]"))?})
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 && pair[0].data_type().is_string() => {
                json!({"type": "map", "values": schema_of(&pair[1], name, namespace, &format!("{path}{{}}"))?})
            }
            _ => return Err(refuse("the keys of a map must be text")),
        },
        DataType::Dictionary(_, values) => type_of(values, name, namespace, path)?,
        DataType::Null => return Err(refuse("CAST the null to a type")),
        _ => return Err(refuse("CAST it to a type that Avro has")),
    })
}
