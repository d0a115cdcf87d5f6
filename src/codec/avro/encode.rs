//! Arrow rows in Avro's binary encoding: the plan of a schema meets a batch's arrays once, then rows are written cell by cell.
//!
//! Own code, and not `arrow-avro`'s encoder, as with the decoder: that one makes its own schema of the Arrow types, and tells
//! of a value that does not fit neither the field nor the row. Numbers are written from one machine word where 56 bits hold
//! them, which is what makes a cell cheap.

use super::{AvroError, Writer, parse, plan::name};
use crate::codec::columns::join;
use crate::schema::TableSchema;
use apache_avro::Schema;
use apache_avro::schema::{DecimalSchema, InnerDecimalSchema, NamesRef, ResolvedSchema};
use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::datatypes::*;
use hashbrown::HashMap;

/// Rows to Avro's binary encoding, by a plan made once from the schema (unions null first); nothing boxed per row.
///
/// What is written is what Java's `BinaryEncoder` writes: lists and maps in one block without its size, decimals on bytes in as
/// few of them as hold the number.
#[derive(Debug)]
pub struct AvroEncoder {
    fields: Vec<Field>,
}

/// How a field's values are written.
#[derive(Debug)]
struct Field {
    name: String,
    /// `a.b[].c`
    path: String,
    /// A union of null and the type.
    nullable: bool,
    kind: Kind,
}

/// The symbols of an enum, and how each is written.
type Symbols = HashMap<String, i64, foldhash::fast::FixedState>;

#[derive(Debug)]
enum Kind {
    Boolean,
    Int,
    Date,
    Long,
    Timestamp(TimeUnit),
    Float,
    Double,
    Bytes,
    Text,
    /// `width`: of a fixed type; `limit`: the first number that has too many digits.
    Decimal {
        scale: i8,
        width: Option<usize>,
        limit: u128,
    },
    Enum(Symbols),
    Record(Vec<Field>),
    Array(Box<Field>),
    Map(Box<Field>),
}

impl AvroEncoder {
    /// For rows of `schema`, which are written as its `avro` says; meta columns are columns like others.
    pub fn new(schema: &TableSchema) -> Result<AvroEncoder, AvroError> {
        let parsed = parse(&schema.avro, Writer::Same)?;
        let unusable = |why: String| AvroError::Schema { writer: Writer::Same, why };
        let names = ResolvedSchema::new(&parsed).map_err(|e| unusable(e.to_string()))?;
        match Kind::new(&parsed, names.get_names(), "")? {
            Kind::Record(fields) => Ok(AvroEncoder { fields }),
            _ => Err(unusable(format!("{}, not a record", name(&parsed)))),
        }
    }

    /// Appends each row of `batch` (columns = the schema's Arrow) as 4-byte big-endian length and datum. After an error `out` is
    /// as it was.
    pub fn append_framed(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), AvroError> {
        let columns = bind(&self.fields, batch.schema_ref().fields(), batch.columns(), "")?;
        let before = out.len();
        for row in 0..batch.num_rows() {
            if let Err(fail) = frame(&columns, row, out) {
                out.truncate(before);
                let Fail { field, why } = *fail;
                return Err(AvroError::Unwritable { field, row, why });
            }
        }
        Ok(())
    }
}

impl Field {
    fn new(name: &str, schema: &Schema, names: &NamesRef<'_>, path: String) -> Result<Field, AvroError> {
        let (nullable, inner) = match schema {
            Schema::Union(union) => match union.variants() {
                [Schema::Null, inner] => (true, inner),
                _ => return Err(unsupported(&path, "a union that is not of null and one type")),
            },
            inner => (false, inner),
        };
        Ok(Field { name: name.to_owned(), kind: Kind::new(inner, names, &path)?, path, nullable })
    }
}

impl Kind {
    fn new(schema: &Schema, names: &NamesRef<'_>, path: &str) -> Result<Kind, AvroError> {
        Ok(match schema {
            Schema::Boolean => Kind::Boolean,
            Schema::Int => Kind::Int,
            Schema::Date => Kind::Date,
            Schema::Long => Kind::Long,
            Schema::TimestampMillis => Kind::Timestamp(TimeUnit::Millisecond),
            Schema::TimestampMicros => Kind::Timestamp(TimeUnit::Microsecond),
            Schema::Float => Kind::Float,
            Schema::Double => Kind::Double,
            Schema::Bytes => Kind::Bytes,
            Schema::String => Kind::Text,
            Schema::Decimal(DecimalSchema { precision, scale, inner }) => {
                let limit = u32::try_from(*precision).ok().and_then(|precision| 10u128.checked_pow(precision));
                let (Some(limit), Ok(scale)) = (limit, i8::try_from(*scale)) else {
                    return Err(unsupported(path, &name(schema)));
                };
                let width = match inner {
                    InnerDecimalSchema::Bytes => None,
                    InnerDecimalSchema::Fixed(fixed) => Some(fixed.size),
                };
                Kind::Decimal { scale, width, limit }
            }
            Schema::Enum(of) => Kind::Enum(of.symbols.iter().cloned().zip(0..).collect()),
            Schema::Record(record) => {
                let field =
                    |f: &apache_avro::schema::RecordField| Field::new(&f.name, &f.schema, names, join(path, &f.name));
                Kind::Record(record.fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            Schema::Array(array) => {
                Kind::Array(Box::new(Field::new("element", &array.items, names, format!("{path}[]"))?))
            }
            Schema::Map(map) => Kind::Map(Box::new(Field::new("value", &map.types, names, format!("{path}{{}}"))?)),
            Schema::Ref { name } => match names.get(name) {
                Some(found) => Kind::new(found, names, path)?,
                None => return Err(unsupported(path, &format!("{name}, which is not a defined name"))),
            },
            other => return Err(unsupported(path, &name(other))),
        })
    }
}

fn unsupported(path: &str, what: &str) -> AvroError {
    AvroError::UnsupportedType { field: path.to_owned(), data_type: what.to_owned() }
}

/// A field's plan with the array that has its values.
struct Column<'a> {
    field: &'a Field,
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

/// Offsets and values are those of the array's slice.
enum Values<'a> {
    Boolean(&'a BooleanArray),
    Int(&'a [i32]),
    Long(&'a [i64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    Counted { offsets: &'a [i32], bytes: &'a [u8] },
    Decimal { values: &'a [i128], width: Option<usize>, limit: u128 },
    Enum { texts: &'a StringArray, symbols: &'a Symbols },
    Record(Vec<Column<'a>>),
    Array { offsets: &'a [i32], items: Box<Column<'a>> },
    Map { offsets: &'a [i32], keys: &'a StringArray, values: Box<Column<'a>> },
}

/// Fields and arrays meet by place; names are only checked, since a column in another's place would go unnoticed.
fn bind<'a>(
    plan: &'a [Field],
    fields: &Fields,
    arrays: &'a [ArrayRef],
    path: &str,
) -> Result<Vec<Column<'a>>, AvroError> {
    if plan.len() != arrays.len() {
        let why = format!("{} columns, where the schema has {} fields", arrays.len(), plan.len());
        return Err(AvroError::Batch { field: path.to_owned(), why });
    }
    let pairs = plan.iter().zip(fields).zip(arrays);
    pairs
        .map(|((field, of), array)| match field.name == *of.name() {
            true => Column::new(field, array),
            false => {
                let why = format!("the batch has {} in its place", of.name());
                Err(AvroError::Batch { field: field.path.clone(), why })
            }
        })
        .collect()
}

impl<'a> Column<'a> {
    fn new(field: &'a Field, array: &'a ArrayRef) -> Result<Column<'a>, AvroError> {
        use DataType as D;
        let values = match (&field.kind, array.data_type()) {
            (Kind::Boolean, D::Boolean) => Values::Boolean(array.as_boolean()),
            (Kind::Int, D::Int32) => Values::Int(array.as_primitive::<Int32Type>().values()),
            (Kind::Date, D::Date32) => Values::Int(array.as_primitive::<Date32Type>().values()),
            (Kind::Long, D::Int64) => Values::Long(array.as_primitive::<Int64Type>().values()),
            (Kind::Timestamp(unit), D::Timestamp(of, _)) if unit == of => Values::Long(match unit {
                TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().values(),
                _ => array.as_primitive::<TimestampMicrosecondType>().values(),
            }),
            (Kind::Float, D::Float32) => Values::Float(array.as_primitive::<Float32Type>().values()),
            (Kind::Double, D::Float64) => Values::Double(array.as_primitive::<Float64Type>().values()),
            (Kind::Bytes, D::Binary) => {
                let array = array.as_binary::<i32>();
                Values::Counted { offsets: array.value_offsets(), bytes: array.value_data() }
            }
            (Kind::Text, D::Utf8) => {
                let array = array.as_string::<i32>();
                Values::Counted { offsets: array.value_offsets(), bytes: array.value_data() }
            }
            (Kind::Decimal { scale, width, limit }, D::Decimal128(_, of)) if scale == of => Values::Decimal {
                values: array.as_primitive::<Decimal128Type>().values(),
                width: *width,
                limit: *limit,
            },
            (Kind::Enum(symbols), D::Utf8) => Values::Enum { texts: array.as_string(), symbols },
            (Kind::Record(plan), D::Struct(fields)) => {
                Values::Record(bind(plan, fields, array.as_struct().columns(), &field.path)?)
            }
            (Kind::Array(item), D::List(_)) => {
                let array = array.as_list::<i32>();
                let items = Box::new(Column::new(item, array.values())?);
                Values::Array { offsets: array.value_offsets(), items }
            }
            (Kind::Map(value), D::Map(entries, _)) if matches!(entries.data_type(), D::Struct(pair) if *pair[0].data_type() == D::Utf8) =>
            {
                let array = array.as_map();
                Values::Map {
                    offsets: array.value_offsets(),
                    keys: array.keys().as_string(),
                    values: Box::new(Column::new(value, array.values())?),
                }
            }
            (_, of) => {
                let why = format!("the batch has {of}, which is not its type in the schema");
                return Err(AvroError::Batch { field: field.path.clone(), why });
            }
        };
        Ok(Column { field, nulls: array.nulls().filter(|nulls| nulls.null_count() > 0), values })
    }

    /// The value in that place.
    #[inline]
    fn write(&self, at: usize, out: &mut Vec<u8>) -> Written {
        let null = self.nulls.is_some_and(|nulls| nulls.is_null(at));
        match (self.field.nullable, null) {
            (true, true) => {
                out.push(0);
                return Ok(());
            }
            (true, false) => out.push(2),
            (false, true) => return self.fail("null, which the schema does not allow"),
            (false, false) => {}
        }
        match &self.values {
            Values::Boolean(values) => out.push(u8::from(values.value(at))),
            Values::Int(values) => long(values[at].into(), out),
            Values::Long(values) => long(values[at], out),
            Values::Float(values) => out.extend_from_slice(&values[at].to_le_bytes()),
            Values::Double(values) => out.extend_from_slice(&values[at].to_le_bytes()),
            Values::Counted { offsets, bytes } => counted(&bytes[range(offsets, at)], out),
            Values::Decimal { values, width, limit } => return self.decimal(values[at], *width, *limit, out),
            Values::Enum { texts, symbols } => match symbols.get(texts.value(at)) {
                Some(symbol) => long(*symbol, out),
                None => return self.fail(format!("{} is not a symbol of the enum", super::shown(texts.value(at)))),
            },
            Values::Record(columns) => return columns.iter().try_for_each(|column| column.write(at, out)),
            Values::Array { offsets, items } => {
                let range = range(offsets, at);
                block(range.len(), out, |out| range.clone().try_for_each(|at| items.write(at, out)))?;
            }
            Values::Map { offsets, keys, values } => {
                let range = range(offsets, at);
                block(range.len(), out, |out| {
                    range.clone().try_for_each(|at| {
                        counted(keys.value(at).as_bytes(), out);
                        values.write(at, out)
                    })
                })?;
            }
        }
        Ok(())
    }

    /// Two's complement, big end first.
    fn decimal(&self, unscaled: i128, width: Option<usize>, limit: u128, out: &mut Vec<u8>) -> Written {
        if unscaled.unsigned_abs() >= limit {
            return self.fail(format!("{unscaled} (unscaled) has more digits than the decimal"));
        }
        let bytes = unscaled.to_be_bytes();
        // Bits that the number needs, its sign among them.
        let bits = 129 - if unscaled < 0 { unscaled.leading_ones() } else { unscaled.leading_zeros() };
        let needed = bits.div_ceil(8) as usize;
        match width {
            None => counted(&bytes[16 - needed..], out),
            Some(width) if width < needed => {
                return self.fail(format!("{unscaled} (unscaled) needs {needed} bytes of a fixed of {width}"));
            }
            Some(width) => {
                let fill = if unscaled < 0 { 0xff } else { 0 };
                out.resize(out.len() + width.saturating_sub(16), fill);
                out.extend_from_slice(&bytes[16usize.saturating_sub(width)..]);
            }
        }
        Ok(())
    }

    #[cold]
    fn fail<T>(&self, why: impl Into<String>) -> Result<T, Box<Fail>> {
        Err(Box::new(Fail { field: self.field.path.clone(), why: why.into() }))
    }
}

/// Why a row cannot be written.
struct Fail {
    /// Empty: no single one is to blame.
    field: String,
    why: String,
}

type Written = Result<(), Box<Fail>>;

fn frame(columns: &[Column<'_>], row: usize, out: &mut Vec<u8>) -> Written {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    columns.iter().try_for_each(|column| column.write(row, out))?;
    // Java reads the length as an int.
    match i32::try_from(out.len() - start - 4) {
        Ok(length) => out[start..start + 4].copy_from_slice(&length.to_be_bytes()),
        Err(_) => return Err(Box::new(Fail { field: "*".into(), why: "the whole row has more than 2 GiB".into() })),
    }
    Ok(())
}

/// Items in one block, and the empty block behind it.
#[inline]
fn block(count: usize, out: &mut Vec<u8>, items: impl FnOnce(&mut Vec<u8>) -> Written) -> Written {
    if count > 0 {
        long(count as i64, out);
        items(out)?;
    }
    out.push(0);
    Ok(())
}

#[inline]
fn range(offsets: &[i32], at: usize) -> std::ops::Range<usize> {
    offsets[at] as usize..offsets[at + 1] as usize
}

/// A number in 7-bit groups, signs folded in.
#[inline]
pub(super) fn long(value: i64, out: &mut Vec<u8>) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    if rest < 0x80 {
        out.push(rest as u8);
    } else if rest < 1 << 56 {
        // Eight groups, each in a byte of its own: halves, quarters and eighths move apart.
        let length = (70 - rest.leading_zeros() as usize) / 7;
        rest = (rest & 0x0fff_ffff) | (rest & 0x00ff_ffff_f000_0000) << 4;
        rest = (rest & 0x0000_3fff_0000_3fff) | (rest & 0x0fff_c000_0fff_c000) << 2;
        rest = (rest & 0x007f_007f_007f_007f) | (rest & 0x3f80_3f80_3f80_3f80) << 1;
        rest |= 0x8080_8080_8080_8080 & ((1 << (8 * (length - 1))) - 1);
        let end = out.len() + length;
        out.extend_from_slice(&rest.to_le_bytes());
        out.truncate(end);
    } else {
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }
}

/// Bytes after their length.
#[inline]
pub(super) fn counted(bytes: &[u8], out: &mut Vec<u8>) {
    long(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}
