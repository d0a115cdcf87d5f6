//! PARTITION_SORT and GLOBAL_SORT: rows in order of (partition path, record key), by DataFusion's external sort, which
//! spills to the temporary folder what its memory does not hold.
//!
//! PARTITION_SORT sorts what each worker happens to read. GLOBAL_SORT first brings the rows of a partition path together,
//! each path at one worker: as a file group lies in one partition, its files are then those of a sort of all rows, and
//! workers share the partitions. (A table without partitions is sorted and written by one worker; reading and
//! keying it still uses all.)

use super::bulk::next_piece;
use super::data_file::Run;
use super::{Error, Result};
use crate::config::BulkInsertSortMode;
use crate::index::is_deleted;
use crate::record::{KeyGenerator, KeyedBatch};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{filter_record_batch, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{StreamExt, stream};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// No less for one sort than a merge of spilled runs needs.
const MIN_SORT_MEMORY: usize = 64 << 20;

/// Names of the columns before the data columns. Those of the meta columns, which no writer schema has.
pub(super) const PARTITION_PATH_COLUMN: &str = "_hoodie_partition_path";
pub(super) const RECORD_KEY_COLUMN: &str = "_hoodie_record_key";

/// Positions of these columns in a sorted batch.
pub(super) const PARTITION_PATH: usize = 0;
const RECORD_KEY: usize = 1;

/// Rows on their way through DataFusion's sort.
pub(super) struct Sorted {
    /// One a worker: partition path, record key, then the data columns; deleted rows left out.
    pub streams: Vec<SendableRecordBatchStream>,
    /// Why the streams have failed. DataFusion shares an error among its readers, behind which ours would stay hidden.
    pub failure: Failure,
}

/// The first failure of this room, or of the rows, under DataFusion's operators.
#[derive(Clone, Default)]
pub(super) struct Failure(Arc<Mutex<Option<Error>>>);

impl Failure {
    fn keep(&self, error: Error) -> DataFusionError {
        let text = error.to_string();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        DataFusionError::Execution(text)
    }

    pub(super) fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Begins to sort: nothing is read before the streams are.
pub(super) fn sorted(
    run: &Arc<Run>,
    pieces: Vec<SendableRecordBatchStream>,
    keys: KeyGenerator,
    workers: usize,
) -> Result<Sorted> {
    let schema = sorted_schema(&run.context.schema.arrow);
    let failure = Failure::default();
    let pieces = Arc::new(Mutex::new(VecDeque::from(pieces)));
    let source = Arc::new(KeyedPieces { schema, run: run.clone(), keys, pieces, failure: failure.clone() });
    let sources = (0..workers).map(|_| source.clone() as Arc<dyn PartitionStream>).collect();
    let mut plan: Arc<dyn ExecutionPlan> =
        Arc::new(StreamingTableExec::try_new(source.schema.clone(), sources, None, None, false, None)?);
    let path: Arc<dyn PhysicalExpr> = Arc::new(Column::new(PARTITION_PATH_COLUMN, PARTITION_PATH));
    let key: Arc<dyn PhysicalExpr> = Arc::new(Column::new(RECORD_KEY_COLUMN, RECORD_KEY));
    if run.context.config.bulk_insert_sort_mode == BulkInsertSortMode::GlobalSort {
        plan = Arc::new(RepartitionExec::try_new(plan, Partitioning::Hash(vec![path.clone()], workers))?);
    }
    let order = LexOrdering::new([path, key].map(PhysicalSortExpr::new_default)).expect("two columns to sort by");
    let plan = SortExec::new(order, plan).with_preserve_partitioning(true);
    let memory = run.context.config.memory.rows.max(MIN_SORT_MEMORY.saturating_mul(workers));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(memory))).build_arc()?;
    let task = Arc::new(TaskContext::default().with_runtime(runtime));
    let streams =
        (0..workers).map(|worker| plan.execute(worker, task.clone())).collect::<std::result::Result<_, _>>()?;
    Ok(Sorted { streams, failure })
}

fn sorted_schema(schema: &SchemaRef) -> SchemaRef {
    let own = [PARTITION_PATH_COLUMN, RECORD_KEY_COLUMN].map(|name| Arc::new(Field::new(name, DataType::Utf8, false)));
    Arc::new(Schema::new(own.into_iter().chain(schema.fields().iter().cloned()).collect::<Vec<_>>()))
}

/// The pieces as a source of DataFusion's, read by whoever asks next.
struct KeyedPieces {
    schema: SchemaRef,
    run: Arc<Run>,
    keys: KeyGenerator,
    pieces: Arc<Mutex<VecDeque<SendableRecordBatchStream>>>,
    failure: Failure,
}

impl std::fmt::Debug for KeyedPieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedPieces")
    }
}

impl PartitionStream for KeyedPieces {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, run, keys) = (self.schema.clone(), self.run.clone(), self.keys.clone());
        let failure = self.failure.clone();
        let pieces = stream::unfold(self.pieces.clone(), |pieces| async move {
            let piece = next_piece(&pieces)?;
            Some((piece, pieces))
        });
        let keyed = move |batch: std::result::Result<RecordBatch, DataFusionError>| {
            run.check_cancelled()?;
            Ok(sortable(&keys.key(&batch?)?, &schema)?)
        };
        let batches = pieces.flatten().map(move |batch| keyed(batch).map_err(|error| failure.keep(error)));
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
    }
}

fn sortable(batch: &KeyedBatch, schema: &SchemaRef) -> std::result::Result<RecordBatch, arrow::error::ArrowError> {
    let paths = StringArray::from_iter_values(batch.partitions.paths.iter());
    let ids = UInt32Array::from(batch.partitions.ids.clone());
    let mut columns: Vec<ArrayRef> = vec![take(&paths, &ids, None)?, Arc::new(batch.keys.clone())];
    columns.extend_from_slice(batch.rows.columns());
    let rows = RecordBatch::try_new(schema.clone(), columns)?;
    if batch.deleted.is_none() {
        return Ok(rows);
    }
    let stays: BooleanArray = (0..rows.num_rows()).map(|row| Some(!is_deleted(batch, row))).collect();
    filter_record_batch(&rows, &stays)
}
