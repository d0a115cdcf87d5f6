//! Columns that grow row by row, can be cut back to an earlier row, and become Arrow arrays without copying values.

use crate::schema::ENUM_SYMBOLS;
use arrow::array::*;
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;
use hashbrown::HashMap;
use std::sync::Arc;

/// A type that no decoder fills.
#[derive(Debug)]
pub(super) struct Unsupported {
    pub(super) field: String,
    pub(super) data_type: String,
}

/// One field's values. Every value below `valid.len()` is whole; what lies beyond is a record in the making.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) data: Data,
    pub(super) valid: NullBufferBuilder,
    pub(super) nullable: bool,
}

#[derive(Debug)]
pub(super) enum Data {
    Boolean(BooleanBufferBuilder),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Decimal { values: Vec<i128>, precision: u8, scale: i8 },
    Date(Vec<i32>),
    TimeMillis(Vec<i32>),
    TimeMicros(Vec<i64>),
    Timestamp { values: Vec<i64>, per_second: i64, local: bool },
    Text(Text),
    Enum { text: Text, symbols: Vec<String> },
    Binary { offsets: Vec<i32>, bytes: Vec<u8> },
    Fixed { bytes: Vec<u8>, width: usize },
    Record(Record),
    List { offsets: Vec<i32>, items: Box<Column> },
    Map { offsets: Vec<i32>, keys: Text, values: Box<Column> },
}

/// Strings, end to end.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) offsets: Vec<i32>,
    pub(super) bytes: String,
}

impl Text {
    fn new() -> Text {
        Text { offsets: vec![0], bytes: String::new() }
    }

    /// Ends the value that has been appended to `bytes`.
    #[inline]
    pub(super) fn end(&mut self) {
        // The decoders see to it that no column reaches 2 GiB.
        self.offsets.push(self.bytes.len() as i32);
    }

    /// The values from number `from` on.
    pub(super) fn tail(&self, from: usize) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.offsets[from..].windows(2).map(|w| &self.bytes[w[0] as usize..w[1] as usize])
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len + 1);
        self.bytes.truncate(last(&self.offsets));
    }

    fn finish(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let capacity = self.bytes.len();
        let bytes = std::mem::replace(&mut self.bytes, String::with_capacity(capacity));
        (take_offsets(&mut self.offsets), Buffer::from_vec(bytes.into_bytes()))
    }
}

/// The fields of a record, and where its rows stand. Avro, whose fields come in a known order, needs no names to find them.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) columns: Vec<Column>,
    pub(super) names: Vec<String>,
    /// `"name":` of each field as it is most often written; empty where the name would have to be escaped.
    pub(super) keys: Vec<Vec<u8>>,
    places: HashMap<String, usize, foldhash::fast::FixedState>,
    pub(super) rows: usize,
    /// The object in the making, counted over the record's life; `seen[i] == turn`: it has had field `i`.
    pub(super) turn: u64,
    pub(super) seen: Vec<u64>,
}

impl Record {
    pub(super) fn new(fields: &Fields, path: &str) -> Result<Record, Unsupported> {
        let names: Vec<String> = fields.iter().map(|f| f.name().clone()).collect();
        Ok(Record {
            columns: fields.iter().map(|f| Column::new(f, &join(path, f.name()))).collect::<Result<_, _>>()?,
            keys: names.iter().map(|name| key(name)).collect(),
            places: names.iter().enumerate().map(|(i, name)| (name.clone(), i)).collect(),
            seen: vec![0; names.len()],
            names,
            rows: 0,
            turn: 0,
        })
    }

    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|c| c.truncate(rows));
        self.rows = rows;
    }

    /// A row of no meaning that every schema lets pass.
    pub(super) fn push_default(&mut self) {
        self.columns.iter_mut().for_each(Column::push_default);
        self.rows += 1;
    }

    /// The columns and how long they are.
    pub(super) fn finish(&mut self, fields: &Fields) -> (Vec<ArrayRef>, usize) {
        let columns = self.columns.iter_mut().zip(fields).map(|(c, f)| c.finish(f)).collect();
        (columns, std::mem::take(&mut self.rows))
    }
}

/// The path of a field below `path`.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn key(name: &str) -> Vec<u8> {
    match name.contains(|c: char| c == '"' || c == '\\' || c < ' ') {
        true => Vec::new(),
        false => format!("\"{name}\":").into_bytes(),
    }
}

impl Column {
    fn new(field: &Field, path: &str) -> Result<Column, Unsupported> {
        Ok(Column { data: Data::new(field, path)?, valid: NullBufferBuilder::new(0), nullable: field.is_nullable() })
    }

    /// Room for a null, also where the schema allows none: below a record that is null itself.
    pub(super) fn push_null(&mut self) {
        self.push_blank(Column::push_null);
        self.valid.append_null();
    }

    /// A zero, nothing, or an enum's first symbol: never a null, which a stricter schema further on might not let pass.
    fn push_default(&mut self) {
        if let Data::Enum { text, symbols } = &mut self.data {
            text.bytes.push_str(symbols.first().map_or("", String::as_str));
        }
        self.push_blank(Column::push_default);
        self.valid.append_non_null();
    }

    /// One more value; `child` makes those of a record's fields.
    fn push_blank(&mut self, child: fn(&mut Column)) {
        match &mut self.data {
            Data::Boolean(values) => values.append(false),
            Data::Int(values) | Data::Date(values) | Data::TimeMillis(values) => values.push(0),
            Data::Long(values) | Data::TimeMicros(values) | Data::Timestamp { values, .. } => values.push(0),
            Data::Float(values) => values.push(0.0),
            Data::Double(values) => values.push(0.0),
            Data::Decimal { values, .. } => values.push(0),
            Data::Text(text) | Data::Enum { text, .. } => text.end(),
            Data::Fixed { bytes, width } => bytes.resize(bytes.len() + *width, 0),
            Data::Record(record) => {
                record.columns.iter_mut().for_each(child);
                record.rows += 1;
            }
            Data::Binary { offsets, .. } | Data::List { offsets, .. } | Data::Map { offsets, .. } => {
                offsets.push(last(offsets) as i32);
            }
        }
    }

    /// Cuts the column back to its first `len` values, and whatever has been begun beyond them.
    pub(super) fn truncate(&mut self, len: usize) {
        match &mut self.data {
            Data::Boolean(values) => values.truncate(len),
            Data::Int(values) | Data::Date(values) | Data::TimeMillis(values) => values.truncate(len),
            Data::Long(values) | Data::TimeMicros(values) | Data::Timestamp { values, .. } => values.truncate(len),
            Data::Float(values) => values.truncate(len),
            Data::Double(values) => values.truncate(len),
            Data::Decimal { values, .. } => values.truncate(len),
            Data::Text(text) | Data::Enum { text, .. } => text.truncate(len),
            Data::Binary { offsets, bytes } => {
                offsets.truncate(len + 1);
                bytes.truncate(last(offsets));
            }
            Data::Fixed { bytes, width } => bytes.truncate(len * *width),
            Data::Record(record) => record.truncate(len),
            Data::List { offsets, items } => {
                offsets.truncate(len + 1);
                items.truncate(last(offsets));
            }
            Data::Map { offsets, keys, values } => {
                offsets.truncate(len + 1);
                keys.truncate(last(offsets));
                values.truncate(last(offsets));
            }
        }
        self.valid.truncate(len);
    }

    /// The values so far as an array of the field's type; the column starts anew.
    fn finish(&mut self, field: &Field) -> ArrayRef {
        let nulls = self.valid.finish().filter(|nulls| nulls.null_count() > 0);
        match (&mut self.data, field.data_type()) {
            (Data::Boolean(values), _) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            (Data::Int(values), _) => primitive::<Int32Type>(values, nulls),
            (Data::Long(values), _) => primitive::<Int64Type>(values, nulls),
            (Data::Float(values), _) => primitive::<Float32Type>(values, nulls),
            (Data::Double(values), _) => primitive::<Float64Type>(values, nulls),
            (Data::Date(values), _) => primitive::<Date32Type>(values, nulls),
            (Data::TimeMillis(values), _) => primitive::<Time32MillisecondType>(values, nulls),
            (Data::TimeMicros(values), _) => primitive::<Time64MicrosecondType>(values, nulls),
            (Data::Timestamp { values, per_second, .. }, data_type) => {
                let values = ScalarBuffer::from(take(values));
                match per_second {
                    1_000 => Arc::new(TimestampMillisecondArray::new(values, nulls).with_data_type(data_type.clone())),
                    _ => Arc::new(TimestampMicrosecondArray::new(values, nulls).with_data_type(data_type.clone())),
                }
            }
            (Data::Decimal { values, .. }, data_type) => {
                let values = ScalarBuffer::from(take(values));
                Arc::new(Decimal128Array::new(values, nulls).with_data_type(data_type.clone()))
            }
            (Data::Text(text) | Data::Enum { text, .. }, _) => {
                let (offsets, bytes) = text.finish();
                Arc::new(StringArray::new(offsets, bytes, nulls))
            }
            (Data::Binary { offsets, bytes }, _) => {
                Arc::new(BinaryArray::new(take_offsets(offsets), Buffer::from_vec(take(bytes)), nulls))
            }
            (Data::Fixed { bytes, width }, _) => {
                Arc::new(FixedSizeBinaryArray::new(*width as i32, Buffer::from_vec(take(bytes)), nulls))
            }
            (Data::Record(record), DataType::Struct(fields)) => {
                let (columns, rows) = record.finish(fields);
                let array = StructArray::try_new_with_length(fields.clone(), columns, nulls, rows);
                Arc::new(array.expect("all columns of a record have its length and type"))
            }
            (Data::List { offsets, items }, DataType::List(item)) => {
                Arc::new(ListArray::new(item.clone(), take_offsets(offsets), items.finish(item), nulls))
            }
            (Data::Map { offsets, keys, values }, DataType::Map(entries, sorted)) => {
                let DataType::Struct(pair) = entries.data_type() else { unreachable!("checked by Data::new") };
                let (key_offsets, bytes) = keys.finish();
                let keys = Arc::new(StringArray::new(key_offsets, bytes, None));
                let pairs = StructArray::new(pair.clone(), vec![keys, values.finish(&pair[1])], None);
                Arc::new(MapArray::new(entries.clone(), take_offsets(offsets), pairs, nulls, *sorted))
            }
            (Data::Record(_) | Data::List { .. } | Data::Map { .. }, _) => unreachable!("made from the same field"),
        }
    }
}

impl Data {
    fn new(field: &Field, path: &str) -> Result<Data, Unsupported> {
        let unsupported = || Unsupported { field: path.to_owned(), data_type: field.data_type().to_string() };
        Ok(match field.data_type() {
            DataType::Boolean => Data::Boolean(BooleanBufferBuilder::new(0)),
            DataType::Int32 => Data::Int(Vec::new()),
            DataType::Int64 => Data::Long(Vec::new()),
            DataType::Float32 => Data::Float(Vec::new()),
            DataType::Float64 => Data::Double(Vec::new()),
            DataType::Date32 => Data::Date(Vec::new()),
            DataType::Time32(TimeUnit::Millisecond) => Data::TimeMillis(Vec::new()),
            DataType::Time64(TimeUnit::Microsecond) => Data::TimeMicros(Vec::new()),
            DataType::Timestamp(unit @ (TimeUnit::Millisecond | TimeUnit::Microsecond), zone) => Data::Timestamp {
                values: Vec::new(),
                per_second: if *unit == TimeUnit::Millisecond { 1_000 } else { 1_000_000 },
                local: zone.is_none(),
            },
            DataType::Decimal128(precision, scale) => {
                Data::Decimal { values: Vec::new(), precision: *precision, scale: *scale }
            }
            DataType::Utf8 => match field.metadata().get(ENUM_SYMBOLS) {
                None => Data::Text(Text::new()),
                Some(symbols) => {
                    Data::Enum { text: Text::new(), symbols: serde_json::from_str(symbols).map_err(|_| unsupported())? }
                }
            },
            DataType::Binary => Data::Binary { offsets: vec![0], bytes: Vec::new() },
            DataType::FixedSizeBinary(width @ 1..) => Data::Fixed { bytes: Vec::new(), width: *width as usize },
            DataType::Struct(fields) => Data::Record(Record::new(fields, path)?),
            DataType::List(item) => {
                Data::List { offsets: vec![0], items: Box::new(Column::new(item, &format!("{path}[]"))?) }
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) if pair.len() == 2 && *pair[0].data_type() == DataType::Utf8 => Data::Map {
                    offsets: vec![0],
                    keys: Text::new(),
                    values: Box::new(Column::new(&pair[1], &format!("{path}[]"))?),
                },
                _ => return Err(unsupported()),
            },
            _ => return Err(unsupported()),
        })
    }
}

fn primitive<T: ArrowPrimitiveType>(values: &mut Vec<T::Native>, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(take(values)), nulls))
}

/// The values, leaving room for as many: batches are of one size, and then no vector grows more than once.
pub(super) fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let capacity = values.len();
    std::mem::replace(values, Vec::with_capacity(capacity))
}

fn take_offsets(offsets: &mut Vec<i32>) -> OffsetBuffer<i32> {
    let taken = take(offsets);
    offsets.push(0);
    OffsetBuffer::new(ScalarBuffer::from(taken))
}

/// Where the last whole value ends.
pub(super) fn last(offsets: &[i32]) -> usize {
    offsets.last().map_or(0, |end| *end as usize)
}
