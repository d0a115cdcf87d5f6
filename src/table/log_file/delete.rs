//! Content of delete blocks: `version, length`, and a `HoodieDeleteRecordList` in bare Avro (log-file.md §5).

use super::BlockError;

/// `HoodieDeleteBlock.version`; 1 and 2 hold what Java's and Kryo's serialization make.
const VERSION: u32 = 3;

/// Version and length.
const HEAD: usize = 8;

/// The ordering value of a delete, by the branches of `HoodieDeleteRecord.orderingVal`. Readers compare two values only
/// where both have the same Java class.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderingValue {
    /// Not safe to write: Hudi's merge fails on it. A delete without an ordering value has `Int(0)`.
    Null,
    Boolean(bool),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
    Text(String),
    /// Days since 1970.
    Date(i32),
    /// With 15 fraction digits.
    Decimal {
        unscaled: i128,
    },
    TimeMicros(i64),
    TimestampMicros(i64),
}

/// One deleted key.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteRecord<'a> {
    pub key: &'a str,
    pub partition: &'a str,
    pub ordering: OrderingValue,
}

impl DeleteRecord<'_> {
    /// Bytes in a delete block, at most.
    pub fn size(&self) -> u64 {
        // Branches, lengths, and an ordering value of fixed length.
        const BESIDES: usize = 3 + 3 * 10 + 16;
        let ordering = match &self.ordering {
            OrderingValue::Bytes(bytes) => bytes.len(),
            OrderingValue::Text(text) => text.len(),
            _ => 0,
        };
        (BESIDES + self.key.len() + self.partition.len() + ordering) as u64
    }
}

/// The content of a delete block.
pub fn encode_deletes(records: &[DeleteRecord<'_>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + records.iter().map(|r| 16 + r.key.len() + r.partition.len()).sum::<usize>());
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    if !records.is_empty() {
        put_long(&mut out, records.len() as i64);
        for record in records {
            put_long(&mut out, 1);
            put_bytes(&mut out, record.key.as_bytes());
            put_long(&mut out, 1);
            put_bytes(&mut out, record.partition.as_bytes());
            put_ordering(&mut out, &record.ordering);
        }
    }
    put_long(&mut out, 0);
    // More than 4 GiB is more than a block may have: `encode_block` refuses it.
    let length = (out.len() - HEAD) as u32;
    out[4..HEAD].copy_from_slice(&length.to_be_bytes());
    out
}

/// The records of a delete block's content, one by one. An error is the last item.
pub fn decode_deletes(content: &[u8]) -> Result<DeleteRecords<'_>, BlockError> {
    let short = || BlockError::malformed(format!("a delete block's content of {} bytes", content.len()));
    let (version, rest) = content.split_first_chunk().ok_or_else(short)?;
    match u32::from_be_bytes(*version) {
        VERSION => {}
        version @ 1..VERSION => {
            let what = format!("delete block version {version} (serialized by Kryo, before Hudi 0.13)");
            return Err(BlockError::Unsupported { what, hint: "compact the table with the Hudi that wrote it" });
        }
        version => {
            let what = format!("delete block version {version}");
            return Err(BlockError::Unsupported { what, hint: "compact the table with the Hudi that wrote it" });
        }
    }
    let (length, payload) = rest.split_first_chunk().ok_or_else(short)?;
    if u32::from_be_bytes(*length) as usize != payload.len() {
        let (says, is) = (u32::from_be_bytes(*length), payload.len());
        return Err(BlockError::malformed(format!("a delete block says that it has {says} bytes and has {is}")));
    }
    Ok(DeleteRecords { datum: Datum { bytes: payload, at: 0 }, left: 0, ended: false })
}

/// The records of a delete block that are still to come.
#[derive(Debug)]
pub struct DeleteRecords<'a> {
    datum: Datum<'a>,
    /// In the block of the array that is being read.
    left: u64,
    ended: bool,
}

impl<'a> Iterator for DeleteRecords<'a> {
    type Item = Result<DeleteRecord<'a>, BlockError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.record().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl<'a> DeleteRecords<'a> {
    fn record(&mut self) -> Result<Option<DeleteRecord<'a>>, BlockError> {
        let datum = &mut self.datum;
        while self.left == 0 {
            self.left = match datum.long()? {
                0 => return datum.end().map(|()| None),
                // A negative count is followed by the block's bytes, for those who skip it.
                negative @ ..0 => {
                    datum.long()?;
                    negative.unsigned_abs()
                }
                count => count.unsigned_abs(),
            };
        }
        self.left -= 1;
        let key = datum.optional_text()?.ok_or_else(|| datum.malformed("a delete without a record key"))?;
        let partition = datum.optional_text()?.unwrap_or_default();
        Ok(Some(DeleteRecord { key, partition, ordering: datum.ordering()? }))
    }
}

fn put_ordering(out: &mut Vec<u8>, value: &OrderingValue) {
    let branch = match value {
        OrderingValue::Null => 0,
        OrderingValue::Boolean(_) => 1,
        OrderingValue::Int(_) => 2,
        OrderingValue::Long(_) => 3,
        OrderingValue::Float(_) => 4,
        OrderingValue::Double(_) => 5,
        OrderingValue::Bytes(_) => 6,
        OrderingValue::Text(_) => 7,
        OrderingValue::Date(_) => 8,
        OrderingValue::Decimal { .. } => 9,
        OrderingValue::TimeMicros(_) => 10,
        OrderingValue::TimestampMicros(_) => 11,
    };
    put_long(out, branch);
    match value {
        OrderingValue::Null => {}
        OrderingValue::Boolean(v) => out.push(u8::from(*v)),
        OrderingValue::Int(v) | OrderingValue::Date(v) => put_long(out, i64::from(*v)),
        OrderingValue::Long(v) | OrderingValue::TimeMicros(v) | OrderingValue::TimestampMicros(v) => put_long(out, *v),
        OrderingValue::Float(v) => out.extend_from_slice(&v.to_le_bytes()),
        OrderingValue::Double(v) => out.extend_from_slice(&v.to_le_bytes()),
        OrderingValue::Bytes(v) => put_bytes(out, v),
        OrderingValue::Text(v) => put_bytes(out, v.as_bytes()),
        OrderingValue::Decimal { unscaled } => put_bytes(out, shortest(&unscaled.to_be_bytes())),
    }
}

/// Two's complement without bytes that say nothing, as Java's `BigInteger.toByteArray`.
fn shortest(bytes: &[u8; 16]) -> &[u8] {
    let idle = bytes.windows(2).take_while(|w| matches!(w, [0x00, 0x00..=0x7f] | [0xff, 0x80..=0xff])).count();
    &bytes[idle..]
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_long(out, bytes.len() as i64);
    out.extend_from_slice(bytes);
}

/// Zig-zag, seven bits a byte, low bits first.
fn put_long(out: &mut Vec<u8>, value: i64) {
    let mut bits = ((value << 1) ^ (value >> 63)) as u64;
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

/// An Avro datum that is being read.
#[derive(Debug)]
struct Datum<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Datum<'a> {
    fn malformed(&self, why: &str) -> BlockError {
        BlockError::malformed(format!("byte {} of a delete block's list: {why}", self.at))
    }

    fn end(&self) -> Result<(), BlockError> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            surplus => Err(self.malformed(&format!("{surplus} bytes follow the list"))),
        }
    }

    fn ordering(&mut self) -> Result<OrderingValue, BlockError> {
        Ok(match self.long()? {
            0 => OrderingValue::Null,
            1 => OrderingValue::Boolean(self.take(1)?[0] != 0),
            2 => OrderingValue::Int(self.int()?),
            3 => OrderingValue::Long(self.long()?),
            4 => OrderingValue::Float(f32::from_le_bytes(self.array()?)),
            5 => OrderingValue::Double(f64::from_le_bytes(self.array()?)),
            6 => OrderingValue::Bytes(self.byte_string()?.to_vec()),
            7 => OrderingValue::Text(self.text()?.to_owned()),
            8 => OrderingValue::Date(self.int()?),
            9 => OrderingValue::Decimal { unscaled: self.decimal()? },
            10 => OrderingValue::TimeMicros(self.long()?),
            11 => OrderingValue::TimestampMicros(self.long()?),
            branch => return Err(self.malformed(&format!("an ordering value of branch {branch}"))),
        })
    }

    fn decimal(&mut self) -> Result<i128, BlockError> {
        let bytes = self.byte_string()?;
        let fill = if bytes.first().is_some_and(|b| *b >= 0x80) { 0xff } else { 0 };
        let mut all = [fill; 16];
        let start = all.len().checked_sub(bytes.len()).filter(|_| !bytes.is_empty());
        let start = start.ok_or_else(|| self.malformed(&format!("a decimal of {} bytes", bytes.len())))?;
        all[start..].copy_from_slice(bytes);
        Ok(i128::from_be_bytes(all))
    }

    fn optional_text(&mut self) -> Result<Option<&'a str>, BlockError> {
        match self.long()? {
            0 => Ok(None),
            1 => self.text().map(Some),
            branch => Err(self.malformed(&format!("an optional text of branch {branch}"))),
        }
    }

    fn text(&mut self) -> Result<&'a str, BlockError> {
        std::str::from_utf8(self.byte_string()?).map_err(|_| self.malformed("a text that is not UTF-8"))
    }

    fn byte_string(&mut self) -> Result<&'a [u8], BlockError> {
        let length = self.long()?;
        let length = usize::try_from(length).map_err(|_| self.malformed(&format!("a length of {length}")))?;
        self.take(length)
    }

    fn int(&mut self) -> Result<i32, BlockError> {
        let value = self.long()?;
        i32::try_from(value).map_err(|_| self.malformed(&format!("{value} is no int")))
    }

    fn long(&mut self) -> Result<i64, BlockError> {
        let mut bits = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.take(1)?[0];
            bits |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((bits >> 1) as i64 ^ -((bits & 1) as i64));
            }
        }
        Err(self.malformed("a number of more than ten bytes"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BlockError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], BlockError> {
        let end = self.at.checked_add(length);
        let bytes = end.and_then(|end| self.bytes.get(self.at..end));
        let bytes = bytes.ok_or_else(|| self.malformed(&format!("{length} bytes are wanted, the list ends before")))?;
        self.at += length;
        Ok(bytes)
    }
}
