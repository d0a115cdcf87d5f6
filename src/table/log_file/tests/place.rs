//! Log files on a storage.

use std::io::Write;

use super::vectors::file;
use super::*;
use crate::storage::Storage;
use crate::table::{self, InstantTime, LogFileName};

struct Place {
    runtime: tokio::runtime::Runtime,
    folder: tempfile::TempDir,
    storage: Storage,
}

impl Place {
    fn new() -> Place {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(folder.path().to_str().unwrap()).unwrap();
        Place { runtime, folder, storage }
    }

    /// What is in the partition `p`, staged files included.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join("p")).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join("p").join(name)).unwrap()
    }

    fn open(&self, path: &str) -> LogReader {
        let _entered = self.runtime.enter();
        LogReader::open(&self.storage, path, std::fs::metadata(self.folder.path().join(path)).unwrap().len())
    }
}

fn instant() -> InstantTime {
    InstantTime::parse("20240101000000000").unwrap()
}

fn name(version: u32) -> LogFileName {
    let token = Some("1-0-1".to_owned());
    LogFileName { file_id: "f-0".to_owned(), base_instant: instant(), version, token, cdc: false }
}

fn rollback() -> (BlockHeader, Bytes) {
    let header = BlockHeader::of_rollback(&instant(), &instant());
    let block = encode_block(BlockKind::Command, &header, b"").unwrap();
    (header, block)
}

#[test]
fn a_new_log_file_takes_the_next_free_version_and_tells_each_name_first() {
    let place = Place::new();
    let block = rollback().1;
    for (blocks, tried) in [(1, vec![3]), (2, vec![3, 4]), (1, vec![3, 4, 5])] {
        let mut told = Vec::new();
        let made = place.runtime.block_on(create_log_file(
            &place.storage,
            "p",
            name(3),
            vec![block.clone(); blocks],
            async |name: &LogFileName| {
                let path = place.folder.path().join(format!("p/{name}"));
                assert_eq!(path.exists(), told.len() + 1 < tried.len(), "told before it is made");
                told.push(name.version);
                Ok::<_, table::Error>(())
            },
        ));
        let (made, size) = made.unwrap();
        assert_eq!((&told, Some(&made.version)), (&tried, tried.last()));
        assert_eq!(size, (blocks * block.len()) as u64);
        assert_eq!(place.read(&made.to_string()), vec![&block[..]; blocks].concat());
    }
    assert_eq!(place.names(), [3, 4, 5].map(|version| name(version).to_string()));
}

#[test]
fn a_name_that_is_not_agreed_to_is_not_made() {
    let place = Place::new();
    let no = |name: &LogFileName| Err(table::Error::Marker { path: name.to_string(), why: "no".to_owned() });
    let made = place.runtime.block_on(create_log_file(&place.storage, "p", name(1), vec![], async |name| no(name)));
    assert_eq!(made.unwrap_err().code(), "table-marker");
    assert_eq!(LogWriter::create(&place.storage, "p", name(1), no).unwrap_err().code(), "table-marker");
    assert!(!place.folder.path().join("p").exists());
}

#[test]
fn a_streamed_log_file_is_seen_when_it_is_whole_and_replaces_nothing() {
    let place = Place::new();
    let (header, block) = rollback();
    let write = |tried: &mut Vec<u32>| {
        let mut writer = LogWriter::create(&place.storage, "p", name(1), |name| {
            tried.push(name.version);
            Ok::<_, table::Error>(())
        })
        .unwrap();
        for blocks in 1..=3 {
            writer.append(BlockKind::Command, &header, b"").unwrap();
            assert_eq!(writer.size(), blocks * block.len() as u64);
        }
        writer
    };
    let mut tried = Vec::new();
    let (first, second) = (write(&mut tried), write(&mut tried));
    drop(write(&mut tried));
    let listed = place.runtime.block_on(place.storage.list("p")).unwrap();
    assert_eq!(listed.files, [], "nothing is seen before it is whole");
    for (writer, version) in [(first, 1), (second, 2)] {
        let (name, size) = writer
            .finish(|name| {
                tried.push(name.version);
                Ok::<_, table::Error>(())
            })
            .unwrap();
        assert_eq!((name.version, size), (version, 3 * block.len() as u64));
        assert_eq!(place.read(&name.to_string()), [&block[..]; 3].concat());
    }
    assert_eq!(tried, [1, 1, 1, 2]);
    assert_eq!(place.names(), [1, 2].map(|version| name(version).to_string()), "nothing staged is left");
}

#[test]
fn a_file_of_many_pieces_is_read_as_one_of_few() {
    let place = Place::new();
    let schema = "s".repeat(700_000);
    let header = BlockHeader::of_write(&instant(), &schema);
    let record = vec![7; 300_000];
    let mut content = AvroContent::new();
    for _ in 0..5 {
        content.buffer().extend_from_slice(&(record.len() as u32).to_be_bytes());
        content.buffer().extend_from_slice(&record);
        content.add(1);
    }
    let mut writer = LogWriter::create(&place.storage, "p", name(1), |_| Ok::<_, table::Error>(())).unwrap();
    for _ in 0..3 {
        writer.append(BlockKind::AvroData, &header, content.content()).unwrap();
    }
    let (name, _) = writer.finish(|_| Ok::<_, table::Error>(())).unwrap();
    let path = format!("p/{name}");
    let mut reader = place.open(&path);
    let blocks: Vec<_> = reader.by_ref().map(|block| block.unwrap()).collect();
    assert_eq!(blocks.len(), 3);
    for block in &blocks {
        assert!(block.header == header);
        assert!(reader.content(block).unwrap() == content.content());
        for (piece, records) in [(10, vec![1; 5]), (700_000, vec![2, 2, 1]), (usize::MAX, vec![5])] {
            let pieces: Vec<_> = reader.pieces(block, piece).unwrap().map(|piece| piece.unwrap()).collect();
            assert_eq!(pieces.iter().map(AvroPiece::count).collect::<Vec<_>>(), records);
            assert!(pieces.iter().flat_map(|p| p.records()).all(|read| read.unwrap() == record));
        }
    }

    // Torn in its middle: the block before is there, and what is torn is found to the end of the file.
    let path = place.folder.path().join(&path);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..blocks[1].span.end as usize - 1]).unwrap();
    let torn: Vec<_> = place.open(&format!("p/{name}")).map(|block| block.unwrap().kind).collect();
    assert_eq!(torn, [BlockKind::AvroData, BlockKind::Corrupt]);
}

#[test]
fn errors_say_the_file_and_the_block() {
    let place = Place::new();
    std::fs::create_dir(place.folder.path().join("p")).unwrap();
    let mut log = std::fs::File::create(place.folder.path().join("p/log")).unwrap();
    log.write_all(&file()).unwrap();
    let of = |kind, header: &BlockHeader| encode_block(kind, header, b"\0\0\0\x01").unwrap();
    let plain = BlockHeader::of_write(&instant(), "{}");
    let partial = BlockHeader::of_entries(vec![(HeaderKey::IsPartial, "true".to_owned())]).unwrap();
    for block in [
        of(BlockKind::HfileData, &plain),
        of(BlockKind::CdcData, &plain),
        of(BlockKind::AvroData, &partial),
        of(BlockKind::AvroData, &plain),
    ] {
        log.write_all(&block).unwrap();
    }
    log.write_all(b"#HUDI#torn").unwrap();
    let mut reader = place.open("p/log");
    let blocks: Vec<_> = reader.by_ref().map(|block| block.unwrap()).collect();
    assert_eq!(reader.content(&blocks[2]).unwrap(), Bytes::new());
    for (block, says) in [
        (&blocks[3], "an HFile data block is not read here"),
        (&blocks[4], "a CDC data block"),
        (&blocks[5], "partial updates"),
        (&blocks[7], "a corrupt block"),
    ] {
        let error = reader.content(block).unwrap_err();
        assert_eq!(error.code(), "log-block-unsupported");
        let place = format!("block at byte {} of log file {}", block.offset(), place.storage.display("p/log"));
        assert!(error.to_string().contains(&place) && error.to_string().contains(says), "{error}");
    }
    let error = reader.pieces(&blocks[6], 100).map(drop).unwrap_err();
    assert!(error.to_string().contains("data block version 1"), "{error}");
    assert!(reader.pieces(&blocks[1], 100).is_err(), "deletes are no records");
}
