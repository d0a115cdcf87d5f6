//! The begin of a page header (`PageHeader` of parquet.thrift, compact protocol): page type, uncompressed and compressed
//! size, which every writer puts first and in this order. Whatever follows is left as it is.

use std::ops::Range;

const DATA_PAGE: u32 = 0;
const DICTIONARY_PAGE: u32 = 2;

/// Field header of an i32 whose number is one more than the last field's.
const NEXT_I32: u8 = 0x15;

#[derive(Debug)]
pub(super) struct PageHeader {
    page_type: u32,
    pub(super) uncompressed_size: usize,
    pub(super) compressed_size: usize,
    /// Where in the header the compressed size is.
    at: Range<usize>,
}

impl PageHeader {
    /// `None` if `bytes` do not begin as a page header does, or if a size is negative.
    pub(super) fn parse(bytes: &[u8]) -> Option<PageHeader> {
        let mut at = 0..0;
        let mut field = || {
            let (tag, rest) = bytes.get(at.end..)?.split_first()?;
            let (value, length) = (*tag == NEXT_I32).then(|| varint(rest))??;
            at = at.end + 1..at.end + 1 + length;
            // Zigzag: an odd number is a negative one.
            (value % 2 == 0).then_some(value / 2)
        };
        let (page_type, uncompressed, compressed) = (field()?, field()?, field()?);
        let (uncompressed_size, compressed_size) = (uncompressed as usize, compressed as usize);
        Some(PageHeader { page_type, uncompressed_size, compressed_size, at })
    }

    pub(super) fn is_dictionary(&self) -> bool {
        self.page_type == DICTIONARY_PAGE
    }

    /// A dictionary page, or a data page of version 1: what is compressed is all of it.
    pub(super) fn is_compressed_whole(&self) -> bool {
        matches!(self.page_type, DATA_PAGE | DICTIONARY_PAGE)
    }

    /// `header`, which this was parsed from, with another compressed size.
    pub(super) fn with_compressed_size(&self, header: &[u8], size: usize) -> Vec<u8> {
        let mut changed = Vec::with_capacity(header.len() + 5);
        changed.extend_from_slice(&header[..self.at.start]);
        let mut rest = 2 * size as u64;
        while rest > 0x7f {
            changed.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        changed.push(rest as u8);
        changed.extend_from_slice(&header[self.at.end..]);
        changed
    }
}

/// The number, and how many bytes it takes.
fn varint(bytes: &[u8]) -> Option<(u32, usize)> {
    let last = bytes.iter().take(5).position(|byte| byte & 0x80 == 0)?;
    let value = bytes[..=last].iter().rev().fold(0, |value: u64, byte| value << 7 | u64::from(byte & 0x7f));
    Some((u32::try_from(value).ok()?, last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_size_is_found_and_replaced() {
        // Data page of 1,048,576 bytes, compressed to 5, and what follows.
        let header = [0x15, 0, 0x15, 0x80, 0x80, 0x80, 0x01, 0x15, 0x0a, 0x2c, 0x15, 0x02, 0];
        let parsed = PageHeader::parse(&header).unwrap();
        assert_eq!((parsed.uncompressed_size, parsed.compressed_size), (1 << 20, 5));
        assert!(parsed.is_compressed_whole() && !parsed.is_dictionary());
        for size in [0, 1, 63, 64, 8191, 8192, 1 << 20, i32::MAX as usize] {
            let changed = parsed.with_compressed_size(&header, size);
            let again = PageHeader::parse(&changed).unwrap();
            assert_eq!((again.uncompressed_size, again.compressed_size), (1 << 20, size));
            assert!(changed.ends_with(&header[9..]));
        }
        assert_eq!(parsed.with_compressed_size(&header, 5), header);
    }

    #[test]
    fn what_begins_otherwise_is_no_page_header() {
        for bytes in [
            &[][..],
            &[0x15],
            &[0x15, 0, 0x15, 2, 0x15],
            &[0x15, 0, 0x15, 2, 0x15, 0x80],
            &[0x15, 0, 0x15, 2, 0x15, 1, 0],
            &[0x15, 0, 0x25, 2, 0x15, 2, 0],
            &[0x16, 0, 0x15, 2, 0x15, 2, 0],
            &[0x15, 0, 0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0x15, 2],
            &[0x15, 0, 0x15, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x15, 2],
        ] {
            assert!(PageHeader::parse(bytes).is_none(), "{bytes:x?}");
        }
    }
}
