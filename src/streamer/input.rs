//! The rows of one fetch, brought to the writer schema and keyed, on blocking threads.

use super::refuse::Refuser;
use super::{Error, Result};
use crate::record::{self, KeyGenerator, KeyedBatch, RowRef};
use crate::schema::{self, Sifted};
use crate::source::{self, POSITION_COLUMN, Reason, Rejects, Source, hidden_columns};
use crate::transform::Transformed;
use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::{Schema, SchemaRef, UInt64Type};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// Rows as the source and the transformers give them, and the schema they are to be written in.
pub(super) struct Input {
    pub transformed: Transformed,
    pub writer: SchemaRef,
    /// Reads positions, for messages.
    pub source: Arc<dyn Source>,
    pub workers: usize,
    /// Counts the rows that were read.
    pub rows_read: Arc<AtomicU64>,
    pub rejects: Arc<Rejects>,
}

/// The writer schema with the hidden columns behind it that the rows carry.
pub(super) fn with_hidden(writer: &SchemaRef, rows: &SchemaRef) -> SchemaRef {
    let hidden = &rows.fields()[rows.fields().len() - hidden_columns(rows)..];
    if hidden.is_empty() {
        return writer.clone();
    }
    Arc::new(Schema::new(writer.fields().iter().chain(hidden).cloned().collect::<Vec<_>>()))
}

/// Brings the data columns to the writer schema and keeps hidden ones, if any, last; rows that do not fit are refused.
fn conform(batch: RecordBatch, writer: &SchemaRef, refuser: &Refuser) -> std::result::Result<RecordBatch, Unfit> {
    let width = batch.num_columns() - hidden_columns(batch.schema_ref());
    let mut hidden = batch.columns()[width..].to_vec();
    let data = match hidden.is_empty() {
        true => batch.clone(),
        false => batch
            .project(&(0..width).collect::<Vec<_>>())
            .map_err(|e| schema::Error::internal("drop the hidden columns", e))?,
    };
    let position = batch.column_by_name(POSITION_COLUMN);
    let Sifted { rows, refused } = schema::sift(&data, writer)?;
    for (row, cause) in &refused {
        let position = position.map(|p| p.as_primitive::<UInt64Type>().value(*row));
        let refused = refuser.row(&data, *row, position, Reason::RecordSchema, cause.code(), cause.to_string());
        if refused.is_break() {
            return Err(Unfit::Enough(source::Error::EnoughBadRecords));
        }
    }
    if hidden.is_empty() {
        return Ok(rows);
    }
    if !refused.is_empty() {
        let mut good = vec![true; batch.num_rows()];
        refused.iter().for_each(|(row, _)| good[*row] = false);
        let good = good.into();
        hidden = hidden
            .iter()
            .map(|column| arrow::compute::filter(column, &good))
            .collect::<std::result::Result<_, _>>()
            .map_err(|e| schema::Error::internal("take bad rows out", e))?;
    }
    let columns = rows.columns().iter().cloned().chain(hidden).collect();
    RecordBatch::try_new(with_hidden(writer, batch.schema_ref()), columns)
        .map_err(|e| Unfit::Schema(schema::Error::internal("put the hidden columns back", e)))
}

/// Why no rows of a batch can be had.
enum Unfit {
    Schema(schema::Error),
    Enough(source::Error),
}

impl From<schema::Error> for Unfit {
    fn from(e: schema::Error) -> Unfit {
        Unfit::Schema(e)
    }
}

impl From<Unfit> for DataFusionError {
    fn from(e: Unfit) -> DataFusionError {
        match e {
            Unfit::Schema(e) => DataFusionError::External(Box::new(e)),
            Unfit::Enough(e) => DataFusionError::External(Box::new(e)),
        }
    }
}

impl Input {
    fn pieces(&self) -> usize {
        self.transformed.plan.output_partitioning().partition_count()
    }

    /// The rows of each piece, in the writer schema, for an operation that streams.
    pub fn streams(&self) -> Result<Vec<SendableRecordBatchStream>> {
        (0..self.pieces()).map(|piece| self.stream(piece)).collect()
    }

    fn stream(&self, piece: usize) -> Result<SendableRecordBatchStream> {
        let rows =
            self.transformed.plan.execute(piece, self.transformed.context.clone()).map_err(|e| self.input_error(e))?;
        let writer = self.writer.clone();
        let schema = with_hidden(&self.writer, &rows.schema());
        let rows_read = self.rows_read.clone();
        let refuser = Refuser(self.rejects.clone());
        let conformed = rows.map(move |batch| {
            let batch = batch?;
            rows_read.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            Ok(conform(batch, &writer, &refuser)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, conformed)))
    }

    /// The same key generator, which refuses rows of this input instead of failing at them.
    pub fn sifting(&self, keys: KeyGenerator) -> KeyGenerator {
        keys.refusing(Refuser(self.rejects.clone()).of_records())
    }

    /// Reads and keys everything: the workers share the pieces, the batches come back in input order.
    pub async fn collect(&self, keys: &KeyGenerator, cancel: &CancellationToken) -> Result<Vec<KeyedBatch>> {
        let pieces = self.streams()?.into_iter().enumerate().collect::<VecDeque<_>>();
        let count = pieces.len();
        let queue = Arc::new(Mutex::new(pieces));
        let workers: Vec<_> = (0..self.workers.clamp(1, count.max(1)))
            .map(|_| {
                let (queue, keys, cancel) = (queue.clone(), keys.clone(), cancel.clone());
                let handle = tokio::runtime::Handle::current();
                tokio::task::spawn_blocking(
                    move || -> std::result::Result<Vec<(usize, Vec<KeyedBatch>)>, CollectError> {
                        let mut done = Vec::new();
                        loop {
                            let next = queue.lock().expect("no worker panics while it holds the queue").pop_front();
                            let Some((piece, mut rows)) = next else { return Ok(done) };
                            let mut batches = Vec::new();
                            while let Some(batch) = handle.block_on(rows.next()) {
                                if cancel.is_cancelled() {
                                    return Err(CollectError::Cancelled);
                                }
                                let keyed = batch
                                    .map_err(CollectError::Input)
                                    .and_then(|b| keys.key(&b).map_err(CollectError::Record));
                                match keyed {
                                    Ok(keyed) if keyed.rows.num_rows() > 0 => batches.push(keyed),
                                    Ok(_) => {}
                                    Err(e) => {
                                        // The others need not read on: the round has failed.
                                        queue.lock().expect("no worker panics while it holds the queue").clear();
                                        return Err(e);
                                    }
                                }
                            }
                            done.push((piece, batches));
                        }
                    },
                )
            })
            .collect();
        let mut read: Vec<Vec<KeyedBatch>> = vec![Vec::new(); count];
        let mut failed = None;
        for worker in workers {
            match worker.await.map_err(|e| Error::Worker { what: "read the input", why: e.to_string() })? {
                Ok(done) => done.into_iter().for_each(|(piece, batches)| read[piece] = batches),
                Err(e) => failed = failed.or(Some(e)),
            }
        }
        match failed {
            None => {
                self.verdict().await?;
                Ok(read.into_iter().flatten().collect())
            }
            Some(CollectError::Cancelled) => Err(Error::Interrupted),
            Some(CollectError::Input(e)) => Err(self.read_error(e).await),
            Some(CollectError::Record(e)) => Err(self.record_error(e).await),
        }
    }

    /// Whether what was read may be committed: asked when all is read.
    pub async fn verdict(&self) -> Result<()> {
        Ok(self.rejects.verdict(&*self.source, self.rows_read.load(Ordering::Relaxed)).await?)
    }

    /// Why reading ended early; where bad records ended it, what is to be said of these.
    pub async fn read_error(&self, error: DataFusionError) -> Error {
        match self.input_error(error) {
            Error::Room(room) if matches!(*room, crate::Error::Source(source::Error::EnoughBadRecords)) => {
                self.verdict().await.err().unwrap_or(Error::Room(room))
            }
            error => error,
        }
    }

    /// The same of keying.
    pub async fn record_error(&self, error: record::Error) -> Error {
        match error {
            record::Error::Stopped => self.verdict().await.err().unwrap_or(Error::from(error)),
            error => Error::from(error),
        }
    }

    /// Finds the room that failed inside an error of the plan.
    pub fn input_error(&self, error: DataFusionError) -> Error {
        let error = match error.find_root() {
            DataFusionError::External(_) => error,
            _ => return Error::from(crate::transform::Error::from_plan(&error)),
        };
        match external(error) {
            Ok(found) => match found.downcast::<source::Error>() {
                Ok(e) => Error::from(*e),
                Err(found) => match found.downcast::<crate::schema::Error>() {
                    Ok(e) => Error::from(*e),
                    Err(found) => Error::Worker { what: "read the input", why: found.to_string() },
                },
            },
            Err(e) => Error::from(crate::transform::Error::from_plan(&e)),
        }
    }
}

/// The chosen rows of keyed batches, as one stream without positions.
pub(super) fn stream_of(schema: SchemaRef, batches: Vec<KeyedBatch>, rows: Vec<RowRef>) -> SendableRecordBatchStream {
    let mut chosen: Vec<Vec<u32>> = vec![Vec::new(); batches.len()];
    rows.into_iter().for_each(|r| chosen[r.batch as usize].push(r.row));
    let taken = batches.into_iter().zip(chosen).filter(|(_, rows)| !rows.is_empty()).map(|(batch, rows)| {
        let rows = UInt32Array::from(rows);
        arrow::compute::take_record_batch(&batch.rows, &rows).map_err(DataFusionError::from)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(taken)))
}

/// The room's own error inside a plan's error, through the wrappers that DataFusion puts around it.
fn external(error: DataFusionError) -> std::result::Result<Box<dyn std::error::Error + Send + Sync>, DataFusionError> {
    match error {
        DataFusionError::External(e) => match e.downcast::<DataFusionError>() {
            Ok(inner) => external(*inner),
            Err(e) => Ok(e),
        },
        DataFusionError::Context(_, inner) => external(*inner),
        other => Err(other),
    }
}

enum CollectError {
    Input(DataFusionError),
    Record(record::Error),
    Cancelled,
}
