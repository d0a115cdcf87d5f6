//! What a query's result looks like: names as Spark gives them, types that the rest of the house knows.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Column, DFSchema};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, cast};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Query, Select, SelectItem, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A name that stands more than once.
pub(super) fn doubled(schema: &DFSchema) -> Option<&str> {
    let mut seen = HashSet::new();
    schema.fields().iter().map(|f| f.name().as_str()).find(|name| !seen.insert(*name))
}

/// The same rows with texts as Utf8 and bytes as Binary: some functions give views.
pub(super) fn plain(rows: DataFrame) -> Result<DataFrame> {
    let columns: Vec<Expr> = rows
        .schema()
        .iter()
        .map(|(qualifier, field)| {
            let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            match plain_type(field.data_type()) {
                same if same == *field.data_type() => column,
                wanted => cast(column, wanted).alias(field.name()),
            }
        })
        .collect();
    match columns.iter().all(|c| matches!(c, Expr::Column(_))) {
        true => Ok(rows),
        false => rows.select(columns),
    }
}

fn plain_type(data_type: &DataType) -> DataType {
    let field = |f: &FieldRef| Arc::new(Field::clone(f).with_data_type(plain_type(f.data_type())));
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => DataType::List(field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other.clone(),
    }
}

/// Names an unnamed `a.b` of a select list `b`, as Spark does; DataFusion would name it `a[b]`.
pub(super) fn name_struct_fields(query: &mut Query) {
    let _ = query.visit(&mut NameStructFields);
}

struct NameStructFields;

impl VisitorMut for NameStructFields {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let tables: HashSet<&str> = select.from.iter().flat_map(factors).filter_map(name_of).collect();
        // A column behind its table has the right name already, and an alias would hide the table from ORDER BY.
        let is_column = |parts: &[_], table: &str| parts.len() == 2 && tables.contains(table);
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(SqlExpr::CompoundIdentifier(parts)) = item
                && let [first, .., last] = parts.as_slice()
                && !is_column(parts, &first.value)
            {
                let (expr, alias) = (SqlExpr::CompoundIdentifier(parts.clone()), last.clone());
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
        ControlFlow::Continue(())
    }
}

fn factors(from: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
    std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
}

/// The name that columns of a table may stand behind.
fn name_of(factor: &TableFactor) -> Option<&str> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(&alias.name.value)
        }
        TableFactor::Table { name, .. } => name.0.last()?.as_ident().map(|ident| ident.value.as_str()),
        _ => None,
    }
}
