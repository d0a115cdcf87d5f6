//! The same records by the `apache-avro` crate, value by value.

use super::*;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use arrow::datatypes::DataType;
use proptest::prelude::*;

/// A field of two writers and of the reader: every type, added, widened, moved and dropped.
const WRITERS: [&str; 2] = [
    r#"{"name":"i","type":"int"},{"name":"gone","type":{"type":"map","values":["null",{"type":"fixed","name":"F","size":2}]}},
       {"name":"s","type":["string","null"]},{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":20,"scale":3}},
       {"name":"e","type":{"type":"enum","name":"E","symbols":["A","B","C"]}},
       {"name":"r","type":{"type":"record","name":"N","fields":[{"name":"x","type":["null","long"]},{"name":"y","type":"double"}]}},
       {"name":"l","type":{"type":"array","items":["null","N"]}}"#,
    r#"{"name":"m","type":{"type":"map","values":"float"}},{"name":"b","type":["null","bytes"]},{"name":"t","type":"boolean"},
       {"name":"i","type":["null","long"]},{"name":"s","type":"string"},
       {"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":20,"scale":3}},
       {"name":"ts","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"day","type":{"type":"int","logicalType":"date"}},
       {"name":"e","type":{"type":"enum","name":"E","symbols":["C","A","D"]}},
       {"name":"r","type":{"type":"record","name":"N","fields":[{"name":"y","type":"double"},{"name":"q","type":"string"},{"name":"x","type":"int"}]}}"#,
];
const READER: &str = r#"{"name":"day","type":["null",{"type":"int","logicalType":"date"}],"default":null},
    {"name":"ts","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
    {"name":"i","type":["null","long"]},{"name":"s","type":["null","string"]},
    {"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":20,"scale":3}},
    {"name":"e","type":{"type":"enum","name":"E","symbols":["A","B","C"],"default":"B"}},
    {"name":"r","type":{"type":"record","name":"N","fields":[{"name":"x","type":["null","long"]},{"name":"y","type":"double"},
       {"name":"z","type":"string","default":"none"}]}},
    {"name":"l","type":{"type":"array","items":["null","N"]},"default":[]},
    {"name":"m","type":["null",{"type":"map","values":"float"}],"default":null},{"name":"b","type":["null","bytes"],"default":null},
    {"name":"t","type":["null","boolean"],"default":null}"#;

/// Any value of a schema.
pub(super) fn any_value(schema: &AvroSchema, nested: &AvroSchema) -> BoxedStrategy<Value> {
    match schema {
        AvroSchema::Null => Just(Value::Null).boxed(),
        AvroSchema::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        AvroSchema::Int => any::<i32>().prop_map(Value::Int).boxed(),
        AvroSchema::Long => any::<i64>().prop_map(Value::Long).boxed(),
        AvroSchema::Date => any::<i32>().prop_map(Value::Date).boxed(),
        AvroSchema::TimestampMicros => any::<i64>().prop_map(Value::TimestampMicros).boxed(),
        AvroSchema::Float => any::<f32>().prop_map(Value::Float).boxed(),
        AvroSchema::Double => any::<f64>().prop_map(Value::Double).boxed(),
        AvroSchema::Bytes => prop::collection::vec(any::<u8>(), 0..5).prop_map(Value::Bytes).boxed(),
        AvroSchema::String => "[a-zé€]{0,4}".prop_map(Value::String).boxed(),
        AvroSchema::Fixed(f) => {
            prop::collection::vec(any::<u8>(), f.size).prop_map(|b| Value::Fixed(b.len(), b)).boxed()
        }
        AvroSchema::TimestampMillis => any::<i64>().prop_map(Value::TimestampMillis).boxed(),
        AvroSchema::Decimal(of) => (1 - 10i128.pow(of.precision as u32)..10i128.pow(of.precision as u32))
            .prop_map(|unscaled| Value::Decimal(apache_avro::Decimal::from(unscaled.to_be_bytes())))
            .boxed(),
        AvroSchema::Enum(of) => {
            let symbols = of.symbols.clone();
            (0..symbols.len()).prop_map(move |i| Value::Enum(i as u32, symbols[i].clone())).boxed()
        }
        AvroSchema::Array(of) => {
            prop::collection::vec(any_value(&of.items, nested), 0..4).prop_map(Value::Array).boxed()
        }
        AvroSchema::Map(of) => {
            prop::collection::hash_map("[a-c]{0,2}", any_value(&of.types, nested), 0..2).prop_map(Value::Map).boxed()
        }
        AvroSchema::Union(union) => {
            let branches = union.variants().iter().enumerate();
            let branches: Vec<_> = branches
                .map(|(i, branch)| {
                    any_value(branch, nested).prop_map(move |v| Value::Union(i as u32, Box::new(v))).boxed()
                })
                .collect();
            prop::strategy::Union::new(branches).boxed()
        }
        AvroSchema::Record(record) => record
            .fields
            .iter()
            .fold(Just(Vec::new()).boxed(), |fields, field| {
                let name = field.name.clone();
                let value = any_value(&field.schema, nested);
                let append = move |(mut fields, value): (Vec<(String, Value)>, Value)| {
                    fields.push((name.clone(), value));
                    fields
                };
                (fields, value).prop_map(append).boxed()
            })
            .prop_map(Value::Record)
            .boxed(),
        AvroSchema::Ref { .. } => any_value(nested, nested),
        other => panic!("{other:?}"),
    }
}

fn schema(fields: &str) -> AvroSchema {
    AvroSchema::parse_str(&record(fields)).expect(fields)
}

/// The record `N` of a schema.
fn nested(schema: &AvroSchema) -> AvroSchema {
    let AvroSchema::Record(record) = schema else { panic!("no record") };
    record.fields.iter().find(|field| field.name == "r").expect("it has one").schema.clone()
}

/// A value as the columns show it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Union(_, inner) => text(inner),
        Value::Record(fields) => {
            format!("{{{}}}", fields.iter().map(|(n, v)| format!("{n}:{}", text(v))).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(",")),
        Value::Map(pairs) => {
            format!("{{{}}}", pairs.iter().map(|(n, v)| format!("{n}:{}", text(v))).collect::<Vec<_>>().join(","))
        }
        Value::Int(n) | Value::Date(n) => n.to_string(),
        Value::Long(n) | Value::TimestampMicros(n) | Value::TimestampMillis(n) => n.to_string(),
        Value::Float(n) => format!("{n:?}"),
        Value::Double(n) => format!("{n:?}"),
        Value::Boolean(b) => b.to_string(),
        Value::String(s) | Value::Enum(_, s) => s.clone(),
        Value::Bytes(b) => format!("{b:02x?}"),
        Value::Decimal(d) => {
            let bytes: Vec<u8> = d.try_into().expect("bytes");
            let fill = if bytes.first().is_some_and(|b| *b >= 0x80) { 0xff } else { 0 };
            let whole = [vec![fill; 16], bytes].concat();
            i128::from_be_bytes(*whole.last_chunk().expect("16 bytes")).to_string()
        }
        other => panic!("{other:?}"),
    }
}

/// The same of a row.
pub(super) fn row_text(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "null".into();
    }
    let named = |n: &str, a: &ArrayRef, row: usize| format!("{n}:{}", row_text(a, row));
    match array.data_type() {
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            format!("{{{}}}", columns.map(|(f, c)| named(f.name(), c, row)).collect::<Vec<_>>().join(","))
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            format!("[{}]", (0..items.len()).map(|i| row_text(&items, i)).collect::<Vec<_>>().join(","))
        }
        DataType::Map(..) => {
            let pairs = array.as_map().value(row);
            let key = |i| pairs.column(0).as_string::<i32>().value(i).to_owned();
            format!(
                "{{{}}}",
                (0..pairs.len()).map(|i| named(&key(i), pairs.column(1), i)).collect::<Vec<_>>().join(",")
            )
        }
        DataType::Int32 | DataType::Date32 => array.to_data().buffers()[0].typed_data::<i32>()[row].to_string(),
        DataType::Int64 | DataType::Timestamp(..) => array.to_data().buffer::<i64>(0)[row].to_string(),
        DataType::Float32 => format!("{:?}", array.to_data().buffer::<f32>(0)[row]),
        DataType::Float64 => format!("{:?}", array.to_data().buffer::<f64>(0)[row]),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Binary => format!("{:02x?}", array.as_binary::<i32>().value(row)),
        DataType::Decimal128(..) => array.to_data().buffer::<i128>(0)[row].to_string(),
        other => panic!("{other}"),
    }
}

proptest! {
    #[test]
    fn decoder_equals_its_twin(
        records in prop::collection::vec(
            (0..2usize).prop_flat_map(|w| {
                let writer = schema(WRITERS[w]);
                let own = nested(&writer);
                any_value(&writer, &own).prop_map(move |value| (w, value))
            }),
            1..12,
        ),
        // Which record is spoilt, and where.
        spoilt in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()),
    ) {
        let (writers, reader) = (WRITERS.map(schema), schema(READER));
        let mut decoder = AvroDecoder::new(&table(&record(READER)), Framing::Confluent, true).expect("a good schema");
        (0..2).for_each(|w| decoder.learn(w as u32, &record(WRITERS[w])).expect("fits"));
        let mut want = Vec::new();
        for (i, (w, value)) in records.iter().enumerate() {
            let bytes = GenericDatumWriter::builder(&writers[*w]).build().expect("a writer").write_value_to_vec(value.clone()).expect("valid");
            // Whatever becomes of a spoilt record, it is one row or none.
            let mut bad = bytes.clone();
            if i == spoilt.0.index(records.len()) && !bad.is_empty() {
                let at = spoilt.1.index(bad.len());
                bad[at] ^= spoilt.2;
                let cut = bytes.len().saturating_sub(usize::from(spoilt.2) % 3);
                let before = decoder.rows.len();
                let taken = decoder.decode(&framed(*w as u32, &bad[..cut]), 99).is_ok();
                prop_assert_eq!(decoder.rows.len(), before + usize::from(taken));
                if taken {
                    want.push(None);
                }
            }
            prop_assert_eq!(decoder.decode(&framed(*w as u32, &bytes), i as u64), Ok(Decoded::Row));
            let twin = GenericDatumReader::builder(&writers[*w]).reader_schema(&reader).build().expect("a reader");
            want.push(Some(twin.read_value(&mut bytes.as_slice()).expect("resolved")));
        }
        let batch = decoder.rows.flush();
        prop_assert_eq!(batch.num_rows(), want.len());
        for (row, want) in want.iter().enumerate().filter_map(|(row, want)| Some((row, want.as_ref()?))) {
            let Value::Record(fields) = want else { panic!("no record") };
            for ((name, value), column) in fields.iter().zip(batch.columns()) {
                prop_assert_eq!(row_text(column, row), text(value), "{}", name);
            }
        }
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..80), writer in 0..2u32) {
        let mut decoder = AvroDecoder::new(&table(&record(READER)), Framing::Confluent, false).expect("a good schema");
        (0..2).for_each(|w| decoder.learn(w as u32, &record(WRITERS[w])).expect("fits"));
        let taken = decoder.decode(&framed(writer, &bytes), 0).is_ok();
        prop_assert_eq!(decoder.rows.flush().num_rows(), usize::from(taken));
    }
}
