//! A field's default, which a schema has as JSON, as if it had been written: then it is read as any other value.

use super::encode::{counted, long};
use apache_avro::Schema;
use apache_avro::schema::{DecimalSchema, InnerDecimalSchema, NamesRef, UuidSchema};
use serde_json::Value;

/// Appends the value to `out`. An error says what is expected.
pub(super) fn encode(value: &Value, schema: &Schema, names: &NamesRef<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    let whole = |value: &Value| value.as_i64().ok_or_else(|| "a whole number is wanted".to_owned());
    match schema {
        Schema::Ref { name } => match names.get(name) {
            Some(found) => encode(value, found, names, out)?,
            None => return Err(format!("{name} is not a defined name")),
        },
        Schema::Union(union) => {
            // The first branch, says Avro 1.11; any, says 1.12.
            let mut why = "the union has no branches".to_owned();
            for (branch, schema) in union.variants().iter().enumerate() {
                let mut encoded = Vec::new();
                match encode(value, schema, names, &mut encoded) {
                    Ok(()) => {
                        long(branch as i64, out);
                        out.append(&mut encoded);
                        return Ok(());
                    }
                    Err(e) => why = e,
                }
            }
            return Err(why);
        }
        Schema::Null => value.as_null().ok_or("null is wanted")?,
        Schema::Boolean => out.push(u8::from(value.as_bool().ok_or("true or false is wanted")?)),
        Schema::Int | Schema::Date | Schema::TimeMillis => {
            long(i32::try_from(whole(value)?).map_err(|_| "out of the range of an int")?.into(), out);
        }
        Schema::Long | Schema::TimeMicros => long(whole(value)?, out),
        Schema::TimestampMillis | Schema::TimestampMicros | Schema::TimestampNanos => long(whole(value)?, out),
        Schema::LocalTimestampMillis | Schema::LocalTimestampMicros | Schema::LocalTimestampNanos => {
            long(whole(value)?, out);
        }
        Schema::Float => out.extend((value.as_f64().ok_or("a number is wanted")? as f32).to_le_bytes()),
        Schema::Double => out.extend(value.as_f64().ok_or("a number is wanted")?.to_le_bytes()),
        Schema::String | Schema::Uuid(UuidSchema::String) => counted(text(value)?.as_bytes(), out),
        Schema::Bytes | Schema::BigDecimal | Schema::Uuid(UuidSchema::Bytes) => counted(&bytes(value)?, out),
        Schema::Decimal(DecimalSchema { inner: InnerDecimalSchema::Bytes, .. }) => counted(&bytes(value)?, out),
        Schema::Decimal(DecimalSchema { inner: InnerDecimalSchema::Fixed(fixed), .. })
        | Schema::Fixed(fixed)
        | Schema::Duration(fixed)
        | Schema::Uuid(UuidSchema::Fixed(fixed)) => {
            let bytes = bytes(value)?;
            if bytes.len() != fixed.size {
                return Err(format!("{} bytes are wanted", fixed.size));
            }
            out.extend(bytes);
        }
        Schema::Enum(of) => {
            let symbol = text(value)?;
            let place = of.symbols.iter().position(|known| known == symbol);
            long(place.ok_or_else(|| format!("one of {} is wanted", of.symbols.join(", ")))? as i64, out);
        }
        Schema::Array(array) => {
            let items = value.as_array().ok_or("an array is wanted")?;
            blocks(items.len(), out);
            items.iter().try_for_each(|item| encode(item, &array.items, names, out))?;
            end(items.len(), out);
        }
        Schema::Map(map) => {
            let pairs = value.as_object().ok_or("an object is wanted")?;
            blocks(pairs.len(), out);
            for (key, value) in pairs {
                counted(key.as_bytes(), out);
                encode(value, &map.types, names, out)?;
            }
            end(pairs.len(), out);
        }
        Schema::Record(record) => {
            let object = value.as_object().ok_or("an object is wanted")?;
            for field in &record.fields {
                let value = object.get(&field.name).or(field.default.as_ref());
                let value = value.ok_or_else(|| format!("field {} is missing", field.name))?;
                encode(value, &field.schema, names, out)?;
            }
        }
    }
    Ok(())
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "a string is wanted".to_owned())
}

/// A character a byte.
fn bytes(value: &Value) -> Result<Vec<u8>, String> {
    let bytes = text(value)?.chars().map(u8::try_from).collect::<Result<_, _>>();
    bytes.map_err(|_| "characters below 256 are wanted, one a byte".to_owned())
}

/// The count of the only block, which is also the end where there is nothing.
fn blocks(count: usize, out: &mut Vec<u8>) {
    long(count as i64, out);
}

fn end(count: usize, out: &mut Vec<u8>) {
    if count > 0 {
        long(0, out);
    }
}
