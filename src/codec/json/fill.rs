//! JSON values into columns: which text is which value of which type.
//!
//! The rules are those of Hudi 1.0.2's `MercifulJsonConverter`, without those of its conversions that lose something
//! (streamer-options.md §10, architecture.md "where Hudi leaves a choice").

use super::super::columns::{Column, Data, Record, Text};
use super::decimal::{Decimal, Misfit, from_base64};
use super::fail::{Fail, Fallible, Step, Why};
use super::scan::Cursor;
use super::temporal;
use std::collections::HashSet;
use std::sync::Once;

/// What can be made of one scalar: the value, or why there is none.
type Fit<T> = Result<T, Why>;

/// A row that says so in this field is a delete (`HoodieRecord.HOODIE_IS_DELETED_FIELD`).
const DELETE_FLAG: &str = "_hoodie_is_deleted";

/// Once a process: it is the schema that is wrong, not the record.
fn warn_of_lost_delete() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            "records with {DELETE_FLAG}=true are taken as rows, not as deletes, since the schema lacks that field: add it as a \
             nullable boolean"
        );
    });
}

impl Record {
    /// The object that starts here, as one more row.
    pub(super) fn fill(&mut self, cursor: &mut Cursor<'_>) -> Fallible {
        self.turn += 1;
        let mut filled = 0;
        let mut next = 0;
        let mut more = cursor.open(b'{', b'}')?;
        while more {
            // The order of fields seldom changes from record to record: first look for the one that comes next.
            let place = match self.keys.get(next) {
                Some(key) if !key.is_empty() && cursor.eat_all(key) => Some(next),
                _ => {
                    let name = cursor.name()?;
                    let place = self.place(&name);
                    if place.is_none() && name == DELETE_FLAG && cursor.peek() == Some(b't') {
                        warn_of_lost_delete();
                    }
                    place
                }
            };
            match place {
                Some(i) => {
                    next = i + 1;
                    if self.seen[i] == self.turn {
                        // A name that comes twice: the last one counts.
                        self.columns[i].truncate(self.rows);
                    } else {
                        self.seen[i] = self.turn;
                        filled += 1;
                    }
                    if let Err(fail) = self.columns[i].fill(cursor) {
                        return Err(fail.under(Step::Field(self.names[i].clone())));
                    }
                }
                None => cursor.skip()?,
            }
            more = cursor.more(b'}')?;
        }
        if filled < self.columns.len() {
            self.fill_missing()?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Schema defaults are not applied, as in Hudi.
    fn fill_missing(&mut self) -> Fallible {
        for (i, column) in self.columns.iter_mut().enumerate().filter(|(i, _)| self.seen[*i] != self.turn) {
            if !column.nullable {
                return Err(Box::new(Fail::Missing { path: vec![Step::Field(self.names[i].clone())] }));
            }
            column.push_null();
        }
        Ok(())
    }
}

impl Column {
    /// The value that starts here, as one more row. After an error the column must be cut back.
    #[inline]
    pub(super) fn fill(&mut self, cursor: &mut Cursor<'_>) -> Fallible {
        let first = cursor.peek();
        let from = cursor.at();
        if first == Some(b'n') {
            cursor.literal("null")?;
            if !self.nullable {
                return Err(misfit(Why::Borrowed("is not allowed by the schema"), from));
            }
            self.push_null();
            return Ok(());
        }
        match &mut self.data {
            Data::Text(text) => {
                match first {
                    Some(b'"') => cursor.string_into(&mut text.bytes)?,
                    _ => cursor.compact(&mut text.bytes)?,
                }
                text.end();
            }
            Data::Long(values) => values.push(scalar(cursor, |c| integer(c, "a long"))?),
            Data::Double(values) => match cursor.float::<f64>() {
                Some(value) => values.push(value),
                None => values.push(scalar(cursor, |c| float(c, "a double"))?),
            },
            Data::Int(values) => values.push(scalar(cursor, |c| narrow(integer(c, "an int")?, "an int"))?),
            Data::Boolean(values) => values.append(scalar(cursor, boolean)?),
            Data::Timestamp { values, per_second, local } => {
                values.push(scalar(cursor, |c| timestamp(c, *per_second, *local))?)
            }
            Data::Date(values) => values.push(scalar(cursor, date)?),
            Data::Decimal { values, precision, scale } => {
                values.push(scalar(cursor, |c| decimal(c, *precision, *scale))?);
            }
            Data::Float(values) => match cursor.float::<f32>() {
                Some(value) => values.push(value),
                None => values.push(scalar(cursor, |c| float(c, "a float"))?),
            },
            Data::TimeMillis(values) => {
                values.push(scalar(cursor, |c| narrow(time(c, 1_000)?, "a time of day"))?);
            }
            Data::TimeMicros(values) => values.push(scalar(cursor, |c| time(c, 1_000_000))?),
            Data::Enum { text, symbols } => {
                let symbol = scalar(cursor, |c| match c.peek() {
                    Some(b'"') => c.string().map(Ok),
                    _ => other(c, "a symbol of the enum"),
                })?;
                if !symbols.iter().any(|known| *known == symbol) {
                    return Err(misfit(Why::Borrowed("is not a symbol of the enum"), from));
                }
                text.bytes.push_str(&symbol);
                text.end();
            }
            Data::Binary { offsets, bytes } => {
                let text = scalar(cursor, |c| match c.peek() {
                    Some(b'"') => c.string().map(Ok),
                    _ => other(c, "a string, whose UTF-8 is the bytes"),
                })?;
                bytes.extend_from_slice(text.as_bytes());
                offsets.push(bytes.len() as i32);
            }
            Data::Fixed { bytes, width } => fixed(cursor, bytes, *width)?,
            Data::Record(record) => match first {
                Some(b'{') => record.fill(cursor)?,
                _ => return Err(wrong_kind(cursor, "an object")),
            },
            Data::List { offsets, items } => match first {
                Some(b'[') => list(cursor, offsets, items)?,
                _ => return Err(wrong_kind(cursor, "an array")),
            },
            Data::Map { offsets, keys, values } => match first {
                Some(b'{') => map(cursor, offsets, keys, values)?,
                _ => return Err(wrong_kind(cursor, "an object")),
            },
        }
        self.valid.append_non_null();
        Ok(())
    }
}

#[cold]
fn misfit(why: Why, from: usize) -> Box<Fail> {
    Box::new(Fail::Value { path: Vec::new(), why, from })
}

/// The value here is well formed, but not `wanted`.
#[cold]
fn wrong_kind(cursor: &mut Cursor<'_>, wanted: &str) -> Box<Fail> {
    let from = cursor.at();
    match other::<()>(cursor, wanted) {
        Ok(Err(why)) => misfit(why, from),
        Ok(Ok(())) => unreachable!("other() finds no value"),
        Err(fail) => fail,
    }
}

/// Steps over a value that cannot be `wanted`: a malformed one is named as that.
#[cold]
fn other<T>(cursor: &mut Cursor<'_>, wanted: &str) -> Fallible<Fit<T>> {
    cursor.skip()?;
    Ok(Err(Why::Owned(format!("is not {wanted}"))))
}

#[inline]
fn scalar<'a, T>(cursor: &mut Cursor<'a>, read: impl FnOnce(&mut Cursor<'a>) -> Fallible<Fit<T>>) -> Fallible<T> {
    let from = cursor.at();
    read(cursor)?.map_err(|why| misfit(why, from))
}

fn boolean(cursor: &mut Cursor<'_>) -> Fallible<Fit<bool>> {
    match cursor.peek() {
        Some(b't') => cursor.literal("true").map(|()| Ok(true)),
        Some(b'f') => cursor.literal("false").map(|()| Ok(false)),
        _ => other(cursor, "a boolean"),
    }
}

/// A whole number; text of digits is one too, as in Hudi.
#[inline]
fn integer(cursor: &mut Cursor<'_>, wanted: &'static str) -> Fallible<Fit<i64>> {
    match cursor.short_integer() {
        Some(value) => Ok(Ok(value)),
        None => long_integer(cursor, wanted),
    }
}

#[cold]
fn long_integer(cursor: &mut Cursor<'_>, wanted: &'static str) -> Fallible<Fit<i64>> {
    match cursor.peek() {
        Some(b'-' | b'0'..=b'9') => {
            let unscaled = Decimal::parse(cursor.number()?).map(|d| d.unscaled(0));
            Ok(match unscaled {
                Some(Ok(value)) => i64::try_from(value).map_err(|_| out_of_range(wanted)),
                Some(Err(Misfit::Fraction)) => Err(Why::Owned(format!("has a fraction, but the field is {wanted}"))),
                Some(Err(Misfit::Range)) | None => Err(out_of_range(wanted)),
            })
        }
        Some(b'"') => Ok(digits(&cursor.string()?, wanted)),
        _ => other(cursor, wanted),
    }
}

/// What `Long.valueOf` reads, in ASCII.
fn digits(text: &str, wanted: &str) -> Fit<i64> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|e: std::num::ParseIntError| match e.kind() {
        PosOverflow | NegOverflow => out_of_range(wanted),
        _ => Why::Owned(format!("is not {wanted}")),
    })
}

fn out_of_range(wanted: &str) -> Why {
    Why::Owned(format!("is out of the range of {wanted}"))
}

fn narrow(value: Fit<i64>, wanted: &str) -> Fallible<Fit<i32>> {
    Ok(value.and_then(|value| i32::try_from(value).map_err(|_| out_of_range(wanted))))
}

/// The nearest float; text of a number is one too, and `NaN` and `Infinity` as Java spells them in a text.
#[cold]
fn float<F: fast_float2::FastFloat + Into<f64> + Copy>(
    cursor: &mut Cursor<'_>,
    wanted: &'static str,
) -> Fallible<Fit<F>> {
    let (text, quoted) = match cursor.peek() {
        Some(b'"') => (cursor.string()?, true),
        Some(b'-' | b'0'..=b'9') => (cursor.number()?.into(), false),
        _ => return other(cursor, wanted),
    };
    let finite = Decimal::parse(&text).is_some();
    let special = quoted && matches!(text.strip_prefix(['+', '-']).unwrap_or(&text), "NaN" | "Infinity");
    if !finite && !special {
        return Ok(Err(Why::Owned(format!("is not {wanted}"))));
    }
    Ok(match fast_float2::parse::<F, _>(text.as_bytes()) {
        Ok(value) if special || value.into().is_finite() => Ok(value),
        _ => Err(out_of_range(wanted)),
    })
}

fn decimal(cursor: &mut Cursor<'_>, precision: u8, scale: i8) -> Fallible<Fit<i128>> {
    let (text, quoted) = match cursor.peek() {
        Some(b'"') => (cursor.string()?, true),
        Some(b'-' | b'0'..=b'9') => (cursor.number()?.into(), false),
        _ => return other(cursor, "a decimal"),
    };
    let unscaled = match Decimal::parse(&text) {
        Some(number) => number.unscaled(scale),
        // Only what cannot be a number may be Base64, where Hudi tries Base64 first and reads "1234" as -26588.24.
        None if quoted => match from_base64(&text) {
            Some(unscaled) => Ok(unscaled),
            None => return Ok(Err(Why::Borrowed("is not a decimal"))),
        },
        None => Err(Misfit::Range),
    };
    let limit = 10u128.pow(u32::from(precision));
    Ok(match unscaled {
        Ok(value) if value.unsigned_abs() < limit => Ok(value),
        Ok(_) | Err(Misfit::Range) => Err(Why::Owned(format!("is too large for decimal({precision},{scale})"))),
        Err(Misfit::Fraction) => Err(Why::Owned(format!("has more digits than decimal({precision},{scale}) keeps"))),
    })
}

/// A number of days, or an ISO date. Text of digits is neither: `20240310` would be a day in the year 57385.
fn date(cursor: &mut Cursor<'_>) -> Fallible<Fit<i32>> {
    match cursor.peek() {
        Some(b'"') => Ok(temporal::date(&cursor.string()?)),
        _ => narrow(integer(cursor, "a date")?, "a date"),
    }
}

/// A number in the field's unit, also as text, or an ISO time.
fn timestamp(cursor: &mut Cursor<'_>, per_second: i64, local: bool) -> Fallible<Fit<i64>> {
    if cursor.peek() != Some(b'"') {
        return integer(cursor, "a time");
    }
    let text = cursor.string()?;
    Ok(if is_digits(&text) { digits(&text, "a time") } else { temporal::timestamp(&text, per_second, local) })
}

/// A number in the field's unit since midnight, also as text, or an ISO time of day.
fn time(cursor: &mut Cursor<'_>, per_second: i64) -> Fallible<Fit<i64>> {
    let units = match cursor.peek() {
        Some(b'"') => {
            let text = cursor.string()?;
            if is_digits(&text) { digits(&text, "a time of day") } else { temporal::time(&text, per_second) }
        }
        _ => integer(cursor, "a time of day")?,
    };
    Ok(units.and_then(|units| match (0..86_400 * per_second).contains(&units) {
        true => Ok(units),
        false => Err(out_of_range("a time of day")),
    }))
}

fn is_digits(text: &str) -> bool {
    text.trim_start_matches(['+', '-']).bytes().all(|b| b.is_ascii_digit())
}

/// A list of exactly `width` byte numbers, signed or not.
fn fixed(cursor: &mut Cursor<'_>, bytes: &mut Vec<u8>, width: usize) -> Fallible {
    let from = cursor.at();
    let start = bytes.len();
    if cursor.peek() != Some(b'[') {
        return Err(wrong_kind(cursor, "an array of byte numbers"));
    }
    let mut more = cursor.open(b'[', b']')?;
    while more {
        cursor.peek();
        let read = scalar(cursor, |c| integer(c, "a byte"));
        let item = bytes.len() - start;
        let value = read.map_err(|fail| fail.under(Step::Item(item)))?;
        match value {
            -128..=255 => bytes.push(value as u8),
            _ => return Err(misfit(Why::Owned(format!("holds {value}, which is not a byte")), from)),
        }
        more = cursor.more(b']')?;
    }
    match bytes.len() - start {
        len if len == width => Ok(()),
        len => Err(misfit(Why::Owned(format!("holds {len} bytes, but the field has {width}")), from)),
    }
}

fn list(cursor: &mut Cursor<'_>, offsets: &mut Vec<i32>, items: &mut Column) -> Fallible {
    let start = offsets.last().map_or(0, |end| *end as usize);
    let mut len = 0;
    let mut more = cursor.open(b'[', b']')?;
    while more {
        items.fill(cursor).map_err(|fail| fail.under(Step::Item(len)))?;
        len += 1;
        more = cursor.more(b']')?;
    }
    offsets.push((start + len) as i32);
    Ok(())
}

fn map(cursor: &mut Cursor<'_>, offsets: &mut Vec<i32>, keys: &mut Text, values: &mut Column) -> Fallible {
    let begin = cursor.at();
    let start = keys.len();
    map_entries(cursor, keys, values, &HashSet::new())?;
    // A key that comes twice: the last one counts. Seldom enough to read the object again, without the others.
    let mut later = HashSet::new();
    let dropped: HashSet<usize> =
        keys.tail(start).enumerate().rev().filter(|(_, key)| !later.insert(*key)).map(|(i, _)| i).collect();
    if !dropped.is_empty() {
        keys.truncate(start);
        values.truncate(start);
        cursor.back_to(begin);
        map_entries(cursor, keys, values, &dropped)?;
    }
    offsets.push(keys.len() as i32);
    Ok(())
}

fn map_entries(cursor: &mut Cursor<'_>, keys: &mut Text, values: &mut Column, dropped: &HashSet<usize>) -> Fallible {
    let mut entry = 0;
    let mut more = cursor.open(b'{', b'}')?;
    while more {
        let key = cursor.name()?;
        if dropped.contains(&entry) {
            cursor.skip()?;
        } else {
            values.fill(cursor).map_err(|fail| fail.under(Step::Key(key.to_string())))?;
            keys.bytes.push_str(&key);
            keys.end();
        }
        entry += 1;
        more = cursor.more(b'}')?;
    }
    Ok(())
}
