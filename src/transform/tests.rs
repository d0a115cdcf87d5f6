use super::*;
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, StructArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema};
use arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::TryStreamExt;

/// For what these tests sort and group.
const MEMORY: usize = 64 << 20;

#[derive(Debug)]
struct Piece(RecordBatch);

impl PartitionStream for Piece {
    fn schema(&self) -> &SchemaRef {
        self.0.schema_ref()
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batch = self.0.clone();
        Box::pin(RecordBatchStreamAdapter::new(batch.schema(), futures::stream::iter([Ok(batch)])))
    }
}

/// `pieces` pieces of two rows: id `r0`, `r1`, …; ts 0, 1, …; Rider; a struct `at` of `lat`.
fn input(pieces: i64, positions: bool) -> Batches {
    let lat = Fields::from(vec![Field::new("lat", DataType::Int64, true)]);
    let mut fields = vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("ts", DataType::Int64, true),
        Field::new("Rider", DataType::Utf8, true),
        Field::new("at", DataType::Struct(lat.clone()), true),
    ];
    if positions {
        fields.push(Field::new(crate::source::POSITION_COLUMN, DataType::UInt64, false));
    }
    let schema = Arc::new(Schema::new(fields));
    let piece = |first: i64| {
        let rows = [first, first + 1];
        let lats: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r * 10)));
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(rows.iter().map(|r| format!("r{r}")))),
            Arc::new(Int64Array::from_iter_values(rows)),
            Arc::new(StringArray::from(vec![Some("ann"), None])),
            Arc::new(StructArray::new(lat.clone(), vec![lats], None)),
        ];
        if positions {
            columns.push(Arc::new(UInt64Array::from_iter_values(rows.iter().map(|r| *r as u64))));
        }
        Arc::new(Piece(RecordBatch::try_new(schema.clone(), columns).expect("one length"))) as Arc<dyn PartitionStream>
    };
    Batches {
        schema: schema.clone(),
        partitions: (0..pieces).map(|p| piece(p * 2)).collect(),
        rejects: Arc::new(crate::source::Rejects::new(&Default::default())),
        bytes_read: Arc::default(),
        times: Arc::default(),
    }
}

fn sql(text: &str) -> TransformerConfig {
    TransformerConfig::SqlQuery(text.into())
}

/// Partition by partition, as the write stages read it.
async fn rows(transformed: &Transformed) -> std::result::Result<Vec<RecordBatch>, DataFusionError> {
    let mut all = Vec::new();
    for partition in 0..transformed.plan.properties().output_partitioning().partition_count() {
        let rows = transformed.plan.execute(partition, transformed.context.clone())?;
        all.extend(rows.try_collect::<Vec<_>>().await?);
    }
    Ok(all)
}

async fn run(steps: &[TransformerConfig], input: &Batches) -> (Vec<String>, Vec<RecordBatch>) {
    let transformed = apply(steps, input, MEMORY).await.expect("a plan");
    let names = transformed.schema.fields().iter().map(|f| f.name().clone()).collect();
    (names, rows(&transformed).await.expect("rows"))
}

fn longs(batches: &[RecordBatch], column: &str) -> Vec<i64> {
    let values = |b: &RecordBatch| b[column].as_primitive::<Int64Type>().values().to_vec();
    batches.iter().flat_map(values).collect()
}

fn file(text: &str) -> (tempfile::NamedTempFile, TransformerConfig) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    let config = TransformerConfig::SqlFile(file.path().to_str().expect("text").into());
    (file, config)
}

#[tokio::test]
async fn without_steps_every_piece_is_a_partition_with_its_positions() {
    let transformed = apply(&[], &input(100, true), MEMORY).await.expect("a plan");
    assert_eq!(transformed.plan.properties().output_partitioning().partition_count(), 100);
    assert_eq!(transformed.schema, input(1, true).schema);
    assert_eq!(longs(&rows(&transformed).await.expect("rows"), "ts"), (0..200).collect::<Vec<_>>());
}

#[tokio::test]
async fn filters_and_projections_keep_the_order_of_the_input() {
    let step = sql("SELECT id, ts + 1 AS ts FROM <SRC> WHERE ts % 3 = 0");
    let (names, rows) = run(&[step], &input(100, false)).await;
    assert_eq!(names, ["id", "ts"]);
    assert_eq!(longs(&rows, "ts"), (0..200).filter(|t| t % 3 == 0).map(|t| t + 1).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_step_reads_what_the_step_before_it_made() {
    let steps = [
        sql("SELECT id, ts, upper(Rider) AS Who FROM <SRC> WHERE id <> 'r2'"),
        sql("SELECT id, ts * 10 AS ts, CASE WHEN Who IS NULL THEN 'nobody' ELSE Who END AS Who FROM <SRC>;"),
    ];
    let (names, rows) = run(&steps, &input(2, false)).await;
    assert_eq!(names, ["id", "ts", "Who"]);
    assert_eq!(longs(&rows, "ts"), [0, 10, 30]);
    let text = pretty_format_batches(&rows).expect("text").to_string();
    assert!(text.contains("ANN") && text.contains("nobody"), "{text}");
}

#[tokio::test]
async fn a_file_may_make_views_and_its_last_query_counts() {
    let (_file, step) = file(
        "-- a semicolon in a comment; and one in a text\n\
         CREATE OR REPLACE TEMPORARY VIEW late AS SELECT *, ';' AS mark FROM <SRC> WHERE ts > 0;\n\
         SELECT 1;\n\
         CREATE TEMP VIEW later AS SELECT id, ts, mark FROM late WHERE ts > 1;\n\
         SELECT * FROM later WHERE mark = ';';\n",
    );
    let (names, rows) = run(&[step], &input(2, false)).await;
    assert_eq!(names, ["id", "ts", "mark"]);
    assert_eq!(longs(&rows, "ts"), [2, 3]);
}

#[tokio::test]
async fn the_input_can_be_read_twice() {
    let step = sql("SELECT a.id, a.ts, b.Rider AS r FROM <SRC> a JOIN <SRC> b ON a.id = b.id ORDER BY a.ts DESC");
    let (names, rows) = run(&[step], &input(50, true)).await;
    assert_eq!(names, ["id", "ts", "r"]);
    assert_eq!(longs(&rows, "ts"), (0..100).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn positions_are_hidden_from_sql() {
    let (names, _) = run(&[sql("SELECT * FROM <SRC>")], &input(1, true)).await;
    assert_eq!(names, ["id", "ts", "Rider", "at"]);
}

#[tokio::test]
async fn fields_of_structs_are_named_as_spark_names_them() {
    let step = sql("SELECT at.lat, s.at.lat AS other, s.id FROM <SRC> s WHERE at.lat > 0");
    let (names, rows) = run(&[step], &input(1, false)).await;
    assert_eq!(names, ["lat", "other", "id"]);
    assert_eq!(longs(&rows, "lat"), [10]);
}

#[tokio::test]
async fn nulls_sort_first_as_in_spark() {
    let (_, rows) = run(&[sql("SELECT ts FROM <SRC> ORDER BY Rider, ts")], &input(2, false)).await;
    assert_eq!(longs(&rows, "ts"), [1, 3, 0, 2]);
    let step =
        sql("SELECT ts FROM (SELECT ts, row_number() OVER (PARTITION BY ts / 2 ORDER BY Rider) AS n FROM <SRC>) \
         WHERE n = 1 ORDER BY ts");
    assert_eq!(longs(&run(&[step], &input(2, false)).await.1, "ts"), [1, 3]);
}

#[tokio::test]
async fn a_query_need_not_read_the_input() {
    assert_eq!(longs(&run(&[sql("SELECT 7 AS n")], &input(1, false)).await.1, "n"), [7]);
}

#[tokio::test]
async fn texts_are_plain_whatever_the_functions_give() {
    let step = sql("SELECT substr(Rider, 1, 2) AS a, arrow_cast(id, 'Dictionary(Int32, Utf8)') AS b, \
         arrow_cast(id, 'LargeUtf8') AS c, make_array(arrow_cast(id, 'Utf8View')) AS d FROM <SRC>");
    let transformed = apply(&[step], &input(1, false), MEMORY).await.expect("a plan");
    let types: Vec<DataType> = transformed.schema.fields().iter().map(|f| f.data_type().clone()).collect();
    assert_eq!(types[..3], [DataType::Utf8, DataType::Utf8, DataType::Utf8]);
    assert!(matches!(&types[3], DataType::List(item) if *item.data_type() == DataType::Utf8), "{types:?}");
    for batch in rows(&transformed).await.expect("rows") {
        assert_eq!(batch.schema().fields(), transformed.schema.fields());
    }
}

#[tokio::test]
async fn what_cannot_run_says_where_and_why() {
    let input = input(1, false);
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "SELECT nope FROM <SRC>",
            "transform-sql",
            &["transformer 1 (SqlQueryBasedTransformer)", "nope", "SELECT nope"],
        ),
        ("SELECT rider FROM <SRC>", "transform-sql", &["Rider"]),
        ("SELEC 1", "transform-sql", &["SELEC 1"]),
        ("", "transform-sql", &["no statement"]),
        ("SELECT * FROM <src>", "transform-sql", &["<src>"]),
        ("SELECT * FROM other", "transform-sql", &["other"]),
        ("SELECT 1 AS a; SELECT 2 AS a", "transform-unsupported", &["SqlFileBasedTransformer"]),
        ("DROP TABLE x", "transform-unsupported", &["DROP TABLE"]),
        ("INSERT INTO x SELECT * FROM <SRC>", "transform-unsupported", &["INSERT INTO"]),
        ("COPY (SELECT 1) TO 'x.parquet'", "transform-unsupported", &["COPY"]),
        ("CREATE VIEW v AS SELECT 1 AS a", "transform-unsupported", &["last statement"]),
        ("SELECT * FROM <SRC> WHERE id = \"r1\"", "transform-unsupported", &["'r1'", "double quotes"]),
        ("SELECT * FROM <SRC> a JOIN <SRC> b ON a.id = b.id", "transform-unsupported", &["named id"]),
    ];
    for (text, code, says) in cases {
        let error = apply(&[sql(text)], &input, MEMORY).await.expect_err(text);
        let message = error.to_string();
        assert_eq!(error.code(), *code, "{text}: {message}");
        assert!(!message.contains('\n'), "{message}");
        for part in *says {
            assert!(message.contains(part), "{text}: {message}");
        }
    }
    let (_file, step) = file("SELECT 1 AS a; SELECT b FROM <SRC>");
    let message = apply(&[sql("SELECT * FROM <SRC>"), step], &input, MEMORY).await.expect_err("no b").to_string();
    assert!(message.contains("transformer 2 (SqlFileBasedTransformer), statement 2"), "{message}");
    let missing = TransformerConfig::SqlFile("/nowhere/step.sql".into());
    let error = apply(&[missing], &input, MEMORY).await.expect_err("no file");
    assert!(error.code() == "transform-file" && error.to_string().contains("/nowhere/step.sql"), "{error}");
    let remote = TransformerConfig::SqlFile("s3://bucket/step.sql".into());
    let error = apply(&[remote], &input, MEMORY).await.expect_err("not local");
    assert!(error.to_string().contains("s3"), "{error}");
}

#[tokio::test]
async fn what_fails_while_running_is_an_error_and_not_a_null() {
    let step = sql("SELECT CAST(id AS BIGINT) AS n FROM <SRC>");
    let transformed = apply(&[step], &input(1, false), MEMORY).await.expect("a plan");
    let error = rows(&transformed).await.expect_err("r0 is no number");
    let error = Error::from_plan(&error);
    assert!(error.code() == "transform-run" && error.to_string().contains("r0"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_can_be_read_from_blocking_threads() {
    let step = sql("SELECT Rider AS r, count(*) AS n FROM <SRC> GROUP BY Rider");
    let transformed = apply(&[step], &input(60, false), MEMORY).await.expect("a plan");
    let partitions = transformed.plan.properties().output_partitioning().partition_count();
    let mut total = 0;
    for partition in 0..partitions {
        let (plan, context) = (transformed.plan.clone(), transformed.context.clone());
        let handle = tokio::runtime::Handle::current();
        let read = tokio::task::spawn_blocking(move || {
            let rows = plan.execute(partition, context).expect("a stream");
            handle.block_on(rows.try_collect::<Vec<_>>()).expect("rows")
        });
        total += longs(&read.await.expect("no panic"), "n").iter().sum::<i64>();
    }
    assert_eq!(total, 120);
}

#[tokio::test]
async fn the_plan_can_be_shown() {
    let transformed =
        apply(&[sql("SELECT id FROM <SRC> WHERE ts > 5")], &input(1, false), MEMORY).await.expect("a plan");
    let text = explain(&transformed);
    assert!(text.contains("FilterExec") && text.contains("StreamingTableExec"), "{text}");
}

#[tokio::test]
async fn a_plan_tells_whether_its_rows_depend_on_one_row_each() {
    for (text, want) in [
        ("SELECT id, ts + 1 AS ts FROM <SRC> WHERE ts > 5", true),
        ("SELECT * FROM <SRC>", true),
        ("SELECT Rider, count(*) AS n FROM <SRC> GROUP BY Rider", false),
        ("SELECT max(ts) AS ts FROM <SRC>", false),
        ("SELECT DISTINCT Rider FROM <SRC>", false),
        ("SELECT * FROM <SRC> LIMIT 3", false),
        ("SELECT * FROM <SRC> ORDER BY ts", false),
        ("SELECT id, row_number() OVER (ORDER BY ts) AS n FROM <SRC>", false),
        ("SELECT a.id FROM <SRC> a JOIN <SRC> b ON a.id = b.id", false),
        ("SELECT id FROM <SRC> WHERE ts = (SELECT max(ts) FROM <SRC>)", false),
    ] {
        let transformed = apply(&[sql(text)], &input(3, false), MEMORY).await.expect(text);
        assert_eq!(transformed.is_row_wise(), want, "{text}: {}", explain(&transformed));
    }
    assert!(apply(&[], &input(3, true), MEMORY).await.expect("a plan").is_row_wise());
}
