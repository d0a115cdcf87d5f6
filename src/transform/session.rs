//! The DataFusion session of a chain, and the input as a table in it.

use crate::source::{Batches, POSITION_COLUMN};
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::{StreamExt, stream};
use std::sync::Arc;

/// Partitions of a step's input, for each core: enough to even out pieces of unequal cost, few enough that an operator
/// that reads all partitions at once (a join, a sort) does not hold the buffers of every piece of a long backlog.
const PARTITIONS_PER_CORE: usize = 4;

pub(super) fn new(memory: usize) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_batch_size(8192)
        .with_target_partitions(num_cpus::get())
        // Would deal rows out to other partitions and so lose their order.
        .with_round_robin_repartition(false);
    let parser = &mut config.options_mut().sql_parser;
    parser.enable_ident_normalization = false;
    parser.map_string_types_to_utf8view = false;
    // Spark's: a null is less than any value.
    parser.default_null_ordering = "nulls_min".to_string();
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(memory))).build_arc()?;
    Ok(SessionContext::new_with_config_rt(config, runtime))
}

/// Every piece a partition.
pub(super) fn pieces(context: &SessionContext, batches: &Batches) -> Result<DataFrame> {
    context.read_table(Arc::new(StreamingTable::try_new(batches.schema.clone(), batches.partitions.clone())?))
}

/// What the first step's SQL may see: no positions, or `SELECT DISTINCT *` would find no two rows alike.
pub(super) fn source(context: &SessionContext, batches: &Batches) -> Result<DataFrame> {
    let most = PARTITIONS_PER_CORE * num_cpus::get();
    let runs = batches.partitions.chunks(batches.partitions.len().div_ceil(most).max(1));
    let runs = runs.map(|pieces| Arc::new(Run::new(&batches.schema, pieces)) as Arc<dyn PartitionStream>).collect();
    let rows = context.read_table(Arc::new(StreamingTable::try_new(batches.schema.clone(), runs)?))?;
    match batches.schema.fields().iter().any(|f| f.name() == POSITION_COLUMN) {
        true => rows.drop_columns(&[POSITION_COLUMN]),
        false => Ok(rows),
    }
}

/// Neighbouring pieces, read one after the other.
#[derive(Debug)]
struct Run {
    schema: SchemaRef,
    pieces: Vec<Arc<dyn PartitionStream>>,
}

impl Run {
    fn new(schema: &SchemaRef, pieces: &[Arc<dyn PartitionStream>]) -> Run {
        Run { schema: schema.clone(), pieces: pieces.to_vec() }
    }
}

impl PartitionStream for Run {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let pieces = stream::iter(self.pieces.clone());
        let rows = pieces.flat_map(move |piece| piece.execute(context.clone()));
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows))
    }
}
