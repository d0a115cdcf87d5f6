//! The rows of one fetch, brought to the writer schema and keyed, on blocking threads.

use super::{Error, Result};
use crate::record::{KeyGenerator, KeyedBatch, RowRef};
use crate::schema;
use crate::source::{POSITION_COLUMN, Rejects, Source};
use crate::transform::Transformed;
use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
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

/// The writer schema with the position column behind it, if the rows carry one.
pub(super) fn with_position(writer: &SchemaRef, rows: &SchemaRef) -> SchemaRef {
    if rows.fields().last().is_none_or(|f| f.name() != POSITION_COLUMN) {
        return writer.clone();
    }
    let position = Arc::new(Field::new(POSITION_COLUMN, DataType::UInt64, false));
    Arc::new(Schema::new(writer.fields().iter().cloned().chain([position]).collect::<Vec<_>>()))
}

/// Brings the data columns to the writer schema and keeps the position column, if any, last.
fn conform(batch: RecordBatch, writer: &SchemaRef) -> std::result::Result<RecordBatch, schema::Error> {
    let width = batch.num_columns();
    if width == 0 || batch.schema_ref().field(width - 1).name() != POSITION_COLUMN {
        return schema::admit(&batch, writer);
    }
    let position: ArrayRef = batch.column(width - 1).clone();
    let data: Vec<usize> = (0..width - 1).collect();
    let rows = batch.project(&data).map_err(|e| schema::Error::internal("drop the position column", e))?;
    let rows = schema::admit(&rows, writer)?;
    let columns = rows.columns().iter().cloned().chain([position]).collect();
    RecordBatch::try_new(with_position(writer, batch.schema_ref()), columns)
        .map_err(|e| schema::Error::internal("put the position column back", e))
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
        let schema = with_position(&self.writer, &rows.schema());
        let rows_read = self.rows_read.clone();
        let conformed = rows.map(move |batch| {
            let batch = batch?;
            rows_read.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            conform(batch, &writer).map_err(|e| DataFusionError::External(Box::new(e)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, conformed)))
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

    /// Why reading ended early; where bad records ended it, the first of them.
    pub async fn read_error(&self, error: DataFusionError) -> Error {
        let error = self.input_error(error);
        if let Error::Room(room) = &error
            && matches!(**room, crate::Error::Source(crate::source::Error::EnoughBadRecords))
            && let Err(verdict) = self.verdict().await
        {
            return verdict;
        }
        error
    }

    /// Finds the room that failed inside an error of the plan.
    pub fn input_error(&self, error: DataFusionError) -> Error {
        let error = match error.find_root() {
            DataFusionError::External(_) => error,
            _ => return Error::from(crate::transform::Error::from_plan(&error)),
        };
        match external(error) {
            Ok(found) => match found.downcast::<crate::source::Error>() {
                Ok(e) => Error::from(*e),
                Err(found) => match found.downcast::<crate::schema::Error>() {
                    Ok(e) => Error::from(*e),
                    Err(found) => Error::Worker { what: "read the input", why: found.to_string() },
                },
            },
            Err(e) => Error::from(crate::transform::Error::from_plan(&e)),
        }
    }

    /// Says where the row at fault came from.
    pub async fn record_error(&self, error: crate::record::Error) -> Error {
        match error.position() {
            Some(position) => Error::Row { place: self.source.describe(position).await, cause: error },
            None => Error::from(error),
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
    Record(crate::record::Error),
    Cancelled,
}
