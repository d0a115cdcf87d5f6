//! What makes one schema different from another, in words for the log.

use super::ENUM_SYMBOLS;
use arrow::datatypes::{DataType, Field, Fields, Schema};

/// `added note (Utf8)`, `qty: Int32 became Int64`, `removed addr.zip`; empty: nothing that matters to rows.
pub fn changes(before: &Schema, after: &Schema) -> Vec<String> {
    let mut found = Vec::new();
    fields(before.fields(), after.fields(), "", &mut found);
    found
}

fn fields(before: &Fields, after: &Fields, path: &str, found: &mut Vec<String>) {
    let full = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for field in after {
        let path = full(field.name());
        match before.find(field.name()) {
            Some((_, old)) => one(old, field, &path, found),
            None => found.push(format!("added {path} ({})", field.data_type())),
        }
    }
    let gone = before.iter().filter(|old| after.find(old.name()).is_none());
    found.extend(gone.map(|old| format!("removed {}", full(old.name()))));
}

fn one(before: &Field, after: &Field, path: &str, found: &mut Vec<String>) {
    match (before.data_type(), after.data_type()) {
        (DataType::Struct(old), DataType::Struct(new)) => fields(old, new, path, found),
        (DataType::List(old), DataType::List(new)) => one(old, new, &format!("{path}[]"), found),
        (DataType::Map(old, _), DataType::Map(new, _)) => {
            if let (DataType::Struct(old), DataType::Struct(new)) = (old.data_type(), new.data_type()) {
                old.iter().zip(new).skip(1).for_each(|(old, new)| one(old, new, &format!("{path}{{}}"), found));
            }
        }
        (old, new) if old != new => found.push(format!("{path}: {old} became {new}")),
        _ if before.metadata().get(ENUM_SYMBOLS) != after.metadata().get(ENUM_SYMBOLS) => {
            found.push(format!("{path}: other symbols"));
        }
        _ => {}
    }
    match (before.is_nullable(), after.is_nullable()) {
        (false, true) => found.push(format!("{path} may be null")),
        (true, false) => found.push(format!("{path} may not be null")),
        _ => {}
    }
}
