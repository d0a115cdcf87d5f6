//! Row groups that go from file to file.

use super::*;
use arrow::compute::{interleave_record_batch, take, take_record_batch};
use arrow::datatypes::Int64Type;
use parquet::basic::ZstdLevel;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader};

const NO_KEYS: Option<fn(&StringArray)> = None;
const COPY: &str = "2024-01-01/f-0_0-0-0_20240102000000000.parquet";

fn metadata(place: &Place, path: &str) -> ParquetMetaData {
    let file = std::fs::File::open(place.dir.path().join(path)).unwrap();
    let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    ParquetMetaDataReader::new().with_metadata_options(Some(options)).parse_and_finish(&file).unwrap()
}

/// Writes each batch as a row group.
fn write_groups(place: &Place, options: &WriterOptions, batches: &[RecordBatch]) {
    let mut writer = Writer::create(&place.storage, PATH, options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
        writer.flush_row_group().unwrap();
    }
    writer.finish().unwrap();
}

/// The rows with another file name.
fn renamed(batch: &RecordBatch, name: &str) -> RecordBatch {
    let mut columns = batch.columns().to_vec();
    let at = batch.schema().index_of(FILE_NAME).unwrap();
    columns[at] = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, batch.num_rows())));
    RecordBatch::try_new(batch.schema(), columns).unwrap()
}

fn keys_of(batch: &RecordBatch) -> StringArray {
    batch.column_by_name(RECORD_KEY).unwrap().as_string::<i32>().clone()
}

#[test]
fn a_copied_row_group_is_the_same_but_for_the_file_name() {
    let place = Place::new();
    let codecs = [
        Compression::GZIP(GzipLevel::try_new(6).unwrap()),
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::try_new(1).unwrap()),
        Compression::UNCOMPRESSED,
    ];
    let many = numbers(20_000);
    let typed = all_types();
    for (at, old_codec) in codecs.into_iter().enumerate() {
        let cases = [
            ([&many, &many], true, true),
            ([&many, &many], true, false),
            ([&many, &many], false, true),
            ([&many, &many], false, false),
            ([&typed, &typed], true, true),
        ];
        for (batches, inherits, shows) in cases {
            let [first, last] = batches.map(RecordBatch::clone);
            let mut options = options(&first.schema());
            (options.compression, options.page_size) = (old_codec, 32 << 10);
            write_groups(&place, &options, &[first.clone(), last.clone()]);
            let reader = place.open(PATH).unwrap();

            options.compression = codecs[(at + 1) % codecs.len()];
            let mut writer = Writer::create(&place.storage, COPY, &options).unwrap();
            assert!(writer.takes_row_groups_of(&reader));
            if inherits {
                assert!(writer.inherit(reader.key_footer().unwrap()));
            }
            let _entered = place.runtime.enter();
            let mut shown = Vec::new();
            let mut show = |keys: &StringArray| shown.push(keys.clone());
            writer.write_stored(&first.slice(0, 2)).unwrap();
            assert_eq!(
                writer.copy(&reader, 1, &Patch::default(), "new", shows.then_some(&mut show)).unwrap(),
                last.num_rows() as u64
            );
            writer.write_stored(&first.slice(0, 1)).unwrap();
            let written = writer.finish().unwrap();
            assert_eq!(written.rows, last.num_rows() as u64 + 3);
            let shown: Vec<_> = shown.iter().flat_map(|keys| keys.iter().map(|k| k.unwrap().to_owned())).collect();
            let last_keys: Vec<_> = keys_of(&last).iter().map(|key| key.unwrap().to_owned()).collect();
            assert_eq!(shown, if shows { last_keys.clone() } else { Vec::new() });

            let reader = place.open(COPY).unwrap();
            let want = [first.slice(0, 2), renamed(&last, "new"), first.slice(0, 1)];
            let got = read(&reader, None, 1000);
            let want = concat_batches(&first.schema(), &want).unwrap();
            for (field, (want, got)) in want.schema().fields().iter().zip(want.columns().iter().zip(got.columns())) {
                assert_eq!(&arrow::compute::cast(got, want.data_type()).unwrap(), want, "{field}");
            }
            let footer = reader.key_footer().unwrap();
            let bloom = footer.bloom.unwrap();
            assert!(last_keys.iter().all(|key| bloom.might_contain(key)));
            let range = (footer.min_key.unwrap(), footer.max_key.unwrap());
            assert!(last_keys.iter().all(|key| (&range.0..=&range.1).contains(&key)));

            let [old, new] = [PATH, COPY].map(|path| metadata(&place, path));
            for (old, new) in old.row_group(1).columns().iter().zip(new.row_group(1).columns()) {
                if old.column_path().string() != FILE_NAME {
                    let of = |c: &parquet::file::metadata::ColumnChunkMetaData| {
                        (
                            (c.compression_codec(), c.compressed_size(), c.uncompressed_size(), c.num_values()),
                            (c.statistics().cloned(), *c.encodings_mask(), c.page_encoding_stats().cloned()),
                        )
                    };
                    assert_eq!(of(new), of(old), "{}", old.column_path());
                }
            }
        }
    }
}

#[test]
fn only_row_groups_of_the_same_columns_are_taken() {
    let place = Place::new();
    let long = |nullable, name: &str| {
        with_meta(vec![(Field::new(name, DataType::Int64, nullable), Arc::new(Int64Array::from(vec![1])))])
    };
    let int = with_meta(vec![(Field::new("n", DataType::Int32, false), Arc::new(Int32Array::from(vec![1])))]);
    let more = with_meta(vec![column("n", Int64Array::from(vec![1])), column("m", Int64Array::from(vec![1]))]);
    let fewer = long(false, "n").project(&[0, 1, 2, 3, 4]).unwrap();
    write_groups(&place, &options(&long(false, "n").schema()), &[long(false, "n")]);
    let reader = place.open(PATH).unwrap();
    for (batch, taken) in [
        (long(false, "n"), true),
        (long(true, "n"), false),
        (long(false, "o"), false),
        (int, false),
        (more, false),
        (fewer, false),
    ] {
        let writer = Writer::create(&place.storage, COPY, &options(&batch.schema())).unwrap();
        assert_eq!(writer.takes_row_groups_of(&reader), taken, "{:?}", batch.schema());
    }
}

/// By parquet-mr: with the columns that we would give the file, where they have no lists and maps.
#[test]
fn row_groups_of_hudis_files_are_taken() {
    let place = Place::new();
    let _entered = place.runtime.enter();
    for (name, taken) in [("v6_cow_bloom_simple", true), ("v6_cow_bulk_insert", true), ("v6_cow_types", false)] {
        let (_folder, table) = table::tests::golden(name);
        let storage = table::tests::storage(&table);
        for path in base_files(&table) {
            let size = std::fs::metadata(table.join(&path)).unwrap().len();
            let old = Reader::open(&storage, &path, size).unwrap();
            let options = options(&old.schema());
            let mut writer = Writer::create(&place.storage, COPY, &options).unwrap();
            assert_eq!(writer.takes_row_groups_of(&old), taken, "{path}");
            if !taken || old.rows() == 0 {
                continue;
            }
            for group in 0..old.row_groups().len() {
                assert_eq!(
                    writer.copy(&old, group, &Patch::default(), "new", NO_KEYS).unwrap(),
                    old.row_groups()[group].rows
                );
            }
            writer.finish().unwrap();
            let new = place.open(COPY).unwrap();
            assert_eq!(read(&new, None, 100), renamed(&read(&old, None, 100), "new"), "{path}");
        }
    }
}

/// The first row of [`all_types`] with other values, where there are any.
fn other_values() -> RecordBatch {
    let typed = all_types();
    let columns = typed.columns().iter().map(|column| take(column, &UInt32Array::from(vec![1, 0]), None).unwrap());
    let mut columns: Vec<ArrayRef> = columns.collect();
    for name in [RECORD_KEY, META_COLUMNS[3]] {
        let at = typed.schema().index_of(name).unwrap();
        columns[at] = typed.column(at).clone();
    }
    RecordBatch::try_new(typed.schema(), columns).unwrap()
}

fn patched(place: &Place, options: &WriterOptions, group: usize, patch: &Patch) -> RecordBatch {
    let reader = place.open(PATH).unwrap();
    let _entered = place.runtime.enter();
    let mut writer = Writer::create(&place.storage, COPY, options).unwrap();
    writer.copy(&reader, group, patch, "new", NO_KEYS).unwrap();
    writer.finish().unwrap();
    read(&place.open(COPY).unwrap(), None, 1000)
}

#[test]
fn a_patched_row_group_has_the_new_values_of_every_type() {
    let place = Place::new();
    let (old, new) = (all_types(), other_values());
    write_groups(&place, &options(&old.schema()), &[old.clone(), old.clone()]);
    for (rows, sources) in [(&[0][..], [1, 0]), (&[1], [0, 1]), (&[0, 1], [1, 1])] {
        let with = take_record_batch(&new, &UInt32Array::from(rows.to_vec())).unwrap();
        let got = patched(&place, &options(&old.schema()), 1, &Patch { rows: rows.to_vec(), with: Some(with) });
        let picks: Vec<(usize, usize)> = sources.into_iter().zip(0..).collect();
        let want = renamed(&interleave_record_batch(&[&old, &new], &picks).unwrap(), "new");
        for (field, (want, got)) in want.schema().fields().iter().zip(want.columns().iter().zip(got.columns())) {
            assert_eq!(&arrow::compute::cast(got, want.data_type()).unwrap(), want, "{field} of {rows:?}");
        }
    }
}

#[test]
fn columns_that_a_patch_leaves_are_copied() {
    let place = Place::new();
    let many = |of: i64| {
        let values = |from: i64| Int64Array::from_iter_values((0..20_000).map(|i| (i * of + from) % 1000));
        with_meta(vec![column("same", values(0)), column("late", values(0)), column("other", values(of))])
    };
    let (old, mut new) = (many(1), many(3));
    let old_at = |name: &str| old.column_by_name(name).unwrap().clone();
    // Only the last row changes.
    let late = old_at("late").as_primitive::<Int64Type>().iter().take(19_999).chain([Some(-1)]).collect::<Int64Array>();
    let columns = [META_COLUMNS.map(old_at).to_vec(), vec![old_at("same"), Arc::new(late), new.column(7).clone()]];
    new = RecordBatch::try_new(new.schema(), columns.concat()).unwrap();
    write_groups(&place, &options(&old.schema()), std::slice::from_ref(&old));
    let rows: Vec<u32> = (0..20_000).filter(|row| row % 9 == 1 || *row == 19_999).collect();
    let with = take_record_batch(&new, &UInt32Array::from(rows.clone())).unwrap();
    let mut options = options(&old.schema());
    options.compression = Compression::SNAPPY;
    let got = patched(&place, &options, 0, &Patch { rows: rows.clone(), with: Some(with) });
    let picks: Vec<(usize, usize)> = (0..20_000).map(|row| (usize::from(rows.contains(&(row as u32))), row)).collect();
    let want = interleave_record_batch(&[&old, &new], &picks).unwrap();
    assert_eq!(got, renamed(&want, "new"));
    let columns = metadata(&place, COPY);
    let columns = columns.row_group(0).columns().iter();
    let written: Vec<_> = columns
        .filter(|column| column.compression_codec() == CompressionCodec::SNAPPY)
        .map(|column| column.column_path().string())
        .collect();
    assert_eq!(written, [FILE_NAME, "late", "other"]);
}
