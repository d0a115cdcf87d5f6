//! The schema that a commit is written in, from the incoming one and the table's (`HoodieSchemaUtils.deduceWriterSchema`, 0.15).

use super::avro::{data_type, nullable};
use super::{Error, Result, TableSchema};
use arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Value, json};

/// What evolution allows.
#[derive(Debug, Clone, Copy, Default)]
pub struct EvolutionOptions {
    /// `hoodie.datasource.write.reconcile.schema`: columns of the table that the incoming rows lack stay, as null.
    pub reconcile: bool,
    /// `hoodie.write.set.null.for.missing.columns`: the same.
    pub set_null_for_missing_columns: bool,
    /// `hoodie.datasource.write.schema.allow.auto.evolution.column.drop`: they go.
    pub allow_column_drop: bool,
}

/// The writer schema of a commit, named as Spark names it. Columns keep the table's order, new ones follow; a column may
/// widen (int → long → float → double), may become nullable and, as an enum, may get symbols; nothing else changes its type.
pub fn deduce_writer_schema(
    incoming: &TableSchema,
    table: Option<&TableSchema>,
    options: EvolutionOptions,
) -> Result<TableSchema> {
    let named = incoming.with_spark_names(table.unwrap_or(incoming))?;
    let Some(table) = table else { return Ok(named) };
    if table.avro == incoming.avro {
        return Ok(table.clone());
    }
    let merged = Merge { options }.records(&table.record()?, &incoming.record()?, &named.record()?, "")?;
    TableSchema::from_record(merged)
}

struct Merge {
    options: EvolutionOptions,
}

impl Merge {
    /// `named`: the incoming record with Spark's names, for what is new; what the table has keeps the table's.
    fn records(&self, table: &Value, incoming: &Value, named: &Value, path: &str) -> Result<Value> {
        let fields = |record: &Value| record["fields"].as_array().cloned().unwrap_or_default();
        let (stored, arriving) = (fields(table), fields(incoming));
        let named = fields(named);
        let find = |list: &[Value], name: &Value| list.iter().find(|f| f["name"] == *name).cloned();
        let at = |field: &Value| {
            let name = field["name"].as_str().unwrap_or_default();
            if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
        };
        let mut merged = Vec::new();
        let mut missing = Vec::new();
        for field in &stored {
            match find(&arriving, &field["name"]) {
                Some(twin) => {
                    let mut field = field.clone();
                    let named = find(&named, &field["name"]).unwrap_or_default();
                    field["type"] = self.types(&field["type"], &twin["type"], &named["type"], &at(&field))?;
                    if field["type"].is_array() {
                        field["default"] = Value::Null;
                    }
                    merged.push(field);
                }
                None if self.options.reconcile || self.options.set_null_for_missing_columns => {
                    if !field["type"].is_array() {
                        let why = format!("column {} is missing and may not be null", at(field));
                        return Err(Error::Evolution { why });
                    }
                    merged.push(field.clone());
                }
                None if self.options.allow_column_drop => {}
                None => missing.push(at(field)),
            }
        }
        if !missing.is_empty() {
            let why = format!(
                "column{} {} of the table {} missing: add {} to the schema, or set \
                 hoodie.write.set.null.for.missing.columns=true to fill with nulls, \
                 hoodie.datasource.write.reconcile.schema=true to keep the table's columns, or \
                 hoodie.datasource.write.schema.allow.auto.evolution.column.drop=true to drop",
                if missing.len() > 1 { "s" } else { "" },
                missing.join(", "),
                if missing.len() > 1 { "are" } else { "is" },
                if missing.len() > 1 { "them" } else { "it" },
            );
            return Err(Error::Evolution { why });
        }
        for field in named {
            if find(&stored, &field["name"]).is_some() {
                continue;
            }
            if !field["type"].is_array() {
                let why =
                    format!("new column {} must be nullable: rows stored before have no value for it", at(&field));
                return Err(Error::Evolution { why });
            }
            merged.push(field);
        }
        let mut record = table.clone();
        record["fields"] = Value::Array(merged);
        Ok(record)
    }

    fn types(&self, table: &Value, incoming: &Value, named: &Value, path: &str) -> Result<Value> {
        let ((null_before, table), (null_now, incoming)) = (nullable(table), nullable(incoming));
        let merged = self.inner_types(table, incoming, nullable(named).1, path)?;
        Ok(if null_before || null_now { json!(["null", merged]) } else { merged })
    }

    fn inner_types(&self, table: &Value, incoming: &Value, named: &Value, path: &str) -> Result<Value> {
        match (table["type"].as_str(), incoming["type"].as_str()) {
            (Some("record"), Some("record")) => return self.records(table, incoming, named, path),
            (Some("array"), Some("array")) => {
                let mut merged = table.clone();
                let path = format!("{path}[]");
                merged["items"] = self.types(&table["items"], &incoming["items"], &named["items"], &path)?;
                return Ok(merged);
            }
            (Some("map"), Some("map")) => {
                let mut merged = table.clone();
                let path = format!("{path}{{}}");
                merged["values"] = self.types(&table["values"], &incoming["values"], &named["values"], &path)?;
                return Ok(merged);
            }
            (Some("enum"), Some("enum")) => return Ok(with_symbols(table, incoming)),
            _ => {}
        }
        let (before, now) = (data_type(table, path)?, data_type(incoming, path)?);
        if before == now {
            return Ok(table.clone());
        }
        let rank = |t: &DataType| match t {
            DataType::Int32 => Some(1),
            DataType::Int64 => Some(2),
            DataType::Float32 => Some(3),
            DataType::Float64 => Some(4),
            _ => None,
        };
        if let (Some(a), Some(b)) = (rank(&before), rank(&now)) {
            return Ok(if a >= b { table.clone() } else { incoming.clone() });
        }
        let unit = |t: &DataType| match t {
            DataType::Timestamp(unit, _) => Some(*unit),
            _ => None,
        };
        match (unit(&before), unit(&now)) {
            // Rows are rescaled exactly.
            (Some(TimeUnit::Microsecond), Some(TimeUnit::Millisecond)) => Ok(table.clone()),
            (Some(TimeUnit::Millisecond), Some(TimeUnit::Microsecond)) => Err(Error::Evolution {
                why: format!(
                    "column {path} is timestamp-millis in the table and timestamp-micros in the incoming schema, which would lose digits"
                ),
            }),
            _ => Err(Error::Evolution {
                why: format!("column {path} is {before} in the table and {now} in the incoming schema"),
            }),
        }
    }
}

/// The table's symbols, and the new ones behind them.
fn with_symbols(table: &Value, incoming: &Value) -> Value {
    let mut merged = table.clone();
    let known = table["symbols"].as_array().cloned().unwrap_or_default();
    let arriving = incoming["symbols"].as_array().cloned().unwrap_or_default();
    let new = arriving.into_iter().filter(|s| !known.contains(s));
    merged["symbols"] = Value::Array(known.iter().cloned().chain(new).collect());
    merged
}
