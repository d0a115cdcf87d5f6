//! A range of a partition as rows: read from its lane, decoded by the thread that polls.

use super::super::{Error, EventTimes, Rejected, Rejects, Result};
use super::append::Appended;
use super::decoder::{Decoder, Format, Made};
use super::lane::{Lane, Read, Taken, locked};
use super::pack;
use super::queue::Fetched;
use super::ranges::OffsetRange;
use super::tombstone::Tombstones;
use crate::schema::TableSchema;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const BATCH_ROWS: usize = 8192;
/// Bytes of messages in a batch: large messages make small batches.
const BATCH_BYTES: usize = 16 << 20;

/// What all pieces of a fetch share.
#[derive(Debug)]
pub(super) struct Shared {
    pub format: Format,
    /// What messages are decoded with.
    pub reader: TableSchema,
    pub positions: bool,
    pub append_offsets: bool,
    /// Messages without a value become rows that delete.
    pub tombstones: bool,
    pub rejects: Arc<Rejects>,
    pub bytes_read: Arc<AtomicU64>,
    pub without_value: Arc<AtomicU64>,
    pub times: Arc<EventTimes>,
}

/// One range, readable as often as wanted.
#[derive(Debug)]
pub(super) struct Piece {
    pub range: OffsetRange,
    pub lane: Arc<Mutex<Lane>>,
    pub shared: Arc<Shared>,
    /// Of the batches.
    pub schema: SchemaRef,
}

/// A piece being read.
struct Reader {
    range: OffsetRange,
    lane: Arc<Mutex<Lane>>,
    shared: Arc<Shared>,
    decoder: Decoder,
    /// A writer's schema to ask for, before anything else is decoded.
    wanted: Option<u32>,
    appended: Option<Appended>,
    tombstones: Option<Tombstones>,
    /// Where this reader is: another may read the same lane in between (a query that reads its input twice).
    at: i64,
    ended: bool,
}

impl Reader {
    fn new(piece: &Piece) -> Result<Reader> {
        let shared = piece.shared.clone();
        let mut decoder = Decoder::new(&shared.format, &shared.reader, shared.positions)?;
        let appended = shared.append_offsets.then(|| Appended::new(piece.range.partition, decoder.rows().schema()));
        let tombstones = shared.tombstones.then(|| Tombstones::new(piece.schema.clone()));
        Ok(Reader {
            range: piece.range,
            lane: piece.lane.clone(),
            shared,
            decoder,
            wanted: None,
            appended,
            tombstones,
            at: piece.range.from,
            ended: false,
        })
    }

    /// The next rows. None of them where none came for a moment, so that whoever asks can look around.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.ended {
            return Ok(None);
        }
        let lane = self.lane.clone();
        let mut lane = locked(&lane);
        lane.begin(self.at)?;
        self.ended = lane.read(self.range.until, |message| self.take(message))? == Read::End;
        self.at = lane.next();
        let mut batch = self.decoder.rows().flush();
        if let Some(appended) = &mut self.appended {
            batch = appended.attach(&batch)?;
        }
        if let Some(tombstones) = &mut self.tombstones {
            batch = tombstones.attach(&batch)?;
        }
        Ok(Some(batch))
    }

    fn take(&mut self, message: &Fetched) -> Result<Taken> {
        let position = pack(self.range.partition, message.offset());
        if let (Some(tombstones), None) = (&mut self.tombstones, message.value()) {
            self.decoder.rows().push_default(position);
            tombstones.push_key(message.key());
            return Ok(self.took(message));
        }
        // Hudi drops messages without a value, and of text those with an empty one (`JsonKafkaSource`, 1.0.2).
        let is_text = matches!(self.shared.format, Format::Json);
        let Some(value) = message.value().filter(|v| !(is_text && v.is_empty())) else {
            self.shared.without_value.fetch_add(1, Ordering::Relaxed);
            return Ok(Taken::More);
        };
        match self.decoder.decode(value, position) {
            Made::Row => {
                if let Some(tombstones) = &mut self.tombstones {
                    tombstones.push_row();
                }
                self.shared.bytes_read.fetch_add(value.len() as u64, Ordering::Relaxed);
                return Ok(self.took(message));
            }
            Made::Unknown(id) => {
                self.wanted = Some(id);
                return Ok(Taken::Again);
            }
            Made::Nothing { reason, code, why } => self.shared.rejects.refuse(Rejected {
                position: Some(position),
                reason,
                code,
                why,
                value: Some(value.to_vec()),
                key: message.key().map(<[u8]>::to_vec),
                timestamp_ms: message.timestamp(),
            })?,
        }
        self.shared.bytes_read.fetch_add(value.len() as u64, Ordering::Relaxed);
        Ok(Taken::More)
    }

    /// After a message that became a row.
    fn took(&mut self, message: &Fetched) -> Taken {
        if let Some(appended) = &mut self.appended {
            appended.push(message);
        }
        if let Some(ms) = message.timestamp() {
            self.shared.times.saw(ms);
        }
        let rows = self.decoder.rows();
        if rows.len() >= BATCH_ROWS || rows.bytes() >= BATCH_BYTES { Taken::Enough } else { Taken::More }
    }
}

impl PartitionStream for Piece {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let external = |e: Error| DataFusionError::External(Box::new(e));
        let batches = futures::stream::try_unfold(Reader::new(self), move |reader| async move {
            let mut reader = reader.map_err(external)?;
            if let Some(id) = reader.wanted.take() {
                reader.decoder.learn(&reader.shared.format, id).await.map_err(external)?;
            }
            // Waits for the broker; behind a transformer on a thread that others wait for too.
            let batch = tokio::task::block_in_place(|| reader.next_batch()).map_err(external)?;
            Ok(batch.map(|batch| (batch, Ok(reader))))
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
    }
}
