//! A schema from the JSON objects of a whole batch, where no schema provider gives one. Hudi has nothing like it: its
//! Streamer asks for a schema, or infers row by row in Spark.
//!
//! The rule, which looks at every record and never guesses:
//!
//! | seen in a field | type |
//! | --- | --- |
//! | `true`, `false` | boolean |
//! | integers that fit 64 bits | long |
//! | numbers with fraction or exponent, also mixed with integers that a double holds exactly | double |
//! | text | string: dates and decimals in text stay text |
//! | objects | a record of all fields of all the objects |
//! | arrays | a list of what all items of all the arrays have in common |
//! | nothing but `null`, `{}` and `[]` | the field is left out, and reported |
//! | anything else, mixed or too large | an error that names the field, with an example of each |
//!
//! Every field is nullable, and columns stand in the order in which they were first seen.

use super::columns::join;
use super::json::{Cursor, Fallible, JsonError, shown, utf8};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use hashbrown::HashMap;
use std::sync::Arc;

/// Name of a list's items, as in the schemas made from Avro (`crate::schema`).
const ELEMENT: &str = "element";

/// Whole numbers up to this size are doubles, all of them: 2^53.
const EXACT_IN_DOUBLE: u64 = 1 << 53;

/// Why no schema can be made of the records seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InferError {
    /// Values of kinds that no type holds both.
    #[error(
        "field {field} holds {first} ({first_example}) and {second} ({second_example}), so that no type can be inferred: \
         give a schema file"
    )]
    Conflict { field: String, first: &'static str, first_example: String, second: &'static str, second_example: String },
    /// A field that cannot become a column for another reason.
    #[error("field {field} {why}: give a schema file")]
    Field { field: String, why: String },
    /// No record, or only empty ones.
    #[error("no field of any record has a value, so that no schema can be inferred: give a schema file")]
    NoFields,
}

impl InferError {
    /// Stable name, see the README.
    pub fn code(&self) -> &'static str {
        match self {
            InferError::Conflict { .. } => "infer-conflict",
            InferError::Field { .. } => "infer-field",
            InferError::NoFields => "infer-no-fields",
        }
    }
}

/// A schema and the fields that are not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferred {
    /// See the rule above.
    pub schema: SchemaRef,
    /// Paths of fields left out because no record gives them a value; worth a warning each.
    pub left_out: Vec<String>,
}

/// What the records seen so far have in common.
#[derive(Debug, Default)]
pub struct SchemaInference {
    root: Object,
}

impl SchemaInference {
    /// Of no record yet.
    pub fn new() -> SchemaInference {
        SchemaInference::default()
    }

    /// One record; a record that is not a JSON object leaves no trace.
    pub fn observe(&mut self, bytes: &[u8]) -> Result<(), JsonError> {
        let text = utf8(bytes)?;
        let mut check = Cursor::new(text, 0);
        let well_formed = match check.peek() {
            Some(b'{') => check.skip().and_then(|()| check.end()),
            _ => Err(check.expected("an object")),
        };
        well_formed.and_then(|()| self.root.observe(&mut Cursor::new(text, 0))).map_err(|fail| fail.into_error(text))
    }

    /// Takes in what another has seen of later records.
    pub fn merge(&mut self, later: SchemaInference) {
        self.root.merge(later.root);
    }

    /// The schema of all records seen.
    pub fn finish(self) -> Result<Inferred, InferError> {
        let mut left_out = Vec::new();
        match self.root.fields("", &mut left_out)? {
            fields if fields.is_empty() => Err(InferError::NoFields),
            fields => Ok(Inferred { schema: Arc::new(Schema::new(fields)), left_out }),
        }
    }
}

/// What kinds of values there are, as a message calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Boolean,
    Integer,
    Fraction,
    Text,
    Object,
    Array,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Boolean => "booleans",
            Kind::Integer => "integers",
            Kind::Fraction => "fractions",
            Kind::Text => "text",
            Kind::Object => "objects",
            Kind::Array => "arrays",
        }
    }
}

/// All that has been seen of one field.
#[derive(Debug, Default)]
struct Shape {
    /// In the order of first sight, each with its first example.
    kinds: Vec<(Kind, String)>,
    /// The integer furthest from zero: its size, and how it is written. `None` for the size: it does not fit 64 bits.
    largest: Option<(Option<u64>, String)>,
    object: Object,
    items: Option<Box<Shape>>,
}

/// All fields of all objects in one place.
#[derive(Debug, Default)]
struct Object {
    fields: Vec<(String, Shape)>,
    places: HashMap<String, usize, foldhash::fast::FixedState>,
}

impl Object {
    fn observe(&mut self, cursor: &mut Cursor<'_>) -> Fallible {
        let mut next = 0;
        let mut more = cursor.open(b'{', b'}')?;
        while more {
            let name = cursor.name()?;
            let place = match self.fields.get(next) {
                Some((expected, _)) if *expected == name => next,
                _ => self.place(&name),
            };
            self.fields[place].1.observe(cursor)?;
            next = place + 1;
            more = cursor.more(b'}')?;
        }
        Ok(())
    }

    /// Where the field called `name` is; made if it is not there.
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.places.insert(name.to_owned(), self.fields.len());
        self.fields.push((name.to_owned(), Shape::default()));
        self.fields.len() - 1
    }

    fn merge(&mut self, later: Object) {
        for (name, shape) in later.fields {
            let place = self.place(&name);
            self.fields[place].1.merge(shape);
        }
    }

    fn fields(&self, path: &str, left_out: &mut Vec<String>) -> Result<Fields, InferError> {
        let mut fields = Vec::new();
        let mut lower_case: HashMap<String, &str> = HashMap::new();
        for (name, shape) in &self.fields {
            let field = join(path, name);
            let Some(data_type) = shape.data_type(&field, left_out)? else {
                left_out.push(field);
                continue;
            };
            if !is_avro_name(name) {
                let why = "has a name that Avro does not allow (letters, digits and '_', no digit first)".to_owned();
                return Err(InferError::Field { field, why });
            }
            if let Some(other) = lower_case.insert(name.to_lowercase(), name) {
                let why = format!("differs from {other} in case only, and Spark could not tell them apart");
                return Err(InferError::Field { field, why });
            }
            fields.push(Field::new(name, data_type, true));
        }
        Ok(fields.into())
    }
}

impl Shape {
    fn observe(&mut self, cursor: &mut Cursor<'_>) -> Fallible {
        let first = cursor.peek();
        let start = cursor.clone();
        let kind = match first {
            Some(b'n') => return cursor.skip(),
            Some(b'"') => {
                cursor.skip()?;
                Kind::Text
            }
            Some(b'{') => {
                self.object.observe(cursor)?;
                Kind::Object
            }
            Some(b'[') => {
                let mut more = cursor.open(b'[', b']')?;
                while more {
                    self.items.get_or_insert_default().observe(cursor)?;
                    more = cursor.more(b']')?;
                }
                Kind::Array
            }
            Some(b'-' | b'0'..=b'9') => match cursor.number()? {
                text if text.contains(['.', 'e', 'E']) => Kind::Fraction,
                text => {
                    self.saw_integer(text.parse::<i64>().ok().map(i64::unsigned_abs), text);
                    Kind::Integer
                }
            },
            _ => {
                cursor.skip()?;
                Kind::Boolean
            }
        };
        if !self.kinds.iter().any(|(seen, _)| *seen == kind) {
            self.kinds.push((kind, shown(start.value_text())));
        }
        Ok(())
    }

    fn saw_integer(&mut self, size: Option<u64>, text: &str) {
        let rank = |size: Option<u64>| size.unwrap_or(u64::MAX);
        if self.largest.as_ref().is_none_or(|(largest, _)| rank(*largest) < rank(size)) {
            self.largest = Some((size, shown(text)));
        }
    }

    fn merge(&mut self, later: Shape) {
        for (kind, example) in later.kinds {
            if !self.kinds.iter().any(|(seen, _)| *seen == kind) {
                self.kinds.push((kind, example));
            }
        }
        if let Some((size, text)) = later.largest {
            self.saw_integer(size, &text);
        }
        self.object.merge(later.object);
        if let Some(items) = later.items {
            self.items.get_or_insert_default().merge(*items);
        }
    }

    /// `None`: no value has been seen.
    fn data_type(&self, field: &str, left_out: &mut Vec<String>) -> Result<Option<DataType>, InferError> {
        use Kind::*;
        let kinds: Vec<Kind> = self.kinds.iter().map(|(kind, _)| *kind).collect();
        if let Some((None, text)) = &self.largest {
            return Err(InferError::Field {
                field: field.to_owned(),
                why: format!("holds {text}, more than a long does"),
            });
        }
        Ok(match kinds[..] {
            [] => None,
            [Boolean] => Some(DataType::Boolean),
            [Integer] => Some(DataType::Int64),
            [Text] => Some(DataType::Utf8),
            [Fraction] => Some(DataType::Float64),
            [Integer, Fraction] | [Fraction, Integer] => match &self.largest {
                Some((Some(size), text)) if *size > EXACT_IN_DOUBLE => {
                    let why = format!("holds fractions, and {text}, which a double would round");
                    return Err(InferError::Field { field: field.to_owned(), why });
                }
                _ => Some(DataType::Float64),
            },
            [Object] => match self.object.fields(field, left_out)? {
                fields if fields.is_empty() => None,
                fields => Some(DataType::Struct(fields)),
            },
            [Array] => match &self.items {
                Some(items) => items
                    .data_type(&format!("{field}[]"), left_out)?
                    .map(|item| DataType::List(Arc::new(Field::new(ELEMENT, item, true)))),
                None => None,
            },
            [..] => {
                let [(first, first_example), (second, second_example)] = self.clash();
                return Err(InferError::Conflict {
                    field: field.to_owned(),
                    first: first.name(),
                    first_example: first_example.clone(),
                    second: second.name(),
                    second_example: second_example.clone(),
                });
            }
        })
    }

    /// The first two kinds that no type holds both.
    fn clash(&self) -> [&(Kind, String); 2] {
        let number = |(kind, _): &(Kind, String)| matches!(kind, Kind::Integer | Kind::Fraction);
        let first = &self.kinds[0];
        let second = self.kinds[1..].iter().find(|other| !(number(first) && number(other)));
        [first, second.expect("only two kinds go together, and these are more")]
    }
}

/// Avro 1.11, "Names".
fn is_avro_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests;
