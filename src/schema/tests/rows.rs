//! Rows brought to a schema: by hand, and against a slow twin that goes value by value.

use super::super::*;
use super::table;
use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type, Int64Type, Schema, TimestampMicrosecondType};
use proptest::prelude::*;
use std::sync::Arc;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> = columns.iter().map(|(n, c)| Field::new(*n, c.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|c| c.1).collect())
        .expect("columns fit")
}

#[test]
fn rows_are_rewritten_exactly() {
    let rows = batch(vec![
        ("b", Arc::new(Int32Array::from(vec![Some(1), None]))),
        ("f", Arc::new(Float32Array::from(vec![0.1, -2.5]))),
        ("t", Arc::new(TimestampMillisecondArray::from(vec![Some(-1), Some(1_709_937_000_123)]).with_timezone("UTC"))),
        ("gone", Arc::new(StringArray::from(vec!["x", "y"]))),
    ]);
    let target = table(
        r#"{"name":"new","type":["null","string"]},{"name":"b","type":["null","long"]},{"name":"f","type":"double"},
           {"name":"t","type":["null",{"type":"long","logicalType":"timestamp-micros"}]}"#,
    );
    let out = rewrite(&rows, &target.arrow).expect("all promotable");
    assert_eq!(out.schema(), target.arrow);
    assert_eq!(out.column(0).null_count(), 2);
    assert_eq!(out.column(1).as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(1), None]));
    assert_eq!(out.column(2).as_primitive::<Float64Type>().value(0), 0.1);
    assert_eq!(out.column(3).as_primitive::<TimestampMicrosecondType>().values(), &[-1000, 1_709_937_000_123_000]);
}

#[test]
fn rows_that_do_not_fit_name_the_column() {
    let rows = batch(vec![("a", Arc::new(Int64Array::from(vec![Some(1), None])))]);
    let cases = [
        (r#"{"name":"a","type":"long"}"#, "null, and"),
        (r#"{"name":"a","type":["null","int"]}"#, "do not fit"),
        (r#"{"name":"a","type":["null","long"]},{"name":"z","type":"int"}"#, "missing"),
    ];
    for (schema, word) in cases {
        let error = rewrite(&rows, &table(schema).arrow).expect_err(schema).to_string();
        assert!(error.contains(word), "{schema}: {error}");
    }
}

/// Spark's writers name list items and map entries otherwise; no value moves for that.
#[test]
fn lists_of_other_writers_take_our_names() {
    let values = Arc::new(StringArray::from(vec!["x", "y"])) as ArrayRef;
    let item = Arc::new(Field::new("array", DataType::Utf8, false));
    let list = ListArray::new(item, arrow::buffer::OffsetBuffer::from_lengths([2]), values, None);
    let rows = batch(vec![("l", Arc::new(list))]);
    let target = table(r#"{"name":"l","type":["null",{"type":"array","items":["null","string"]}]}"#);
    let out = rewrite(&rows, &target.arrow).expect("only names differ");
    assert_eq!(out.column(0).as_list::<i32>().values().as_string::<i32>().value(1), "y");
}

const TAGS: &str = r#"{"name":"tags","type":["null",{"type":"array","items":["null","string"]}]}"#;

type Tags<'a> = Vec<Option<&'a str>>;

fn tags(lists: Vec<Option<Tags>>) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new()).with_field(Field::new("element", DataType::Utf8, true));
    lists.into_iter().for_each(|list| builder.append_option(list));
    Arc::new(builder.finish())
}

/// Hudi 0.15 fails on such rows itself; where they are stored all the same, they must stay as they are.
#[test]
fn nulls_inside_lists_are_refused_on_their_way_in_only() {
    let schema = table(TAGS).arrow;
    let poison = batch(vec![("tags", tags(vec![Some(vec![Some("a")]), None, Some(vec![Some("z"), None])]))]);
    let error = admit(&poison, &schema).expect_err("a null element").to_string();
    assert!(error.contains("column tags") && error.contains("[z, ]") && error.contains("array_compact"), "{error}");
    assert_eq!(rewrite(&poison, &schema).expect("stored").num_rows(), 3);
    let sound = poison.slice(0, 2);
    assert_eq!(admit(&sound, &schema).expect("the null is in another slice").num_rows(), 2);

    let nested = table(&format!(r#"{{"name":"s","type":["null",{{"type":"record","name":"S","fields":[{TAGS}]}}]}}"#));
    let fields = match nested.arrow.field(0).data_type() {
        DataType::Struct(fields) => fields.clone(),
        other => panic!("{other}"),
    };
    let inside = |nulls: Option<NullBuffer>| {
        let list = tags(vec![Some(vec![None])]);
        batch(vec![("s", Arc::new(StructArray::new(fields.clone(), vec![list], nulls)))])
    };
    let error = admit(&inside(None), &nested.arrow).expect_err("a null element").to_string();
    assert!(error.contains("column s.tags"), "{error}");
    admit(&inside(Some(NullBuffer::new_null(1))), &nested.arrow).expect("nobody sees it below a null");
}

#[test]
fn texts_of_a_query_must_be_symbols_of_the_enum_they_go_to() {
    let schema = table(r#"{"name":"e","type":["null",{"type":"enum","name":"E","symbols":["A","B"]}]}"#).arrow;
    let rows = |texts: Vec<Option<&str>>| batch(vec![("e", Arc::new(StringArray::from(texts)))]);
    admit(&rows(vec![Some("B"), None, Some("A")]), &schema).expect("symbols");
    let error = admit(&rows(vec![Some("A"), Some("C")]), &schema).expect_err("no symbol").to_string();
    assert!(error.contains("column e") && error.contains(r#""C""#) && error.contains("A, B"), "{error}");
}

#[test]
fn numbers_are_not_rounded_on_their_way_in() {
    let (double, float) =
        (table(r#"{"name":"n","type":"double"}"#).arrow, table(r#"{"name":"n","type":"float"}"#).arrow);
    let rows = |n: i64| batch(vec![("n", Arc::new(Int64Array::from(vec![n])))]);
    let cases = [
        (1 << 53, &double, true),
        ((1 << 53) + 1, &double, false),
        (i64::MAX, &double, false),
        (i64::MIN, &double, true),
        (1 << 24, &float, true),
        ((1 << 24) + 1, &float, false),
    ];
    for (number, schema, fits) in cases {
        let admitted = admit(&rows(number), schema);
        assert_eq!(admitted.is_ok(), fits, "{number} as {}", schema.field(0).data_type());
        if let Err(e) = admitted {
            assert!(e.to_string().contains(&number.to_string()), "{e}");
        }
        rewrite(&rows(number), schema).expect("stored rows stay writable");
    }
}

/// An item of a list: an int and a text.
type Item = (Option<i32>, Option<String>);

/// A row of the shape below, as the twin sees it.
#[derive(Debug, Clone)]
struct Row {
    n: Option<i32>,
    l: Option<Vec<Option<Item>>>,
}

fn row() -> impl Strategy<Value = Row> {
    let text = proptest::option::of("[a-zé]{0,3}");
    let item = proptest::option::of((any::<Option<i32>>(), text));
    (any::<Option<i32>>(), proptest::option::of(proptest::collection::vec(item, 0..4))).prop_map(|(n, l)| Row { n, l })
}

/// As another writer leaves them: other names for list items, other order, narrower types, one column too many.
fn stored(rows: &[Row]) -> RecordBatch {
    let items: Vec<_> = rows.iter().flat_map(|r| r.l.iter().flatten()).collect();
    let x: Int32Array = items.iter().map(|i| i.as_ref().and_then(|i| i.0)).collect();
    let y: StringArray = items.iter().map(|i| i.as_ref().and_then(|i| i.1.clone())).collect();
    let fields = vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, true)];
    let records = StructArray::new(
        fields.into(),
        vec![Arc::new(x), Arc::new(y)],
        Some(items.iter().map(|i| i.is_some()).collect()),
    );
    let item = Arc::new(Field::new("array", records.data_type().clone(), true));
    let lengths = OffsetBuffer::from_lengths(rows.iter().map(|r| r.l.as_ref().map_or(0, Vec::len)));
    let lists = ListArray::new(item, lengths, Arc::new(records), Some(rows.iter().map(|r| r.l.is_some()).collect()));
    batch(vec![
        ("l", Arc::new(lists)),
        ("gone", Arc::new(Int32Array::from_iter_values(0..rows.len() as i32))),
        ("n", Arc::new(rows.iter().map(|r| r.n).collect::<Int32Array>())),
    ])
}

proptest! {
    #[test]
    fn rewriting_agrees_with_a_twin_that_goes_value_by_value(
        rows in proptest::collection::vec(row(), 1..20),
        cut in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let target = table(
            r#"{"name":"n","type":["null","double"]},{"name":"new","type":["null","int"]},
               {"name":"l","type":["null",{"type":"array","items":["null",{"type":"record","name":"I","fields":[
                 {"name":"z","type":["null","string"]},{"name":"y","type":["null","string"]},{"name":"x","type":["null","long"]}]}]}]}"#,
        ).arrow;
        // A slice, whose arrays begin somewhere inside their buffers.
        let (a, b) = (cut.0.index(rows.len()), cut.1.index(rows.len()));
        let (start, end) = (a.min(b), a.max(b) + 1);
        let out = rewrite(&stored(&rows).slice(start, end - start), &target).expect("all promotable");
        prop_assert_eq!(out.schema(), target);
        let (n, lists) = (out.column(0).as_primitive::<Float64Type>(), out.column(2).as_list::<i32>());
        prop_assert_eq!(out.column(1).as_primitive::<Int32Type>().null_count(), end - start);
        for (i, row) in rows[start..end].iter().enumerate() {
            prop_assert_eq!(n.is_valid(i).then(|| n.value(i)), row.n.map(f64::from));
            prop_assert_eq!(lists.is_valid(i), row.l.is_some());
            let Some(items) = &row.l else { continue };
            let got = lists.value(i);
            let (records, y, x) = (got.as_struct(), got.as_struct().column(1).as_string::<i32>(), got.as_struct().column(2));
            let x = x.as_primitive::<Int64Type>();
            prop_assert_eq!(records.len(), items.len());
            for (at, item) in items.iter().enumerate() {
                prop_assert_eq!(records.is_valid(at), item.is_some());
                let Some((want_x, want_y)) = item else { continue };
                prop_assert_eq!(x.is_valid(at).then(|| x.value(at)), want_x.map(i64::from));
                prop_assert_eq!(y.is_valid(at).then(|| y.value(at)), want_y.as_deref());
            }
        }
    }
}

proptest::proptest! {
    /// Halving finds what looking at each row alone finds.
    #[test]
    fn rows_that_do_not_fit_are_sifted_out(numbers in proptest::collection::vec(proptest::option::of(0i64..4), 0..40)) {
        // What a float does not hold, and what is null, is bad.
        let numbers: Vec<Option<i64>> = numbers.iter().map(|n| n.map(|n| if n == 3 { (1 << 53) + 1 } else { n })).collect();
        let is_bad = |n: &Option<i64>| n.is_none_or(|n| n > 1 << 53);
        let column: ArrayRef = Arc::new(Int64Array::from(numbers.clone()));
        let batch = RecordBatch::try_from_iter_with_nullable([("n", column, true)]).expect("one column");
        let writer = Arc::new(Schema::new(vec![Field::new("n", DataType::Float64, false)]));
        let sifted = sift(&batch, &writer).expect("types fit");
        let bad: Vec<usize> = (0..numbers.len()).filter(|row| is_bad(&numbers[*row])).collect();
        let good: Vec<f64> = numbers.iter().filter(|n| !is_bad(n)).flatten().map(|n| *n as f64).collect();
        proptest::prop_assert_eq!(sifted.refused.iter().map(|(row, _)| *row).collect::<Vec<_>>(), bad);
        proptest::prop_assert_eq!(sifted.rows.column(0).as_primitive::<Float64Type>().values().to_vec(), good);
    }
}

#[test]
fn types_that_do_not_fit_are_no_fault_of_the_rows() {
    let column: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", column, true)]).expect("one column");
    let writer = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
    assert!(sift(&batch, &writer).is_err());
}
