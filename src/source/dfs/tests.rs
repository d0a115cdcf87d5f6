use super::*;
use crate::config::{BadRecordPolicy, SourceClass};
use crate::schema::TableSchema;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::execution::TaskContext;
use futures::TryStreamExt;
use std::io::Write;

fn source(folder: &tempfile::TempDir, skip: bool) -> JsonDfsSource {
    let policy = if skip { BadRecordPolicy::Skip } else { BadRecordPolicy::Fail };
    let config = SourceConfig {
        class: SourceClass::JsonDfs,
        limit: None,
        dfs_root: Some(folder.path().display().to_string()),
        bad_records: BadRecordsConfig { policy, ..Default::default() },
        kafka: None,
    };
    JsonDfsSource::open(&config, &Default::default(), 2).expect("a local folder")
}

fn request(from: Option<&str>) -> FetchRequest {
    let schema = TableSchema::from_avro(r#"{"type":"record","name":"R","fields":[{"name":"n","type":"long"}]}"#);
    FetchRequest { from: from.map(str::to_string), schema: schema.ok(), positions: true, ..Default::default() }
}

async fn rows(batches: &Batches) -> std::result::Result<Vec<RecordBatch>, String> {
    let mut all = Vec::new();
    for piece in &batches.partitions {
        let read: Vec<_> =
            piece.execute(Arc::new(TaskContext::default())).try_collect().await.map_err(|e| e.to_string())?;
        all.extend(read);
    }
    Ok(all)
}

fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
    batches.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[tokio::test]
async fn lines_of_plain_and_gzip_files_come_in_order_and_know_their_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = |name: &str, bytes: &[u8], ms: u64| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms);
        std::fs::File::options().write(true).open(&path).and_then(|f| f.set_modified(time)).expect("a time");
    };
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"{\"n\":3}\r\n\n{\"n\":4}").expect("memory");
    set("b.json.gz", &gzip.finish().expect("memory"), 2000);
    set("a.json", b"{\"n\":1}\n{\"n\":2}\n", 1000);
    let source = source(&folder, false);
    let fetch = source.fetch(request(None)).await.expect("fetched");
    assert_eq!(fetch.checkpoint.as_deref(), Some("2000"));
    let batches = fetch.batches.expect("two files");
    let read = rows(&batches).await.expect("good lines");
    assert_eq!(numbers(&read), [1, 2, 3, 4]);
    assert_eq!(numbers(&rows(&batches).await.expect("again")), [1, 2, 3, 4]);
    let positions = read[0].column(1).as_primitive::<UInt64Type>();
    assert!(source.describe(positions.value(1)).await.ends_with("a.json:2"));
    assert!(source.describe(positions.value(3)).await.ends_with("b.json.gz:3"));

    set("c.json", b"{\"n\":5}\n{\"n\":6,\n", 3000);
    let next = source.fetch(request(Some("2000"))).await.expect("fetched").batches.expect("one file");
    assert_eq!(numbers(&rows(&next).await.expect("reading goes on")), [5]);
    let error = next.rejects.verdict(&source, 1).await.expect_err("a bad line").to_string();
    assert!(error.contains("c.json:2") && error.contains("policy=skip"), "{error}");
    let skipping = super::tests::source(&folder, true);
    let next = skipping.fetch(request(Some("2000"))).await.expect("fetched").batches.expect("one file");
    assert_eq!(numbers(&rows(&next).await.expect("skipped")), [5]);
    assert_eq!(next.rejects.count(), 1);
    assert!(next.rejects.verdict(&skipping, 1).await.is_ok());
}

/// Cuts a file at every byte: each line is read once, by one of the two parts.
#[tokio::test]
async fn parts_of_a_file_share_its_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = b"{\"n\":1}\n{\"n\":22}\r\n\n{\"n\":333}\n{\"n\":4}";
    std::fs::write(folder.path().join("a"), text).expect("written");
    let source = source(&folder, false);
    let files = Arc::new(vec![FileInfo { path: "a".into(), size: text.len() as u64, modified_ms: 0 }]);
    let schema = request(None).schema.expect("a schema").arrow;
    for cut in 1..text.len() as u64 {
        let mut all = Vec::new();
        for (start, end) in [(0, cut), (cut, text.len() as u64)] {
            let parts = vec![pieces::Part { file: 0, start, end }];
            let piece = JsonPiece::new(&source.input, &files, parts, &schema, true).expect("longs");
            let stream = datafusion::physical_plan::streaming::PartitionStream::execute(&piece, Arc::default());
            all.extend(stream.try_collect::<Vec<_>>().await.expect("good lines"));
        }
        assert_eq!(numbers(&all), [1, 22, 333, 4], "cut at {cut}");
    }
}

/// Chunks of an object store are read ahead: of pieces of several chunks, and of lines that cross them.
#[tokio::test]
async fn lines_of_a_large_object_come_once_and_in_order() {
    let count = 400_000;
    let lines: String = (0..count).map(|n| format!("{{\"n\":{n},\"x\":\"{}\"}}\n", "x".repeat(n % 60))).collect();
    let input = Arc::new(Input { storage: Storage::in_memory() });
    input.storage.put("a", lines.clone().into()).await.expect("written");
    let files = Arc::new(vec![FileInfo { path: "a".into(), size: lines.len() as u64, modified_ms: 0 }]);
    let schema = request(None).schema.expect("a schema").arrow;
    let whole = vec![vec![pieces::Part { file: 0, start: 0, end: lines.len() as u64 }]];
    for pieces in [pieces::cut(&files), whole] {
        let mut all = Vec::new();
        for parts in pieces {
            let piece = JsonPiece::new(&input, &files, parts, &schema, true).expect("longs");
            let stream = datafusion::physical_plan::streaming::PartitionStream::execute(&piece, Arc::default());
            all.extend(stream.try_collect::<Vec<_>>().await.expect("good lines"));
        }
        assert!(numbers(&all).into_iter().eq(0..count as i64));
    }
}

#[tokio::test]
async fn what_cannot_be_a_position_or_a_folder_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = source(&folder, false).fetch(request(Some("topic,0:5"))).await.expect_err("Kafka's form").to_string();
    assert!(error.contains("topic,0:5") && error.contains("Kafka") && error.contains("--ignore-checkpoint"), "{error}");
    let empty = source(&folder, false).fetch(request(None)).await.expect("an empty folder");
    assert_eq!((empty.checkpoint.as_deref(), empty.batches.is_none()), (Some(NO_FILES_YET), true));
    let gone = source(&folder, false);
    drop(folder);
    assert!(matches!(gone.fetch(request(None)).await, Err(Error::MissingRoot { .. })));
}

#[test]
fn small_files_share_a_piece_and_large_ones_are_cut() {
    let file = |path: &str, mib: u64| FileInfo { path: path.into(), size: mib << 20, modified_ms: 0 };
    let shape = |files: &[FileInfo]| -> Vec<Vec<(usize, u64, u64)>> {
        let part = |part: &pieces::Part| (part.file, part.start >> 20, part.end >> 20);
        pieces::cut(files).iter().map(|parts| parts.iter().map(part).collect()).collect()
    };
    assert_eq!(
        shape(&[file("a", 3), file("b", 6), file("c.gz", 100), file("d", 1)]),
        [vec![(0, 0, 3), (1, 0, 1)], vec![(1, 1, 5)], vec![(1, 5, 6), (2, 0, 100)], vec![(3, 0, 1)]]
    );
    let large: Vec<u64> = shape(&[file("a", 2000)]).iter().map(|parts| parts[0].2 - parts[0].1).collect();
    assert_eq!((large[0], large.iter().sum::<u64>(), large[large.len() - 2]), (32, 2000, 4));
    assert!(large.is_sorted_by(|a, b| a >= b), "smaller towards the end: {large:?}");
    assert_eq!(pieces::unpack(pieces::pack(7, 123_456)), (7, 123_456));
}

#[tokio::test]
async fn gzip_members_follow_one_another_and_a_torn_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let member = |text: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).expect("memory");
        gzip.finish().expect("memory")
    };
    let lines: String = (0..20_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let whole = [member("{\"n\":-2}\n{\"n\""), member(":-1}\n"), member(&lines)].concat();
    let path = folder.path().join("a.gz");
    std::fs::write(&path, &whole).expect("written");
    let fetched = async || source(&folder, false).fetch(request(None)).await.expect("fetched").batches.expect("a file");
    assert_eq!(numbers(&rows(&fetched().await).await.expect("whole")), (-2..20_000).collect::<Vec<_>>());
    for cut in [whole.len() - 1, whole.len() - 9, whole.len() / 2, 5] {
        std::fs::write(&path, &whole[..cut]).expect("written");
        let error = rows(&fetched().await).await.expect_err("torn");
        assert!(error.contains("a.gz: not a whole gzip file"), "{cut}: {error}");
    }
}

/// Of a line that covers whole parts only its first part reads all of it.
#[tokio::test]
async fn a_part_inside_a_long_line_is_not_read_beyond_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("{{\"n\":1,\"x\":\"{}\"}}\n{{\"n\":2}}\n", "x".repeat(1 << 20));
    std::fs::write(folder.path().join("a"), &text).expect("written");
    let source = source(&folder, false);
    let files = Arc::new(vec![FileInfo { path: "a".into(), size: text.len() as u64, modified_ms: 0 }]);
    let schema = request(None).schema.expect("a schema").arrow;
    let piece = |start, end| {
        let parts = vec![pieces::Part { file: 0, start, end }];
        JsonPiece::new(&source.input, &files, parts, &schema, true).expect("longs")
    };
    let (inside, last) = (piece(1000, 2000), piece(2000, text.len() as u64));
    for (piece, want) in [(&inside, vec![]), (&last, vec![2])] {
        let stream = datafusion::physical_plan::streaming::PartitionStream::execute(piece, Arc::default());
        assert_eq!(numbers(&stream.try_collect::<Vec<_>>().await.expect("good lines")), want);
    }
    assert_eq!(inside.bytes_read.load(std::sync::atomic::Ordering::Relaxed), 1001);
}

#[tokio::test]
async fn refused_lines_are_read_again_where_they_stand() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"{\"n\":4}\n{ \"n\" : 5 }").expect("memory");
    std::fs::write(folder.path().join("a"), b"\xEF\xBB\xBF{\"n\":1}\n\n{\"n\": 2 }\r\n{\"n\":3}").expect("written");
    std::fs::write(folder.path().join("b.gz"), gzip.finish().expect("memory")).expect("written");
    let source = source(&folder, true);
    let batches = source.fetch(request(None)).await.expect("fetched").batches.expect("two files");
    let mut lines = Vec::new();
    for batch in rows(&batches).await.expect("good lines") {
        let numbers = batch.column(0).as_primitive::<Int64Type>();
        lines.extend(
            numbers.values().iter().copied().zip(batch.column(1).as_primitive::<UInt64Type>().values().to_vec()),
        );
    }
    lines.sort();
    let texts = [r#"{"n":1}"#, r#"{"n": 2 }"#, r#"{"n":3}"#, r#"{"n":4}"#, r#"{ "n" : 5 }"#];
    for wanted in [vec![4, 0, 2], vec![1], vec![3, 4], vec![0, 1, 2, 3, 4]] {
        let positions: Vec<u64> = wanted.iter().map(|i| lines[*i].1).collect();
        let raw = source.raw(&positions).await.expect("read again");
        let raw: Vec<_> = raw.into_iter().map(|r| r.and_then(|r| r.value).expect("it is there")).collect();
        assert_eq!(raw, wanted.iter().map(|i| texts[*i].as_bytes()).collect::<Vec<_>>());
    }
    assert_eq!(source.raw(&[lines[0].1 + 1, u64::MAX]).await.expect("no such lines"), [None, None]);
}
