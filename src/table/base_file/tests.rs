use std::sync::Arc;

use arrow::array::*;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, CompressionCodec, GzipLevel};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::*;
use crate::storage::Storage;
use crate::table::{self, META_COLUMNS};

mod copy;

const PATH: &str = "2024-01-01/f-0_0-0-0_20240101000000000.parquet";

/// A storage in a folder of its own, inside a runtime whose threads are not this one.
struct Place {
    runtime: tokio::runtime::Runtime,
    dir: tempfile::TempDir,
    storage: Storage,
}

impl Place {
    fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::open(dir.path().to_str().unwrap()).unwrap();
        Place { runtime, dir, storage }
    }

    fn open(&self, path: &str) -> table::Result<Reader> {
        let _entered = self.runtime.enter();
        let size = std::fs::metadata(self.dir.path().join(path)).unwrap().len();
        Reader::open(&self.storage, path, size)
    }

    fn write(&self, options: &WriterOptions, batches: &[RecordBatch]) -> table::Result<Written> {
        let mut writer = Writer::create(&self.storage, PATH, options)?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        writer.finish()
    }
}

fn read(reader: &Reader, columns: Option<&[&str]>, batch_size: usize) -> RecordBatch {
    let batches: Vec<_> = reader.batches(columns, batch_size).unwrap().map(Result::unwrap).collect();
    assert!(batches.iter().all(|batch| batch.num_rows() <= batch_size));
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

fn options(schema: &SchemaRef) -> WriterOptions {
    WriterOptions {
        compression: Compression::GZIP(GzipLevel::try_new(6).unwrap()),
        block_size: 120 << 20,
        page_size: 1 << 20,
        dictionary_enabled: true,
        bloom: BloomOptions { num_entries: 1000, fpp: 1e-9, dynamic: true, dynamic_max_entries: 4000 },
        avro_schema: r#"{"type":"record","name":"r","fields":[]}"#.into(),
        schema: Arc::clone(schema),
    }
}

/// Meta columns and `columns`, with keys `k0`, `k1`, ….
fn with_meta(columns: Vec<(Field, ArrayRef)>) -> RecordBatch {
    let rows = columns[0].1.len();
    let meta = META_COLUMNS.map(|name| {
        let values = (0..rows).map(|i| if name == RECORD_KEY { format!("k{i}") } else { format!("{name} {i}") });
        (Field::new(name, DataType::Utf8, true), Arc::new(StringArray::from_iter_values(values)) as ArrayRef)
    });
    let (fields, arrays): (Vec<_>, Vec<_>) = meta.into_iter().chain(columns).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn numbers(rows: i64) -> RecordBatch {
    with_meta(vec![(Field::new("n", DataType::Int64, false), Arc::new(Int64Array::from_iter_values(0..rows)))])
}

fn column(name: &str, array: impl Array + 'static) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), true), Arc::new(array))
}

/// Two rows, the second all null.
fn all_types() -> RecordBatch {
    let decimal = |precision, scale, value| {
        Decimal128Array::from(vec![Some(value), None]).with_precision_and_scale(precision, scale).unwrap()
    };
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), Some(2)]), None]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    map.keys().append_value("one");
    map.values().append_value(1);
    map.append(true).unwrap();
    map.append(false).unwrap();
    let inner = Field::new("v", DataType::Decimal128(6, 3), true);
    let structs =
        StructArray::new(vec![inner].into(), vec![Arc::new(decimal(6, 3, -1500))], Some(vec![true, false].into()));
    with_meta(vec![
        column("bo", BooleanArray::from(vec![Some(true), None])),
        column("i", Int32Array::from(vec![Some(i32::MIN), None])),
        column("l", Int64Array::from(vec![Some(i64::MAX), None])),
        column("f", Float32Array::from(vec![Some(0.1), None])),
        column("d", Float64Array::from(vec![Some(-0.0), None])),
        column("s", StringArray::from(vec![Some("Grüße 数"), None])),
        column("bi", BinaryArray::from_opt_vec(vec![Some(&[0, 255]), None])),
        column("da", Date32Array::from(vec![Some(-2), None])),
        column("us", TimestampMicrosecondArray::from(vec![Some(-1), None]).with_timezone("UTC")),
        column("ms", TimestampMillisecondArray::from(vec![Some(1), None]).with_timezone("UTC")),
        column("d1", decimal(1, 0, -9)),
        column("d10", decimal(10, 2, -9_999_999_999)),
        column("d18", decimal(18, 18, 999_999_999_999_999_999)),
        column("d38", decimal(38, 18, -(10i128.pow(38) - 1))),
        column(
            "fx",
            FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some([1, 2, 3]), None].into_iter(), 3).unwrap(),
        ),
        column("ar", list),
        column("m", map.finish()),
        column("st", structs),
    ])
}

#[test]
fn every_type_comes_back() {
    let place = Place::new();
    let batch = all_types();
    let written = place.write(&options(&batch.schema()), std::slice::from_ref(&batch)).unwrap();
    assert_eq!(written.rows, 2);
    assert_eq!(written.size, std::fs::metadata(place.dir.path().join(PATH)).unwrap().len());
    let reader = place.open(PATH).unwrap();
    assert_eq!(reader.rows(), 2);
    let got = read(&reader, None, 10);
    for (field, (want, got)) in batch.schema().fields().iter().zip(batch.columns().iter().zip(got.columns())) {
        // Names of list elements and map entries are Parquet's own in the file.
        assert!(want.data_type().equals_datatype(got.data_type()), "{field}: {}", got.data_type());
        assert_eq!(&arrow::compute::cast(got, want.data_type()).unwrap(), want, "{field}");
    }
}

#[test]
fn decimals_lists_and_maps_have_the_shape_that_hudi_reads() {
    let schema = parquet_schema::of_arrow(&all_types().schema()).unwrap();
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, schema.root_schema());
    let text = String::from_utf8(text).unwrap();
    for want in [
        "OPTIONAL FIXED_LEN_BYTE_ARRAY (1) d1 (DECIMAL(1,0))",
        "OPTIONAL FIXED_LEN_BYTE_ARRAY (5) d10 (DECIMAL(10,2))",
        "OPTIONAL FIXED_LEN_BYTE_ARRAY (8) d18 (DECIMAL(18,18))",
        "OPTIONAL FIXED_LEN_BYTE_ARRAY (16) d38 (DECIMAL(38,18))",
        "OPTIONAL FIXED_LEN_BYTE_ARRAY (3) v (DECIMAL(6,3))",
        "OPTIONAL INT64 us (TIMESTAMP(MICROS,true))",
        "OPTIONAL INT64 ms (TIMESTAMP(MILLIS,true))",
        "REPEATED group list {\n      OPTIONAL INT32 element;",
        "REPEATED group key_value {\n      REQUIRED BYTE_ARRAY key (STRING);\n      OPTIONAL INT64 value;",
    ] {
        assert!(text.contains(want), "no {want} in {text}");
    }
}

#[test]
fn the_footer_has_what_hudi_looks_for() {
    let place = Place::new();
    let batch = numbers(30);
    for dynamic in [true, false] {
        let mut options = options(&batch.schema());
        options.bloom.dynamic = dynamic;
        place.write(&options, &[batch.slice(0, 7), batch.slice(7, 23)]).unwrap();
        let reader = place.open(PATH).unwrap();
        let footer = reader.key_footer().unwrap();
        let bloom = footer.bloom.unwrap();
        assert_eq!(bloom.is_dynamic(), dynamic);
        assert!((0..30).all(|i| bloom.might_contain(&format!("k{i}"))));
        assert!(!bloom.might_contain("k30"));
        assert_eq!((footer.min_key.as_deref(), footer.max_key.as_deref()), (Some("k0"), Some("k9")));

        let file = std::fs::File::open(place.dir.path().join(PATH)).unwrap();
        let metadata = parquet::file::metadata::ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
        let entries = metadata.file_metadata().key_value_metadata().unwrap();
        let mut names: Vec<_> = entries.iter().map(|e| e.key.as_str()).collect();
        names.sort_unstable();
        let mut want = vec![FOOTER_BLOOM, FOOTER_MIN_KEY, FOOTER_MAX_KEY, FOOTER_AVRO_SCHEMA, FOOTER_MODEL];
        want.extend(dynamic.then_some(FOOTER_BLOOM_TYPE));
        want.sort_unstable();
        assert_eq!(names, want, "and no ARROW:schema");
        assert!(metadata.row_group(0).columns().iter().all(|c| c.statistics().is_some()));
    }
}

#[test]
fn an_empty_file_has_a_filter_and_no_key_range() {
    let place = Place::new();
    place.write(&options(&numbers(0).schema()), &[numbers(0)]).unwrap();
    let reader = place.open(PATH).unwrap();
    let footer = reader.key_footer().unwrap();
    assert!(footer.bloom.is_some_and(|bloom| !bloom.might_contain("k0")));
    assert_eq!((footer.min_key, footer.max_key, reader.rows()), (None, None, 0));
    assert!(reader.record_keys().unwrap().is_empty());
}

#[test]
fn row_groups_end_at_the_block_size_and_when_asked() {
    let place = Place::new();
    let batch = numbers(20_000);
    let mut options = options(&batch.schema());
    options.block_size = 256 << 10;
    let mut writer = Writer::create(&place.storage, PATH, &options).unwrap();
    writer.write(&batch).unwrap();
    writer.write(&batch).unwrap();
    writer.write(&batch.slice(0, 5)).unwrap();
    let (before, size) = (writer.memory(), writer.size_estimate());
    writer.flush_row_group().unwrap();
    assert!(writer.memory() < before && size > 0);
    writer.write(&batch.slice(0, 5)).unwrap();
    writer.finish().unwrap();
    let reader = place.open(PATH).unwrap();
    assert_eq!(reader.rows(), 40_010);
    let keys = reader.record_keys().unwrap();
    assert!(keys.len() > 2, "{} row groups", keys.len());
    let keys: Vec<_> = keys.iter().flat_map(|k| k.iter()).map(|k| k.unwrap().to_owned()).collect();
    let want: Vec<_> = (0..20_000).chain(0..20_000).chain(0..5).chain(0..5).map(|i| format!("k{i}")).collect();
    assert_eq!(keys, want);
    let got = read(&reader, Some(&["n", RECORD_KEY]), 777);
    let names: Vec<_> = got.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, [RECORD_KEY, "n"]);
    assert_eq!(got.num_rows(), 40_010);
}

/// Page by page, by parquet-rs alone: a gzipped file is the uncompressed one, but for the compression.
#[test]
fn columns_without_repetition_get_no_dictionary_however_the_first_rows_come() {
    let place = Place::new();
    let rows = 5000;
    let often = Int64Array::from_iter_values((0..rows).map(|i| i % 7));
    let batch = with_meta(vec![column("once", Int64Array::from_iter_values(0..rows)), column("often", often)]);
    for cuts in [&[5000][..], &[100, 4900], &[100, 100, 1847, 1, 2952], &[2047, 2953]] {
        let mut start = 0;
        let pieces = cuts.iter().map(|count| {
            start += count;
            batch.slice(start - count, *count)
        });
        place.write(&options(&batch.schema()), &pieces.collect::<Vec<_>>()).unwrap();
        let reader = place.open(PATH).unwrap();
        assert_eq!(read(&reader, None, rows as usize), batch, "{cuts:?}");
        let has_dictionary = |name: &str| {
            let columns = reader.metadata.metadata().row_group(0).columns().iter();
            columns.filter(|c| c.column_path().string() == name).any(|c| c.dictionary_page_offset().is_some())
        };
        assert_eq!(["once", "often"].map(has_dictionary), [false, true], "{cuts:?}");
    }
}

#[test]
fn gzipped_pages_are_the_pages_of_an_uncompressed_file() {
    let place = Place::new();
    let rows = 60_000;
    let text = |i: i64| (i % 7 != 0).then(|| format!("{:x}", (i % 30_000).wrapping_mul(0x1E37_79B9_7F4A_7C15)));
    let list = (0..rows).map(|i| (i % 5 != 0).then(|| (0..i as i32 % 4).map(Some)));
    let batch = with_meta(vec![
        column("n", Int64Array::from_iter_values(0..rows)),
        column("few", StringArray::from_iter((0..rows).map(|i| ["a", "b", "c"].get(i as usize % 4)))),
        // Its dictionary overflows, so that it has pages of both kinds.
        column("many", StringArray::from_iter((0..rows).map(text))),
        column("none", Int32Array::new_null(rows as usize)),
        column("list", ListArray::from_iter_primitive::<Int32Type, _, _>(list)),
    ]);
    let file = |compression| {
        let options = WriterOptions { compression, page_size: 64 << 10, ..options(&batch.schema()) };
        place.write(&options, &[batch.slice(0, 9), batch.slice(9, 40_000), batch.slice(40_009, 19_991)]).unwrap();
        std::fs::rename(place.dir.path().join(PATH), place.dir.path().join("one")).unwrap();
        SerializedFileReader::new(std::fs::File::open(place.dir.path().join("one")).unwrap()).unwrap()
    };
    let (plain, gzipped) = (file(Compression::UNCOMPRESSED), file(Compression::GZIP(GzipLevel::default())));
    let (plain, gzipped) = (plain.get_row_group(0).unwrap(), gzipped.get_row_group(0).unwrap());
    let columns = plain.metadata().columns().iter().zip(gzipped.metadata().columns());
    let mut at = 4;
    for (leaf, (want, got)) in columns.enumerate() {
        let name = got.column_path().string();
        assert_eq!(got.compression_codec(), CompressionCodec::GZIP, "{name}");
        assert_eq!(got.byte_range().0, at, "{name}");
        at += got.byte_range().1;
        assert!(got.compressed_size() < want.compressed_size() + 100, "{name}");
        assert!((got.uncompressed_size() - want.uncompressed_size()).abs() < 100, "{name}");
        assert_eq!((got.num_values(), got.statistics()), (want.num_values(), want.statistics()), "{name}");
        assert_eq!(got.page_encoding_stats(), want.page_encoding_stats(), "{name}");
        let dictionary = |of: &ColumnChunkMetaData| Some(of.data_page_offset() - of.dictionary_page_offset()?);
        assert_eq!(dictionary(got).is_some(), dictionary(want).is_some(), "{name}");
        let pages = |group: &dyn RowGroupReader| -> Vec<_> {
            let pages = group.get_column_page_reader(leaf).unwrap().map(|page| page.unwrap());
            pages.map(|page| (page.page_type(), page.encoding(), page.num_values(), page.buffer().clone())).collect()
        };
        assert_eq!(pages(&*gzipped), pages(&*plain), "{name}");
    }
    let got = read(&place.open("one").unwrap(), None, rows as usize);
    assert_eq!(got.columns()[..9], batch.columns()[..9]);
}

#[test]
fn gzipped_files_of_other_writers_are_read() {
    let place = Place::new();
    let batch = numbers(20_000);
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for dictionary in [true, false] {
            let properties = WriterProperties::builder()
                .set_compression(Compression::GZIP(GzipLevel::default()))
                .set_writer_version(version)
                .set_dictionary_enabled(dictionary)
                .set_data_page_size_limit(10_000);
            let to = std::fs::File::create(place.dir.path().join("one")).unwrap();
            let mut writer = ArrowWriter::try_new(to, batch.schema(), Some(properties.build())).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let got = read(&place.open("one").unwrap(), None, 3000);
            assert_eq!(got.columns(), batch.columns(), "{version:?}, dictionary {dictionary}");
        }
    }
}

#[test]
fn a_batch_that_does_not_fit_is_refused_and_leaves_no_file() {
    let place = Place::new();
    let schema = numbers(0).schema();
    let n = |field: Field, array: ArrayRef| with_meta(vec![(field, array)]);
    let long = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let without_key = {
        let batch = numbers(2);
        let mut columns = batch.columns().to_vec();
        columns[2] = Arc::new(StringArray::from(vec![Some("k"), Some("")]));
        RecordBatch::try_new(batch.schema(), columns).unwrap()
    };
    for (batch, code, part) in [
        (n(Field::new("n", DataType::Int64, true), long(vec![Some(1), None])), "base-file-write", "a null in column n"),
        (n(Field::new("m", DataType::Int64, false), long(vec![Some(1)])), "base-file-write", "does not fit"),
        (
            n(
                Field::new("n", DataType::Timestamp(TimeUnit::Second, None), false),
                Arc::new(TimestampSecondArray::from(vec![1])),
            ),
            "base-file-write",
            "does not fit",
        ),
        (without_key, "base-file-key-missing", "row 1 has no record key"),
    ] {
        let error = place.write(&options(&schema), &[batch]).unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(std::fs::read_dir(place.dir.path().join("2024-01-01")).unwrap().count(), 0);
}

#[test]
fn a_torn_file_is_called_torn() {
    let place = Place::new();
    place.write(&options(&numbers(0).schema()), &[numbers(5000)]).unwrap();
    let file = place.dir.path().join(PATH);
    let whole = std::fs::read(&file).unwrap();
    let _entered = place.runtime.enter();
    let corrupt = |result: table::Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), "base-file-corrupt", "{error}");
        assert!(error.to_string().contains(PATH), "{error}");
    };
    for length in [0, 3, 11, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        corrupt(place.open(PATH).map(drop));
        corrupt(Reader::open(&place.storage, PATH, whole.len() as u64).map(drop));
    }
    // A hole in the data, under a good footer.
    let mut holed = whole.clone();
    holed[200..4000].fill(0);
    std::fs::write(&file, holed).unwrap();
    let reader = place.open(PATH).unwrap();
    corrupt(reader.batches(None, 1000).unwrap().try_for_each(|batch| batch.map(drop)));
    let missing = reader.batches(Some(&["nope"]), 1).err().unwrap();
    assert_eq!(missing.code(), "base-file-column-missing");
}

/// Every base file of the table, relative to it.
fn base_files(table: &std::path::Path) -> Vec<String> {
    let folders = std::fs::read_dir(table).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()));
    let mut paths: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|e| e == "parquet"))
        .map(|file| file.strip_prefix(table).unwrap().to_str().unwrap().to_owned())
        .collect();
    paths.sort();
    paths
}

/// By Hudi's Avro writer (DYNAMIC_V0 and SIMPLE) and by its row writer for Spark.
#[test]
fn filters_and_ranges_of_hudis_files_fit_their_keys() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    for (name, dynamic) in [("v6_cow_types", true), ("v6_cow_bloom_simple", false), ("v6_cow_bulk_insert", true)] {
        let (_folder, table) = table::tests::golden(name);
        let storage = table::tests::storage(&table);
        let files = base_files(&table);
        assert!(!files.is_empty());
        for path in files {
            let size = std::fs::metadata(table.join(&path)).unwrap().len();
            let reader = Reader::open(&storage, &path, size).unwrap();
            let footer = reader.key_footer().unwrap();
            let keys = reader.record_keys().unwrap();
            let keys: Vec<_> = keys.iter().flat_map(|k| k.iter()).map(Option::unwrap).collect();
            let bloom = footer.bloom.unwrap();
            assert_eq!(bloom.is_dynamic(), dynamic, "{path}");
            assert!(keys.iter().all(|key| bloom.might_contain(key)), "{path}");
            assert!(!bloom.might_contain("no key of any golden table"), "{path}");
            assert_eq!(footer.min_key.as_deref(), keys.iter().min().copied(), "{path}");
            assert_eq!(footer.max_key.as_deref(), keys.iter().max().copied(), "{path}");

            if dynamic {
                let options = BloomOptions { dynamic, num_entries: 60_000, fpp: 1e-9, dynamic_max_entries: 100_000 };
                let mut ours = bloom::BloomBuilder::new(&options);
                ours.add_all(&StringArray::from(keys));
                assert_eq!(ours.finish(), bloom, "{path}");
            }
        }
    }
}

#[test]
fn hudis_types_are_read() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    let (_folder, table) = table::tests::golden("v6_cow_types");
    let path = &base_files(&table)[0];
    let size = std::fs::metadata(table.join(path)).unwrap().len();
    let reader = Reader::open(&table::tests::storage(&table), path, size).unwrap();
    let got = read(&reader, None, 4);
    let text = |name: &str| {
        let column = got.column_by_name(name).unwrap();
        arrow::util::display::array_value_to_string(column, 0).unwrap()
    };
    for (name, tpe, want) in [
        ("_hoodie_record_key", "Utf8", "k0"),
        ("bo", "Boolean", "true"),
        ("ti", "Int32", "0"),
        ("i", "Int32", "-70000"),
        ("l", "Int64", "1099511627776"),
        ("f", "Float32", "0.1"),
        ("d", "Float64", "0.0"),
        ("s", "Utf8", "Grüße 0 数"),
        ("de", "Decimal128(10, 2)", "0.25"),
        ("db", "Decimal128(38, 18)", "-0.123456789012345678"),
        ("bi", "Binary", "0001ff"),
        ("da", "Date32", "1969-12-30"),
        ("tm", "Timestamp(µs, \"UTC\")", "2024-02-29T23:59:59.123456Z"),
        ("ar", "List(non-null Utf8, field: 'array')", "[a, x0]"),
        ("ai", "List(non-null Int32, field: 'array')", "[0, 2]"),
        ("m", "", "{one: 1, none: }"),
        ("st", "", "{a: 0, b: , n: {x: 0.5, y: []}}"),
        ("am", "", "[{k: p, v: 1.500}, {k: , v: }]"),
        ("mm", "", "{z: {q: 0}}"),
    ] {
        assert_eq!(text(name), want, "{name}");
        let got = got.column_by_name(name).unwrap().data_type().to_string();
        assert!(tpe.is_empty() || got == tpe, "{name}: {got}");
    }
}
