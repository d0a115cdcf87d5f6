//! SQL over `<SRC>`, steps chained; DataFusion's dialect. Knows no keys and no table.

use crate::config::TransformerConfig;
use crate::source::Batches;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{step}: {why}")]
    Sql { step: String, why: String },
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Sql { .. } => "transform-sql",
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// Rows to be written: a DataFusion plan whose partitions are in order.
#[derive(Debug, Clone)]
pub struct Transformed {
    pub schema: SchemaRef,
    pub plan: Arc<dyn ExecutionPlan>,
    pub context: Arc<datafusion::execution::TaskContext>,
}

/// The chain over the batches of one fetch. Without steps: the batches as they are.
pub async fn apply(_steps: &[TransformerConfig], _batches: &Batches) -> Result<Transformed> {
    todo!()
}
