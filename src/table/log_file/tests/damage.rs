//! Files that are torn, cut, or made to mislead.

use super::vectors::file;
use super::*;

/// A block with fields of the test's choice; its lengths are right for what it has.
fn block(version: u32, kind: u32, header: &[u8], content: &[u8]) -> Vec<u8> {
    let length = 4 + 4 + header.len() + 8 + content.len() + 4 + 8;
    let mut bytes = b"#HUDI#".to_vec();
    bytes.extend_from_slice(&(length as u64).to_be_bytes());
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(header);
    bytes.extend_from_slice(&(content.len() as u64).to_be_bytes());
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(length as u64 + 6).to_be_bytes());
    bytes
}

/// A header map of count, keys and values of the test's choice.
fn header(count: u32, entries: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = count.to_be_bytes().to_vec();
    for (key, length, value) in entries {
        bytes.extend_from_slice(&key.to_be_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(value);
    }
    bytes
}

fn refused(bytes: &[u8], code: &str, says: &str) {
    let (offset, error) = scan(bytes).expect_err(says);
    assert_eq!((offset, error.code()), (0, code), "{error}");
    assert!(error.to_string().contains(says), "`{error}` does not say `{says}`");
}

#[test]
fn a_cut_file_has_the_blocks_before_the_cut() {
    let file = file();
    for cut in 0..=file.len() {
        let ends = [865, 1551, 1656];
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let rest = cut - ends.iter().rfind(|end| **end <= cut).unwrap_or(&0);
        let kinds = kinds(&file[..cut]);
        assert_eq!(
            kinds[..whole],
            [BlockKind::AvroData, BlockKind::Delete, BlockKind::Command][..whole],
            "cut at {cut}"
        );
        // Hudi takes less than a magic for the end of the file.
        let torn: &[BlockKind] = if rest < 6 { &[] } else { &[BlockKind::Corrupt] };
        assert_eq!(kinds[whole..], *torn, "cut at {cut}");
    }
}

#[test]
fn lengths_that_disagree_cost_the_block_and_nothing_else() {
    let file = file();
    let all = [BlockKind::AvroData, BlockKind::Delete, BlockKind::Command];
    for (place, value, lost) in [
        // Length.
        (6, u64::MAX, 0),
        (6, 0, 0),
        (6, 850, 0),
        (6, 852, 0),
        (6, i64::MAX as u64, 0),
        (6, 851 + (1 << 32), 0),
        (871, 1 << 40, 1),
        // Trailer.
        (857, 858, 0),
        (857, 0, 0),
        (1543, u64::MAX, 1),
        (1648, 96, 2),
    ] {
        let (mut file, mut want) = (file.clone(), all);
        file[place..place + 8].copy_from_slice(&value.to_be_bytes());
        want[lost] = BlockKind::Corrupt;
        assert_eq!(kinds(&file), want, "{value} at {place}");
    }
}

#[test]
fn what_follows_a_block_decides_over_it() {
    let file = file();
    for (rest, torn) in [("", false), ("#HUDI", false), ("junk!", false), ("junk!!", true), ("#HUDI!", true)] {
        let kinds = kinds(&[&file, rest.as_bytes()].concat());
        let want = if torn { BlockKind::Corrupt } else { BlockKind::Command };
        assert_eq!(kinds, [BlockKind::AvroData, BlockKind::Delete, want], "{rest}");
    }
    assert_eq!(kinds(b""), []);
    assert_eq!(kinds(b"#HUDI"), []);
    refused(b"PAR1PAR1", "log-block-malformed", "begins with #HUDI#");
    refused(&file[1..], "log-block-malformed", "begins with #HUDI#");
}

#[test]
fn whole_blocks_that_make_no_sense_are_refused() {
    let instant = header(1, &[(0, 17, b"20240101000000000")]);
    let rollback = |command: &'static [u8]| header(1, &[(3, command.len() as u32, command)]);
    assert_eq!(kinds(&block(1, 3, &instant, b"")), [BlockKind::AvroData]);
    for (bytes, code, says) in [
        (block(0, 3, &instant, b""), "log-block-unsupported", "log format version 0"),
        (block(2, 3, &instant, b""), "log-block-unsupported", "log format version 2"),
        (block(1, 2, &instant, b""), "log-block-unsupported", "block type 2"),
        (block(1, 7, &instant, b""), "log-block-unsupported", "block type 7"),
        (block(1, u32::MAX, &instant, b""), "log-block-unsupported", "block type 4294967295"),
        (block(1, 0, &instant, b""), "log-block-unsupported", "command `none`"),
        (block(1, 0, &rollback(b"1"), b""), "log-block-unsupported", "command `1`"),
        (block(1, 3, &header(2, &[]), b""), "log-block-malformed", "does not end within the block"),
        (block(1, 3, &header(u32::MAX, &[]), b""), "log-block-malformed", "does not end within the block"),
        (block(1, 3, &header(1, &[(2, u32::MAX, b"{}")]), b""), "log-block-malformed", "of 4294967295 bytes"),
        (block(1, 3, &header(1, &[(9, 0, b"")]), b""), "log-block-unsupported", "header key 9"),
        (block(1, 3, &header(1, &[(2, 1, b"\xff")]), b""), "log-block-malformed", "Schema is not UTF-8"),
        (block(1, 3, &header(1, &[(0, 3, b"now")]), b""), "log-block-malformed", "`now`, no instant"),
        (block(1, 3, b"", b""), "log-block-malformed", "does not end within the block"),
        // The header eats the length of the content.
        (block(1, 3, &header(1, &[(2, 2, b"")]), b""), "log-block-malformed", ""),
        // The content is shorter than its place.
        (
            block(1, 3, &[&instant[..], &[0; 8]].concat(), b"content"),
            "log-block-malformed",
            "between footer and trailer",
        ),
    ] {
        refused(&bytes, code, says);
    }
}

#[test]
fn footers_and_headers_of_other_writers_do_no_harm() {
    let mut bytes = block(1, 3, &header(2, &[(5, 4, b"OjAA"), (6, 3, b"0,1")]), b"content");
    let footer = header(1, &[(6, 1, b"x")]);
    let (at, added) = (bytes.len() - 12, footer.len() - 4);
    let length = (bytes.len() - 14 + added) as u64;
    bytes.splice(at..at + 4, footer);
    bytes[6..14].copy_from_slice(&length.to_be_bytes());
    bytes.splice(bytes.len() - 8.., (length + 6).to_be_bytes());
    let blocks = scan(&bytes).unwrap();
    assert_eq!(blocks[0].header.get(HeaderKey::RecordPositions), Some("OjAA"));
    assert_eq!(blocks[0].header.get(HeaderKey::BlockIdentifier), Some("0,1"));
    assert_eq!(content(&bytes, &blocks[0]), b"content");
}

#[test]
fn contents_that_do_not_add_up_are_refused() {
    let data =
        |version: u32, count: u32, rest: &[u8]| [&version.to_be_bytes()[..], &count.to_be_bytes(), rest].concat();
    let read = |bytes: &[u8]| -> std::result::Result<Vec<Vec<u8>>, BlockError> {
        avro_records(bytes)?.map(|record| record.map(<[u8]>::to_vec)).collect()
    };
    assert_eq!(read(&data(3, 2, b"\0\0\0\x01a\0\0\0\0")).unwrap(), [b"a".to_vec(), vec![]]);
    assert_eq!(read(&data(2, 1, b"\0\0\0\x01a")).unwrap(), [b"a"]);
    for (bytes, code, says) in [
        (data(1, 0, b""), "log-block-unsupported", "data block version 1"),
        (data(4, 0, b""), "log-block-unsupported", "data block version 4"),
        (b"\0\0\0\x03\0\0".to_vec(), "log-block-malformed", "content of 6 bytes"),
        (data(3, u32::MAX, b""), "log-block-malformed", "of -1 records"),
        (data(3, 1, b""), "log-block-malformed", "ends at byte 8, 1 records early"),
        (data(3, 2, b"\0\0\0\x01a\0\0\0\x02a"), "log-block-malformed", "ends at byte 13, 1 records early"),
        (data(3, 1, b"\xff\xff\xff\xffa"), "log-block-malformed", "1 records early"),
        (data(3, 1, b"\0\0\0\x01aa"), "log-block-malformed", "1 bytes follow the last record"),
    ] {
        let error = read(&bytes).expect_err(says);
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(says), "`{error}` does not say `{says}`");
    }

    let deletes = |payload: &[u8]| [&3_u32.to_be_bytes()[..], &(payload.len() as u32).to_be_bytes(), payload].concat();
    // One record in a block that says its size, then the end.
    assert_eq!(all_deletes(&deletes(b"\x01\x0e\x02\x02k\x02\x02p\0\0")).unwrap()[0].ordering, OrderingValue::Null);
    assert_eq!(all_deletes(&deletes(b"\0")).unwrap(), []);
    for (bytes, code, says) in [
        (1_u32.to_be_bytes().to_vec(), "log-block-unsupported", "version 1 (serialized by Kryo"),
        (2_u32.to_be_bytes().to_vec(), "log-block-unsupported", "version 2 (serialized by Kryo"),
        (0_u32.to_be_bytes().to_vec(), "log-block-unsupported", "delete block version 0"),
        (b"\0\0\0\x03\0\0\0\x02\0".to_vec(), "log-block-malformed", "has 2 bytes and has 1"),
        (deletes(b""), "log-block-malformed", "the list ends before"),
        (deletes(b"\0\0"), "log-block-malformed", "1 bytes follow the list"),
        (deletes(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "log-block-malformed", "the list ends before"),
        (deletes(&[0x80; 11]), "log-block-malformed", "more than ten bytes"),
        (deletes(b"\x02\0\0\0\0"), "log-block-malformed", "without a record key"),
        (deletes(b"\x02\x02\x01"), "log-block-malformed", "a length of -1"),
        (deletes(b"\x02\x02\x02\xff"), "log-block-malformed", "not UTF-8"),
        (deletes(b"\x02\x02\x02k\x04"), "log-block-malformed", "branch 2"),
        (deletes(b"\x02\x02\x02k\0\x18"), "log-block-malformed", "of branch 12"),
        (deletes(b"\x02\x02\x02k\0\x04\x80\x80\x80\x80\x10"), "log-block-malformed", "2147483648 is no int"),
        (deletes(b"\x02\x02\x02k\0\x12\0"), "log-block-malformed", "a decimal of 0 bytes"),
        (
            deletes(&[&b"\x02\x02\x02k\0\x12\x22"[..], &[1; 17]].concat()),
            "log-block-malformed",
            "a decimal of 17 bytes",
        ),
    ] {
        let error = all_deletes(&bytes).expect_err(says);
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(says), "`{error}` does not say `{says}`");
    }
}

#[test]
fn a_changed_byte_harms_its_own_block_only() {
    let file = file();
    let blocks = scan(&file).unwrap();
    for at in 0..file.len() {
        let (before, rest) = file.split_at(at);
        let own = blocks.iter().position(|block| block.span.contains(&(at as u64))).unwrap();
        // A magic that is gone takes the block before with it.
        let safe = if (at as u64) < blocks[own].span.start + 6 { own.saturating_sub(1) } else { own };
        let byte = rest[0];
        for new in [&[byte ^ 1][..], &[byte ^ 0x80], &[0xff], &[0], &[], &[b'#', byte]] {
            let changed = [before, new, &rest[1..]].concat();
            read_all::file(&changed);
            read_all::file(&read_all::repair(&changed, at % 2 == 0));
            match scan(&changed) {
                Ok(read) => {
                    assert_eq!(read[..safe], blocks[..safe], "{new:?} at {at}");
                    let after = blocks.len() - own - 1;
                    for (read, was) in read[read.len() - after..].iter().zip(&blocks[own + 1..]) {
                        assert_eq!((read.kind, &read.header), (was.kind, &was.header), "{new:?} at {at}");
                        assert_eq!(content(&changed, read), content(&file, was), "{new:?} at {at}");
                    }
                }
                Err((offset, _)) => assert_eq!(offset, blocks[own].span.start, "{new:?} at {at}"),
            }
        }
    }
}
