//! The decoder against a slow and obvious twin on `serde_json`, over records made at random.

use super::*;
use arrow::array::{Array, AsArray, StructArray};
use arrow::datatypes::{Float64Type, Int64Type, UInt64Type};
use proptest::prelude::*;
use serde_json::Value;

/// Every shape of column, each nullable and each not.
fn schema() -> SchemaRef {
    let optional = |name: &str, t: &DataType| Field::new(name, t.clone(), true);
    let pair = |value: Field| DataType::Struct(vec![Field::new("key", DataType::Utf8, false), value].into());
    let record = DataType::Struct(
        vec![optional("a", &DataType::Int64), optional("b", &DataType::Float64), optional("c", &DataType::Utf8)].into(),
    );
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        optional("t", &DataType::Utf8),
        optional("f", &DataType::Float64),
        optional("flag", &DataType::Boolean),
        optional("r", &record),
        optional("l", &DataType::List(Arc::new(optional("element", &record)))),
        optional("ll", &DataType::List(Arc::new(Field::new("element", DataType::Int64, false)))),
        optional("m", &DataType::Map(Arc::new(Field::new("kv", pair(optional("value", &record)), false)), false)),
    ]))
}

/// What the column holds for `value`, as JSON again; `Err`: refused.
fn expected(field: &Field, value: Option<&Value>) -> Result<Value, ()> {
    let value = match value {
        None | Some(Value::Null) if field.is_nullable() => return Ok(Value::Null),
        None | Some(Value::Null) => return Err(()),
        Some(value) => value,
    };
    match (field.data_type(), value) {
        (DataType::Int64, Value::Number(n)) if n.is_i64() => Ok(value.clone()),
        (DataType::Int64, Value::Number(n)) => {
            let float = n.as_f64().ok_or(())?;
            if float.fract() == 0.0 { Ok(Value::from(float as i64)) } else { Err(()) }
        }
        (DataType::Int64, Value::String(s)) => s.parse::<i64>().map(Value::from).map_err(|_| ()),
        (DataType::Float64, Value::Number(n)) => n.as_f64().map(Value::from).ok_or(()),
        (DataType::Float64, Value::String(s)) if s.bytes().all(|b| b"0123456789+-.eE".contains(&b)) => {
            s.parse::<f64>().ok().filter(|f| f.is_finite()).map(Value::from).ok_or(())
        }
        (DataType::Boolean, Value::Bool(_)) | (DataType::Utf8, Value::String(_)) => Ok(value.clone()),
        // The text of other values has its own table in `tests`.
        (DataType::Struct(fields), Value::Object(object)) => {
            let entries = fields.iter().map(|f| Ok((f.name().clone(), expected(f, object.get(f.name()))?)));
            entries.collect::<Result<serde_json::Map<_, _>, ()>>().map(Value::Object)
        }
        (DataType::List(item), Value::Array(items)) => {
            items.iter().map(|v| expected(item, Some(v))).collect::<Result<_, ()>>().map(Value::Array)
        }
        (DataType::Map(entries, _), Value::Object(object)) => {
            let DataType::Struct(pair) = entries.data_type() else { return Err(()) };
            let entries = object.iter().map(|(k, v)| Ok((k.clone(), expected(&pair[1], Some(v))?)));
            entries.collect::<Result<serde_json::Map<_, _>, ()>>().map(Value::Object)
        }
        _ => Err(()),
    }
}

/// The value at `row` of an array, as JSON.
fn read(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Int64 => Value::from(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Value::from(array.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Value::from(array.as_boolean().value(row)),
        DataType::Utf8 => Value::from(array.as_string::<i32>().value(row)),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            Value::Object(fields.iter().zip(columns).map(|(f, c)| (f.name().clone(), read(c, row))).collect())
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            Value::Array((0..items.len()).map(|i| read(&items, i)).collect())
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let keys = entries.column(0).as_string::<i32>();
            Value::Object((0..entries.len()).map(|i| (keys.value(i).to_owned(), read(entries.column(1), i))).collect())
        }
        other => panic!("no such column here: {other}"),
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        (-1000i64..1000).prop_map(|n| Value::from(n as f64)),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(|n| Value::from(n.to_string())),
        any::<String>().prop_map(Value::from),
        "[a\"\\\\/\u{0}-\u{1f}€😀]{0,8}".prop_map(Value::from),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        9 => proptest::sample::select(vec!["id", "t", "f", "flag", "r", "l", "ll", "m", "a", "b", "c"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

/// Any JSON value, made of names that the schema has at some level.
fn any_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((name(), inner), 0..5).prop_map(|e| Value::Object(e.into_iter().collect())),
        ]
    })
}

/// A value that the field takes, most of the time.
fn value_for(field: &Field) -> BoxedStrategy<Value> {
    let fitting = match field.data_type() {
        DataType::Int64 => any::<i64>().prop_map(Value::from).boxed(),
        DataType::Float64 => any::<f64>().prop_map(Value::from).boxed(),
        DataType::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        DataType::Utf8 => any::<String>().prop_map(Value::from).boxed(),
        DataType::Struct(fields) => {
            let entries: Vec<_> = fields.iter().map(|f| (Just(f.name().clone()), value_for(f))).collect();
            let shuffled = entries.prop_shuffle();
            let cut = (shuffled, 0usize..=fields.len(), name(), scalar());
            cut.prop_map(|(mut entries, len, extra, value)| {
                entries.truncate(len);
                let mut object: serde_json::Map<_, _> = entries.into_iter().collect();
                object.entry(format!("{extra}_")).or_insert(value);
                Value::Object(object)
            })
            .boxed()
        }
        DataType::List(item) => proptest::collection::vec(value_for(item), 0..4).prop_map(Value::Array).boxed(),
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { unreachable!("schema() makes none") };
            proptest::collection::vec((any::<String>(), value_for(&pair[1])), 0..4)
                .prop_map(|e| Value::Object(e.into_iter().collect()))
                .boxed()
        }
        other => unreachable!("schema() makes no {other}"),
    };
    match field.is_nullable() {
        true => prop_oneof![10 => fitting, 1 => Just(Value::Null)].boxed(),
        false => fitting,
    }
}

/// A record in the schema's shape, and rarely something else in one of its fields.
fn a_record() -> impl Strategy<Value = Value> {
    let fields: Vec<_> = schema().fields().iter().map(|f| (Just(f.name().clone()), value_for(f))).collect();
    (fields.prop_shuffle(), 0usize..12, proptest::option::weighted(0.2, (name(), any_value()))).prop_map(
        |(mut entries, drop, odd)| {
            if drop < entries.len() && entries[drop].0 != "id" {
                entries.remove(drop);
            }
            let mut object: serde_json::Map<_, _> = entries.into_iter().collect();
            object.extend(odd);
            Value::Object(object)
        },
    )
}

/// A value that the same field takes, for names that come twice: the last one counts.
fn another(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bool(value) => Value::Bool(!value),
        Value::Number(_) => Value::from(7),
        Value::String(_) => Value::from("7"),
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(serde_json::Map::new()),
    }
}

/// `value` as JSON text, with the white space, the escapes and the doubled names that `choose` decides on.
fn write(value: &Value, choose: &mut impl FnMut(u32) -> u32, out: &mut String) {
    let blank = |out: &mut String, choose: &mut dyn FnMut(u32) -> u32| match choose(8) {
        0 => out.push_str(" \t"),
        1 => out.push_str("\r\n "),
        _ => {}
    };
    match value {
        Value::String(text) => write_string(text, choose, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                blank(out, choose);
                write(item, choose, out);
                blank(out, choose);
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (i, (name, value)) in object.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                if choose(12) == 0 {
                    write_string(name, choose, out);
                    out.push(':');
                    write(&another(value), choose, out);
                    out.push(',');
                }
                blank(out, choose);
                write_string(name, choose, out);
                blank(out, choose);
                out.push(':');
                blank(out, choose);
                write(value, choose, out);
                blank(out, choose);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn write_string(text: &str, choose: &mut impl FnMut(u32) -> u32, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        if choose(16) == 0 {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            let quoted = Value::from(c.to_string()).to_string();
            out.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
    out.push('"');
}

/// A string column takes any value as text, and a long the digits of a double too large to show them all: the twin
/// knows neither, and those records are not for it.
fn twin_knows(field: &Field, value: Option<&Value>) -> bool {
    match (field.data_type(), value) {
        (DataType::Utf8, Some(value)) => value.is_string() || value.is_null(),
        (DataType::Int64, Some(Value::Number(n))) => n.is_i64() || n.as_f64().is_some_and(|f| f.abs() < 1e15),
        (DataType::Struct(fields), Some(Value::Object(o))) => fields.iter().all(|f| twin_knows(f, o.get(f.name()))),
        (DataType::List(item), Some(Value::Array(items))) => items.iter().all(|v| twin_knows(item, Some(v))),
        (DataType::Map(entries, _), Some(Value::Object(o))) => match entries.data_type() {
            DataType::Struct(pair) => o.values().all(|v| twin_knows(&pair[1], Some(v))),
            _ => true,
        },
        _ => true,
    }
}

proptest! {
    #[test]
    fn decoder_equals_its_twin(
        records in proptest::collection::vec(a_record(), 1..8),
        choices in proptest::collection::vec(any::<u32>(), 1..64),
    ) {
        let schema = schema();
        let root = Field::new("root", DataType::Struct(schema.fields().clone()), false);
        let mut decoder = JsonDecoder::new(schema.clone(), true).unwrap();
        let mut turns = choices.iter().cycle();
        let mut want = Vec::new();
        for (position, record) in records.iter().enumerate().filter(|(_, r)| twin_knows(&root, Some(r))) {
            let mut text = String::new();
            write(record, &mut |n| turns.next().expect("a cycle") % n, &mut text);
            let parsed: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&parsed, record, "the writer is wrong: {}", text);
            match (expected(&root, Some(record)), decoder.decode(text.as_bytes(), position as u64)) {
                (Ok(row), Ok(())) => want.push((row, position as u64)),
                (Err(()), Err(_)) => {}
                (twin, got) => prop_assert!(false, "{}: {:?}, but the twin {:?}", text, got, twin),
            }
        }
        let batch = decoder.rows.flush();
        let positions = batch.column(schema.fields().len()).clone();
        let rows = StructArray::from(batch.project(&(0..schema.fields().len()).collect::<Vec<_>>()).unwrap());
        prop_assert_eq!(batch.num_rows(), want.len());
        for (i, (row, position)) in want.iter().enumerate() {
            prop_assert_eq!(&read(&rows, i), row);
            let positions = positions.as_primitive::<UInt64Type>();
            prop_assert_eq!(positions.value(i), *position);
        }
    }

    #[test]
    fn skipped_and_kept_text_is_json_exactly_when_serde_says_so(
        value in any_value(),
        cut in any::<proptest::sample::Index>(),
        byte in "[\\]\\[{}\",:0-9eE.+\\-tfn\\\\ ]",
    ) {
        let text = value.to_string();
        let at = cut.index(text.len());
        let mut mutated = text.clone();
        if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
            mutated.replace_range(at..at + 1, &byte);
        }
        for name in ["ignored", "kept"] {
            let schema = Schema::new(vec![Field::new("kept", DataType::Utf8, true)]);
            let mut decoder = JsonDecoder::new(Arc::new(schema), false).unwrap();
            let record = format!("{{\"{name}\":{mutated}}}");
            // serde_json stops at a number that no double holds; ignored values it only looks over.
            let good = match serde_json::from_str::<Value>(&record) {
                Err(e) if e.to_string().starts_with("number out of range") => {
                    serde_json::from_str::<serde::de::IgnoredAny>(&record).is_ok()
                }
                parsed => parsed.is_ok(),
            };
            match decoder.decode(record.as_bytes(), 0) {
                // Java's exponents have 32 bits.
                Err(e) if name == "kept" && e.to_string().contains("exponent has too many digits") => {}
                got => prop_assert_eq!(got.is_ok(), good, "{}", record),
            }
        }
    }

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in "[{}\\[\\]\":,a-f0-9\\\\u.eE+\\-tnrl ]{0,40}") {
        let mut decoder = JsonDecoder::new(schema(), false).unwrap();
        for record in [bytes, format!("{{\"l\":{text}").into_bytes(), format!("{{\"m\":{{\"{text}\":{text}}}}}").into_bytes()] {
            let good = decoder.decode(&record, 0).is_ok();
            prop_assert_eq!(decoder.rows.flush().num_rows(), usize::from(good));
        }
    }
}
