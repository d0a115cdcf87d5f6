//! Schemas that name types of other subjects, made to stand alone: each such type is written out where it is first used.

use super::super::avro::{full_name, is_primitive};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// `schema` with the types of `others` that it uses, and that these use, inside it.
pub(super) fn stand_alone(schema: &Value, others: &[Value]) -> Value {
    let mut defined = HashMap::new();
    others.iter().for_each(|other| collect(other, "", &mut defined));
    let mut out = schema.clone();
    Inliner { defined, written: HashSet::new() }.walk(&mut out, "");
    out
}

/// Namespace and full name of a named type.
fn names(object: &Map<String, Value>, around: &str) -> Option<(String, String)> {
    if !matches!(object.get("type")?.as_str()?, "record" | "error" | "enum" | "fixed") {
        return None;
    }
    let own = object.get("namespace").and_then(Value::as_str).unwrap_or(around);
    let full = full_name(object.get("name")?.as_str()?, own);
    Some((full.rsplit_once('.').map_or_else(String::new, |(namespace, _)| namespace.to_owned()), full))
}

/// Calls `each` with every schema directly inside of `object`.
fn inside<'a>(object: &'a mut Map<String, Value>, mut each: impl FnMut(&'a mut Value)) {
    for (key, value) in object {
        match (key.as_str(), value) {
            ("fields", Value::Array(fields)) => {
                fields.iter_mut().filter_map(|field| field.get_mut("type")).for_each(&mut each);
            }
            ("items" | "values", value) => each(value),
            ("type", value @ (Value::Object(_) | Value::Array(_))) => each(value),
            _ => {}
        }
    }
}

/// Every named type in `schema`, with its namespace said, so that it can stand anywhere.
fn collect(schema: &Value, around: &str, defined: &mut HashMap<String, Value>) {
    match schema {
        Value::Array(branches) => branches.iter().for_each(|branch| collect(branch, around, defined)),
        Value::Object(object) => {
            let mut object = object.clone();
            let mut namespace = around.to_owned();
            if let Some((own, full)) = names(&object, around) {
                object.insert("namespace".into(), json!(own));
                defined.entry(full).or_insert_with(|| Value::Object(object.clone()));
                namespace = own;
            }
            inside(&mut object, |inner| collect(inner, &namespace, defined));
        }
        _ => {}
    }
}

struct Inliner {
    defined: HashMap<String, Value>,
    written: HashSet<String>,
}

impl Inliner {
    fn walk(&mut self, schema: &mut Value, around: &str) {
        match schema {
            Value::String(name) if !is_primitive(name) => {
                let full = full_name(name, around);
                // A name that the namespace around it does not have may be one without.
                let name =
                    if self.written.contains(&full) || self.defined.contains_key(&full) { full } else { name.clone() };
                if !self.written.contains(&name)
                    && let Some(definition) = self.defined.get(&name)
                {
                    *schema = definition.clone();
                    self.walk(schema, around);
                }
            }
            Value::Array(branches) => branches.iter_mut().for_each(|branch| self.walk(branch, around)),
            Value::Object(object) => {
                let mut namespace = around.to_owned();
                if let Some((own, full)) = names(object, around) {
                    if !self.written.insert(full.clone()) {
                        *schema = json!(full);
                        return;
                    }
                    namespace = own;
                }
                // `{"type": "n.Name"}`: the name stands for a type here too.
                if let Some(Value::String(kind)) = object.get("type")
                    && self.defined.contains_key(&full_name(kind, around))
                    && object.len() == 1
                {
                    *schema = json!(kind);
                    return self.walk(schema, around);
                }
                inside(object, |inner| self.walk(inner, &namespace));
            }
            _ => {}
        }
    }
}
