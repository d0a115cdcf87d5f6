//! Fields by dotted path: resolved once against a schema, then taken from each batch.

use super::{Error, Result};
use arrow::array::{Array, ArrayRef, RecordBatch, StructArray, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Fields, Schema, SchemaRef};

/// A column, perhaps inside structs.
#[derive(Debug, Clone)]
pub(super) struct FieldPath {
    /// As the user wrote it: `a.b`.
    pub name: String,
    indices: Vec<usize>,
    pub data_type: DataType,
}

impl FieldPath {
    /// `role` says what the field is for, in the error of a field that is not there.
    pub fn resolve(schema: &SchemaRef, name: &str, role: &'static str) -> Result<FieldPath> {
        let missing = || {
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            let nearest = names.iter().max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
            let hint = match nearest.filter(|n| strsim::jaro(n, name) > 0.7) {
                Some(nearest) => format!("; did you mean {nearest}?"),
                None => String::new(),
            };
            Error::MissingField { role, field: name.to_string(), fields: names.join(", ") + &hint }
        };
        let mut indices = Vec::new();
        let mut fields: &Fields = schema.fields();
        let mut data_type = None;
        let mut rest = Some(name);
        while let Some(text) = rest {
            // A column whose own name has dots goes before a path into a struct.
            let (index, field, tail) = match fields.find(text) {
                Some((index, field)) => (index, field, None),
                None => {
                    let (head, tail) = text.split_once('.').ok_or_else(missing)?;
                    let (index, field) = fields.find(head).ok_or_else(missing)?;
                    (index, field, Some(tail))
                }
            };
            indices.push(index);
            data_type = Some(field.data_type().clone());
            rest = tail;
            if tail.is_some() {
                let DataType::Struct(inner) = field.data_type() else { return Err(missing()) };
                fields = inner;
            }
        }
        let data_type = data_type.ok_or_else(missing)?;
        Ok(FieldPath { name: name.to_string(), indices, data_type })
    }

    /// The column; null where a struct around it is null.
    pub fn column(&self, batch: &RecordBatch) -> ArrayRef {
        let mut array = batch.column(self.indices[0]).clone();
        for &index in &self.indices[1..] {
            let parent = array.as_any().downcast_ref::<StructArray>().expect("resolved through a struct");
            let child = parent.column(index);
            array = match parent.nulls() {
                None => child.clone(),
                Some(outer) => {
                    let nulls = NullBuffer::union(Some(outer), child.nulls());
                    let data = child.to_data().into_builder().nulls(nulls).build();
                    make_array(data.expect("only the validity changed, and it has the same length"))
                }
            };
        }
        array
    }
}

/// The column that a dotted path begins with, if there is one.
pub fn top_level<'a>(schema: &Schema, dotted: &'a str) -> Option<&'a str> {
    let head = dotted.split('.').next();
    // As in [`FieldPath::resolve`].
    [Some(dotted), head].into_iter().flatten().find(|name| schema.fields().find(name).is_some())
}

/// A column of stored rows by dotted path, for merge rules that compare with them.
pub fn ordering_column(batch: &RecordBatch, dotted: &str) -> Result<ArrayRef> {
    Ok(FieldPath::resolve(batch.schema_ref(), dotted, "ordering field")?.column(batch))
}
