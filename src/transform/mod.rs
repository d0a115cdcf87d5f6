//! SQL over `<SRC>`, steps chained, as Hudi's SQL transformers do it. Knows no keys and no table.
//!
//! Look at [`apply`] first. Each step's result is a view, and the next step's `<SRC>`; nothing is read before the plan
//! is executed. Invariants: a plan of filters and projections gives the rows in input order, partition 0 first; the
//! result has plain types (no views, no dictionaries) and no two columns of one name.
//!
//! The dialect is DataFusion's, not Spark's. Names resolve in the case they are written in and keep it. What Spark would
//! read differently and still run is refused where it can be seen (`"text"` in double quotes); what cannot be seen is
//! this: `/` between integers gives an integer, `concat` skips nulls, a `CAST` that fails is an error and not a null.

mod output;
mod session;
mod statement;

#[cfg(test)]
mod tests;

use crate::config::TransformerConfig;
use crate::source::Batches;
use arrow::datatypes::SchemaRef;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use statement::Step;
use std::sync::Arc;

/// Why a chain cannot be planned or run. `step` reads `transformer 2 (SqlFileBasedTransformer), statement 3`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{step}: {why}; the statement is: {statement}")]
    Sql { step: String, statement: String, why: String },
    #[error("{step}: {what}; the statement is: {statement}")]
    Unsupported { step: String, statement: String, what: String },
    #[error("{step}: read {path}: {why}")]
    File { step: String, path: String, why: String },
    #[error("run the transformers: {why}")]
    Run { why: String },
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Sql { .. } => "transform-sql",
            Error::Unsupported { .. } => "transform-unsupported",
            Error::File { .. } => "transform-file",
            Error::Run { .. } => "transform-run",
        }
    }

    /// What DataFusion met while a chain ran: a cast that failed, a division by zero.
    pub fn from_plan(error: &DataFusionError) -> Error {
        Error::Run { why: one_line(error) }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// Rows to be written: a DataFusion plan whose partitions are in order.
#[derive(Debug, Clone)]
pub struct Transformed {
    pub schema: SchemaRef,
    pub plan: Arc<dyn ExecutionPlan>,
    pub context: Arc<TaskContext>,
}

impl Transformed {
    /// Whether each row depends on one row of the input, so that the input may as well come in several rounds.
    pub fn is_row_wise(&self) -> bool {
        fn row_wise(plan: &Arc<dyn ExecutionPlan>) -> bool {
            let known =
                ["StreamingTableExec", "ProjectionExec", "FilterExec", "CoalesceBatchesExec", "CooperativeExec"];
            known.contains(&plan.name()) && plan.fetch().is_none() && plan.children().into_iter().all(row_wise)
        }
        row_wise(&self.plan)
    }
}

/// The chain over the batches of one fetch; what sorts, joins and groups hold beyond `memory` bytes they spill. Without
/// steps: the batches as they are, a partition a piece, positions included. With steps rows have no positions: SQL may
/// join, group and drop them.
pub async fn apply(steps: &[TransformerConfig], batches: &Batches, memory: usize) -> Result<Transformed> {
    let context = session::new(memory).map_err(|e| Error::from_plan(&e))?;
    if steps.is_empty() {
        let rows = session::pieces(&context, batches).map_err(|e| Error::from_plan(&e))?;
        return plan(rows).await.map_err(|e| Error::from_plan(&e));
    }
    let mut rows = session::source(&context, batches).map_err(|e| Error::from_plan(&e))?;
    for (index, config) in steps.iter().enumerate() {
        let source = format!("hoodie_src_{}", index + 1);
        let step = Step::read(index + 1, config, &source).await?;
        context.register_table(source.as_str(), rows.into_view()).map_err(|e| Error::from_plan(&e))?;
        rows = step.run(&context).await?;
    }
    plan(output::plain(rows).map_err(|e| Error::from_plan(&e))?).await.map_err(|e| Error::from_plan(&e))
}

async fn plan(rows: DataFrame) -> datafusion::error::Result<Transformed> {
    let context = Arc::new(rows.task_ctx());
    let plan = rows.create_physical_plan().await?;
    Ok(Transformed { schema: plan.schema(), plan, context })
}

/// The plan as text, a line a node, inputs indented below.
pub fn explain(transformed: &Transformed) -> String {
    displayable(transformed.plan.as_ref()).indent(false).to_string()
}

/// DataFusion's message without line ends and backtraces.
fn one_line(error: &DataFusionError) -> String {
    error.strip_backtrace().split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_string()
}
