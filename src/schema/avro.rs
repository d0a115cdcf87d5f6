//! Avro schemas as JSON: named types written out, nulls first, and the Arrow type of each field (base-file.md §3).

use super::{DOC, ENUM_SYMBOLS, Error, Result};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Parses, checks against the Avro specification, and writes every named type out where it is used.
pub(super) fn parse(text: &str) -> Result<Value> {
    apache_avro::Schema::parse_str(text).map_err(|e| Error::Parse { why: e.to_string() })?;
    let schema: Value = serde_json::from_str(text).map_err(|e| Error::Parse { why: e.to_string() })?;
    let record = Names::default().expand(&schema, "", "")?;
    match record["type"].as_str() {
        Some("record") => Ok(record),
        _ => Err(Error::Parse { why: "the top level is not a record".into() }),
    }
}

/// Named types met so far.
#[derive(Default)]
struct Names {
    known: HashMap<String, Value>,
    open: Vec<String>,
}

pub(super) fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_string() } else { format!("{namespace}.{name}") }
}

pub(super) fn is_primitive(name: &str) -> bool {
    matches!(name, "null" | "boolean" | "int" | "long" | "float" | "double" | "bytes" | "string")
}

impl Names {
    fn expand(&mut self, schema: &Value, namespace: &str, path: &str) -> Result<Value> {
        match schema {
            Value::String(name) if is_primitive(name) => Ok(schema.clone()),
            Value::String(name) => {
                let full = full_name(name, namespace);
                if self.open.contains(&full) || self.open.contains(name) {
                    return Err(Error::Unsupported {
                        field: path.to_string(),
                        what: format!("record {full} contains itself"),
                        instead: "recursive schemas have no columns: cut the recursion, or carry the part as text",
                    });
                }
                let known = self.known.get(&full).or_else(|| self.known.get(name));
                known.cloned().ok_or_else(|| Error::Parse { why: format!("{full} is not a defined name") })
            }
            Value::Array(branches) => self.expand_union(branches, namespace, path),
            Value::Object(object) => self.expand_object(object, namespace, path),
            _ => Err(Error::Parse { why: format!("{schema} is not a type") }),
        }
    }

    fn expand_union(&mut self, branches: &[Value], namespace: &str, path: &str) -> Result<Value> {
        let expanded = branches.iter().map(|b| self.expand(b, namespace, path)).collect::<Result<Vec<_>>>()?;
        let (nulls, mut others): (Vec<Value>, Vec<Value>) = expanded.into_iter().partition(|b| b == "null");
        match (nulls.is_empty(), others.len()) {
            (false, 1) => Ok(json!(["null", others.remove(0)])),
            (true, 1) => Ok(others.remove(0)),
            _ => Err(Error::Unsupported {
                field: path.to_string(),
                what: format!("a union of {} types besides null", others.len()),
                instead: "use a union of null and one type",
            }),
        }
    }

    fn expand_object(&mut self, object: &Map<String, Value>, namespace: &str, path: &str) -> Result<Value> {
        let kind = match object.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            // `{"type": {"type": …}}`: the inner one is the type.
            Some(inner) => return self.expand(inner, namespace, path),
            None => return Err(Error::Parse { why: format!("a type without \"type\" at {path}") }),
        };
        let mut out = object.clone();
        match kind {
            "record" | "error" | "enum" | "fixed" => {
                let name = object.get("name").and_then(Value::as_str).unwrap_or_default();
                let own = object.get("namespace").and_then(Value::as_str).unwrap_or(namespace);
                let full = full_name(name, own);
                let (space, name) = full.rsplit_once('.').unwrap_or(("", &full));
                out.insert("name".into(), json!(name));
                if space.is_empty() {
                    out.shift_remove("namespace")
                } else {
                    out.insert("namespace".into(), json!(space))
                };
                if kind == "record" || kind == "error" {
                    self.open.push(full.clone());
                    let fields = object.get("fields").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                    let fields =
                        fields.iter().map(|f| self.expand_field(f, space, path)).collect::<Result<Vec<_>>>()?;
                    out.insert("fields".into(), Value::Array(fields));
                    self.open.pop();
                }
                let value = Value::Object(out);
                self.known.insert(full, value.clone());
                Ok(value)
            }
            "array" => {
                let items = object.get("items").unwrap_or(&Value::Null);
                out.insert("items".into(), self.expand(items, namespace, &format!("{path}[]"))?);
                Ok(Value::Object(out))
            }
            "map" => {
                let values = object.get("values").unwrap_or(&Value::Null);
                out.insert("values".into(), self.expand(values, namespace, &format!("{path}{{}}"))?);
                Ok(Value::Object(out))
            }
            primitive if is_primitive(primitive) => match object.get("logicalType") {
                Some(_) => Ok(Value::Object(out)),
                None => Ok(json!(primitive)),
            },
            name => self.expand(&json!(name), namespace, path),
        }
    }

    fn expand_field(&mut self, field: &Value, namespace: &str, path: &str) -> Result<Value> {
        let Value::Object(field) = field else { return Err(Error::Parse { why: format!("{field} is not a field") }) };
        let name = field.get("name").and_then(Value::as_str).unwrap_or_default();
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        let mut out = field.clone();
        let expanded = self.expand(field.get("type").unwrap_or(&Value::Null), namespace, &path)?;
        // Null is first now, so a default can only be null.
        if expanded.is_array() {
            out.insert("default".into(), Value::Null);
        }
        out.insert("type".into(), expanded);
        Ok(Value::Object(out))
    }
}

/// Writes a named type out once and names it from then on, as Avro wants it.
pub(super) fn collapse(schema: Value) -> Value {
    fn walk(schema: &mut Value, seen: &mut HashMap<String, Value>) {
        match schema {
            Value::Array(branches) => branches.iter_mut().for_each(|b| walk(b, seen)),
            Value::Object(object) => {
                if let Some(name) = object.get("name").and_then(Value::as_str) {
                    let full = full_name(name, object.get("namespace").and_then(Value::as_str).unwrap_or_default());
                    match seen.get(&full) {
                        Some(same) if same == schema => return *schema = json!(full),
                        _ => seen.insert(full, schema.clone()),
                    };
                }
                let Value::Object(object) = schema else { return };
                if let Some(Value::Array(fields)) = object.get_mut("fields") {
                    fields.iter_mut().filter_map(|f| f.get_mut("type")).for_each(|t| walk(t, seen));
                }
                ["items", "values"].into_iter().for_each(|inner| {
                    if let Some(inner) = object.get_mut(inner) {
                        walk(inner, seen);
                    }
                });
            }
            _ => {}
        }
    }
    let mut schema = schema;
    walk(&mut schema, &mut HashMap::new());
    schema
}

/// Whether a type may be null, and the type without null.
pub(super) fn nullable(schema: &Value) -> (bool, &Value) {
    match schema.as_array().map(Vec::as_slice) {
        Some([null, inner]) if null == "null" => (true, inner),
        _ => (false, schema),
    }
}

/// The Arrow twin of an expanded record.
pub(super) fn to_arrow(record: &Value) -> Result<SchemaRef> {
    Ok(Arc::new(Schema::new(fields(record, "")?)))
}

fn fields(record: &Value, path: &str) -> Result<Fields> {
    let fields = record["fields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut folded = HashMap::new();
    for name in fields.iter().filter_map(|f| f["name"].as_str()) {
        if let Some(twin) = folded.insert(name.to_lowercase(), name) {
            return Err(Error::Unsupported {
                field: if path.is_empty() { name.to_string() } else { format!("{path}.{name}") },
                what: format!("Spark does not tell it from {twin}"),
                instead: "names must differ by more than case: rename one of them",
            });
        }
    }
    let field = |f: &Value| {
        let name = f["name"].as_str().unwrap_or_default();
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        let field = self::field(name, &f["type"], &path)?;
        Ok(match f["doc"].as_str().filter(|doc| !doc.is_empty()) {
            Some(doc) => {
                let mut metadata = field.metadata().clone();
                metadata.insert(DOC.to_string(), doc.to_string());
                Arc::new(field.as_ref().clone().with_metadata(metadata))
            }
            None => field,
        })
    };
    fields.iter().map(field).collect()
}

fn field(name: &str, schema: &Value, path: &str) -> Result<FieldRef> {
    let (null, inner) = nullable(schema);
    let field = Field::new(name, data_type(inner, path)?, null);
    Ok(Arc::new(match inner["symbols"].as_array() {
        Some(symbols) => {
            field.with_metadata([(ENUM_SYMBOLS.to_string(), Value::Array(symbols.clone()).to_string())].into())
        }
        None => field,
    }))
}

/// The Arrow type of an expanded, non-null Avro type.
pub(super) fn data_type(schema: &Value, path: &str) -> Result<DataType> {
    let kind = schema.as_str().or_else(|| schema["type"].as_str()).unwrap_or_default();
    let refuse = |what: &str, instead: &'static str| Error::Unsupported {
        field: path.to_string(),
        what: what.to_string(),
        instead,
    };
    let utc = || Some(Arc::from("UTC"));
    Ok(match (kind, schema["logicalType"].as_str()) {
        ("boolean", _) => DataType::Boolean,
        ("int", Some("date")) => DataType::Date32,
        ("long", Some("timestamp-millis")) => DataType::Timestamp(TimeUnit::Millisecond, utc()),
        ("long", Some("timestamp-micros")) => DataType::Timestamp(TimeUnit::Microsecond, utc()),
        ("int" | "long", Some(time @ ("time-millis" | "time-micros"))) => {
            return Err(refuse(&format!("Spark cannot read {time}"), "use long, or string"));
        }
        ("long", Some(local @ ("local-timestamp-millis" | "local-timestamp-micros"))) => {
            return Err(refuse(
                &format!("Hudi on Spark cannot write {local}"),
                "use timestamp-millis or timestamp-micros",
            ));
        }
        ("long", Some(nanos @ ("timestamp-nanos" | "local-timestamp-nanos"))) => {
            return Err(refuse(&format!("Hudi does not know {nanos}"), "use timestamp-micros"));
        }
        ("int", _) => DataType::Int32,
        ("long", _) => DataType::Int64,
        ("float", _) => DataType::Float32,
        ("double", _) => DataType::Float64,
        ("string", Some("uuid")) => {
            return Err(refuse("Hudi on Spark cannot write a table with a uuid on", "use a plain string"));
        }
        ("string", _) => DataType::Utf8,
        ("bytes" | "fixed", Some("decimal")) => decimal(schema, kind == "fixed", path)?,
        ("bytes", _) => DataType::Binary,
        ("fixed", _) => {
            return Err(refuse("Hudi on Spark cannot write a table with a fixed on", "use bytes, or a decimal"));
        }
        ("enum", _) => DataType::Utf8,
        ("record" | "error", _) => DataType::Struct(fields(schema, path)?),
        ("array", _) => DataType::List(field("element", &schema["items"], &format!("{path}[]"))?),
        ("map", _) => {
            let key = Arc::new(Field::new("key", DataType::Utf8, false));
            let value = field("value", &schema["values"], &format!("{path}{{}}"))?;
            let entries = DataType::Struct(Fields::from(vec![key, value]));
            DataType::Map(Arc::new(Field::new("key_value", entries, false)), false)
        }
        ("null", _) => return Err(refuse("a field that is always null", "give it a type, or leave it out")),
        (other, _) => return Err(refuse(&format!("type {other} is not known"), "use a type of Avro")),
    })
}

fn decimal(schema: &Value, fixed: bool, path: &str) -> Result<DataType> {
    let precision = schema["precision"].as_u64().unwrap_or_default();
    let scale = schema["scale"].as_u64().unwrap_or_default();
    let bad = |what: String| Error::Unsupported {
        field: path.to_string(),
        what,
        instead: "a decimal has at most 38 digits, and no more after the point",
    };
    if precision == 0 || precision > 38 || scale > precision {
        return Err(bad(format!("decimal({precision},{scale})")));
    }
    if fixed && schema["size"].as_u64().is_some_and(|size| size < super::from_arrow::decimal_size(precision as u8)) {
        return Err(bad(format!("a fixed of {} bytes does not hold decimal({precision},{scale})", schema["size"])));
    }
    Ok(DataType::Decimal128(precision as u8, scale as i8))
}
