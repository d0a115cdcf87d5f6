//! What a writer's schema means for the reader's columns, worked out once a schema id.
//!
//! Fields meet by name, then by the reader's aliases; names of records, enums and fixed types mean nothing, as in
//! `HoodieAvroUtils.rewriteRecordDeep` (0.15), whose conversions these are, without those that lose something.

use super::super::columns::join;
use super::default;
use apache_avro::Schema;
use apache_avro::schema::{
    DecimalSchema, EnumSchema, InnerDecimalSchema, Name, NamesRef, RecordField, RecordSchema, ResolvedSchema,
    UuidSchema,
};
use arrow::datatypes::Fields;

/// A record's fields in the order of the writer, then what the writer lacks.
#[derive(Debug)]
pub(super) struct RecordPlan {
    pub steps: Vec<Step>,
    pub missing: Vec<(usize, Plan)>,
    /// There is more in the record than the steps read.
    pub cut: bool,
}

impl RecordPlan {
    /// Leaves off the steps that only pass over the record's end: for records whose length is known from elsewhere, and whose
    /// writer's schema is beyond doubt.
    pub fn cut(&mut self) {
        let steps = self.steps.iter().rposition(|step| matches!(step, Step::Take { .. })).map_or(0, |last| last + 1);
        self.cut = steps < self.steps.len();
        self.steps.truncate(steps);
    }
}

#[derive(Debug)]
pub(super) enum Step {
    Take { column: usize, plan: Plan },
    Skip { name: String, skip: Skip },
}

/// How a value is written; what becomes of it the column says.
#[derive(Debug)]
pub(super) enum Plan {
    Null,
    Boolean,
    Int,
    Long,
    /// An int or a long that becomes the nearest float.
    Rounded,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    /// Days that become text.
    Date,
    /// `width`: of a fixed type; `factor`: to the reader's scale.
    Decimal {
        width: Option<usize>,
        factor: i128,
    },
    /// The writer's symbols in the reader's words, or why one has none.
    Enum(Vec<Result<String, String>>),
    Record(RecordPlan),
    Array(Box<Plan>),
    Map(Box<Plan>),
    Union(Vec<Plan>),
    /// Not in the record: the default, as if it had been written.
    Default {
        bytes: Vec<u8>,
        plan: Box<Plan>,
    },
    /// A branch that the column cannot take.
    Misfit(String),
}

/// How to pass over a value that no column takes.
#[derive(Debug)]
pub(super) enum Skip {
    Number,
    Counted,
    Bytes(usize),
    Record(Vec<Skip>),
    Union(Vec<Skip>),
    Array(Box<Skip>),
    Map(Box<Skip>),
}

/// Whose records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// A number that a float cannot hold fails its record.
    Incoming,
    /// Such a number is rounded, as in stored rows of base files ([`schema::rewrite`](crate::schema::rewrite)): it has been
    /// accepted, and the table was widened since.
    Stored,
}

/// Why there is no plan.
#[derive(Debug)]
pub(super) struct Misfit {
    /// Empty: the whole schema.
    pub field: String,
    pub why: String,
}

type Planned<T> = Result<T, Misfit>;

fn misfit<T>(field: &str, why: impl Into<String>) -> Planned<T> {
    Err(Misfit { field: field.to_owned(), why: why.into() })
}

/// The plan for records of `writer`, read into columns that were made of `fields`, Arrow's twin of `reader`.
pub(super) fn plan(writer: &Schema, reader: &Schema, fields: &Fields, whose: Whose) -> Planned<RecordPlan> {
    let names = |schema| ResolvedSchema::new(schema).or_else(|e| misfit("", e.to_string()));
    let (writer_names, reader_names) = (names(writer)?, names(reader)?);
    let (writer_names, reader_names) = (writer_names.get_names(), reader_names.get_names());
    let mut planner = Planner { writer: writer_names, reader: reader_names, whose, open: Vec::new() };
    match (planner.writer_type(writer, "")?, planner.reader_type(reader, "")?) {
        (Schema::Record(writer), Schema::Record(reader)) => {
            // A schema that a commit carries may have meta columns, which are no columns here.
            let known = |field: &&RecordField| fields.find(&field.name).is_some();
            planner.record(writer, &reader.fields.iter().filter(known).collect::<Vec<_>>(), "")
        }
        (Schema::Record(_), other) => misfit("", format!("the reading schema is {}, not a record", name(other))),
        (other, _) => misfit("", format!("{}, not a record", name(other))),
    }
}

struct Planner<'s> {
    writer: &'s NamesRef<'s>,
    reader: &'s NamesRef<'s>,
    whose: Whose,
    /// Records of the writer around the value.
    open: Vec<&'s Name>,
}

impl<'s> Planner<'s> {
    fn writer_type(&self, schema: &'s Schema, path: &str) -> Planned<&'s Schema> {
        let found = look_up(schema, self.writer, path)?;
        match found {
            Schema::Record(record) if self.open.contains(&&record.name) => misfit(
                path,
                format!("record {} contains itself: recursive schemas have no columns; cut the recursion", record.name),
            ),
            _ => Ok(found),
        }
    }

    fn reader_type(&self, schema: &'s Schema, path: &str) -> Planned<&'s Schema> {
        look_up(schema, self.reader, path)
    }

    fn record(&mut self, writer: &'s RecordSchema, reader: &[&'s RecordField], path: &str) -> Planned<RecordPlan> {
        self.open.push(&writer.name);
        let named = |name: &str| reader.iter().position(|field| field.name == name);
        let aliased = |name: &str| {
            let unnamed = |field: &RecordField| !writer.fields.iter().any(|w| w.name == field.name);
            reader.iter().position(|field| field.aliases.iter().any(|alias| alias == name) && unnamed(field))
        };
        let mut taken = vec![false; reader.len()];
        let mut steps = Vec::new();
        for field in &writer.fields {
            let column = named(&field.name).or_else(|| aliased(&field.name)).filter(|column| !taken[*column]);
            steps.push(match column {
                Some(column) => {
                    taken[column] = true;
                    let path = join(path, &reader[column].name);
                    Step::Take { column, plan: self.value(&field.schema, &reader[column].schema, &path)? }
                }
                None => {
                    let skip = self.skip(&field.schema, &join(path, &field.name))?;
                    Step::Skip { name: field.name.clone(), skip }
                }
            });
        }
        let missing = (0..reader.len()).filter(|column| !taken[*column]);
        let missing = missing
            .map(|column| Ok((column, self.missing(reader[column], &join(path, &reader[column].name))?)))
            .collect::<Planned<Vec<_>>>()?;
        self.open.pop();
        Ok(RecordPlan { steps, missing, cut: false })
    }

    /// A field that the writer lacks. Hudi 1.0.2 takes null where nothing else is said and null is allowed.
    fn missing(&mut self, field: &'s RecordField, path: &str) -> Planned<Plan> {
        let nullable = matches!(&field.schema, Schema::Union(union) if union.variants().contains(&Schema::Null));
        match &field.default {
            None if nullable => Ok(Plan::Null),
            Some(serde_json::Value::Null) if nullable => Ok(Plan::Null),
            None => misfit(path, "the writer lacks it, and it has no default and may not be null: give it a default"),
            Some(value) => {
                let mut bytes = Vec::new();
                if let Err(why) = default::encode(value, &field.schema, self.reader, &mut bytes) {
                    return misfit(path, format!("its default {value} is none of its type: {why}"));
                }
                let mut own = Planner { writer: self.reader, open: Vec::new(), ..*self };
                Ok(Plan::Default { bytes, plan: Box::new(own.value(&field.schema, &field.schema, path)?) })
            }
        }
    }

    fn value(&mut self, writer: &'s Schema, reader: &'s Schema, path: &str) -> Planned<Plan> {
        let (writer, reader) = (self.writer_type(writer, path)?, self.reader_type(reader, path)?);
        match (writer, reader) {
            (Schema::Union(union), reader) => self.union(union.variants(), reader, path),
            (Schema::Null, _) => Ok(Plan::Null),
            (writer, Schema::Union(union)) => match union.variants().iter().find(|branch| **branch != Schema::Null) {
                Some(branch) => self.value(writer, branch, path),
                None => misfit(path, "the reading schema has nothing but null"),
            },
            (Schema::Record(writer), Schema::Record(reader)) => {
                Ok(Plan::Record(self.record(writer, &reader.fields.iter().collect::<Vec<_>>(), path)?))
            }
            (Schema::Array(writer), Schema::Array(reader)) => {
                Ok(Plan::Array(Box::new(self.value(&writer.items, &reader.items, &format!("{path}[]"))?)))
            }
            (Schema::Map(writer), Schema::Map(reader)) => {
                Ok(Plan::Map(Box::new(self.value(&writer.types, &reader.types, &format!("{path}{{}}"))?)))
            }
            (Schema::Enum(writer), Schema::Enum(reader)) => Ok(Plan::Enum(symbols(writer, Some(reader)))),
            (Schema::Enum(writer), Schema::String) => Ok(Plan::Enum(symbols(writer, None))),
            (writer, Schema::Decimal(reader)) => decimal(writer, reader, path),
            (Schema::Int | Schema::Long, Schema::Float | Schema::Double) if self.whose == Whose::Stored => {
                Ok(Plan::Rounded)
            }
            (writer, reader) => scalar(writer, reader).map_or_else(|| misfit(path, mismatch(writer, reader)), Ok),
        }
    }

    /// Where only one branch can hold a value it must fit; of several, those that do not fit fail the records they are in.
    fn union(&mut self, branches: &'s [Schema], reader: &'s Schema, path: &str) -> Planned<Plan> {
        let open = self.open.len();
        let mut refused = Vec::new();
        let mut plans = Vec::new();
        for branch in branches {
            plans.push(self.value(branch, reader, path).unwrap_or_else(|misfit| {
                self.open.truncate(open);
                let why = misfit.why.clone();
                refused.push(misfit);
                Plan::Misfit(why)
            }));
        }
        let values = branches.iter().filter(|branch| **branch != Schema::Null).count();
        match refused.into_iter().next() {
            Some(misfit) if plans.iter().filter(|plan| matches!(plan, Plan::Misfit(_))).count() == values => {
                Err(misfit)
            }
            _ => Ok(Plan::Union(plans)),
        }
    }

    fn skip(&mut self, schema: &'s Schema, path: &str) -> Planned<Skip> {
        Ok(match self.writer_type(schema, path)? {
            Schema::Null => Skip::Bytes(0),
            Schema::Boolean => Skip::Bytes(1),
            Schema::Float => Skip::Bytes(4),
            Schema::Double => Skip::Bytes(8),
            Schema::Fixed(fixed) | Schema::Duration(fixed) => Skip::Bytes(fixed.size),
            Schema::Uuid(UuidSchema::Fixed(fixed)) => Skip::Bytes(fixed.size),
            Schema::Decimal(DecimalSchema { inner: InnerDecimalSchema::Fixed(fixed), .. }) => Skip::Bytes(fixed.size),
            Schema::Bytes | Schema::String | Schema::Decimal(_) | Schema::BigDecimal | Schema::Uuid(_) => Skip::Counted,
            Schema::Record(record) => {
                self.open.push(&record.name);
                let fields = record.fields.iter().map(|f| self.skip(&f.schema, &join(path, &f.name)));
                let fields = fields.collect::<Planned<Vec<_>>>()?;
                self.open.pop();
                Skip::Record(fields)
            }
            Schema::Union(union) => {
                Skip::Union(union.variants().iter().map(|branch| self.skip(branch, path)).collect::<Planned<_>>()?)
            }
            Schema::Array(array) => Skip::Array(Box::new(self.skip(&array.items, path)?)),
            Schema::Map(map) => Skip::Map(Box::new(self.skip(&map.types, path)?)),
            Schema::Int | Schema::Long | Schema::Enum(_) | Schema::Date | Schema::TimeMillis | Schema::TimeMicros => {
                Skip::Number
            }
            Schema::TimestampMillis | Schema::TimestampMicros | Schema::TimestampNanos => Skip::Number,
            Schema::LocalTimestampMillis | Schema::LocalTimestampMicros | Schema::LocalTimestampNanos => Skip::Number,
            Schema::Ref { name } => return misfit(path, format!("{name} is not a defined name")),
        })
    }
}

/// The type itself, where a name stands for it.
fn look_up<'s>(schema: &'s Schema, names: &'s NamesRef<'s>, path: &str) -> Planned<&'s Schema> {
    match schema {
        Schema::Ref { name } => match names.get(name) {
            Some(found) => Ok(found),
            None => misfit(path, format!("{name} is not a defined name")),
        },
        _ => Ok(schema),
    }
}

/// Values are kept, whatever label says what they mean, but never given another meaning: a time in milliseconds does not
/// become one in microseconds (Hudi 0.15 keeps the number, and so moves it a thousandfold).
fn scalar(writer: &Schema, reader: &Schema) -> Option<Plan> {
    use Schema::*;
    Some(match (writer, reader) {
        (Boolean, Boolean) => Plan::Boolean,
        (Int, Int | Long | Float | Double | String | Date | TimestampMillis | TimestampMicros) => Plan::Int,
        (Date, Date | Int | Long) | (TimeMillis, Int | Long) => Plan::Int,
        (Date, String) => Plan::Date,
        (Long, Long | Float | Double | String | TimestampMillis | TimestampMicros) => Plan::Long,
        (TimestampMillis | LocalTimestampMillis, TimestampMillis | Long) => Plan::Long,
        (TimestampMicros | LocalTimestampMicros, TimestampMicros | Long) => Plan::Long,
        (TimeMicros | TimestampNanos | LocalTimestampNanos, Long) => Plan::Long,
        (Float, Float | Double) => Plan::Float,
        (Double, Double) => Plan::Double,
        (Bytes, Bytes | String) | (BigDecimal | Uuid(UuidSchema::Bytes), Bytes) => Plan::Bytes,
        (String | Uuid(UuidSchema::String), String | Bytes | Enum(_)) => Plan::Text,
        (Fixed(fixed) | Duration(fixed) | Uuid(UuidSchema::Fixed(fixed)), Bytes) => Plan::Fixed(fixed.size),
        _ => return None,
    })
}

/// The reader may have more digits on both sides of the point; fewer only in front of it, if the values do.
fn decimal(writer: &Schema, reader: &DecimalSchema, path: &str) -> Planned<Plan> {
    let (width, scale) = match writer {
        Schema::Decimal(DecimalSchema { inner: InnerDecimalSchema::Bytes, scale, .. }) => (None, *scale),
        Schema::Decimal(DecimalSchema { inner: InnerDecimalSchema::Fixed(fixed), scale, .. }) => {
            (Some(fixed.size), *scale)
        }
        Schema::Bytes => (None, reader.scale),
        Schema::Fixed(fixed) => (Some(fixed.size), reader.scale),
        _ => return misfit(path, mismatch(writer, &Schema::Decimal(reader.clone()))),
    };
    let factor = reader.scale.checked_sub(scale).and_then(|more| 10i128.checked_pow(more as u32));
    match factor {
        Some(factor) => Ok(Plan::Decimal { width, factor }),
        None => misfit(path, mismatch(writer, &Schema::Decimal(reader.clone()))),
    }
}

fn symbols(writer: &EnumSchema, reader: Option<&EnumSchema>) -> Vec<Result<String, String>> {
    let word = |symbol: &String| match reader {
        None => Ok(symbol.clone()),
        Some(reader) if reader.symbols.contains(symbol) => Ok(symbol.clone()),
        Some(EnumSchema { default: Some(default), .. }) => Ok(default.clone()),
        Some(reader) => Err(format!(
            "{symbol} is none of the reading schema's symbols {}, which has no default among them",
            reader.symbols.join(", ")
        )),
    };
    writer.symbols.iter().map(word).collect()
}

fn mismatch(writer: &Schema, reader: &Schema) -> String {
    let (writer, reader) = (name(writer), name(reader));
    format!("{writer} does not fit the reading schema's {reader}: make it {writer} there, or leave the field out")
}

/// A type in the words of a schema.
pub(super) fn name(schema: &Schema) -> String {
    match schema {
        Schema::Decimal(decimal) => format!("decimal({},{})", decimal.precision, decimal.scale),
        Schema::Record(record) => format!("record {}", record.name),
        Schema::Enum(of) => format!("enum {}", of.name),
        Schema::Fixed(fixed) => format!("fixed {} of {} bytes", fixed.name, fixed.size),
        Schema::Array(_) => "array".into(),
        Schema::Map(_) => "map".into(),
        Schema::Union(_) => "union".into(),
        Schema::Uuid(_) => "uuid".into(),
        Schema::Duration(_) => "duration".into(),
        Schema::BigDecimal => "big-decimal".into(),
        Schema::TimeMillis => "time-millis".into(),
        Schema::TimeMicros => "time-micros".into(),
        Schema::TimestampMillis => "timestamp-millis".into(),
        Schema::TimestampMicros => "timestamp-micros".into(),
        Schema::TimestampNanos => "timestamp-nanos".into(),
        Schema::LocalTimestampMillis => "local-timestamp-millis".into(),
        Schema::LocalTimestampMicros => "local-timestamp-micros".into(),
        Schema::LocalTimestampNanos => "local-timestamp-nanos".into(),
        Schema::Ref { name } => name.to_string(),
        plain => format!("{plain:?}").to_lowercase(),
    }
}
