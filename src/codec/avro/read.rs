//! Avro's binary encoding into columns, as a plan says. What the bytes claim is believed only as far as there are bytes.

use super::super::columns::{Column, Data, Record, Text, last};
use super::plan::{Plan, RecordPlan, Skip, Step};
use std::borrow::Cow;

/// Why a value cannot be had: where in the record, under which field.
#[derive(Debug)]
pub(super) struct Fail {
    pub at: usize,
    /// From the inside out.
    path: Vec<String>,
    pub why: Cow<'static, str>,
}

pub(super) type Fallible<T = ()> = Result<T, Box<Fail>>;

impl Fail {
    fn under(mut self: Box<Fail>, step: &str) -> Box<Fail> {
        self.path.push(step.to_owned());
        self
    }

    /// `a.b[].c`
    pub fn field(&self) -> String {
        let mut field = String::new();
        for step in self.path.iter().rev() {
            if !field.is_empty() && !step.starts_with(['[', '{']) {
                field.push('.');
            }
            field.push_str(step);
        }
        field
    }
}

/// A record's bytes, and how far they have been read.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    #[cold]
    fn fail<T>(&self, why: impl Into<Cow<'static, str>>) -> Fallible<T> {
        Err(Box::new(Fail { at: self.at, path: Vec::new(), why: why.into() }))
    }

    fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Nothing may follow a record.
    pub fn end(&self) -> Fallible {
        match self.remaining() {
            0 => Ok(()),
            left => {
                self.fail(format!("{left} bytes are left over after the record: it was written with another schema"))
            }
        }
    }

    #[inline]
    fn take(&mut self, length: usize) -> Fallible<&'a [u8]> {
        match self.bytes[self.at..].get(..length) {
            Some(taken) => {
                self.at += length;
                Ok(taken)
            }
            None => self.fail(format!("the record ends where {length} more bytes should come")),
        }
    }

    #[inline]
    fn byte(&mut self) -> Fallible<u8> {
        match self.bytes.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(*byte)
            }
            None => self.fail("the record ends where a value should begin"),
        }
    }

    /// A number in 7-bit groups, signs folded in.
    #[inline]
    fn long(&mut self) -> Fallible<i64> {
        let first = self.byte()?;
        let mut number = u64::from(first & 0x7f);
        if first >= 0x80 {
            let mut shift = 7;
            loop {
                let byte = self.byte()?;
                // The tenth byte has room for one bit.
                if shift == 63 && byte > 1 {
                    return self.fail("a number longer than 64 bits");
                }
                number |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
                shift += 7;
            }
        }
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    #[inline]
    fn int(&mut self) -> Fallible<i32> {
        let number = self.long()?;
        match i32::try_from(number) {
            Ok(int) => Ok(int),
            Err(_) => self.fail(format!("{number} is out of the range of an int")),
        }
    }

    fn float(&mut self) -> Fallible<f32> {
        let bytes = self.take(4)?;
        Ok(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn double(&mut self) -> Fallible<f64> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(f64::from_le_bytes(bytes))
    }

    /// Bytes after their length.
    #[inline]
    fn counted(&mut self) -> Fallible<&'a [u8]> {
        let length = self.long()?;
        match usize::try_from(length) {
            Ok(length) if length <= self.remaining() => self.take(length),
            Ok(length) => {
                self.fail(format!("a length of {length} bytes, of which only {} are there", self.remaining()))
            }
            Err(_) => self.fail(format!("a length of {length}")),
        }
    }

    fn utf8(&self, bytes: &'a [u8]) -> Fallible<&'a str> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(e) => self.fail(format!("text that is not UTF-8, {e}")),
        }
    }

    /// The items of an array or a map, block by block; returns how many.
    fn items(&mut self, mut each: impl FnMut(&mut Cursor<'a>) -> Fallible) -> Fallible<usize> {
        let mut total = 0;
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(total);
            }
            if count < 0 {
                // The size of the block in bytes follows, which nobody here needs.
                self.long()?;
            }
            let count = count.unsigned_abs();
            if count > self.remaining() as u64 {
                return self.fail(format!("{count} items, for which there are not bytes enough"));
            }
            for _ in 0..count {
                let before = self.at;
                each(self)?;
                if self.at == before {
                    return self.fail("items without bytes, whose number means nothing");
                }
            }
            total += count as usize;
        }
    }
}

impl RecordPlan {
    /// The record that starts here, as one more row. After an error the columns must be cut back.
    pub fn read(&self, cursor: &mut Cursor<'_>, record: &mut Record) -> Fallible {
        for step in &self.steps {
            match step {
                Step::Take { column, plan } => {
                    if let Err(fail) = plan.read(cursor, &mut record.columns[*column]) {
                        return Err(fail.under(&record.names[*column]));
                    }
                }
                Step::Skip { name, skip } => {
                    if let Err(fail) = skip.pass(cursor) {
                        return Err(fail.under(name));
                    }
                }
            }
        }
        for (column, plan) in &self.missing {
            plan.read(cursor, &mut record.columns[*column]).map_err(|fail| fail.under(&record.names[*column]))?;
        }
        record.rows += 1;
        Ok(())
    }

    /// To be asked behind the outermost record.
    pub fn end(&self, cursor: &Cursor<'_>) -> Fallible {
        if self.cut { Ok(()) } else { cursor.end() }
    }
}

impl Plan {
    /// The value that starts here, as one more value of the column.
    #[inline]
    fn read(&self, cursor: &mut Cursor<'_>, column: &mut Column) -> Fallible {
        match self {
            Plan::Null if column.nullable => {
                column.push_null();
                Ok(())
            }
            Plan::Null => cursor.fail("null, which the reading schema does not allow"),
            Plan::Union(branches) => {
                let branch = cursor.long()?;
                match usize::try_from(branch).ok().and_then(|branch| branches.get(branch)) {
                    Some(plan) => plan.read(cursor, column),
                    None => cursor.fail(format!("branch {branch} of a union of {}", branches.len())),
                }
            }
            Plan::Default { bytes, plan } => plan.read(&mut Cursor::new(bytes, 0), column),
            Plan::Misfit(why) => cursor.fail(why.clone()),
            _ => {
                self.value(cursor, &mut column.data)?;
                column.valid.append_non_null();
                Ok(())
            }
        }
    }

    #[inline]
    fn value(&self, cursor: &mut Cursor<'_>, data: &mut Data) -> Fallible {
        match (self, data) {
            (Plan::Text, Data::Text(text)) => {
                let bytes = cursor.counted()?;
                append(text, cursor.utf8(bytes)?, cursor)?;
            }
            (Plan::Long, Data::Long(values) | Data::Timestamp { values, .. }) => values.push(cursor.long()?),
            (Plan::Int, Data::Int(values) | Data::Date(values)) => values.push(cursor.int()?),
            (Plan::Int, Data::Long(values) | Data::Timestamp { values, .. }) => values.push(cursor.int()?.into()),
            (Plan::Double, Data::Double(values)) => values.push(cursor.double()?),
            (Plan::Boolean, Data::Boolean(values)) => match cursor.byte()? {
                byte @ (0 | 1) => values.append(byte == 1),
                byte => return cursor.fail(format!("byte {byte:#04x} for a boolean")),
            },
            (Plan::Decimal { width, factor }, Data::Decimal { values, precision, .. }) => {
                let bytes = match width {
                    Some(width) => cursor.take(*width)?,
                    None => cursor.counted()?,
                };
                let digits = unscaled(bytes).and_then(|unscaled| unscaled.checked_mul(*factor));
                match digits.filter(|digits| digits.unsigned_abs() < 10u128.pow(u32::from(*precision))) {
                    Some(digits) => values.push(digits),
                    None => return cursor.fail(format!("a decimal of more than {precision} digits")),
                }
            }
            (Plan::Record(plan), Data::Record(record)) => plan.read(cursor, record)?,
            (Plan::Array(plan), Data::List { offsets, items }) => {
                let read = cursor.items(|cursor| plan.read(cursor, items).map_err(|fail| fail.under("[]")))?;
                offsets.push(fits(last(offsets) + read, cursor)?);
            }
            (Plan::Map(plan), Data::Map { offsets, keys, values }) => {
                let read = cursor.items(|cursor| {
                    let key = cursor.counted()?;
                    append(keys, cursor.utf8(key)?, cursor)?;
                    plan.read(cursor, values).map_err(|fail| fail.under("{}"))
                })?;
                offsets.push(fits(last(offsets) + read, cursor)?);
            }
            (Plan::Enum(symbols), Data::Enum { text, .. } | Data::Text(text)) => {
                let symbol = cursor.int()?;
                match usize::try_from(symbol).ok().and_then(|symbol| symbols.get(symbol)) {
                    Some(Ok(symbol)) => append(text, symbol, cursor)?,
                    Some(Err(why)) => return cursor.fail(why.clone()),
                    None => return cursor.fail(format!("symbol {symbol} of an enum of {}", symbols.len())),
                }
            }
            (Plan::Text, Data::Enum { text, symbols }) => {
                let bytes = cursor.counted()?;
                let symbol = cursor.utf8(bytes)?;
                if !symbols.iter().any(|known| known == symbol) {
                    return cursor.fail(format!("{} is not a symbol of the enum", super::shown(symbol)));
                }
                append(text, symbol, cursor)?;
            }
            (Plan::Bytes, Data::Text(text)) => {
                let bytes = cursor.counted()?;
                append(text, cursor.utf8(bytes)?, cursor)?;
            }
            (Plan::Bytes | Plan::Text | Plan::Fixed(_), Data::Binary { offsets, bytes }) => {
                bytes.extend_from_slice(match self {
                    Plan::Fixed(width) => cursor.take(*width)?,
                    _ => cursor.counted()?,
                });
                offsets.push(fits(bytes.len(), cursor)?);
            }
            (Plan::Float, Data::Float(values)) => values.push(cursor.float()?),
            // By way of the text, as Hudi widens: 0.1f becomes 0.1, not 0.10000000149011612.
            (Plan::Float, Data::Double(values)) => {
                let narrow = cursor.float()?;
                values.push(narrow.to_string().parse().unwrap_or(f64::from(narrow)));
            }
            (Plan::Int | Plan::Long, Data::Float(values)) => {
                let number = cursor.long()?;
                values.push(exactly(number, number as f32, f64::from(number as f32), cursor)?);
            }
            (Plan::Int | Plan::Long, Data::Double(values)) => {
                let number = cursor.long()?;
                values.push(exactly(number, number as f64, number as f64, cursor)?);
            }
            (Plan::Rounded, Data::Float(values)) => values.push(cursor.long()? as f32),
            (Plan::Rounded, Data::Double(values)) => values.push(cursor.long()? as f64),
            (Plan::Int | Plan::Long, Data::Text(text)) => {
                let number = cursor.long()?;
                append(text, &number.to_string(), cursor)?;
            }
            (Plan::Date, Data::Text(text)) => {
                let days = cursor.int()?;
                match chrono::DateTime::from_timestamp(i64::from(days) * 86_400, 0) {
                    Some(date) => append(text, &date.format("%Y-%m-%d").to_string(), cursor)?,
                    None => return cursor.fail(format!("day {days}, which has no date")),
                }
            }
            // `plan.rs` pairs them otherwise.
            _ => return cursor.fail("a value that does not fit its column"),
        }
        Ok(())
    }
}

impl Skip {
    /// Passes over the value that starts here.
    fn pass(&self, cursor: &mut Cursor<'_>) -> Fallible {
        match self {
            Skip::Number => cursor.long().map(drop),
            Skip::Counted => cursor.counted().map(drop),
            Skip::Bytes(length) => cursor.take(*length).map(drop),
            Skip::Record(fields) => fields.iter().try_for_each(|field| field.pass(cursor)),
            Skip::Union(branches) => {
                let branch = cursor.long()?;
                match usize::try_from(branch).ok().and_then(|branch| branches.get(branch)) {
                    Some(skip) => skip.pass(cursor),
                    None => cursor.fail(format!("branch {branch} of a union of {}", branches.len())),
                }
            }
            Skip::Array(item) => cursor.items(|cursor| item.pass(cursor)).map(drop),
            Skip::Map(value) => {
                let pair = |cursor: &mut Cursor<'_>| {
                    cursor.counted()?;
                    value.pass(cursor)
                };
                cursor.items(pair).map(drop)
            }
        }
    }
}

/// A length as an offset: defaults and symbols can make columns longer than the input, which is bounded.
#[inline]
fn fits(length: usize, cursor: &Cursor<'_>) -> Fallible<i32> {
    match i32::try_from(length) {
        Ok(offset) => Ok(offset),
        Err(_) => cursor.fail("a column of more than 2 GiB in one batch"),
    }
}

#[inline]
fn append(text: &mut Text, value: &str, cursor: &Cursor<'_>) -> Fallible {
    fits(text.bytes.len() + value.len(), cursor)?;
    text.bytes.push_str(value);
    text.end();
    Ok(())
}

/// A number as a float that is it, to the last digit; `wide` is the float.
fn exactly<T>(number: i64, float: T, wide: f64, cursor: &Cursor<'_>) -> Fallible<T> {
    // i64::MAX becomes 2^63, which would come back as i64::MAX.
    match wide as i128 == i128::from(number) {
        true => Ok(float),
        false => cursor.fail(format!("{number} has more digits than the reading schema's type holds")),
    }
}

/// Two's complement, big end first, of any length.
fn unscaled(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let fill = if negative { 0xff } else { 0 };
    let (extra, digits) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut whole = [fill; 16];
    whole[16 - digits.len()..].copy_from_slice(digits);
    let value = i128::from_be_bytes(whole);
    (extra.iter().all(|byte| *byte == fill) && (value < 0) == negative).then_some(value)
}
